"""The actions behind the panel's buttons. Each sends control requests or runs verbs. The page shows its result."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio.to_thread

from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.redact import redacted
from trayapp.model.text import count
from trayapp.panel.host import PanelHost
from trayapp.service.verb_process import run_verb
from trayapp.wire import control
from trayapp.wire.jsonio import JsonError, loads

VERB_S = 60.0
ADD_S = 150.0  # the first start of a server may include a download
BY = "the panel"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action, as the page shows it.

    - `wrong`: True if the action failed
    - `text`: long text below the title, such as a tool's answer or a diff
    - `url`: an address to open
    - `server`: the server whose page shows more
    - `proposals`: the servers that can be added, each shown as a form
    - `clients`: the AI tools that can be connected, if none is connected yet
    - `ask`, `again`: the call that the user must confirm, and the form values that repeat it
    - `field`: the form field that the message is about
    - `tools`: the names of the server's tools by class
    - `instead`: the id of the page element that the result replaces, or "" for the default one
    - `commands`: commands that produce the server's secrets and wait for approval
    """

    title: str
    hint: str = ""
    changed: bool = True  # False: the page is not reloaded
    wrong: bool = False
    text: str = ""
    url: str = ""
    server: str = ""
    proposals: tuple[dict[str, Any], ...] = ()
    clients: tuple[dict[str, Any], ...] = ()
    ask: dict[str, Any] | None = None
    again: dict[str, str] | None = None
    field: str = ""
    tools: dict[str, list[str]] | None = None
    instead: str = ""
    commands: dict[str, Any] | None = None


class Form:
    """The values of a submitted form."""

    def __init__(self, values: dict[str, list[str]]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """Return the value of a field. Raises UsageError if it is missing or empty."""
        found = self._values.get(name, [""])[-1]
        if not found:
            raise UsageError(f"The form has no {name}", "Reload the page and try again")
        return found

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a field, or the default if it is missing."""
        return self._values.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        """Return all nonempty values of a field, such as those of checked boxes."""
        return [value for value in self._values.get(name, []) if value]

    def below(self, prefix: str) -> dict[str, str]:
        """Return the nonempty values of fields whose names begin with `prefix`, keyed by the rest of the name."""
        return {
            name.removeprefix(prefix): values[-1]
            for name, values in self._values.items()
            if name.startswith(prefix) and values[-1] != ""
        }


def parsed(typed: dict[str, str]) -> dict[str, Any]:
    """Return a form's values, parsed where they are JSON other than a string.

    The gateway also gets the text as typed, in case the tool's schema requires a string.
    """
    values: dict[str, Any] = dict(typed)
    for name, text in typed.items():
        with suppress(JsonError):
            if not isinstance(value := loads(text.encode()), str):  # a string keeps the quotes that the user typed
                values[name] = value
    return values


Action = Callable[[PanelHost, Form], Awaitable[ActionResult]]


async def verb(host: PanelHost, *argv: str, form: dict[str, Any] | None = None, timeout_s: float = VERB_S) -> Any:
    """Run a verb of the command line with `form` as JSON on its stdin. Return its parsed output. Raises MultiMcpError.

    Values that may be secrets belong in the form, because other programs can see the arguments.
    """
    typed = b"" if form is None else json.dumps(form).encode()
    return await anyio.to_thread.run_sync(partial(run_verb, argv, host.environ, timeout_s, typed))


def as_argument(name: str) -> str:
    """Return the name unchanged. Raises UsageError if a verb would parse it as an option."""
    if name.startswith("-"):
        raise UsageError(f"{name} begins with a hyphen", "Change it in servers.yaml")
    return name


def exact_pattern(tool: str) -> str:
    """Return a glob pattern that matches only this name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in tool)


async def reconnect(host: PanelHost, form: Form) -> ActionResult:
    """Reconnect the form's server, or all servers in use if it names none."""
    done = await host.ask(control.RECONNECT, {"server": form.get("server") or None})
    none, hint = "Nothing to reconnect", "No server is in use. Each one starts with its next call."
    return _servers_result(done, "Reconnected", none, hint)


