"""What the Secret Service says by itself: a collection was locked, unlocked or made, the service began or ended.

Linux only, over the session bus. Never here: asking it anything (os_keyring), what follows from a signal (vault).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread

log = logging.getLogger(__name__)

SERVICE = "org.freedesktop.secrets"
PLACE = "/org/freedesktop/secrets"
GATHER_S = 0.2  # an unlocking is several signals


async def secret_service_signals() -> AsyncGenerator[None]:
    """Yield after each burst of signals. Ends where there is no session bus, or once it has gone."""
    if sys.platform in ("win32", "darwin") or not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return
    try:
        await anyio.to_thread.run_sync(_load)
        from jeepney import MatchRule, MessageType, message_bus
        from jeepney.io.asyncio import open_dbus_connection

        connection = await open_dbus_connection("SESSION")
        try:
            begun = MatchRule(type="signal", sender=message_bus.bus_name, member="NameOwnerChanged")
            begun.add_arg_condition(0, SERVICE)
            for rule in (MatchRule(type="signal", sender=SERVICE, path_namespace=PLACE), begun):
                await connection.send(message_bus.AddMatch(rule))
            while True:
                message = await connection.receive()
                if message.header.message_type is MessageType.signal:
                    await anyio.sleep(GATHER_S)
                    yield
        finally:
            connection.writer.close()
    except (OSError, EOFError, ValueError, LookupError, RuntimeError) as error:  # all that jeepney says of a bad bus
        log.debug("no session bus: %s", error)


def _load() -> None:
    """Import jeepney off the event loop."""
    import jeepney.io.asyncio  # noqa: F401
