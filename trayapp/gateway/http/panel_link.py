"""Links to the panel, for the control requests of tray and command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import MultiMcpError
from trayapp.wire import control

MODULES = ("trayapp.gateway.http.server", "trayapp.panel.app")  # for the request that follows the link


class PanelRequests:
    """Requests for a link to the panel of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.handlers: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {control.PANEL: self._link}

    async def _link(self, asked: dict[str, Any]) -> Any:
        url = self._gateway.http_url
        if url is None:
            raise MultiMcpError("The panel needs the HTTP port, which is closed", "Set settings.http to true")
        for module in MODULES:
            await anyio.to_thread.run_sync(import_module, module)
        query = {"code": self._gateway.panel_access.code()}
        query |= {"what": str(asked["what"])} if asked.get("what") else {}
        return {"url": f"{url.removesuffix('/mcp')}/panel/enter?{urlencode(query)}"}
