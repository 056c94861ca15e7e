"""Answer control requests about the history of calls."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import MultiMcpError
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from trayapp.history.store import Filter

Asked = dict[str, Any]
TEXTS = ("words", "server", "tool", "client")
NUMBERS = ("after", "before", "limit")
FLAGS = ("failed", "typed")


class HistoryRequests:
    """History requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._history = gateway.services.history
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.HISTORY: self._find,
            control.HISTORY_SHOW: self._show,
            control.HISTORY_CLEAR: self._clear,
        }

    async def _find(self, asked: Asked) -> Any:
        rows = await self._history.find(filter_of(asked))
        problem = self._history.problem
        return {
            "rows": rows,
            "enabled": self._history.enabled,
            "problem": {"title": problem.message, "hint": problem.hint} if problem is not None else None,
        }

    async def _show(self, asked: Asked) -> Any:
        number = _whole(asked, "id")
        row = await self._history.get(number)
        if row is None:
            raise MultiMcpError(f"No call has the number {number}", "See the recorded calls: multi-mcp history")
        return row

    async def _clear(self, asked: Asked) -> Any:
        return {"cleared": await self._history.clear()}


def filter_of(asked: Asked) -> Filter:
    """Return the filter of a request. `since_s`, in seconds before now, becomes a Unix time. Raises RpcError."""
    from trayapp.history.store import Filter  # loads SQLite, 1 MB, which `status` does not need

    texts: dict[str, Any] = {name: asked.get(name) or "" for name in TEXTS}
    if wrong := next((name for name, value in texts.items() if not isinstance(value, str)), None):
        raise RpcError(INVALID_PARAMS, f"{wrong} must be text")
    numbers: dict[str, Any] = {name: _whole(asked, name) for name in NUMBERS if asked.get(name) is not None}
    since_s = asked.get("since_s")
    if since_s is not None and (isinstance(since_s, bool) or not isinstance(since_s, int | float)):
        raise RpcError(INVALID_PARAMS, "since_s must be a number of seconds")
    since = time.time() - since_s if since_s is not None else 0.0
    flags: dict[str, Any] = {name: asked.get(name) is True for name in FLAGS}
    return Filter(**texts, **numbers, **flags, since=since)


def _whole(asked: Asked, name: str) -> int:
    value = asked.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise RpcError(INVALID_PARAMS, f"{name} must be a whole number, 0 or more")
    return value
