"""How many files and sockets this process may have open. Never here: counting them."""

from __future__ import annotations

import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource

ENOUGH = 65_536  # more than a gateway ever needs; programs that close all descriptors one by one still start quickly
MACOS_MOST = 10_240  # OPEN_MAX: macOS refuses more, whatever the hard limit says
UNKNOWN = 8_192  # Windows: handles have no limit that a process meets


def descriptor_limit() -> int:
    """Return the soft limit."""
    if sys.platform == "win32":
        return UNKNOWN
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard one, as far as is of use: usual desktops start programs with 1,024."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (ENOUGH, MACOS_MOST):
        wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
