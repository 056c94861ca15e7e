"""When a gateway whose program was replaced makes room for one of the new program: once nobody would notice.

Never here: whether it was replaced (service/installed), how the new one begins (cli/become).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trayapp.model.lifecycle import State

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

LOOK_S = 5.0  # on the beat of everything that looks now and then; a look costs one system call
QUIET_S = 600.0  # without a call: as long as an idle server runs. What a server holds for its client ends with it


async def await_turn(gateway: Gateway, is_followed: Callable[[], bool], is_asked: Callable[[], bool]) -> None:
    """Return once the program was replaced and nobody is amid anything.

    `is_asked`: whether a tray or a verb is connected; with a tray it is the tray that hands over.
    """
    began = gateway.clock.now()
    while not is_followed() or is_asked() or not is_quiet(gateway, began):
        await gateway.clock.beat(LOOK_S)


def is_quiet(gateway: Gateway, since: float) -> bool:
    """Whether nothing was called for QUIET_S, and nothing is under way. `since`: when the gateway began."""
    used = max((connection.last_used or since for connection in gateway.pool), default=since)
    return gateway.clock.now() - used >= QUIET_S and not is_amid(gateway)


def is_amid(gateway: Gateway) -> bool:
    """Whether a call or a start is under way."""
    return any(
        (
            *(connection.in_flight or connection.state is State.CONNECTING for connection in gateway.pool),
            *(session.open_calls for session in gateway.sessions),
        )
    )
