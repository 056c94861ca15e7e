"""Build the rows of `list --json`: every known tool of a catalog, tools that left their servers included."""

from __future__ import annotations

from typing import Any

from trayapp.catalog.names import Key
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.served_tools import ServedTool


def tool_rows(known: Catalog, server: str | None = None) -> list[dict[str, Any]]:
    """Return `{"server", "name", "exposed_name", "enabled", "stale", "withheld", "description"}` for each tool.

    `server`: only this server's tools.
    """
    rows = [_row(known, key, tool) for key, tool in known.tools.items() if server in (None, key[0])]
    names = [name for name in known.config.servers if server in (None, name)]
    return rows + [_gone_row(known, name, tool) for name in names for tool in known.gone_of(known.config.servers[name])]


def _row(known: Catalog, key: Key, tool: ServedTool) -> dict[str, Any]:
    server, name = key
    description = tool.item.get("description")
    return {
        "server": server,
        "name": name,
        "exposed_name": known.names.by_key[key],
        "enabled": key not in known.hidden,
        "stale": False,
        "withheld": tool.withheld,
        "description": description if isinstance(description, str) else "",
    }


def _gone_row(known: Catalog, server: str, tool: str) -> dict[str, Any]:
    switch = (known.config.servers[server].tools or {})[tool]
    row = {"server": server, "name": tool, "exposed_name": None, "enabled": switch.enabled, "stale": True}
    return {**row, "withheld": None, "description": ""}
