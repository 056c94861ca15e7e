"""A project's own servers file, edited: which one counts, one server more or less, its approval kept up.

Never here: reading it for sessions (config/layers/overlay). What the user writes by a command of ours was approved by
that very command, so a file that we make, or that was trusted, is trusted after our change; one that was not stays so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trayapp.clients import files, jsonc
from trayapp.config import edits
from trayapp.config.files import wait_until_quiet
from trayapp.config.layers.project import PROJECT_FILES, find_project, project_file_in, read_project
from trayapp.config.layers.trust import TrustStore
from trayapp.config.locks import locked
from trayapp.config.problems import Unparsable, shown
from trayapp.config.read.parse import parse
from trayapp.config.read.spelling import is_servers_key
from trayapp.config.read.text import without_comments
from trayapp.model.errors import ServerNotFoundError, UsageError
from trayapp.model.plan import Config

OWN_FILE = PROJECT_FILES[0]
DEFAULT_HOLDER = "mcpServers"
_EMPTY = re.compile(r"\ufeff?\s*(?:servers:\s*(?:\{\s*\})?\s*)?")


def project_file_for(folder: Path, home: Path) -> Path:
    """The file that counts for sessions in `folder`, the one that would be made there where none does. Blocks."""
    found = find_project(folder, home)
    return found if found is not None else folder.resolve() / OWN_FILE


def project_file_of(folder: Path) -> Path:
    """The file of that very folder, made or not. Blocks."""
    return project_file_in(folder) or folder / OWN_FILE


def read_config(path: Path) -> Config:
    """What such a file says, an empty configuration when it is missing. Blocks. Raises StorageError, Unparsable."""
    text = files.read_text(path) or ""
    return parse(without_comments(text) if path.suffix == ".json" else text, str(path))


def add_server(path: Path, name: str, entry: Mapping[str, Any], trust: TrustStore | None) -> None:
    """One server more. Blocks. Raises UsageError when the name is taken, StorageError, Unparsable, EditRefusedError.

    `trust` None: the entry is not the user's own word, so the file wants an approval afterwards.
    """
    _edit(path, trust, lambda text: _added(path, text, name, entry))


def remove_server(path: Path, name: str, trust: TrustStore) -> bool:
    """One server less; whether our own file went with its last one, since nothing else was in it: an empty one would
    still hide those of the folders above. Blocks. Raises ServerNotFoundError, StorageError, Unparsable,
    EditRefusedError."""
    _edit(path, trust, lambda text: _removed(path, text, name))
    text = files.read_text(path) or ""
    gone = path.name == OWN_FILE and not path.is_symlink() and _EMPTY.fullmatch(text) is not None
    if gone:
        files.remove(path, text)
    return gone


def _edit(path: Path, trust: TrustStore | None, change: Callable[[str], str]) -> None:
    with locked(path.parent):  # from reading to approving: another process may add here at the same moment
        wait_until_quiet(path)
        before = read_project(path)
        may = trust is not None and (before is None or trust.check(before) is not None)
        text = files.read_text(path)
        written = change(text or "")
        files.replace_text(path, text, written, None)
        after = read_project(path)
        if trust is not None and may and after is not None and after.data == written.encode("utf-8"):
            trust.approve(after)


def _added(path: Path, text: str, name: str, entry: Mapping[str, Any]) -> str:
    if path.suffix != ".json":
        return edits.add_server(text, name, entry, str(path))
    holder, servers = _json_servers(path, text)
    if name in servers:
        raise UsageError(f"A server named {shown(name)} already exists", f"Remove it first: multi-mcp remove {name}")
    return jsonc.put(text, (holder, name), dict(entry), str(path))


def _removed(path: Path, text: str, name: str) -> str:
    if path.suffix != ".json":
        return edits.remove_server(text, name, str(path))
    holder, servers = _json_servers(path, text)
    if name not in servers:
        raise ServerNotFoundError(name, list(servers))
    return jsonc.drop(text, (holder, name), str(path))


def _json_servers(path: Path, text: str) -> tuple[str, dict[str, Any]]:
    """The key that holds the servers, and they."""
    document = jsonc.read(text, str(path))
    holder = next((key for key in document if is_servers_key(key)), DEFAULT_HOLDER)
    servers = document.get(holder)
    return holder, servers if isinstance(servers, dict) else {}


def has_server(path: Path, name: str) -> bool:
    """Whether such a file names that server, with a right entry or a wrong one. Blocks."""
    try:
        config = read_config(path)
    except Unparsable:
        return False
    return name in config.servers or any(problem.server == name for problem in config.problems)
