"""Answer control requests about open asks: list them, allow, deny. Tray, panel and command line call the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from trayapp.catalog.schema.arguments import as_typed
from trayapp.gateway.asks.asks import Answer
from trayapp.gateway.client import text_of
from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import MultiMcpError
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, RpcError

Asked = dict[str, Any]
ALLOWING: tuple[Answer, ...] = ("once", "session", "always")
BY_LONGEST = 40  # characters of who answered


class AskRequests:
    """Ask requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.ASKS: self._list,
            control.ALLOW: self._allow,
            control.DENY: self._deny,
        }

    async def _list(self, asked: Asked) -> Any:
        approvals = self._gateway.services.approvals
        servers = self._gateway.servers.shared.servers
        always = [{"server": name, "tool": tool} for name in servers for tool in approvals.allowed(name)]
        return {"asks": [ask.row() for ask in self._gateway.asks], "always": always}

    async def _allow(self, asked: Asked) -> Any:
        answer, content = asked.get("answer") or "once", asked.get("content")
        if answer not in ALLOWING:
            raise RpcError(INVALID_PARAMS, f"answer must be one of {', '.join(ALLOWING)}")
        if content is not None and not isinstance(content, dict):
            raise RpcError(INVALID_PARAMS, "content must be an object")
        ask_id, typed = text_of(asked, "id", "allow"), asked.get("typed")
        if content is not None and isinstance(typed, dict):
            content = as_typed(content, typed, self._gateway.asks.schema_of(ask_id))
        row = self._gateway.asks.answer(ask_id, answer, _who(asked), content)
        if answer == "always":
            await self._gateway.services.writer.written()
        return {"ask": row}

    async def _deny(self, asked: Asked) -> Any:
        if "id" in asked:
            return {"ask": self._gateway.asks.answer(text_of(asked, "id", "deny"), "deny", _who(asked))}
        server, tool = text_of(asked, "server", "deny"), text_of(asked, "tool", "deny")
        if not self._gateway.services.approvals.forbid(server, tool):
            raise MultiMcpError(f"{server}/{tool} is not always allowed", "See what is: multi-mcp asks")
        await self._gateway.services.writer.written()
        return {}


def _who(asked: Asked) -> str:
    by = asked.get("by")
    return by[:BY_LONGEST] if isinstance(by, str) and by.isprintable() and by else "the user"
