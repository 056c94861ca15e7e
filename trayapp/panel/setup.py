"""The setup page: `multi-mcp setup` in the browser. The user imports servers, connects AI tools, or undoes both.

Each step is a verb (`import`, `connect`, `disconnect`), and is taken only after a click.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.text import count
from trayapp.panel.actions import Action, ActionResult, Form, as_argument, verb
from trayapp.panel.host import PanelHost
from trayapp.panel.pages import SLOW, Context, Page
from trayapp.service.verb_process import run_verb

TAKE_S = 60.0
QUESTION = "which MCP servers do you have?"


async def setup_page(page: Page) -> Context:
    """Show the AI tools of this computer, the servers that they have, and a question to try."""
    if page.rest != SLOW:
        return {"template": "setup.html", "title": "Setup"}
    answers: dict[str, Any] = {}

    async def ask(*argv: str) -> None:
        answers[argv[0]] = await verb(page.host, *argv)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "import", "--form", "--dry-run")
        tasks.start_soon(ask, "connect")
    found, clients = answers["import"], answers["connect"]["clients"]
    return {
        "template": "setup_found.html", "found": found, "question": QUESTION,
        "new": [one for one in found["servers"] if not one["known"]],
        "here": [one for one in found["servers"] if one["there"]],
        "secrets": sum(len(one["secrets"]) for one in found["servers"] if not one["known"]),
        "clients": [one for one in clients if one["state"] != "connected"],
        "connected": [one for one in clients if one["state"] == "connected"],
    }  # fmt: skip


async def take(host: PanelHost, form: Form) -> ActionResult:
    """Import the chosen servers, and remove them from the AI tools' files. With `keep`, secrets go to the keyring."""
    chosen = form.all("server")
    asked = {"servers": chosen, "keep": form.get("keep") == "yes"}
    run = partial(run_verb, ["import", "--form"], host.environ, TAKE_S, json.dumps(asked).encode())
    done = await anyio.to_thread.run_sync(run)
    moved = [f"Removed from {file}" for file in done["moved"]]
    left = len(chosen) - len(done["servers"])
    return ActionResult(
        f"Imported {count(len(done['servers']), 'server')}",
        f"{count(left, 'server')} could not be written" if left else "",
        wrong=left > 0,
        text="\n".join(moved),
    )


async def connect(host: PanelHost, form: Form) -> ActionResult:
    """Connect the chosen AI tools."""
    chosen = form.all("client")
    if not chosen:
        raise UsageError("No AI tool is chosen", "Select the AI tools that should use multi-mcp")
    return await _run_for_clients(host, "connect", chosen, "Connected")


async def undo(host: PanelHost, form: Form) -> ActionResult:
    """Undo the setup: disconnect the AI tools, then give their servers back to them. With `dry`, only show changes."""
    if form.get("dry") == "yes":
        back = await verb(host, "import", "--undo", "--dry-run")
        lines = [f"{name} is disconnected" for name in await _connected(host)]
        lines += [f"The servers go back into {file}" for file in back["restored"]]
        lines += [f"{name} is removed from multi-mcp" for name in back["removed"]]
        return ActionResult(
            "This would be undone" if lines else "There is nothing to undo", text="\n".join(lines), changed=False
        )
    said = await _run_for_clients(host, "disconnect", await _connected(host), "Disconnected")
    if said.wrong:
        return said
    back = await verb(host, "import", "--undo")
    removed = f"; removed {count(len(back['removed']), 'server')} from multi-mcp" if back["removed"] else ""
    return ActionResult(f"Setup is undone{removed}", text=said.text)


async def _connected(host: PanelHost) -> list[str]:
    clients = (await verb(host, "connect"))["clients"]
    return [one["name"] for one in clients if one["state"] in ("connected", "drifted")]


async def _run_for_clients(host: PanelHost, name: str, clients: Sequence[str], word: str) -> ActionResult:
    """Run a verb for each AI tool. A failure does not stop the others."""
    done: list[str] = []
    failed: list[str] = []
    for client in clients:
        try:
            row = (await verb(host, name, as_argument(client)))["clients"][0]
        except MultiMcpError as error:
            failed.append(f"{client}: {error}")
        else:
            done.append(". ".join(filter(None, (f"{word} {row['title']}", row.get("needs", "")))))
    title = f"{word} {count(len(done), 'AI tool')}"
    more = f", {len(failed)} failed" if failed else ""
    return ActionResult(title + more, wrong=bool(failed), text="\n".join(failed + done))


SETUP_ACTIONS: dict[str, Action] = {"do/take": take, "do/connect-chosen": connect, "do/undo-setup": undo}
