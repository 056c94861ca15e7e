"""The project that one works in, for verbs that were not told of one: its servers are not what they speak of.

Never here: what a project's file says, whether it is trusted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trayapp.wire.control import ControlError

UNKNOWN = frozenset({"server_not_found", "tool_not_found"})  # codes of errors


def here() -> Path | None:
    """The project's folder of the one that one is in. Blocks."""
    from trayapp.clients.places import Machine
    from trayapp.config.layers.project import find_project  # most verbs come to their end without it

    try:
        found = find_project(Path.cwd(), Machine().home)
    except OSError:  # the folder was removed
        return None
    return None if found is None else found.parent


def named(folder: Path) -> str:
    """A folder as a word of a command line."""
    from trayapp.clients.places import Machine, shown_path

    whole = str(folder)
    return shown_path(folder, Machine().home) if shlex.quote(whole) == whole else shlex.quote(whole)


def listed_by(folder: Path, server: str = "") -> str:
    """The command that lists what sessions of that project see."""
    words = f"{shlex.quote(server)} " if server else ""
    return f"multi-mcp list {words}--project {named(folder)}"


@contextmanager
def hinting(project: Path | None) -> Iterator[None]:
    """An error of a name that is not known gets a hint, where it may be one of the project's that was not named."""
    try:
        yield
    except ControlError as error:
        folder = here() if project is None and error.code in UNKNOWN else None
        if folder is not None:
            error.hint = f"{error.hint}{'; ' if error.hint else ''}this project's own need: --project {named(folder)}"
        raise
