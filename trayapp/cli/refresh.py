"""`multi-mcp refresh` and `multi-mcp reconnect`: list the tools of one server or of all again, or reconnect them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trayapp.cli.options import as_error, ask, verb
from trayapp.cli.output import print_json, say, say_hints, waiting
from trayapp.model.errors import ExitCode
from trayapp.model.text import count, one_line
from trayapp.wire.control import RECONNECT, REFRESH

Outcome = dict[str, Any]  # the outcome of one server; wire/control lists its members

NAMES_SHOWN = 5
ALL_ASLEEP = "Nothing to reconnect: no server is in use. Each one starts with its next call"
CHANGES = (("added", "added"), ("gone", "removed"), ("back", "back"))


@verb("refresh", "multi-mcp refresh github")
@click.argument("server", required=False)
def refresh_verb(server: str | None, as_json: bool) -> int:
    """Ask all servers, or SERVER, for their tools again.

    New tools are added to servers.yaml; what you disabled stays disabled.
    """
    with waiting(f"Asking {server or 'all servers'} for tools", quiet=as_json):
        servers = ask(REFRESH, {"server": server}, timeout=None)["servers"]
    return print_outcomes(servers, server, as_json, change_text, "No enabled servers to refresh")


@verb("reconnect", "multi-mcp reconnect github")
@click.argument("server", required=False)
def reconnect_verb(server: str | None, as_json: bool) -> int:
    """Reconnect SERVER, or all servers that are in use or have failed.

    Servers that failed recently are retried immediately. Idle servers start with their next call anyway. To ask for
    tools again, use multi-mcp refresh.
    """
    with waiting(f"Connecting {server or 'all servers'}", quiet=as_json):
        servers = ask(RECONNECT, {"server": server}, timeout=None)["servers"]
    return print_outcomes(servers, server, as_json, lambda outcome: one_line(outcome["state"]), ALL_ASLEEP)


def print_outcomes(
    servers: dict[str, Outcome], asked: str | None, as_json: bool, words: Callable[[Outcome], str], none: str
) -> int:
    """Print a line for each server, or one JSON document. Return the exit code of the first failure, or 0.

    `asked`: the server that the user named, None for all. If that server failed, raises ControlError. `words`: called
    with the outcome of a server that did not fail, returns the text to print. `none`: printed if there are no servers.
    """
    if asked is not None and servers[asked]["error"] is not None:
        raise as_error(servers[asked]["error"])
    if as_json:
        print_json({"servers": servers})
    else:
        for name, outcome in servers.items():
            error = outcome["error"]
            why = ". ".join(filter(None, (error["title"], error["hint"]))) if error is not None else ""
            say_hints(f"{one_line(name)}: {one_line(why) if error is not None else words(outcome)}")
        say(*([] if servers else [none]))
    failed = [outcome["error"] for outcome in servers.values() if outcome["error"] is not None]
    return int(failed[0]["exit_code"]) if failed else ExitCode.OK


def change_text(outcome: Outcome) -> str:
    """Return a text such as `2 tools added (a, b), 1 tool removed (c)`, with the number of tools to approve, if any."""
    parts: list[str] = []
    for key, word in CHANGES:
        if names := outcome[key]:
            more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
            shown = ", ".join(map(one_line, names[:NAMES_SHOWN]))
            parts.append(f"{count(len(names), 'tool')} {word} ({shown}{more})")
    wait = len(outcome.get("waiting", ()))
    after = f"; {count(wait, 'tool')} to approve, see: multi-mcp approve" if wait else ""
    return (", ".join(parts) or ("no tool added or removed" if wait else "no change")) + after
