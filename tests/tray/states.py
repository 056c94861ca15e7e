"""Tray states for tests and the gallery, and menus as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from trayapp.model.child import ChildState
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import (
    AskStatus,
    GatewayState,
    GatewayStatus,
    KeyringState,
    ServerStatus,
    SessionStatus,
    ShownArgument,
    Snapshot,
    ToolCounts,
)
from trayapp.tray.state.tray_state import ClientState, Entry, Item, Separator, TrayState

FILE = "/home/ada/.config/multi-mcp/servers.yaml"


def server(
    name: str,
    state: State = State.CONNECTED,
    tools: int = 3,
    error: str = "",
    hint: str = "",
    *,
    stale: int = 0,
    project: str | None = None,
    signed_in: bool | None = None,
    failed_s_ago: float | None = None,
) -> ServerStatus:
    """Return a server with `tools` enabled tools and, unless `error` is empty, an error."""
    return ServerStatus(
        name,
        state,
        "lazy",
        "stdio",
        tools=ToolCounts(total=tools, enabled=tools, stale=stale),
        error={"title": error, "hint": hint} if error else None,
        failed_s_ago=failed_s_ago,
        project=project,
        signed_in=signed_in,
    )


def changed(name: str, tools: int = 3) -> ServerStatus:
    """Return a server with a changed tool that waits for approval."""
    return replace(server(name, tools=tools), approvals=("pay",))


def snapshot(
    *servers: ServerStatus,
    problems: Iterable[Problem] = (),
    clients: Iterable[str] = (),
    state: GatewayState = "running",
    uptime_s: float = 60.0,
    revision: int = 1,
    keyring: KeyringState | None = None,
) -> Snapshot:
    """Return the snapshot of a gateway with these servers."""
    sessions = tuple(SessionStatus(client, "stdio", "2025-11-25", "auto") for client in clients)
    gateway = GatewayStatus(state, 4711, "1.0", uptime_s, sessions=sessions, keyring=keyring)
    return Snapshot(revision, gateway, servers, tuple(problems))


def problem(
    message: str, line: int = 0, server: str | None = None, *, fatal: bool = True, file: str = FILE, hint: str = ""
) -> Problem:
    return Problem(file, line, message, hint, server=server, fatal=fatal)


def running(*servers: ServerStatus, child: ChildState = ChildState.RUNNING, **more: object) -> TrayState:
    """Return the state of a tray whose gateway has these servers. `more`: further arguments of `snapshot`."""
    return TrayState(child, snapshot(*servers, **more))  # type: ignore[arg-type]  # passed on as they are


CALL_ASK = AskStatus(
    "3fa2b1",
    "call",
    "Claude Code",
    "github",
    1000.0,
    1120.0,
    ("once", "session", "always", "deny"),
    project="/src/site",
    tool="delete_repo",
    tool_class="destructive",
    basis="annotations",
    arguments=(ShownArgument("repo", '"a/b"'),),
)


def asking(*asks: AskStatus) -> TrayState:
    """Return the state of a tray with questions that wait for the user."""
    state = running(server("github"))
    assert state.snapshot is not None
    return replace(state, snapshot=replace(state.snapshot, asks=asks))


CLIENTS = (
    ClientState("claude-code", "Claude Code", connected=True),
    ClientState("codex", "Codex"),
    ClientState("cursor", "Cursor", connected=True, drift="it was changed by hand"),
    ClientState("zed", "Zed", found=False),
)


def lines(menu: Iterable[Entry], path: str = "") -> Iterator[str]:
    """Yield a line for each entry, such as `Servers > github: connected > [x] Enabled`.

    Entries that cannot be clicked are in parentheses.
    """
    for entry in menu:
        if isinstance(entry, Separator):
            yield f"{path}----"
            continue
        yield path + shown(entry)
        yield from lines(entry.children, f"{path}{entry.text} > ")


def shown(item: Item) -> str:
    """Return the text of an entry, with its check mark, and in parentheses if it cannot be clicked."""
    mark = {None: "", True: "[x] ", False: "[ ] "}[item.checked]
    return mark + (item.text if item.enabled else f"({item.text})")


def items(menu: Iterable[Entry]) -> Iterator[Item]:
    """Yield all entries except separators, each followed by the entries of its submenu."""
    for entry in menu:
        if isinstance(entry, Item):
            yield entry
            yield from items(entry.children)
