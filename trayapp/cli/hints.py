"""Hints that verbs print: the current project, which a verb without --project ignores, and the next step of a setup."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trayapp.cli.output import is_terminal, note
from trayapp.model.errors import MultiMcpError
from trayapp.model.text import one_line
from trayapp.service.command_line import typed_command
from trayapp.wire.control import ControlError

UNKNOWN = frozenset({"server_not_found", "tool_not_found"})  # error codes


def current_project() -> Path | None:
    """Return the folder of the project that contains the current folder; None without one. Blocks."""
    from trayapp.clients.files import Machine
    from trayapp.config.layers.project import find_project  # imported late: most verbs do not need it

    try:
        found = find_project(Path.cwd(), Machine().home)
    except OSError:  # the folder was removed
        return None
    return None if found is None else found.parent


def quoted_folder(folder: Path) -> str:
    """Return a folder as one word of a command line, quoted if needed."""
    from trayapp.clients.files import Machine, shown_path

    whole = str(folder)
    return shown_path(folder, Machine().home) if shlex.quote(whole) == whole else shlex.quote(whole)


def list_command(folder: Path) -> str:
    """Return the command that lists what sessions of a project see."""
    return f"multi-mcp list --project {quoted_folder(folder)}"


@contextmanager
def project_hint(project: Path | None) -> Iterator[None]:
    """Add a hint to errors about unknown names in the block: inside a project, the name may need --project."""
    try:
        yield
    except ControlError as error:
        folder = current_project() if project is None and error.code in UNKNOWN else None
        if folder is not None:
            error.hint = (
                f"{error.hint}{'; ' if error.hint else ''}this project's own need: --project {quoted_folder(folder)}"
            )
        raise


def import_hint() -> str:
    """Return one line that offers to import the servers of AI tools. Blocks.

    It is "" if there is nothing to offer (see `first_offers`), servers.yaml is invalid, or stderr is not a terminal.
    """
    if not is_terminal(sys.stderr):
        return ""
    from trayapp.cli.edit import own_store  # takes 50 ms with the imports below: only if a person reads it
    from trayapp.clients import imports
    from trayapp.clients.context import own_context
    from trayapp.config.read.parse import parse

    store = own_store()
    try:
        text = store.read()
        config = None if text is None else parse(text, str(store.path))
    except MultiMcpError:
        return ""
    words = imports.offer_text(imports.names_by_client(imports.first_offers(config, own_context())))
    return one_line(f"{words}. Next: {typed_command()} setup") if words else ""


def say_import_hint() -> None:
    """Print the offer to import servers, if there is one."""
    words = import_hint()
    if words:
        note(words)


def next_step() -> str:
    """Return what to do after a start, in one line: import servers, or connect an AI tool. Blocks.

    It is "" if there is nothing to import and an AI tool is connected, or if stderr is not a terminal.
    """
    words = import_hint()
    if words or not is_terminal(sys.stderr):
        return words
    from trayapp.clients.connect import found_clients
    from trayapp.clients.context import own_context

    if any(state.state == "connected" for state in found_clients(own_context())):
        return ""
    return f"No AI tool is connected yet. Connect yours with: {typed_command()} setup"


def say_next_step() -> None:
    """Print what to do after a start, if anything."""
    words = next_step()
    if words:
        note(words)
