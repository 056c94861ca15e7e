"""Answer the control request that runs a server confined, once, to see what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trayapp.gateway.client import text_of
from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import UsageError
from trayapp.model.settings import Confine, confine_of
from trayapp.wire import control

if TYPE_CHECKING:
    pass


class ConfinementRequests:
    """Confinement requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.handlers: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {control.CONFINE: self._try}

    async def _try(self, params: dict[str, Any]) -> Any:
        services = self._gateway.services
        name = text_of(params, "server", "the request")
        connection = services.pool.find(name)
        server = connection.server
        if server.command is None:
            raise UsageError(f"Cannot confine {name}: it runs elsewhere, not on this machine", "See: multi-mcp status")
        now = confine_of(server.confine, services.settings().confine) or Confine()
        record = services.confinements.get(name)
        called = record.status().refused if record is not None else ()
        if record is not None and record.confine == now:
            now = record.remedy()  # a trial calls no tool: refusals during calls are known only from here
        trial = await services.pool.try_confined(connection, now)
        error = trial.error
        return {
            "way": trial.status.way,
            "tools": None if trial.tools is None else list(trial.tools),
            "error": {"title": error.title, "hint": error.hint} if error is not None else None,
            "read": list(trial.read),
            "written": list(trial.written),
            "refused": [asdict(one) for one in trial.status.refused],
            "refused_in_calls": [asdict(one) for one in called if one not in trial.status.refused],
            "confine": trial.confine.value(),
            "line": trial.line,
        }