async def refresh(host: PanelHost, form: Form) -> ActionResult:
    """Refresh the tools of the form's server, or of all servers if it names none."""
    return _servers_result(await host.ask(control.REFRESH, {"server": form.get("server") or None}), "Refreshed")


def _servers_result(
    done: dict[str, Any], word: str, none: str = "No enabled servers to refresh", hint: str = "Add one in servers.yaml"
) -> ActionResult:
    failed = {name: row["error"] for name, row in done["servers"].items() if row.get("error")}
    if failed:
        name, error = next(iter(failed.items()))
        title = error["title"] if name in error["title"] else f"{name}: {error['title']}"
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return ActionResult(title + more, error["hint"], wrong=True)
    names = list(done["servers"])
    if not names:
        return ActionResult(none, hint)
    return ActionResult(f"{word} {names[0] if len(names) == 1 else f'{len(names)} servers'}")


async def switch(host: PanelHost, form: Form) -> ActionResult:
    """Enable (`on`) or disable the form's tool in servers.yaml, or its server if no tool is given."""
    server, tool, on = form.text("server"), form.get("tool"), form.text("on") == "yes"
    target = f"{server}/{exact_pattern(tool)}" if tool else server
    done = await verb(host, "enable" if on else "disable", as_argument(target))
    names, word = ", ".join(done["changed"]), "enabled" if on else "disabled"
    return ActionResult(f"{word.capitalize()}: {names}" if names else f"{tool or server} was already {word}")


async def sign_in(host: PanelHost, form: Form) -> ActionResult:
    """Start signing in to a server. If a sign-in page is needed, the user's browser opens it."""
    begun = await host.ask(control.LOGIN, {"server": form.text("server")})
    if begun["url"] is None:
        return ActionResult(f"Signed in to {form.text('server')}")
    return ActionResult(f"Continue on the sign-in page of {form.text('server')}", url=str(begun["url"]))


async def sign_out(host: PanelHost, form: Form) -> ActionResult:
    """Sign out of a server."""
    await host.ask(control.LOGOUT, {"server": form.text("server")})
    return ActionResult(f"Signed out of {form.text('server')}")


async def approve(host: PanelHost, form: Form) -> ActionResult:
    """Approve the tool definition that the page showed, identified by its hash. With `keep`, keep the approved one."""
    tool, keep = {name: form.text(name) for name in ("server", "tool", "hash")}, form.get("keep") == "yes"
    done = await host.ask(control.APPROVE, {"tools": [tool], "keep": keep})
    if done["missed"]:
        return ActionResult(f"{tool['tool']} changed again in the meantime", "Review the new difference", wrong=True)
    title = f"{'Kept the old definition of' if keep else 'Approved'} {tool['server']}/{tool['tool']}"
    problem = redacted(str(problems[0])) if (problems := done.get("problems")) else ""
    return ActionResult(title, problem, wrong=bool(problem))


async def approve_commands(host: PanelHost, form: Form) -> ActionResult:
    """Approve the commands that the page showed for a server's secrets, and start the server."""
    server, commands = form.text("server"), form.all("commands")
    done = await host.ask(control.APPROVE_COMMANDS, {"server": server, "commands": commands})
    if done["missed"]:
        return ActionResult("The commands changed in the meantime", "Review them on the Approvals page", wrong=True)
    started = _servers_result(await host.ask(control.REFRESH, {"server": server}), "Approved and started:")
    if started.wrong:
        return replace(started, title=f"Approved, but the server does not work yet: {started.title}", server=server)
    return replace(started, server=server, tools=await tools_of(host, server))


async def tools_of(host: PanelHost, server: str) -> dict[str, list[str]]:
    """Return the names of a server's tools by class, without tools that the server no longer has."""
    found: dict[str, list[str]] = {}
    for row in await host.ask(control.LIST, {"server": server, "classes": True}):
        if not row["stale"]:
            found.setdefault(row["class"], []).append(row["name"])
    return found


async def answer(host: PanelHost, form: Form) -> ActionResult:
    """Allow or deny a waiting call, or answer a server's question."""
    given = form.text("answer")
    if given == "deny":
        await host.ask(control.DENY, {"id": form.text("id"), "by": BY})
        return ActionResult("Denied")
    asked: dict[str, Any] = {"id": form.text("id"), "answer": given, "by": BY}
    if form.get("form"):
        typed = form.below("arg.")
        asked |= {"content": parsed(typed), "typed": typed}
    url = (await host.ask(control.ALLOW, asked))["ask"].get("url")
    if url:
        return ActionResult("Continue on the page that the server asked for", url=str(url))
    return ActionResult("Allowed" if not form.get("form") else "Answered")


