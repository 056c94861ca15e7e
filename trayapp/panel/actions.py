"""The actions behind the panel's buttons: each is a control request or a verb of the command line."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio.to_thread

from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.redact import redacted
from trayapp.panel.host import PanelHost
from trayapp.service.verb_process import run_verb
from trayapp.wire import control
from trayapp.wire.jsonio import JsonError, loads

VERB_S = 60.0
BY = "the panel"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action, as the page shows it.

    - `wrong`: the action failed.
    - `text`: long text below the title, such as a tool's answer or a diff.
    - `url`: an address to open.
    - `server`: the server whose page shows more.
    - `proposals`: the servers that can be added, each shown as a form.
    - `clients`: the AI tools that can be connected, if none is connected yet.
    - `ask`, `again`: the call that the user must confirm, and the form values that repeat it.
    - `field`: the form field that the message is about.
    - `tools`: class -> names of the server's tools.
    - `instead`: the id of the page element that the result replaces; "": the usual one.
    - `commands`: the commands of the server's secrets that wait for approval.
    """

    title: str
    hint: str = ""
    changed: bool = True  # False: the page stays as it is
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
        """Return a value. Raises UsageError if it is missing or empty."""
        found = self._values.get(name, [""])[-1]
        if not found:
            raise UsageError(f"The form has no {name}", "Reload the page and try again")
        return found

    def get(self, name: str, default: str = "") -> str:
        """Return a value, or the default if it is missing."""
        return self._values.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        """Return every value of that name, such as the ticked boxes."""
        return [value for value in self._values.get(name, []) if value]

    def below(self, prefix: str) -> dict[str, str]:
        """Return the nonempty values whose names begin with `prefix`, keyed by the rest of the name."""
        return {
            name.removeprefix(prefix): values[-1]
            for name, values in self._values.items()
            if name.startswith(prefix) and values[-1] != ""
        }


def parsed(typed: dict[str, str]) -> dict[str, Any]:
    """Return a form's values, parsed where they are JSON. The gateway also gets the typed text: schemas may want it."""
    values: dict[str, Any] = dict(typed)
    for name, text in typed.items():
        with suppress(JsonError):
            if not isinstance(value := loads(text.encode()), str):  # keep the quotes that the user typed
                values[name] = value
    return values


Action = Callable[[PanelHost, Form], Awaitable[ActionResult]]


async def verb(host: PanelHost, *argv: str) -> Any:
    """Run a verb of the command line. Raises MultiMcpError."""
    return await anyio.to_thread.run_sync(partial(run_verb, argv, host.environ, VERB_S))


def as_argument(name: str) -> str:
    """Return a name for use as a verb's argument. Raises UsageError if it would be read as an option."""
    if name.startswith("-"):
        raise UsageError(f"{name} begins with a hyphen", "Change it in servers.yaml")
    return name


def exact_pattern(tool: str) -> str:
    """Return a glob pattern that matches only this name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in tool)


async def reconnect(host: PanelHost, form: Form) -> ActionResult:
    """Reconnect one server, or all of them."""
    done = await host.ask(control.RECONNECT, {"server": form.get("server") or None})
    none, hint = "Nothing to reconnect", "No server is in use. Each one starts with its next call."
    return _servers_result(done, "Reconnected", none, hint)


async def refresh(host: PanelHost, form: Form) -> ActionResult:
    """Refresh the tools of one server, or of all of them."""
    return _servers_result(await host.ask(control.REFRESH, {"server": form.get("server") or None}), "Refreshed")


def _servers_result(
    done: dict[str, Any], word: str, none: str = "No servers to ask", hint: str = "Add one in servers.yaml"
) -> ActionResult:
    failed = {name: row["error"] for name, row in done["servers"].items() if row.get("error")}
    if failed:
        name, error = next(iter(failed.items()))
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return ActionResult(
            f"{error['title']}{more}" if name in error["title"] else f"{name}: {error['title']}{more}",
            error["hint"],
            wrong=True,
        )
    names = list(done["servers"])
    if not names:
        return ActionResult(none, hint)
    return ActionResult(f"{word} {names[0] if len(names) == 1 else f'{len(names)} servers'}")


async def switch(host: PanelHost, form: Form) -> ActionResult:
    """Enable or disable a server or a tool in servers.yaml."""
    server, tool, on = form.text("server"), form.get("tool"), form.text("on") == "yes"
    target = f"{server}/{exact_pattern(tool)}" if tool else server
    done = await verb(host, "enable" if on else "disable", as_argument(target))
    word = "Enabled" if on else "Disabled"
    names = ", ".join(done["changed"]) if isinstance(done, dict) else target
    return ActionResult(
        f"{word}: {names}" if names else f"{tool or server} was already {'enabled' if on else 'disabled'}"
    )


async def sign_in(host: PanelHost, form: Form) -> ActionResult:
    """Start a sign-in to a server. The service's page opens in this browser."""
    begun = await host.ask(control.LOGIN, {"server": form.text("server")})
    if begun["url"] is None:
        return ActionResult(f"Signed in to {form.text('server')}")
    return ActionResult(f"Continue on the sign-in page of {form.text('server')}", url=str(begun["url"]))


