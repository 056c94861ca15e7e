"""Check for a network route by asking the routing table. Nothing is sent.

Changes of the network are noticed in `wake`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from trayapp.backends.clock import Clock
from trayapp.model.config import ServerConfig

ROUTE_WAIT_S = 10.0  # after waking, wireless networks take 2 to 10 s; a longer outage counts as a failure
ROUTE_LOOK_S = 0.5
# Documentation addresses (RFC 5737, RFC 3849): connecting a datagram socket only looks up the route.
_FAR = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_DISCARD = 9  # a port; no packet is ever sent to it


def has_route() -> bool:
    """Return True if the system has a route to an outside address."""
    for family, address in _FAR:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _DISCARD))
            return True
    return False


async def await_route(clock: Clock, routed: Callable[[], bool] = has_route) -> None:
    """Wait for a network route, at most ROUTE_WAIT_S."""
    latest = clock.now() + ROUTE_WAIT_S
    while not routed() and clock.now() < latest:
        await clock.sleep(ROUTE_LOOK_S)


def is_remote(server: ServerConfig) -> bool:
    """Return True if a server is reached over the network: the host in its url is not, or may not be, this machine."""
    if server.url is None:
        return False
    try:
        host = urlsplit(server.url).hostname or ""
    except ValueError:
        return True  # the url may contain a variable
    return not (host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost"))
