"""Decide when a gateway whose program was replaced makes room for the new one: once it is idle."""

from __future__ import annotations

from collections.abc import Callable

from trayapp.gateway.services import Services
from trayapp.model.lifecycle import State

LOOK_S = 5.0  # checked with other regular work; a check costs one system call
QUIET_S = 600.0  # without a call: idle servers are closed by then, and their state for clients is gone anyway


async def await_turn(services: Services, is_followed: Callable[[], bool], is_asked: Callable[[], bool]) -> None:
    """Return once the program has been replaced and nothing is in progress.

    `is_asked`: returns True while a tray or a command is connected. With a tray, the tray hands over.
    """
    began = services.clock.now()
    while not is_followed() or is_asked() or not is_quiet(services, began):
        await services.clock.beat(LOOK_S)


def is_quiet(services: Services, since: float) -> bool:
    """Return True if nothing was called for QUIET_S and nothing is in progress. `since`: when the gateway began."""
    used = max((connection.last_used or since for connection in services.pool), default=since)
    return services.clock.now() - used >= QUIET_S and not is_amid(services)


def is_amid(services: Services) -> bool:
    """Return True if a call or a server's start is in progress."""
    return any(
        (
            *(connection.is_busy or connection.state is State.CONNECTING for connection in services.pool),
            *(session.open_calls for session in services.sessions),
        )
    )
