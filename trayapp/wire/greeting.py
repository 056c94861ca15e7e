"""How to reach a running gateway: its endpoint file, and the first line that a connection sends.

What tray and command line pay for at every start. Never here: asyncio, listening.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trayapp.wire.jsonio import JsonError, dumps, loads

USES_TCP = sys.platform == "win32"
GREETING = b"multi-mcp/1 "  # then a JSON object and a newline; the number is the protocol's


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint file: how to reach the running gateway."""

    pid: int
    version: str
    socket: str
    port: int = 0  # of the local TCP socket, Windows only
    token: str = ""
    started_at: float = 0.0  # Unix seconds
    http_url: str | None = None


@dataclass(frozen=True, slots=True)
class Hello:
    """First line of a connection: what it is for ("session" or "control") and its options."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)


def endpoint_file(run: str) -> Path:
    """Where the endpoint file lies."""
    return Path(run) / "endpoint.json"


def read_endpoint(run: str) -> Endpoint | None:
    """The published endpoint, or None when there is none that can be read."""
    try:
        values = loads(endpoint_file(run).read_bytes())
    except (OSError, JsonError):
        return None
    names = Endpoint.__dataclass_fields__
    if not isinstance(values, dict) or not isinstance(values.get("pid"), int):
        return None
    return Endpoint(**{name: value for name, value in values.items() if name in names})


def greeting(hello: Hello, token: str = "") -> bytes:
    """The first line that a connection sends."""
    options = {"kind": hello.kind, **hello.options}
    if token:
        options["token"] = token
    return GREETING + dumps(options) + b"\n"
