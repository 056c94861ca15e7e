"""Which Host, Origin and Referer are this machine's own: pure rules, against DNS rebinding and other pages.

Never here: tokens, requests.
"""

from __future__ import annotations

import re

_AUTHORITY = r"(?:localhost|127\.0\.0\.1|\[::1\])(?::(?P<port>[0-9]{1,5}))?"
_HOST = re.compile(_AUTHORITY, re.IGNORECASE)
_ORIGIN = re.compile(r"(?P<scheme>https?)://" + _AUTHORITY, re.IGNORECASE)
_REFERER = re.compile(_ORIGIN.pattern + r"(?:[/?#].*)?", re.IGNORECASE)
PORTS_END = 65_536
OWN_FETCH = frozenset({"same-origin", "none"})  # Sec-Fetch-Site of our own page, and of the address bar


def is_own_host(host: str) -> bool:
    """True if a Host header names this machine by loopback, and nothing else."""
    return _is_match(_HOST, host)


def is_own_origin(origin: str, port: int | None = None) -> bool:
    """True if an Origin is a page of this machine; with `port`, only of the server at that port."""
    return _is_match(_ORIGIN, origin, port)


def is_own_referer(referer: str, port: int | None = None) -> bool:
    """True if a Referer is a page of this machine; with `port`, only of the server at that port."""
    return _is_match(_REFERER, referer, port)


def _is_match(pattern: re.Pattern[str], text: str, port: int | None = None) -> bool:
    found = pattern.fullmatch(text)
    if found is None or int(found["port"] or 0) >= PORTS_END:
        return False
    return port is None or (found["scheme"].lower() == "http" and int(found["port"] or 80) == port)
