"""A small MCP server over stdio that a new installation can use immediately.

It runs as a separate program, `python -I -S server.py`, and uses only the standard library.
"""

from __future__ import annotations

import json
import sys
import time

TYPE_CHECKING = False  # not typing.TYPE_CHECKING: importing typing would double the startup time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "multi-mcp-sample"
VERSION = "1.0.0"
PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # the protocol revisions with initialize
STATELESS = "2026-07-28"  # the protocol revision with server/discover
SERVER_INFO = {"name": NAME, "title": "Sample server of multi-mcp", "version": VERSION}
CAPABILITIES = {"tools": {"listChanged": False}}
INSTRUCTIONS = "A sample server that comes with multi-mcp. It echoes a text, adds two numbers and tells the time."

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class RequestRefused(Exception):
    """Raised to answer a request with this JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class WrongArguments(Exception):
    """Raised for invalid tool arguments. The model reads the reason in the result (MCP tools, error handling)."""


def echo(arguments: dict[str, Any]) -> str:
    """Return the given text."""
    if not isinstance(arguments.get("text"), str):
        raise WrongArguments("echo needs text, a string")
    return str(arguments["text"])


def add(arguments: dict[str, Any]) -> str:
    """Return the sum of two numbers."""
    a, b = arguments.get("a"), arguments.get("b")
    for value in (a, b):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongArguments("add needs a and b, both numbers")
    return json.dumps(a + b)  # type: ignore[operator]


def clock(arguments: dict[str, Any]) -> str:
    """Return the local time in ISO 8601, with its UTC offset."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def schema(**properties: dict[str, str]) -> dict[str, Any]:
    """Return the JSON Schema of an object whose properties are all required."""
    required = {"required": list(properties)} if properties else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def tool(name: str, title: str, description: str, takes: dict[str, Any], *, steady: bool = True) -> dict[str, Any]:
    """Return a tool definition. `steady`: True if the same arguments always give the same answer."""
    hints = {"title": title, "readOnlyHint": True, "idempotentHint": steady, "openWorldHint": False}
    return {"name": name, "title": title, "description": description, "inputSchema": takes, "annotations": hints}


NUMBER = {"type": "number"}
TOOLS = [
    tool(
        "echo",
        "Echo",
        "Answer with the text that was given.",
        schema(text={"type": "string", "description": "What to answer"}),
    ),
    tool(
        "add",
        "Add",
        "Add two numbers and return their sum.",
        schema(a={**NUMBER, "description": "First number"}, b={**NUMBER, "description": "Second number"}),
    ),
    tool("clock", "Clock", "Tell this computer's local date and time.", schema(), steady=False),
]
HANDLERS: dict[str, Callable[[dict[str, Any]], str]] = {"echo": echo, "add": add, "clock": clock}


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    """Answer initialize. Agree to the client's revision if it is known, or offer the newest one that has initialize."""
    asked = params.get("protocolVersion")
    agreed = asked if asked in PROTOCOLS else PROTOCOLS[-1]
    about = {"capabilities": CAPABILITIES, "serverInfo": SERVER_INFO, "instructions": INSTRUCTIONS}
    return {"protocolVersion": agreed, **about}


def discover(params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to server/discover, which replaces the handshake in revision 2026-07-28."""
    return {
        "resultType": "complete",
        "supportedVersions": [STATELESS, *reversed(PROTOCOLS)],
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
    }


def call(params: dict[str, Any]) -> dict[str, Any]:
    """Run a tool and return its result. Wrong arguments return an error result, which the model reads.

    Raises RequestRefused if there is no such tool.
    """
    handler = HANDLERS.get(str(params.get("name")))
    if handler is None:
        raise RequestRefused(INVALID_PARAMS, f"Unknown tool: {params.get('name')}")
    arguments = params.get("arguments") or {}
    try:
        if not isinstance(arguments, dict):
            raise WrongArguments("The arguments must be an object")
        text, failed = handler(arguments), False
    except (WrongArguments, ArithmeticError, ValueError) as error:  # ArithmeticError, ValueError: the sum is too large
        text, failed = str(error), True
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": failed}


METHODS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": lambda params: {},
    "tools/list": lambda params: {"resultType": "complete", "tools": TOOLS},
    "tools/call": call,
}


def answer(line: bytes) -> dict[str, Any] | None:
    """Return the answer to one line, or None for a notification or a response."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": "Not JSON"}}
    if not isinstance(message, dict):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": "Not a request"}}
    if "id" not in message or "method" not in message:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    params = message.get("params")
    method = METHODS.get(str(message["method"]))
    try:
        if method is None:
            raise RequestRefused(METHOD_NOT_FOUND, f"Unknown method: {message['method']}")
        return {**reply, "result": method(params if isinstance(params, dict) else {})}
    except RequestRefused as refused:
        return {**reply, "error": refused.error}


def main() -> int:
    """Answer each line of stdin on stdout until stdin ends."""
    for line in sys.stdin.buffer:
        reply = answer(line) if line.strip() else None
        if reply is not None:
            sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
            sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
