"""`multi-mcp outdated`, `update` and `update-check`: newer releases of servers' packages, and of multi-mcp itself.

multi-mcp checks for a newer release of itself only if `settings.update_check` is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from trayapp import __version__
from trayapp.cli.edit import own_settings
from trayapp.cli.options import ask, verb
from trayapp.cli.output import agreed, note, print_json, require_person, say, say_hints, waiting
from trayapp.model.config import Settings
from trayapp.model.errors import ExitCode, UsageError
from trayapp.model.text import clean, one_line
from trayapp.wire.control import OUTDATED, UPDATE_TAKE, UPDATE_TRY

OFF = "Not checked. To allow it, set update_check: true in the settings of servers.yaml"
NOBODY = "Not checked: this build was not published, so it has no address to check"
LINES_SHOWN = 40  # the most lines shown of one tool's diff


@verb("outdated", "multi-mcp outdated", "multi-mcp update github")
def outdated_verb(as_json: bool) -> None:
    """Show which servers could run a newer release of their package.

    A server runs the release that servers.lock names, until you update it. Releases younger than settings.min_age (3
    days) are not offered.
    """
    found = _outdated(as_json)
    if as_json:
        print_json(found)
        return
    for row in found["rows"]:
        newest, pinned, what = row["newest"], row["pinned"], f"{row['package']} {row['version']}"
        if row["error"] is not None:
            what += f"; {row['error']['title']}"
        elif row["kind"] == "mcpb":
            what += ", a bundle: to update it, remove it and add its newer file"
        elif newest is None:
            what += ", pinned by its command" if pinned else ", nothing newer is offered"
        else:
            what += f" -> {newest}" + (", but its command pins the version" if pinned else "")
        say(one_line(f"{row['server']}: {what}"))
    if not found["rows"]:
        say("No server runs a locked package")
    note(*(one_line(f"{one['server']}: not locked: {one['why']}. {one['hint']}") for one in found["unlocked"]))


def _outdated(quiet: bool) -> dict[str, Any]:
    with waiting("Asking the package registries", quiet=quiet):
        found: dict[str, Any] = ask(OUTDATED, {}, timeout=None)
    return found


@verb("update", "multi-mcp update github", "multi-mcp update github --to 1.4.2")
@click.argument("server", required=False)
@click.option("--to", metavar="VERSION", help="Use this version, newer or older.")
@click.option("--yes", is_flag=True, help="Update without asking.")
def update_verb(server: str | None, to: str | None, yes: bool, as_json: bool) -> int:
    """Update the package of SERVER, or of every server that has a newer release.

    Starts the new release once to read its tools, and shows what changes before you confirm. Changed tools wait for
    your approval as always.
    """
    if to is not None and server is None:
        raise UsageError("--to needs a server", "For example: multi-mcp update github --to 1.4.2")
    if yes:
        require_person("update what a server runs")
    elif as_json or not require_person("update what a server runs"):
        raise UsageError("Cannot ask for confirmation", "Pass --yes to proceed, or preview with: multi-mcp outdated")
    rows = [] if server is not None else _outdated(as_json)["rows"]
    names = [server] if server is not None else [row["server"] for row in rows if row["newest"] and not row["pinned"]]
    if not names and not as_json:
        say("Nothing to update: no newer version is offered, or the command pins a version. See: multi-mcp outdated")
    done = [_update(name, to, yes, as_json) for name in names]
    if as_json:
        print_json({"updates": done})
    failed = any(one.get("error") or (one.get("outcome") or {}).get("error") for one in done)
    return ExitCode.SERVER_UNAVAILABLE if failed else ExitCode.OK


def _update(name: str, to: str | None, yes: bool, quiet: bool) -> dict[str, Any]:
    if not yes and not agreed(f"Fetch {to or 'the newest release'} of {name}, and start it once?"):
        return {"server": name, "taken": False}
    with waiting(f"Trying {name}", quiet=quiet):
        found: dict[str, Any] = ask(UPDATE_TRY, {"server": name, "to": to}, timeout=None)
    if not quiet:
        say(*_lines(found))
    if found["to"] is None or found["error"] is not None:
        return found | {"taken": False}
    if not yes and not agreed(f"Update {name} to {found['to']}?"):
        return found | {"taken": False}
    outcome = ask(UPDATE_TAKE, {"server": name, "to": found["to"]}, timeout=None)
    if not quiet:
        say_hints(one_line(f"{name} runs {found['to']}; to go back: multi-mcp update {name} --to {found['from']}"))
        if outcome["error"] is not None:
            note(one_line(f"Version {found['to']} does not work: {outcome['error']['title']}"))
    return found | {"taken": True, "outcome": outcome}


def _lines(found: dict[str, Any]) -> Iterator[str]:
    if found["to"] is None:
        yield one_line(f"{found['server']} runs {found['package']} {found['from']}: nothing to update")
        return
    yield one_line(f"{found['server']}: {found['package']} {found['from']} -> {found['to']}")
    if found["error"] is not None:
        told = f"Version {found['to']} does not work: {found['error']['title']}"
        yield one_line(f"{told}. The server keeps running {found['from']}")
        return
    for word in ("added", "removed"):
        if found[word]:
            yield one_line(f"  tools {word}: {', '.join(found[word])}")
    for tool, lines in found["changed"].items():
        yield one_line(f"  {tool} changes:")
        yield from (f"    {clean(line)}" for line in lines[:LINES_SHOWN])
    if found.get("kept"):
        yield "  The server ran this version before: its tools return to their earlier definitions"
    elif not found["added"] and not found["removed"] and not found["changed"]:
        yield "  The server's tools do not change"


@verb("update-check", "multi-mcp update-check")
def update_check_verb(as_json: bool) -> None:
    """Check for a newer version.

    Contacts the network only if update_check is on in servers.yaml, and sends nothing about you.
    """
    outcome = look(own_settings())
    if as_json:
        print_json(outcome)
        return
    newer = outcome["newer"]
    if newer:
        say(
            f"Version {newer['version']} is available; this is {__version__}", *([newer["url"]] if newer["url"] else [])
        )
    else:
        say(f"This is the newest version, {__version__}" if outcome["asked"] else outcome["reason"])


def look(settings: Settings, address: str | None = None) -> dict[str, Any]:
    """Check for a newer version of multi-mcp. Return `{"asked", "reason", "newer"}`. Raises MultiMcpError.

    `reason`: why no request was sent; None if it was sent. `newer`: `{"version", "url"}`; None if there is none.
    """
    if not settings.update_check:
        return {"asked": False, "reason": OFF, "newer": None}
    from trayapp.service.version import is_newer, newest, releases_address

    where = releases_address() if address is None else address
    if not where:
        return {"asked": False, "reason": NOBODY, "newer": None}
    found = newest(where)
    newer = {"version": found.version, "url": found.url} if is_newer(found.version) else None
    return {"asked": True, "reason": None, "newer": newer}
