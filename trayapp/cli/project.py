"""The project of the current folder, for hints of verbs that ran without --project and so ignore its servers.

Never here: the content of a project's file, whether it is trusted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trayapp.wire.control import ControlError

UNKNOWN = frozenset({"server_not_found", "tool_not_found"})  # error codes


def here() -> Path | None:
    """Return the folder of the project that contains the current folder; None without one. Blocks."""
    from trayapp.clients.places import Machine
    from trayapp.config.layers.project import find_project  # imported late: most verbs do not need it

    try:
        found = find_project(Path.cwd(), Machine().home)
    except OSError:  # the folder was removed
        return None
    return None if found is None else found.parent


def named(folder: Path) -> str:
    """Return a folder as a word of a command line."""
    from trayapp.clients.places import Machine, shown_path

    whole = str(folder)
    return shown_path(folder, Machine().home) if shlex.quote(whole) == whole else shlex.quote(whole)


def listed_by(folder: Path, server: str = "") -> str:
    """Return the command that lists what sessions of a project see."""
    words = f"{shlex.quote(server)} " if server else ""
    return f"multi-mcp list {words}--project {named(folder)}"


@contextmanager
def hinting(project: Path | None) -> Iterator[None]:
    """Add a hint to errors about unknown names in the block: inside a project, the name may need --project."""
    try:
        yield
    except ControlError as error:
        folder = here() if project is None and error.code in UNKNOWN else None
        if folder is not None:
            error.hint = f"{error.hint}{'; ' if error.hint else ''}this project's own need: --project {named(folder)}"
        raise
