"""Answer control requests about the commands that print servers' secrets: list and approve those that wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread

from trayapp.config.layers.project import TrustStore
from trayapp.gateway.client import text_of
from trayapp.gateway.gateway import Gateway
from trayapp.model.text import escape_unprintable
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, RpcError

Asked = dict[str, Any]


class SecretCommandRequests:
    """Requests about the secret commands of one gateway's servers. `trust`: the commands that the user approved."""

    def __init__(self, gateway: Gateway, trust: TrustStore) -> None:
        self._gateway = gateway
        self._trust = trust
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.COMMANDS: self._list_waiting,
            control.APPROVE_COMMANDS: self._approve,
        }

    async def _list_waiting(self, asked: Asked) -> Any:
        waiting = await anyio.to_thread.run_sync(self._unapproved, asked.get("server"))
        return {
            "rows": [
                {"server": name, "commands": commands, "shown": [escape_unprintable(one) for one in commands]}
                for name, commands in waiting.items()
            ]
        }

    async def _approve(self, asked: Asked) -> Any:
        """Approve those of `commands` that still wait for approval. The user has seen each of them in full."""
        server, commands = text_of(asked, "server", "the request"), asked.get("commands")
        if not isinstance(commands, list) or not all(isinstance(one, str) for one in commands):
            raise RpcError(INVALID_PARAMS, "approve_commands needs commands: a list of texts")
        waiting = (await anyio.to_thread.run_sync(self._unapproved, server)).get(server, [])
        approved = [one for one in commands if one in waiting]
        await anyio.to_thread.run_sync(self._trust.approve_commands, approved)
        return {"approved": approved, "missed": [one for one in commands if one not in waiting]}

    def _unapproved(self, server: str | None) -> dict[str, list[str]]:
        """Return the commands that wait for approval, by enabled server. `server`: only this server's. Blocks."""
        servers = dict(self._gateway.servers.shared.servers)
        return self._trust.unapproved(
            one for name, one in servers.items() if not one.disabled and server in (None, name)
        )
