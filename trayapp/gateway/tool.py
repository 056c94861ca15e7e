"""The definition of the one tool, as clients list it: the same bytes whatever servers there are.

Never here: what its modes do. A test keeps it under 300 tokens of o200k.
"""

from __future__ import annotations

from trayapp.gateway.known import ONE_TOOL
from trayapp.model.offer import Item
from trayapp.wire.jsonio import dumps

DESCRIPTION = """\
Every MCP server on this computer behind one tool: search, then call.
{} status
{"search":"what it should do"} finds tools with their parameters
{"describe":"TOOL"} everything about one
{"tool":"TOOL","args":{...}} calls it
{"server":"NAME"} lists its tools
{"connect":"NAME"} (re)connects it
{"result":"ID","offset":N} more of a long result"""

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
}
DEFINITION_JSON = dumps(DEFINITION)
