"""A project's own servers file: find it, add and remove servers, and keep its approval valid.

Our own command approves its change if the file is new or was trusted; an untrusted file stays untrusted. Sessions read
the file through config/layers/overlay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trayapp.clients import files, jsonc
from trayapp.config import edits
from trayapp.config.files import locked, wait_until_quiet
from trayapp.config.layers.project import PROJECT_FILES, TrustStore, find_project, project_file_in, read_project
from trayapp.config.problems import UnparsableError, shown
from trayapp.config.read.fields import is_servers_key
from trayapp.config.read.parse import parse
from trayapp.config.read.text import without_comments
from trayapp.model.config import Config
from trayapp.model.errors import ServerNotFoundError, UsageError

OWN_FILE = PROJECT_FILES[0]
DEFAULT_HOLDER = "mcpServers"
_EMPTY = re.compile(r"\ufeff?\s*(?:servers:\s*(?:\{\s*\})?\s*)?")


def project_file_for(folder: Path, home: Path) -> Path:
    """Return the project file that applies to sessions in `folder`, or the path to create one at. Blocks."""
    found = find_project(folder, home)
    return found if found is not None else folder.resolve() / OWN_FILE


def project_file_of(folder: Path) -> Path:
    """Return the project file in exactly that folder, not above it, or the path to create one at. Blocks."""
    return project_file_in(folder) or folder / OWN_FILE


def read_config(path: Path) -> Config:
    """Return the configuration in a file, empty if it is missing. Blocks. Raises StorageError, UnparsableError."""
    text = files.read_text(path) or ""
    return parse(without_comments(text) if path.suffix == ".json" else text, str(path))


def add_server(path: Path, name: str, entry: Mapping[str, Any], trust: TrustStore | None) -> None:
    """Add a server to a project's file. Blocks.

    `trust`: where to approve the changed file. None if the user did not write the entry: the file then needs approval.
    Raises UsageError if the name is taken, StorageError, UnparsableError, EditRefusedError.
    """
    _edit(path, trust, lambda text: _added(path, text, name, entry))


def remove_server(path: Path, name: str, trust: TrustStore) -> bool:
    """Remove a server from a project's file. Return True if the file was removed, too. Blocks.

    Our own file is removed if nothing is left in it, because an empty file would still hide files in the folders above.
    Raises ServerNotFoundError, StorageError, UnparsableError, EditRefusedError.
    """
    _edit(path, trust, lambda text: _removed(path, text, name))
    text = files.read_text(path) or ""
    gone = path.name == OWN_FILE and not path.is_symlink() and _EMPTY.fullmatch(text) is not None
    if gone:
        files.remove(path, text)
    return gone


def _edit(path: Path, trust: TrustStore | None, change: Callable[[str], str]) -> None:
    with locked(path.parent):  # held until the approval: another process may edit the file, too
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
    document = jsonc.read(text, str(path))
    holder = next((key for key in document if is_servers_key(key)), DEFAULT_HOLDER)
    servers = document.get(holder)
    return holder, servers if isinstance(servers, dict) else {}


def has_server(path: Path, name: str) -> bool:
    """Return True if a project's file can be read and has that server, valid or not. Blocks. Raises StorageError."""
    try:
        config = read_config(path)
    except UnparsableError:
        return False
    return name in config.servers or any(problem.server == name for problem in config.problems)
