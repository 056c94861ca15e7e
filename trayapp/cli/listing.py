"""`multi-mcp list`: every known tool, and for hidden ones why clients do not see them.

Never here: deciding that (the gateway does).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trayapp.cli.options import DISCOVERY_TIMEOUT_S, ask, examples, json_option, of_project, project_option
from trayapp.cli.output import Table, note_lacking, print_json, print_table, say
from trayapp.cli.project import here, hinting, listed_by
from trayapp.cli.text import first_line, one_line
from trayapp.wire.control import LIST

Row = dict[str, Any]

STYLES = {"off": "dim", "stale": "yellow", "withheld": "yellow"}


@click.command("list", epilog=examples("multi-mcp list github --disabled"))
@click.argument("server", required=False)
@click.option("--disabled", is_flag=True, help="Only tools that are switched off.")
@click.option("--stale", is_flag=True, help="Only tools that their server no longer has.")
@click.option("--withheld", is_flag=True, help="Only tools that are held back, with the reason.")
@project_option
@json_option
def list_verb(
    server: str | None, disabled: bool, stale: bool, withheld: bool, project: Path | None, as_json: bool
) -> None:
    """List the tools of all servers, or of SERVER.

    More than one filter: tools that fit any of them.
    """
    asked, lacking = {"server": server, **of_project(project)}, list[str]()
    with hinting(project):
        every = ask(LIST, asked, DISCOVERY_TIMEOUT_S, lacking.append)
    rows = chosen(every, disabled=disabled, stale=stale, withheld=withheld)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(Table(("TOOL", "NOTE", "DESCRIPTION"), [cells(row) for row in rows], STYLES))
        say(*reasons(rows))
    else:
        say("No tools" if not (disabled or stale or withheld) else "No such tools")
    folder = here() if project is None and server is None and not as_json else None
    of_folder = [f"Without the servers of this project, for those: {listed_by(folder)}"] if folder else []
    note_lacking([*lacking, *of_folder], as_json=as_json)


def chosen(rows: list[Row], *, disabled: bool, stale: bool, withheld: bool) -> list[Row]:
    """Return the rows that match any of the filters; all rows without a filter."""
    if not (disabled or stale or withheld):
        return rows
    tests = ((disabled, is_switched_off), (stale, lambda row: row["stale"]), (withheld, lambda row: row["withheld"]))
    return [row for row in rows if any(wanted and fits(row) for wanted, fits in tests)]


def is_switched_off(row: Row) -> bool:
    """Return True if only the user's setting hides the tool from clients."""
    return not row["enabled"] and not row["withheld"]


def cells(row: Row) -> tuple[str, str, str]:
    """Return name, note, and the description's first line."""
    return name_of(row), note_of(row), first_line(row["description"])


def name_of(row: Row) -> str:
    """Return the name that clients use for the tool, or SERVER/TOOL if they do not see it."""
    return one_line(row["exposed_name"] or f"{row['server']}/{row['name']}")


def note_of(row: Row) -> str:
    """Return one word for why no client sees the tool; "" if they do."""
    if row["withheld"]:
        return "withheld"
    return "stale" if row["stale"] else "" if row["enabled"] else "off"


def reasons(rows: list[Row]) -> list[str]:
    """Return why tools are withheld, one line per tool."""
    lines = [f"{name_of(row)} is withheld: {one_line(row['withheld'])}" for row in rows if row["withheld"]]
    return ["", *lines] if lines else []