async def call(host: PanelHost, form: Form) -> ActionResult:
    """Call a tool with arguments from its form's fields and its JSON text. Those in the JSON text take precedence.

    If the call needs the user's consent, return it as `ask`. The form's `allowed` gives that consent: it is the hash
    of the tool definition that the user has just allowed.
    """
    raw = form.get("json").strip()
    try:
        args = json.loads(raw) if raw else {}
    except ValueError as error:
        raise UsageError(f"The arguments are not JSON: {error}", 'Write them as {"name": "value"}') from None
    if not isinstance(args, dict):
        raise UsageError("The arguments must be an object", 'Write them as {"name": "value"}')
    typed = {name: text for name, text in form.below("arg.").items() if name not in args}
    asked = {"tool": form.text("tool"), "server": form.text("server"), "args": parsed(typed) | args, "typed": typed}
    done = await host.ask(control.CALL, {**asked, "panel": True, "asks": True, "allowed": form.get("allowed")})
    if "ask" in done:
        row = done["ask"]
        again = {name: form.get(name) for name in ("server", "tool", "json")} | {"allowed": row["hash"]}
        again |= {f"arg.{name}": text for name, text in form.below("arg.").items()}
        title = f"Call {row['server']}/{row['tool']}? It is a {row['class']} tool"
        return ActionResult(title, changed=False, ask=row, again=again)
    result = done["result"]
    failed = isinstance(result, dict) and result.get("isError") is True
    title = "The tool answered with an error" if failed else "The call succeeded"
    return ActionResult(title, wrong=failed, text=result_text(result))


def result_text(result: Any) -> str:
    """Return the texts of a call's result, or its JSON if it has other content, with secrets redacted."""
    content = result.get("content") if isinstance(result, dict) else None
    texts = [item["text"] for item in content or () if isinstance(item, dict) and isinstance(item.get("text"), str)]
    if isinstance(content, list) and texts and len(texts) == len(content):
        return redacted("\n".join(texts))[:50_000]
    return redacted(json.dumps(result, indent=2, ensure_ascii=False))[:50_000]


async def connect(host: PanelHost, form: Form) -> ActionResult:
    """Connect (`on`) or disconnect an AI tool. With `dry`, only show the change."""
    on, name, dry = form.text("on") == "yes", form.text("client"), form.get("dry") == "yes"
    shown = [f"--profile={profile}"] if on and (profile := form.get("profile")) else []
    argv = ["connect" if on else "disconnect", *(["--dry-run"] if dry else []), *shown, as_argument(name)]
    (row,) = (await verb(host, *argv))["clients"]
    diff = "\n".join(row["diff"])
    if dry:
        title = f"This would change in {row['file']}" if diff else "Nothing would change"
        return ActionResult(title, text=diff, changed=False)
    word = "Connected" if on else "Disconnected"
    return ActionResult(f"{word} {row['title']}", row["needs"], text=diff)


async def find_servers(host: PanelHost, what: str) -> ActionResult:
    """Find the servers that a text names. Return them with everything that would run. Raises MultiMcpError."""
    done = await verb(host, "add", "--form", "--dry-run", form={"what": what}, timeout_s=ADD_S)
    known = await _server_names(host)
    has_secrets = any(each["secret"] for one in done["servers"] for each in one["wants"])
    # A missing keyring is reported before the user types a secret.
    keyring = (await host.ask(control.KEYRING, {}))["error"] if has_secrets else None
    shared = {"is_way": done["ways"], "keyring": keyring}
    found = tuple({**one, **shared, "taken": one["name"] in known} for one in done["servers"])
    if len(found) == 1:
        return ActionResult("", proposals=found)
    several = f"There are {len(found)} ways to run it: choose one" if done["ways"] else f"Found {len(found)} servers"
    return ActionResult(several, proposals=found)


