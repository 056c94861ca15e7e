"""`multi-mcp search` and `multi-mcp describe`: the search and the descriptions of the one tool, for a person.

Never here: ranking, the texts (the gateway makes both).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trayapp.cli.call_args import example_call
from trayapp.cli.options import DISCOVERY_TIMEOUT_S, ask, examples, json_option, of_project, project_option
from trayapp.cli.output import Table, note_lacking, print_json, print_table, say
from trayapp.cli.project import hinting
from trayapp.cli.text import clean, one_line
from trayapp.model.errors import UsageError
from trayapp.wire.control import DESCRIBE, SEARCH


@click.command("search", epilog=examples("multi-mcp search read a file", "multi-mcp search '^github_' --regex"))
@click.argument("words", nargs=-1)
@click.option(
    "--batch", type=click.Path(dir_okay=False, allow_dash=True), help="Read searches from this file, one a line."
)
@click.option("--server", help="Only tools of this server.")
@click.option("--limit", type=click.IntRange(1), help="Show at most this many tools.")
@click.option("--regex", is_flag=True, help="WORDS are a regular expression.")
@project_option
@json_option
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

    With --batch: the tools that each search finds, one JSON list a line.
    """
    asked: dict[str, Any] = {"server": server, "limit": limit, "regex": regex, **of_project(project)}
    if batch is not None:
        if words:
            raise UsageError("WORDS and --batch do not go together", "Give one of them")
        for rows in ask(SEARCH, {**asked, "batch": lines_of(batch)}, timeout=DISCOVERY_TIMEOUT_S)["results"]:
            print_json(rows, compact=True)
        return
    lacking = list[str]()
    found = ask(SEARCH, {**asked, "words": " ".join(words)}, DISCOVERY_TIMEOUT_S, lacking.append)
    if as_json:
        print_json(found["results"][0])
    else:
        _print_hits(found["hits"], found["missed"], " ".join(words))
    note_lacking(lacking, as_json=as_json)


def _print_hits(hits: list[dict[str, Any]], missed: list[str], words: str) -> None:
    if not hits:
        say(f"No tool matches {words!r}", "See all of them: multi-mcp list")
        return
    rows = [(one_line(hit["name"]), one_line(_told(hit))) for hit in hits]
    print_table(Table(("TOOL", "WHAT IT DOES"), rows, wraps=True))
    if missed:
        say(one_line(f"No tool matches: {', '.join(missed)}"))
    say(f"More about one: multi-mcp describe {one_line(hits[0]['name'])}")


def _told(hit: dict[str, Any]) -> str:
    also = [f"The same: {', '.join(hit['also'])}"] if "also" in hit else []
    return " ".join([*([f"[{hit['away']}]"] if hit["away"] else []), hit["description"], *also])


def lines_of(file: str) -> list[str]:
    """Return the lines of a file, or of stdin for `-`. Empty lines are kept. Raises OSError."""
    with click.open_file(file, encoding="utf-8", errors="replace") as stream:
        return [line.rstrip("\r\n") for line in stream]


@click.command("describe", epilog=examples("multi-mcp describe sample_add"))
@click.argument("tool")
@click.option("--server", help="The tool's server, if several servers have a tool of that name.")
@project_option
@json_option
def describe_verb(tool: str, server: str | None, project: Path | None, as_json: bool) -> None:
    """Show everything about TOOL: what it does and its parameters."""
    params = {"tool": tool, "server": server, **of_project(project)}
    with hinting(project):
        found = ask(DESCRIBE, params, timeout=DISCOVERY_TIMEOUT_S)
    if as_json:
        print_json({key: found[key] for key in ("server", "name", "exposed_name", "tool")})
    else:
        say(clean(found["text"]))
        if found["exposed_name"]:
            say("", f"Example: {example_call(found['exposed_name'], found['tool'].get('inputSchema'))}")
