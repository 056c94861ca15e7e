"""The page that adds servers: it shows what would run, asks for values, and adds after confirmation.

Each step is a verb (`find`, `add --form`). Pasted text and typed values may hold secrets: `add` gets them on its stdin,
not as arguments, which other programs can see.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import anyio.to_thread

from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.text import count
from trayapp.panel.actions import Action, ActionResult, Form, tools_of
from trayapp.panel.host import PanelHost
from trayapp.panel.pages import Context, Page
from trayapp.service.verb_process import run_verb
from trayapp.wire.control import COMMANDS, KEYRING, SNAPSHOT

LOOK_S = 45.0
ADD_S = 150.0  # the first start of a server may include its download
FOUND_MOST = 50


async def add_page(page: Page) -> Context:
    """Show the servers that a pasted text names, and those that a search of the registry finds."""
    what, words = page.query.get("what", ""), page.query.get("find", "").strip().lstrip("-")
    said: ActionResult | None = None
    found: Context | None = None
    try:
        if what:
            said = await find_servers(page.host, what)
        if words:
            run = partial(run_verb, ["find", "--limit", str(FOUND_MOST), words], page.host.environ, LOOK_S)
            found = await anyio.to_thread.run_sync(run)
    except MultiMcpError as error:
        said = ActionResult(error.title, error.hint, wrong=True)
    return {"template": "add.html", "title": "Add a server", "what": what, "words": words, "said": said, "found": found}


async def find_servers(host: PanelHost, what: str) -> ActionResult:
    """Ask `add` which servers a text names. Return them with everything that would run. Raises MultiMcpError."""
    done = await _run_add(host, {"what": what}, "--dry-run")
    known = await _server_names(host)
    has_secrets = any(each["secret"] for one in done["servers"] for each in one["wants"])
    keyring = (await host.ask(KEYRING, {}))["error"] if has_secrets else None  # shown before the user types a secret
    found = tuple(
        {**one, "taken": one["name"] in known, "is_way": done["ways"], "keyring": keyring} for one in done["servers"]
    )
    if len(found) == 1:
        return ActionResult("", proposals=found)
    several = (
        f"There are {len(found)} ways to run it: choose one" if done["ways"] else f"These are {len(found)} servers"
    )
    return ActionResult(several, proposals=found)


async def look(host: PanelHost, form: Form) -> ActionResult:
    """Show what would run if the pasted servers were added."""
    return await find_servers(host, form.text("what"))


async def add(host: PanelHost, form: Form) -> ActionResult:
    """Add the server that the page showed, with the values from its form.

    The result replaces the server's proposal on the page, or all proposals if they are ways to run the same server.
    """
    pick, name = int(form.text("pick")[:4]), form.get("name").strip()
    if name in await _server_names(host):  # checked before the server's secrets are stored
        raise UsageError(f"A server named {name} already exists", "Choose another name", field="name")
    asked = {
        "what": form.text("what"), "pick": pick, "seen": form.text("seen"), "name": name,
        "values": form.below("arg."),
    }  # fmt: skip
    done = await _run_add(host, asked)
    name, instead = str(done["name"]), "proposals" if form.get("is_way") else f"proposal-{pick}"
    if waiting := (await host.ask(COMMANDS, {"server": name}))["rows"]:
        them = "its command" if len(waiting[0]["commands"]) == 1 else "its commands"
        title = f"Added {name}; it starts once you approve {them}"
        return ActionResult(title, instead=instead, commands=waiting[0])
    if done.get("error"):
        return ActionResult(
            f"Added {name}; it does not work yet", str(done["error"]), wrong=True, server=name, instead=instead
        )
    tools = await tools_of(host, name)
    number = f": {count(done['tools'], 'tool')}" if done.get("tools") is not None else ""
    found = await anyio.to_thread.run_sync(partial(run_verb, ["connect"], host.environ, LOOK_S))
    clients = found.get("clients", []) if isinstance(found, dict) else []
    if any(one["state"] in ("connected", "drifted") for one in clients):
        clients = []  # the user knows how to connect them
    readable = tuple(one for one in clients if one["state"] != "unreadable")
    return ActionResult(f"Added {name}{number}", server=name, clients=readable, tools=tools, instead=instead)


async def _server_names(host: PanelHost) -> set[str]:
    """Return the names of the known servers, which a new one cannot have."""
    return {one["name"] for one in (await host.ask(SNAPSHOT, {}))["servers"]}


async def _run_add(host: PanelHost, form: dict[str, Any], *more: str) -> Any:
    """Run `add` with a form on its stdin. Raises MultiMcpError."""
    run = partial(run_verb, ["add", "--form", *more], host.environ, ADD_S, json.dumps(form).encode())
    return await anyio.to_thread.run_sync(run)


ADD_ACTIONS: dict[str, Action] = {"do/look": look, "do/add": add}