async def look(host: PanelHost, form: Form) -> ActionResult:
    """Find the servers in the pasted text, and return them with everything that adding them would run."""
    return await find_servers(host, form.text("what"))


async def add(host: PanelHost, form: Form) -> ActionResult:
    """Add the server that the page showed, with the values from its form.

    The result replaces the server's proposal on the page. If all proposals run the same server, all are replaced.
    """
    pick, name = int(form.text("pick")[:4]), form.get("name").strip()
    if name in await _server_names(host):  # check before the verb stores the server's secrets
        raise UsageError(f"A server named {name} already exists", "Choose another name", field="name")
    asked = {"what": form.text("what"), "pick": pick, "seen": form.text("seen"), "name": name}
    done = await verb(host, "add", "--form", form=asked | {"values": form.below("arg.")}, timeout_s=ADD_S)
    name, instead = str(done["name"]), "proposals" if form.get("is_way") else f"proposal-{pick}"
    if waiting := (await host.ask(control.COMMANDS, {"server": name}))["rows"]:
        them = "its command" if len(waiting[0]["commands"]) == 1 else "its commands"
        title = f"Added {name}; it starts once you approve {them}"
        return ActionResult(title, instead=instead, commands=waiting[0])
    if error := done.get("error"):
        title = f"Added {name}; it does not work yet"
        return ActionResult(title, str(error), wrong=True, server=name, instead=instead)
    tools = await tools_of(host, name)
    number = f": {count(done['tools'], 'tool')}" if done.get("tools") is not None else ""
    clients = (await verb(host, "connect"))["clients"]
    if any(one["state"] in ("connected", "drifted") for one in clients):
        clients = []  # the user has already connected an AI tool and needs no list
    readable = tuple(one for one in clients if one["state"] != "unreadable")
    return ActionResult(f"Added {name}{number}", server=name, clients=readable, tools=tools, instead=instead)


async def _server_names(host: PanelHost) -> set[str]:
    return {one["name"] for one in (await host.ask(control.SNAPSHOT, {}))["servers"]}


async def take(host: PanelHost, form: Form) -> ActionResult:
    """Move the chosen servers from AI tools' files to multi-mcp. With `keep`, store their secrets in the keyring."""
    chosen = form.all("server")
    done = await verb(host, "import", "--form", form={"servers": chosen, "keep": form.get("keep") == "yes"})
    moved = "\n".join(f"Removed from {file}" for file in done["moved"])
    left = len(chosen) - len(done["servers"])
    hint = f"{count(left, 'server')} could not be imported" if left else ""
    return ActionResult(f"Imported {count(len(done['servers']), 'server')}", hint, wrong=left > 0, text=moved)


async def connect_chosen(host: PanelHost, form: Form) -> ActionResult:
    """Connect the chosen AI tools."""
    chosen = form.all("client")
    if not chosen:
        raise UsageError("No AI tool is chosen", "Select the AI tools that should use multi-mcp")
    return await _run_for_clients(host, "connect", chosen, "Connected")


async def undo_setup(host: PanelHost, form: Form) -> ActionResult:
    """Disconnect the AI tools, then restore the servers in their files. With `dry`, only show the changes."""
    if form.get("dry") == "yes":
        back = await verb(host, "import", "--undo", "--dry-run")
        lines = [f"{name} is disconnected" for name in await _connected(host)]
        lines += [f"The servers go back into {file}" for file in back["restored"]]
        lines += [f"{name} is removed from multi-mcp" for name in back["removed"]]
        title = "This would be undone" if lines else "There is nothing to undo"
        return ActionResult(title, text="\n".join(lines), changed=False)
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
    """Run a verb for each AI tool, also after a failure. Return one result for all of them."""
    done, failed = list[str](), list[str]()
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


ACTIONS: dict[str, Action] = {
    "do/reconnect": reconnect,
    "do/refresh": refresh,
    "do/switch": switch,
    "do/sign-in": sign_in,
    "do/sign-out": sign_out,
    "do/approve": approve,
    "do/approve-commands": approve_commands,
    "do/answer": answer,
    "do/call": call,
    "do/connect": connect,
    "do/look": look,
    "do/add": add,
    "do/take": take,
    "do/connect-chosen": connect_chosen,
    "do/undo-setup": undo_setup,
}
