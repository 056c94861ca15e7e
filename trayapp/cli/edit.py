"""`multi-mcp edit`: servers.yaml in the user's editor.

Never here: how programs are opened (service/desktop_programs).
"""

from __future__ import annotations

import os
import sys

import click

from trayapp.cli.options import examples
from trayapp.cli.output import is_terminal, say
from trayapp.cli.servers_file import own_store
from trayapp.service.desktop_programs import edit_here, open_file


@click.command("edit", epilog=examples("multi-mcp edit"))
@click.option("--path", "only_path", is_flag=True, help="Only print where the file is.")
def edit_verb(only_path: bool) -> int:
    """Open servers.yaml.

    On a terminal in $VISUAL or $EDITOR, else in the program that opens such files. A save is live within a second.
    """
    store = own_store()
    if only_path:
        say(str(store.path))
        return 0
    store.create()
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor and is_terminal(sys.stdin) and is_terminal(sys.stdout):
        return edit_here(store.path, editor, os.environ)
    open_file(store.path, os.environ)
    say(f"Opened {store.path}")
    return 0
