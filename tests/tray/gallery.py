"""`python -m tests.tray.gallery [SHEET.png]` prints the tray's texts in typical states.

With SHEET.png, it also draws all icons there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.tray.states import CLIENTS, changed, problem, running, server, shown
from trayapp.model.child import ChildState
from trayapp.model.lifecycle import State
from trayapp.tray.state.notices import NoticeMemory, due_notices
from trayapp.tray.state.tray_state import Entry, IconKind, Separator, TrayState
from trayapp.tray.state.view import view

NAMES = [
    "airtable",
    "atlassian",
    "brave-search",
    "browser",
    "chroma",
    "cloudflare",
    "datadog",
    "docker",
    "exa",
    "figma",
    "filesystem",
]
BASE = running(
    server("github", State.CONNECTED, 26),
    server("filesystem", State.IDLE, 14),
    server("time", State.IDLE, 2),
    clients=["Claude Code", "Codex"],
)
TROUBLED = running(
    changed("github", 26),
    server("linear", State.NEEDS_AUTH, 12, "linear needs a sign-in", "Sign in with: multi-mcp auth linear"),
    server("db", State.FAILED, 4, "Cannot start db: no such program: my-db", "Is it installed? See: multi-mcp logs db"),
    server("files@1a2b3c4d", State.IDLE, 9, project="/home/ada/shop"),
    server("old", State.DISABLED, 9),
    problems=[
        problem("Unknown key comand", 12, "db", fatal=False, hint="Did you mean command?"),
        problem("The file is not YAML: mapping values are not allowed here", 31),
    ],
    clients=["Claude Code", "Claude Code", "Codex"],
)
STATES: dict[str, TrayState] = {
    "all is well": replace(BASE, clients=CLIENTS, autostart=True),
    "trouble of all kinds": replace(TROUBLED, clients=CLIENTS, autostart=False),
    "first start, no servers": replace(running(), clients=CLIENTS, autostart=False),
    "attached to a gateway of somebody else": replace(BASE, child=ChildState.ATTACHED, autostart=True),
    "starting": TrayState(ChildState.STARTING, autostart=True),
    "it crashed": TrayState(ChildState.RESTARTING, error="The gateway was killed (signal 9)", autostart=True),
    "crash loop": TrayState(ChildState.CRASH_LOOP, error="The gateway ended (exit code 1)", autostart=True),
    "paused": TrayState(ChildState.PAUSED, autostart=True),
    "hanging": replace(BASE, hangs=True, autostart=True),
    "70 servers": running(
        *[server(f"{name}-{at}", State.FAILED if at == 3 else State.IDLE, 5) for name in NAMES for at in range(6)]
    ),
    "the first discovery": running(*[server(name, State.CONNECTING, 0) for name in NAMES[:7]]),
    "everything disabled": running(server("github", State.DISABLED), server("time", State.DISABLED)),
    "no keyring": running(server("exa", signed_in=True), keyring="missing"),
}
DEEP = {"all is well", "trouble of all kinds"}  # states that are shown with the submenu of each server
PANELS = ((True, "#202124"), (None, "#202124"), (None, "#f4f4f5"), (False, "#f4f4f5"))
SIZES = (16, 22, 24, 32, 48, 64)


def pages() -> Iterator[str]:
    """Yield the lines of one page for each state."""
    for title, state in STATES.items():
        seen = view(state)
        yield f"=== {title}: {seen.icon} ".ljust(70, "=")
        yield from (f"  tooltip | {line}" for line in seen.tooltip.split("\n"))
        yield from (f"  click   | {line}" for line in seen.summary.split("\n"))
        yield from (f"  {line}" for line in tree(seen.menu, 3 if title in DEEP else 2))
        first = due_notices(state, NoticeMemory(), 0.0)
        for notice in (*first.notices, *due_notices(state, first.told, 10.0).notices):
            yield f"  news    | {notice.title}"
            yield from (f"          | {line}" for line in notice.text.split("\n"))
            yield f"          | {' '.join(f'[{label}]' for label, _ in notice.actions)}"
        yield ""


def tree(menu: Iterable[Entry], depth: int, indent: str = "") -> Iterator[str]:
    """Yield the lines of a menu, with its submenus indented."""
    for entry in menu:
        if isinstance(entry, Separator):
            yield f"{indent}----------"
            continue
        yield f"{indent}{shown(entry)}{' >' if entry.children else ''}"
        yield from tree(entry.children, depth - 1, f"{indent}    ") if depth > 1 else ()


def sheet(path: Path) -> None:
    """Draw the icons of all kinds in all sizes on dark and light backgrounds, and save them as one picture."""
    from PIL import Image

    from trayapp.tray.icons import icon

    width, height = len(IconKind) * 80, sum(size + 12 for size in SIZES) * len(PANELS)
    whole, top = Image.new("RGB", (width, height)), 0
    for size in SIZES:
        for dark, panel in PANELS:
            whole.paste(panel, (0, top, width, top + size + 12))
            for at, kind in enumerate(IconKind):
                picture = icon(kind, size, dark)
                whole.paste(picture, (at * 80 + 8, top + 6), picture)
            top += size + 12
    whole.save(path)


if __name__ == "__main__":
    print("\n".join(pages()))
    if len(sys.argv) > 1:
        sheet(Path(sys.argv[1]))
