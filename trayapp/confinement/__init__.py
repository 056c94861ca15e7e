"""Servers' programs confined to the files, hosts and processes that they need (PRODUCT 18).

`policy` decides what that is, the others enforce it: Landlock and seccomp, bubblewrap, a macOS profile, a proxy.
Nothing here is imported before a server is confined.
"""
