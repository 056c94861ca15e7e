"""`multi-mcp index`: all tools in Markdown, with the content of the resource `multi-mcp://index`.

Never here: writing it (the gateway does).
"""

from __future__ import annotations

from pathlib import Path

import click

from trayapp.cli.options import DISCOVERY_TIMEOUT_S, ask, examples, json_option, of_project, project_option
from trayapp.cli.output import note_lacking, print_json, say
from trayapp.cli.text import clean
from trayapp.wire.control import INDEX


@click.command("index", epilog=examples("multi-mcp index > TOOLS.md"))
@project_option
@json_option
def index_verb(project: Path | None, as_json: bool) -> None:
    """Print an index of all tools in Markdown."""
    lacking = list[str]()
    text = ask(INDEX, of_project(project), DISCOVERY_TIMEOUT_S, lacking.append)["text"]
    if as_json:
        print_json({"markdown": text})
    else:
        say(clean(text).rstrip("\n"))
    note_lacking(lacking, as_json=as_json)
