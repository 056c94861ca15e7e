"""Build the rows of `list --json`: every known tool of a catalog, including tools that their servers no longer list.
Also build the rows of one server's other offers.
"""

from __future__ import annotations

from typing import Any

from trayapp.catalog.names import Key
from trayapp.catalog.tool_class import classify
from trayapp.gateway.asks.subject import ask_mode, asks_first
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.served_tools import ServedTool
from trayapp.model.offer import Item, Offer


def tool_rows(known: Catalog, server: str | None = None, *, classes: bool = False) -> list[dict[str, Any]]:
    """Return `{"server", "name", "exposed_name", "enabled", "stale", "withheld", "description"}` for each tool.

    `server`: only this server's tools. `classes`: with `"class"`, `"ask"`: True if the user is asked before a call
    through `mcp`, `"switch"`: what servers.yaml says, and `"held"`: True if it waits for approval.
    """
    rows = [
        _row(known, key, tool) | (_class_of(known, key, tool) if classes else {})
        for key, tool in known.tools.items()
        if server in (None, key[0])
    ]
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


def _class_of(known: Catalog, key: Key, tool: ServedTool) -> dict[str, Any]:
    tool_class, entry = classify(tool.item).tool_class, known.config.servers[key[0]]
    mode = ask_mode(known.config.settings, entry, key[1])
    asks = asks_first(mode, tool_class, listed=False)
    return {"class": tool_class, "ask": asks, "switch": known.switch(key), "held": key in known.held}


def _gone_row(known: Catalog, server: str, tool: str) -> dict[str, Any]:
    switch = (known.config.servers[server].tools or {})[tool]
    row = {"server": server, "name": tool, "exposed_name": None, "enabled": switch.enabled, "stale": True}
    return {**row, "withheld": None, "description": ""}


def offer_rows(offer: Offer | None) -> dict[str, Any]:
    """Return `{"version", "prompts", "resources", "templates"}` of a server, each item by name and description."""
    if offer is None:
        return {"version": "", "prompts": [], "resources": [], "templates": []}
    info = offer.server_info or {}
    version = " ".join(one for one in (info.get("name"), info.get("version")) if isinstance(one, str))
    return {
        "version": version,
        "prompts": [_item_row(item, "name") for item in offer.prompts],
        "resources": [_item_row(item, "uri") for item in offer.resources],
        "templates": [_item_row(item, "uriTemplate") for item in offer.templates],
    }


def _item_row(item: Item, key: str) -> dict[str, str]:
    words = item.get("description") or item.get("title") or (item.get("name") if key != "name" else "")
    return {"name": str(item.get(key, "")), "description": words if isinstance(words, str) else ""}
