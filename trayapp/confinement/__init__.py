"""Confinement of servers' programs to the files, hosts and processes that they need (PRODUCT 18).

`policy` decides what they need. The other modules enforce the policy: Landlock and seccomp, bubblewrap, a macOS
profile, a proxy. Nothing here is imported until a server is confined.
"""
