"""`multi-mcp list`, `search`, `describe` and `index`: all known tools, and why clients do not see the hidden ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trayapp.cli.call import example_call
from trayapp.cli.options import (
    DISCOVERY_TIMEOUT_S,
    ask,
    current_project,
    list_command,
    of_project,
    project_hint,
    project_option,
    verb,
)
from trayapp.cli.output import Table, note, print_json, print_result, print_table, say, say_hints
from trayapp.model.errors import UsageError
from trayapp.model.text import clean, first_line, one_line
from trayapp.wire.control import DESCRIBE, INDEX, LIST, SEARCH

Row = dict[str, Any]

STYLES = {"off": "dim", "stale": "yellow", "withheld": "yellow"}


@verb("list", "multi-mcp list github --disabled")
@click.argument("server", required=False)
@click.option("--disabled", is_flag=True, help="Only tools that are disabled.")
@click.option("--stale", is_flag=True, help="Only tools that their server no longer has.")
@click.option("--withheld", is_flag=True, help="Only withheld tools, with the reason for each.")
@project_option
def list_verb(
    server: str | None, disabled: bool, stale: bool, withheld: bool, project: Path | None, as_json: bool
) -> None:
    """List the tools of all servers, or of SERVER.

    With several filters, list the tools that match any of them.
    """
    asked, lacking = {"server": server, **of_project(project)}, list[str]()
    with project_hint(project):
        every = ask(LIST, asked, DISCOVERY_TIMEOUT_S, lacking.append)
    rows = chosen(every, disabled=disabled, stale=stale, withheld=withheld)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(Table(("TOOL", "NOTE", "DESCRIPTION"), [cells(row) for row in rows], STYLES))
        say(*reasons(rows))
    else:
        say("No tools" if not (disabled or stale or withheld) else "No such tools")
    folder = current_project() if project is None and server is None and not as_json else None
    of_folder = [f"The servers of this project are not listed. To list them: {list_command(folder)}"] if folder else []
    if not as_json:
        note(*lacking, *of_folder)


def chosen(rows: list[Row], *, disabled: bool, stale: bool, withheld: bool) -> list[Row]:
    """Return the rows that match any of the filters; all rows without a filter."""
    if not (disabled or stale or withheld):
        return rows
    tests = ((disabled, is_switched_off), (stale, lambda row: row["stale"]), (withheld, lambda row: row["withheld"]))
    return [row for row in rows if any(wanted and fits(row) for wanted, fits in tests)]


def is_switched_off(row: Row) -> bool:
    """Return True if the user's settings hide the tool from clients; False if it is withheld for another reason."""
    return not row["enabled"] and not row["withheld"]


def cells(row: Row) -> tuple[str, str, str]:
    """Return the tool's name, its note, and the first line of its description."""
    return name_of(row), note_of(row), first_line(row["description"])


def name_of(row: Row) -> str:
    """Return the name that clients use for the tool, or SERVER/TOOL if they do not see it."""
    return one_line(row["exposed_name"] or f"{row['server']}/{row['name']}")


def note_of(row: Row) -> str:
    """Return one word for why no client sees the tool; "" if clients see it."""
    if row["withheld"]:
        return "withheld"
    return "stale" if row["stale"] else "" if row["enabled"] else "off"


def reasons(rows: list[Row]) -> list[str]:
    """Return a blank line, then a line for each withheld tool with the reason; [] if none is withheld."""
    lines = [f"{name_of(row)} is withheld: {one_line(row['withheld'])}" for row in rows if row["withheld"]]
    return ["", *lines] if lines else []


@verb("search", "multi-mcp search read a file", "multi-mcp search '^github_' --regex")
@click.argument("words", nargs=-1)
@click.option(
    "--batch", type=click.Path(dir_okay=False, allow_dash=True), help="Read searches from this file, one a line."
)
@click.option("--server", help="Only tools of this server.")
@click.option("--limit", type=click.IntRange(1), help="Show at most this many tools.")
@click.option("--regex", is_flag=True, help="Treat WORDS as a regular expression.")
@project_option
def search_verb(
    words: tuple[str, ...],
    batch: str | None,
    server: str | None,
    limit: int | None,
    regex: bool,
    project: Path | None,
    as_json: bool,
) -> None:
    """Find tools by what they do, the best match first.

    With --batch, print one JSON list of tools per line, one for each search.
    """
    asked: dict[str, Any] = {"server": server, "limit": limit, "regex": regex, **of_project(project)}
    if batch is not None:
        if words:
            raise UsageError("WORDS and --batch cannot be combined", "Pass only one of them")
        for found in ask(SEARCH, {**asked, "batch": lines_of(batch)}, timeout=DISCOVERY_TIMEOUT_S)["results"]:
            print_json(found, compact=True)
        return
    lacking = list[str]()
    found = ask(SEARCH, {**asked, "words": " ".join(words)}, DISCOVERY_TIMEOUT_S, lacking.append)
    if as_json:
        print_json(found["results"][0])
    elif not found["hits"]:
        say_hints(f"No tool matches {' '.join(words)!r}", "See all of them: multi-mcp list")
    else:
        rows: list[tuple[str, str]] = []
        for hit in found["hits"]:
            away = [f"[{hit['away']}]"] if hit["away"] else []
            also = [f"The same: {', '.join(hit['also'])}"] if "also" in hit else []
            rows.append((one_line(hit["name"]), one_line(" ".join([*away, hit["description"], *also]))))
        print_table(Table(("TOOL", "WHAT IT DOES"), rows, wraps=True))
        if found["missed"]:
            say(one_line(f"No tool matches: {', '.join(found['missed'])}"))
        say_hints(f"More about one: multi-mcp describe {rows[0][0]}")
    if not as_json:
        note(*lacking)


def lines_of(file: str) -> list[str]:
    """Return the lines of a file, or of stdin for `-`. Empty lines are kept. Raises OSError."""
    with click.open_file(file, encoding="utf-8", errors="replace") as stream:
        return [line.rstrip("\r\n") for line in stream]


@verb("describe", "multi-mcp describe sample_add")
@click.argument("tool")
@click.option("--server", help="The tool's server, if several servers have a tool of that name.")
@project_option
def describe_verb(tool: str, server: str | None, project: Path | None, as_json: bool) -> None:
    """Show everything about TOOL: what it does and its parameters."""
    params = {"tool": tool, "server": server, **of_project(project)}
    with project_hint(project):
        found = ask(DESCRIBE, params, timeout=DISCOVERY_TIMEOUT_S)
    if as_json:
        print_json({key: found[key] for key in ("server", "name", "exposed_name", "tool")})
    else:
        say(clean(found["text"]))
        if found["exposed_name"]:
            say("", f"Example: {example_call(found['exposed_name'], found['tool'].get('inputSchema'))}")


@verb("index", "multi-mcp index > TOOLS.md")
@project_option
def index_verb(project: Path | None, as_json: bool) -> None:
    """Print an index of all tools in Markdown."""
    lacking = list[str]()
    text = ask(INDEX, of_project(project), DISCOVERY_TIMEOUT_S, lacking.append)["text"]
    print_result(as_json, {"markdown": text}, clean(text).rstrip("\n"))
    if not as_json:
        note(*lacking)
