"""The limit on files and sockets that this process may have open. Never here: counting them."""

from __future__ import annotations

import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource

ENOUGH = 65_536  # more than a gateway ever needs; programs that close every possible descriptor still start quickly
MACOS_MOST = 10_240  # OPEN_MAX: macOS refuses more, even if the hard limit is higher
UNKNOWN = 8_192  # Windows: handles have no limit that matters in practice


def descriptor_limit() -> int:
    """Return the soft limit on open descriptors."""
    if sys.platform == "win32":
        return UNKNOWN
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard one, at most to ENOUGH. Desktops commonly start programs with 1,024."""
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
