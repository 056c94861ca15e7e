"""`multi-mcp history`: the calls of AI tools, their results, and their durations."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import click

from trayapp.cli.logs import pause
from trayapp.cli.options import ask, gateway, verb
from trayapp.cli.output import Table, byte_size, note, print_json, print_result, print_table, say
from trayapp.model.errors import UsageError
from trayapp.model.text import clean, count, one_line, shortened
from trayapp.wire.control import HISTORY, HISTORY_CLEAR, HISTORY_SHOW

TIMEOUT_S = 60.0  # the file may be on a slow disk
STYLES = {"failed": "bold red", "error": "red", "timeout": "red", "cancelled": "dim", "refused": "yellow"}
HEADERS = ("ID", "TIME", "CLIENT", "TOOL", "OUTCOME", "TOOK", "SIZE", "")
WHY_LONGEST = 60  # columns
_SINCE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(s|m|min|h|d|w)", re.IGNORECASE)
SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

Row = dict[str, Any]


@verb("history", "multi-mcp history --failed --since 2h", "multi-mcp history create issue", "multi-mcp history show 12")
@click.argument("words", nargs=-1, metavar="[WORDS... | show ID | clear]")
@click.option("--server", help="Only calls of this server's tools.")
@click.option("--tool", help="Only calls of this tool: its name, or SERVER/TOOL.")
@click.option("--client", help="Only calls of this AI tool.")
@click.option("--failed", is_flag=True, help="Only calls that failed.")
@click.option("--since", metavar="TIME", help="Only calls of the last 30m, 2h or 7d.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Show at most this many calls."
)
@click.option("-f", "--follow", is_flag=True, help="Keep running and show new calls.")
def history_verb(
    words: tuple[str, ...],
    server: str | None,
    tool: str | None,
    client: str | None,
    failed: bool,
    since: str | None,
    limit: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the calls of AI tools, newest last.

    Searches names, arguments and results for WORDS. `show ID` prints one call with its arguments and result;
    `clear` deletes the whole history.
    """
    if words[:1] == ("clear",) and len(words) == 1:
        clear(as_json)
        return
    if words[:1] == ("show",):
        if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > 15:
            raise UsageError("Which call?", "Pass its number: multi-mcp history show 12")
        show(int(words[1]), as_json)
        return
    span = _SINCE.fullmatch(since.strip()) if since is not None else None
    if since is not None and span is None:
        raise UsageError(f"{since} is not a time span", "Write it as 30m, 2h or 7d")
    asked: dict[str, Any] = {"words": " ".join(words), "server": server, "tool": tool, "client": client}
    asked |= {"failed": failed, "limit": limit, "since_s": None}
    if span is not None:
        asked["since_s"] = float(span[1]) * SECONDS[span[2].lower()]
    found = ask(HISTORY, asked, TIMEOUT_S)
    rows: list[Row] = found["rows"][::-1]
    if follow:
        _follow(rows, asked, as_json)
        return
    if as_json:
        print_json(rows)
    elif rows:
        print_table(Table(HEADERS, [_cells(row) for row in rows], STYLES))
    else:
        filtered = any(asked[name] not in ("", None, False) for name in asked if name != "limit")
        say("No call in the history matches" if filtered else "The history is empty")
    if not found["enabled"]:
        note("The history is switched off by settings.history in servers.yaml")
    if found["problem"] is not None:
        note(one_line(found["problem"]["title"]), one_line(found["problem"]["hint"]))


def clear(as_json: bool) -> None:
    """Delete the whole history."""
    number = ask(HISTORY_CLEAR, timeout=TIMEOUT_S)["cleared"]
    print_result(as_json, {"cleared": number}, f"Deleted the history of {count(number, 'call')}")


def show(number: int, as_json: bool) -> None:
    """Print one call with its arguments and result."""
    row: Row = ask(HISTORY_SHOW, {"id": number}, TIMEOUT_S)
    if as_json:
        print_json(row)
        return
    where = f" in {row['project']}" if row["project"] else ""
    reason = f": {row['error']}" if row["error"] else ""
    say(
        one_line(f"{tool_of(row)}  {row['outcome']}{reason}"),
        one_line(f"{moment(row['time'], whole=True)}, {took(row['ms'])}, called by {row['client']}{where}"),
        one_line(f"sent {byte_size(row['sent'])}, got {byte_size(row['received'])}, about {row['tokens']} tokens"),
    )
    for head in ("arguments", "result"):
        text = row[head] or ""
        if text:
            say("", f"{head.capitalize()}:", clean(pretty(text)))
    if not (row["arguments"] or row["result"]):
        say("", "Arguments and result were not kept (settings.history.arguments)")


def pretty(text: str) -> str:
    """Return JSON text indented. Any other text is JSON that was cut, and gets ` ...` at its end."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return f"{text} ..."


def _cells(row: Row) -> tuple[str, ...]:
    return (
        *(str(row["id"]), moment(row["time"]), one_line(row["client"]), one_line(tool_of(row)), row["outcome"]),
        *(took(row["ms"]), byte_size(row["received"]), shortened(one_line(row["error"]), WHY_LONGEST)),
    )


def tool_of(row: Row) -> str:
    """Return the call's tool as `SERVER/TOOL`, or as `TOOL` if no server is recorded."""
    return f"{row['server']}/{row['tool']}" if row["server"] else str(row["tool"])


def moment(seconds: float, *, whole: bool = False) -> str:
    """Return a Unix time as local time, with the date if that is not today. `whole`: always with the date."""
    at = datetime.fromtimestamp(seconds)
    today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if today and not whole else "%Y-%m-%d %H:%M:%S")


def took(ms: float) -> str:
    """Return a duration in words: `3 ms`, `1.2 s`, `4 min`."""
    if ms < 1000:
        return f"{ms:.0f} ms" if ms >= 1 else f"{ms:.1f} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.0f} min"


def _follow(rows: list[Row], asked: dict[str, Any], as_json: bool) -> None:
    with gateway(TIMEOUT_S) as client:
        last = rows[-1]["id"] if rows else 0
        since: dict[str, Any] = {} if rows else {"since_s": 1.0}
        while True:
            for row in rows:
                print_result(as_json, row, "  ".join(cell for cell in _cells(row) if cell), compact=True)
            pause()
            rows = client.call(HISTORY, {**asked, "after": last, **(since if not last else {})})["rows"][::-1]
            last = rows[-1]["id"] if rows else last
