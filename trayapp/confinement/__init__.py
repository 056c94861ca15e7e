"""Confinement of servers' programs to the files, hosts and processes that they need (PRODUCT 18).

`policy` decides what that is. The other modules enforce it: Landlock and seccomp, bubblewrap, a macOS profile, a proxy.
Nothing here is imported until a server is confined.
"""
