"""Snapshots and list rows for tests, made with the model's classes."""

from __future__ import annotations

import json
from typing import Any

from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import GatewayStatus, ServerStatus, SessionStatus, Snapshot, ToolCounts

FAILED = {"title": "npx is not installed", "hint": "Install node"}


def server(name: str, state: State = State.IDLE, tools: ToolCounts = ToolCounts(3, 3), **more: Any) -> ServerStatus:  # noqa: B008
    """Return one server of a snapshot."""
    return ServerStatus(name, state, "lazy", "stdio", tools=tools, **more)


def snapshot(*servers: ServerStatus, problems: tuple[Problem, ...] = (), revision: int = 7) -> Snapshot:
    """Return a snapshot of a gateway that has run for 200 s and serves one client."""
    session = SessionStatus("claude-code", "stdio", "2025-11-25", "tools")
    gateway = GatewayStatus("running", 4711, "0.1.0", 200.0, "http://127.0.0.1:7461/mcp", (session,))
    return Snapshot(revision, gateway, servers, problems)


def full_snapshot() -> Snapshot:
    """Return a snapshot with a problem and with servers in many states."""
    return snapshot(
        server("github", State.CONNECTED, ToolCounts(26, 24), pid=4712, calls=5, protocol="2025-11-25"),
        server("files", State.IDLE),
        server("broken", State.FAILED, ToolCounts(4, 4), error=FAILED, failed_s_ago=12.0),
        server("linear", State.NEEDS_AUTH, ToolCounts()),
        server("off", State.DISABLED, ToolCounts(2, 0)),
        problems=(
            Problem("/home/me/servers.yaml", 12, "Unknown key comand", "Did you mean command?", 3, "files", False),
        ),
    )


def as_sent(made: Snapshot) -> Any:
    """Return the snapshot as JSON values, in which tuples become lists."""
    return json.loads(json.dumps(made.to_json()))


def row(name: str, **more: Any) -> dict[str, Any]:
    """Return a row of `list --json` for a tool of the server github."""
    plain = {"server": "github", "name": name, "exposed_name": f"github_{name}", "enabled": True, "stale": False}
    return {**plain, "withheld": None, "description": f"Does {name}.\nAnd more.", **more}
