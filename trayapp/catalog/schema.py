"""A tool as a client gets it: its exposed name, and an input schema that a client can take.

Never here: choosing names, deciding who sees the tool.
"""

from __future__ import annotations

from typing import Any

from trayapp.model.offer import Item


def served_tool(item: Item, exposed_name: str) -> Item:
    """A copy of `item` under `exposed_name`, its input schema repaired; every other field kept, in its order."""
    return {**item, "name": exposed_name, "inputSchema": repaired(item.get("inputSchema"))}


def repaired(schema: Any) -> Any:
    """`schema` itself when it is an object with a `type`; else the nearest one that is (MCP wants `object`)."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    if schema.get("type") is None:
        return {**schema, "type": "object"}
    return schema
