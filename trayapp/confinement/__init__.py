"""Confinement of servers' programs to the files, hosts and processes that they need.

`policy` decides what they need. The other modules enforce the policy: Landlock and seccomp, bubblewrap, a macOS
profile, a proxy. This package is imported only when it is needed.
"""