async def sign_out(host: PanelHost, form: Form) -> ActionResult:
    """Sign out of a server."""
    await host.ask(control.LOGOUT, {"server": form.text("server")})
    return ActionResult(f"Signed out of {form.text('server')}")


async def approve(host: PanelHost, form: Form) -> ActionResult:
    """Approve the tool definition that the page showed, identified by its hash, or keep the previous one."""
    tool, keep = {name: form.text(name) for name in ("server", "tool", "hash")}, form.get("keep") == "yes"
    done = await host.ask(control.APPROVE, {"tools": [tool], "keep": keep})
    if done["missed"]:
        return ActionResult(f"{tool['tool']} changed again in the meantime", "Review the new difference", wrong=True)
    problems = done.get("problems") or []
    return ActionResult(
        f"{'Kept the old definition of' if keep else 'Approved'} {tool['server']}/{tool['tool']}",
        redacted(str(problems[0])) if problems else "",
        wrong=bool(problems),
    )


async def approve_commands(host: PanelHost, form: Form) -> ActionResult:
    """Approve the commands of a server's secrets that the page showed, and start the server."""
    server, commands = form.text("server"), form.all("commands")
    done = await host.ask(control.APPROVE_COMMANDS, {"server": server, "commands": commands})
    if done["missed"]:
        return ActionResult("The commands changed in the meantime", "Review them on the page Approvals", wrong=True)
    started = _servers_result(await host.ask(control.REFRESH, {"server": server}), "Approved and started:")
    if started.wrong:
        return replace(started, title=f"Approved, but the server does not work yet: {started.title}", server=server)
    return replace(started, server=server, tools=await tools_of(host, server))


async def tools_of(host: PanelHost, server: str) -> dict[str, list[str]]:
    """Return class -> names of a server's tools, without those that the server no longer has."""
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
    """Call a tool with the values of its form, or with arguments as JSON.

    A call that needs the user's consent is returned as `ask`, unless the form's `allowed` is the hash of the tool
    definition that the user has just allowed.
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
    return ActionResult(
        "The tool answered with an error" if failed else "The call succeeded", wrong=failed, text=result_text(result)
    )


def result_text(result: Any) -> str:
    """Return a call's result for people: its texts, or its JSON if it has other content."""
    content = result.get("content") if isinstance(result, dict) else None
    texts = [item["text"] for item in content or () if isinstance(item, dict) and isinstance(item.get("text"), str)]
    if isinstance(content, list) and texts and len(texts) == len(content):
        return redacted("\n".join(texts))[:50_000]
    return redacted(json.dumps(result, indent=2, ensure_ascii=False))[:50_000]


async def connect(host: PanelHost, form: Form) -> ActionResult:
    """Connect or disconnect an AI tool; with `dry`, only show the change."""
    on, name, dry = form.text("on") == "yes", form.text("client"), form.get("dry") == "yes"
    shown = [f"--profile={profile}"] if on and (profile := form.get("profile")) else []
    argv = ["connect" if on else "disconnect", *(["--dry-run"] if dry else []), *shown, as_argument(name)]
    done = await verb(host, *argv)
    rows = done.get("clients", []) if isinstance(done, dict) else []
    if not rows:
        raise MultiMcpError("Nothing changed", "See: multi-mcp connect")
    row = rows[0]
    diff = "\n".join(row.get("diff", []))
    if dry:
        return ActionResult(
            f"This would change in {row.get('file', '')}" if diff else "Nothing would change", text=diff, changed=False
        )
    word = "Connected" if on else "Disconnected"
    return ActionResult(f"{word} {row.get('title', name)}", row.get("needs", ""), text=diff)


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
}
