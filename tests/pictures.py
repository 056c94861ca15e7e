"""The README's pictures, made from the real program: the panel, `status`, and the tray's menu on a real panel.

`packaging/dev.py pictures` writes them into assets/pictures, with checksums of the files that they show. It needs the
same programs as the tests.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.text import Text

from tests.e2e.client import RawClient
from tests.e2e.gateway import Gateway, gateway_in
from tests.panel.scene import Scene, browser, free_port
from tests.servers import everything, filesystem, git, memory, sequential_thinking, time
from tests.tray.desktop.test_whole_app import seen_on
from trayapp.service.command_line import own_command
from trayapp.tray.state.tray_state import IconKind

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "assets" / "pictures"
NOTE = PICTURES / "made.json"
COLUMNS = 92
SIZE = {"width": 1120, "height": 640}
# The files that draw each picture.
SHOWS = {
    "panel-light.png": "trayapp/panel/{templates,static}",
    "panel-dark.png": "trayapp/panel/{templates,static}",
    "activity-light.png": "trayapp/panel/{templates,static}",
    "activity-dark.png": "trayapp/panel/{templates,static}",
    "status.svg": "trayapp/cli/status.py",
    "tray-menu.png": "trayapp/tray/state/view.py",
}


def mark_of(what: str) -> str:
    """Return the checksum of the files that a picture shows."""
    before, _, rest = what.partition("{")
    names, _, after = rest.partition("}")
    places = [ROOT / f"{before}{name}{after}" for name in names.split(",")] if rest else [ROOT / what]
    files = sorted(file for place in places for file in ([place] if place.is_file() else place.rglob("*")))
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(program_of(file).encode() if file.suffix == ".py" else file.read_bytes())
    return digest.hexdigest()[:16]


def program_of(file: Path) -> str:
    """Return a module's source without comments, docstrings and imports, which appear in no picture."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1 : node.end_lineno] = [""] * len(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [""] * len(lines[first.lineno - 1 : first.end_lineno])
    return "\n".join(filter(None, (re.sub(r"(?:^|\s+)#.*$", "", line).rstrip() for line in lines)))


def stale() -> list[str]:
    """Return the pictures that are missing, or whose files have changed since they were made."""
    made = json.loads(NOTE.read_text(encoding="utf-8")) if NOTE.exists() else {}
    return [name for name, what in SHOWS.items() if not (PICTURES / name).exists() or made.get(name) != mark_of(what)]


# -- sample servers and calls ------------------------------------------------------------------------------------


def desk(home: Path) -> dict[str, dict[str, Any]]:
    """Create a repository of notes, and return entries of real servers, as a user may have them. One cannot start."""
    notes = home / "notes"
    notes.mkdir()
    (notes / "todo.md").write_text("- write the README\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(notes)], check=True)
    commands = {
        "files": filesystem(notes), "memory": memory(), "thinking": sequential_thinking(), "git": git(notes),
        "time": time(), "everything": everything(), "search": ["search-server", "--quick"],
    }  # fmt: skip
    entries: dict[str, dict[str, Any]] = {name: {"command": command} for name, command in commands.items()}
    entries["memory"]["env"] = {"MEMORY_FILE_PATH": str(home / "memory.jsonl")}
    entries["everything"]["disabled"] = True
    return entries


@contextlib.asynccontextmanager
async def work(gateway: Gateway, notes: Path) -> AsyncIterator[None]:
    """Make calls as AI tools do. The AI tools stay connected until the block ends."""
    found = {"Claude Code": ["files_list_directory", "git_git_status", "files_read_text_file"], "Codex": [
        "memory_create_entities", "memory_read_graph", "time_get_current_time"]}  # fmt: skip
    arguments: dict[str, dict[str, Any]] = {
        "files_list_directory": {"path": str(notes)}, "files_read_text_file": {"path": str(notes / "todo.md")},
        "git_git_status": {"repo_path": str(notes)}, "time_get_current_time": {"timezone": "Europe/Berlin"},
        "memory_create_entities": {"entities": [{"name": "README", "entityType": "text", "observations": ["short"]}]},
    }  # fmt: skip
    async with contextlib.AsyncExitStack() as connected:
        for client, tools in found.items():
            session = await connected.enter_async_context(gateway.client(None))
            await introduce(session, client)
            for tool in tools:
                await session.request("tools/call", {"name": tool, "arguments": arguments.get(tool, {})})
        yield


async def introduce(session: RawClient, client: str) -> None:
    """Perform the handshake with `client` as the client's name."""
    about = {"name": client, "version": "1"}
    await session.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about})
    session.send({"method": "notifications/initialized"})


# -- the pictures ------------------------------------------------------------------------------------------------


async def of_gateway(home: Path) -> None:
    """Take pictures of the panel in both color schemes, and of the output of `status` on a terminal."""
    port = free_port()
    with gateway_in(home) as gateway:
        gateway.write(desk(home), http={"enabled": True, "port": port})
        await anyio.to_thread.run_sync(gateway.start)
        await gateway.known()
        scene = Scene(gateway, port)
        async with work(gateway, home / "notes"), browser() as chromium:
            for scheme in ("light", "dark"):
                page = await scene.open(chromium, viewport=SIZE, color_scheme=scheme, device_scale_factor=1.5)
                for name, path in (("panel", ""), ("activity", "activity")):
                    await page.goto(f"{scene.root}/panel/{path}")
                    await page.wait_for_timeout(800)
                    await page.screenshot(path=PICTURES / f"{name}-{scheme}.png")
            draw_terminal([*own_command(), "status"], gateway.env, PICTURES / "status.svg")


def draw_terminal(argv: list[str], env: dict[str, str], target: Path) -> None:
    """Run a command on a terminal and draw its output as SVG."""
    ours, theirs = pty.openpty()
    shown = b""
    size = {"COLUMNS": str(COLUMNS), "LINES": "40", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with (
        os.fdopen(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(argv, env={**env, **size}, stdin=theirs, stdout=theirs, stderr=theirs) as process,
    ):
        os.close(theirs)
        with contextlib.suppress(OSError):  # Linux raises when the other end is closed
            while piece := terminal.read(4096):
                shown += piece
        process.wait(60)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.decode().replace("\r\n", "\n").rstrip()), end="")
    drawn = console.export_svg(title=f"multi-mcp {' '.join(argv[-1:])}", unique_id="status")
    target.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")  # no web fonts


def of_tray() -> None:
    """Take a picture of the tray's menu on XFCE's panel."""
    with seen_on("xfce4-panel") as seen:
        seen.icon(IconKind.HEALTHY)
        seen.choose("Down", "Down")
        picture = seen.desktop.picture()
        picture.crop((0, 0, 420, 460)).save(PICTURES / "tray-menu.png")


def main() -> int:
    """Make all pictures, and save the checksums of the files that they show."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        anyio.run(of_gateway, Path(home))
    of_tray()
    NOTE.write_text(
        json.dumps({name: mark_of(what) for name, what in SHOWS.items()}, indent=2) + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
