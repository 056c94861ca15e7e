"""Signals of the Secret Service: a collection was locked, unlocked or created, or the service started or ended.

Linux only, over the session bus. os_keyring calls the service; vault reacts to the signals.
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
GATHER_S = 0.2  # an unlock causes several signals


async def secret_service_signals() -> AsyncGenerator[None]:
    """Yield after each burst of signals. End if there is no session bus, or once it is gone."""
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
    except (OSError, EOFError, ValueError, LookupError, RuntimeError) as error:  # all that jeepney raises for a bad bus
        log.debug("No session bus: %s", error)


def _load() -> None:
    """Import jeepney outside the event loop."""
    import jeepney.io.asyncio  # noqa: F401
