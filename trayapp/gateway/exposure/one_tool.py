"""Define the one tool as clients list it: the same bytes for any servers.

A test keeps it under 300 tokens of o200k.
"""

from __future__ import annotations

from typing import Any

from trayapp.gateway.exposure.catalog import ONE_TOOL
from trayapp.model.offer import Item
from trayapp.wire.jsonio import dumps

DESCRIPTION = """\
Every MCP server on this computer behind one tool. Search, then call:
{"search":"what it should do"} finds tools, with their parameters; server, regex and limit narrow it
{"tool":"NAME","args":{...}} calls one; a server's resources are tools, too
{"describe":"NAME"} explains one in full
{"server":"NAME"} lists a server's tools, in pages by offset and limit
{"connect":"NAME"} connects or reconnects a server
{"result":"ID","offset":N} goes on with a long result
{} says which servers there are, and why one is missing"""

DEFINITION: Item = {
    "name": ONE_TOOL,
    "description": DESCRIPTION,
    "inputSchema": {
        "type": "object",
        "properties": {
            "search": {"type": "string"},
            "regex": {"type": "boolean"},
            "includeSchemas": {"type": "boolean"},
            "describe": {"type": "string"},
            "tool": {"type": "string"},
            "args": {"type": "object", "description": "The tool's own arguments, all of them"},
            "server": {"type": "string"},
            "connect": {"type": "string"},
            "result": {"type": "string"},
            "offset": {"type": "integer"},
            "limit": {"type": "integer"},
        },
        "additionalProperties": False,
    },
    # Claude Code defers tools without this: its model would not find ours by words of the servers' tools.
    "_meta": {"anthropic/alwaysLoad": True},
}
DEFINITION_JSON = dumps(DEFINITION)


def is_one_tool(params: Any) -> bool:
    """Return True if the params of a tools/call name the one tool, whether or not the session lists it."""
    return isinstance(params, dict) and params.get("name") == ONE_TOOL


def looks_for_tools(params: dict[str, Any]) -> bool:
    """Return True if a call of the one tool asks which tools there are."""
    arguments = params.get("arguments")
    return not isinstance(arguments, dict) or arguments.keys().isdisjoint({"tool", "connect", "result"})
