"""`multi-mcp approve` and `multi-mcp inspect`: what servers changed or hide, and the user's word on it.

Never here: deciding what is held back, looking definitions over (the gateway does both).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from trayapp.cli.options import ask, examples, json_option
from trayapp.cli.output import Table, is_terminal, print_json, print_table, say
from trayapp.cli.text import clean, count, one_line
from trayapp.model.errors import UsageError
from trayapp.wire.control import APPROVALS, APPROVE, INSPECT

INSPECT_TIMEOUT_S = 120.0  # for thousands of tools

Row = dict[str, Any]
STYLES = {"high": "bold red", "medium": "yellow"}


@click.command("approve", epilog=examples("multi-mcp approve", "multi-mcp approve github/create_issue --yes"))
@click.argument("what", metavar="[SERVER[/TOOL]]", required=False)
@click.option("--all", "all_", is_flag=True, help="Approve all that waits, of every server, without asking.")
@click.option("--yes", is_flag=True, help="Approve without asking.")
@json_option
def approve_verb(what: str | None, all_: bool, yes: bool, as_json: bool) -> int:
    """Show tools that changed or are suspicious, and approve them.

    They are held back until then. What is approved is what was shown: a tool that changes meanwhile waits again. Of
    results in which something was found, you are told no more. With --json and without --yes: only show.
    """
    if all_ and what:
        raise UsageError("--all means every server", "Name a server, or say --all")
    server, _, tool = (what or "").partition("/")
    waiting = ask(APPROVALS, {"server": server or None, "tool": tool or None})
    rows: list[Row] = waiting["rows"]
    results: list[Row] = waiting.get("results", [])
    number = len(rows) + len(results)
    if not as_json:
        say(*(_lines(rows) if rows else [] if results else ["Nothing waits for an approval"]))
        say(*(one_line(found["reason"]) for found in results))
    agreed = bool(number) and (yes or all_ or (not as_json and _agreed(number)))
    done = _approve(rows, results) if agreed else {"approved": [], "missed": []}
    if as_json:
        print_json({"waiting": rows, "results": results, **done})
    elif agreed:
        say(*_outcome(done), *(one_line(f"Not told any more: {found['reason']}") for found in results))
    return 1 if done["missed"] or done.get("problems") or (number and not agreed and not as_json) else 0


def _approve(rows: list[Row], results: list[Row]) -> dict[str, Any]:
    tools = [{member: row[member] for member in ("server", "tool", "hash")} for row in rows]
    done: dict[str, Any] = ask(APPROVE, {"tools": tools} | ({"results": results} if results else {}))
    return done


def _agreed(number: int) -> bool:
    """Ask. Raises UsageError where nobody can answer."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("Nobody is here to be asked", "Look at the tools above; then add --yes to approve them")
    return click.confirm(f"Approve {'it' if number == 1 else f'these {number}'}?", default=False)


def _lines(rows: list[Row]) -> Iterator[str]:
    """Each tool: why it waits, what becomes of it meanwhile, what is different."""
    for row in rows:
        yield f"{_path(row)}: {one_line(row['reason'])}"
        yield f"  {_meanwhile(row)}"
        yield from (f"  {found['severity']}: {one_line(_words(found))}" for found in row["findings"])
        yield from (f"    {clean(line)}" for line in row["difference"])
        yield ""


def _meanwhile(row: Row) -> str:
    if not row["served"]:
        return "No client sees it until you approve it."
    return "It is served as you approved it before." if row["changed"] else "It is served meanwhile."


def _outcome(done: dict[str, Any]) -> Iterator[str]:
    for row in done["approved"]:
        yield f"Approved: {_path(row)}"
    for row in done["missed"]:
        yield f"Not approved: {_path(row)} changed again meanwhile"
    for problem in done.get("problems", ()):
        yield one_line(f"Holds until the gateway ends only: {problem}")


def _path(row: Row) -> str:
    return one_line(f"{row['server']}/{row['tool']}")


def _words(found: Row) -> str:
    return f"{found['code']} in {found['where']}: {found['evidence']}"


@click.command("inspect", epilog=examples("multi-mcp inspect", "multi-mcp inspect github --json"))
@click.argument("server", required=False)
@json_option
def inspect_verb(server: str | None, as_json: bool) -> None:
    """Look over the tools of all servers, or of SERVER, for hidden text and orders to the model.

    Nothing is sent anywhere. What is of severity high is held back until you approve it.
    """
    found = ask(INSPECT, {"server": server}, INSPECT_TIMEOUT_S)
    rows: list[Row] = sorted(found["rows"], key=lambda row: row["severity"])
    if as_json:
        print_json(rows)
        return
    if rows:
        cells = [(_path(row), row["severity"], one_line(row["code"]), one_line(row["evidence"])) for row in rows]
        print_table(Table(("TOOL", "SEVERITY", "FINDING", "EVIDENCE"), cells, STYLES, wraps=True))
    say(f"{count(found['tools'], 'tool')} looked over, {count(len(rows), 'finding')}")
