"""When a gateway whose program was replaced makes room for one of the new program: once nobody would notice.

Never here: whether it was replaced (service/installed), how the new one begins (cli/become).
"""

from __future__ import annotations

from collections.abc import Callable

from trayapp.gateway.services import Services
from trayapp.model.lifecycle import State

LOOK_S = 5.0  # on the beat of everything that looks now and then; a look costs one system call
QUIET_S = 600.0  # without a call: as long as an idle server runs. What a server holds for its client ends with it


async def await_turn(services: Services, is_followed: Callable[[], bool], is_asked: Callable[[], bool]) -> None:
    """Return once the program was replaced and nobody is amid anything.

    `is_asked`: whether a tray or a verb is connected; with a tray it is the tray that hands over.
    """
    began = services.clock.now()
    while not is_followed() or is_asked() or not is_quiet(services, began):
        await services.clock.beat(LOOK_S)


def is_quiet(services: Services, since: float) -> bool:
    """Whether nothing was called for QUIET_S, and nothing is under way. `since`: when the gateway began."""
    used = max((connection.last_used or since for connection in services.pool), default=since)
    return services.clock.now() - used >= QUIET_S and not is_amid(services)


def is_amid(services: Services) -> bool:
    """Whether a call or a start is under way."""
    return any(
        (
            *(connection.in_flight or connection.state is State.CONNECTING for connection in services.pool),
            *(session.open_calls for session in services.sessions),
        )
    )
