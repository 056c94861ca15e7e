"""The client's side of the local endpoint: reading the endpoint file, and the first line that a connection sends.

The tray and the command line import this at every start, so it must not import asyncio.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from trayapp.wire.jsonio import JsonError, dumps, loads

USES_TCP = sys.platform == "win32"
GREETING = b"multi-mcp/1 "  # a JSON object and a newline follow; the number is the protocol version


class Endpoint(NamedTuple):
    """The content of the endpoint file: how to reach the running gateway."""

    pid: int
    version: str
    socket: str
    port: int = 0  # port of the local TCP socket (Windows only)
    token: str = ""
    started_at: float = 0.0  # Unix seconds
    http_url: str | None = None

    def is_sound(self) -> bool:
        """Return True if every field has the right type: any program may have written the file."""
        texts = (self.version, self.socket, self.token, self.http_url or "")
        numbers = (self.pid, self.port)
        return (
            all(isinstance(text, str) for text in texts)
            and all(type(number) is int and number >= 0 for number in numbers)
            and isinstance(self.started_at, int | float)
        )


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line of a connection: its kind ("session" or "control") and its options."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)


def endpoint_file(run: str) -> Path:
    return Path(run) / "endpoint.json"


def read_endpoint(run: str) -> Endpoint | None:
    """Return the published endpoint, or None if none can be read."""
    try:
        values = loads(endpoint_file(run).read_bytes())
        endpoint = Endpoint(**{name: values[name] for name in Endpoint._fields if name in values})
    except (OSError, JsonError, TypeError):  # TypeError: not an object, or a required field is missing
        return None
    return endpoint if endpoint.is_sound() else None


def greeting(hello: Hello, token: str = "") -> bytes:
    """Return the first line that a connection sends. `token`: the endpoint's, or "" for a Unix socket."""
    options = {"kind": hello.kind, **hello.options}
    if token:
        options["token"] = token
    return GREETING + dumps(options) + b"\n"
