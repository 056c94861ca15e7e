"""What connect and import need to know of where they run, and the note of what we connected.

Never here: a client's format, deciding anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trayapp.clients.places import Machine
from trayapp.clients.table import NAME
from trayapp.config.files import read_bytes, wait_until_quiet, write_atomic
from trayapp.config.locks import locked
from trayapp.config.paths import find_paths
from trayapp.model.errors import StorageError
from trayapp.service.command_line import shim_command

RECORD_NAME = "clients.json"  # beside servers.yaml
VERSION = 1
CONNECTED = "connected"
IMPORTS = "imports"
NO_OFFER = "no_offer"  # the user wants no servers offered at a start
RECORD_LARGEST = 1_000_000  # bytes; an entry has some 100


@dataclass(frozen=True, slots=True)
class ClientsContext:
    """`machine`: where clients keep their files. `record`: our note. `command`: the shim, program first.

    `settle`: waits for a client that writes its file in this moment.
    """

    machine: Machine
    record: Path
    command: list[str] = field(default_factory=shim_command)
    settle: Callable[[Path], object] = wait_until_quiet


def this_world(environ: Mapping[str, str] | None = None) -> ClientsContext:
    """The real one."""
    environ = os.environ if environ is None else environ
    return ClientsContext(Machine(environ=dict(environ)), find_paths(environ).config_file.with_name(RECORD_NAME))


@dataclass(frozen=True, slots=True)
class Noted:
    """What we did for one client: in which file our entries stand, whether we made that file, the entries' names."""

    file: Path
    made: bool = False
    entries: tuple[str, ...] = (NAME,)


def noted(world: ClientsContext, client: str) -> Noted | None:
    """What is noted of a client; nothing when the note is not one that we wrote. Blocks."""
    entry = _read(world.record).get(client)
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return None
    names = entry.get("entries")
    entries = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else (NAME,)
    return Noted(Path(entry["file"]), entry.get("made") is True, entries)


def note(world: ClientsContext, client: str, what: Noted | None) -> None:
    """Note a connection, or with None its end. Blocks. Raises StorageError."""
    with locked(world.record):
        known = _read(world.record)
        changed = {name: entry for name, entry in known.items() if name != client}
        if what is not None:
            more = {} if what.entries == (NAME,) else {"entries": list(what.entries)}
            changed[client] = {"file": str(what.file), "made": what.made} | more
        if changed != known:
            _write(world.record, {CONNECTED: changed})


def said_no(world: ClientsContext) -> bool:
    """Whether the user wants to hear no more of servers that could be taken over. Blocks."""
    return _content(world.record).get(NO_OFFER) is True


def say_no(world: ClientsContext) -> None:
    """Note that. Blocks. Raises StorageError."""
    with locked(world.record):
        _write(world.record, {NO_OFFER: True})


def noted_imports(world: ClientsContext) -> list[dict[str, Any]]:
    """Return what is noted of imports (clients/undo says what that is), oldest first. Blocks."""
    listed = _content(world.record).get(IMPORTS)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def note_imports(world: ClientsContext, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Note what `change` makes of it. Blocks. Raises StorageError."""
    with locked(world.record):
        known = noted_imports(world)
        changed = change(known)
        if changed != known:
            _write(world.record, {IMPORTS: changed})


def _write(path: Path, changed: Mapping[str, Any]) -> None:
    content = {CONNECTED: {}} | _content(path) | {"version": VERSION} | dict(changed)
    text = json.dumps({key: value for key, value in content.items() if value != []}, indent=2, ensure_ascii=False)
    write_atomic(path, text.encode("utf-8", "surrogatepass") + b"\n")


def _read(path: Path) -> dict[str, Any]:
    connected = _content(path).get(CONNECTED)
    return connected if isinstance(connected, dict) else {}


def _content(path: Path) -> dict[str, Any]:
    try:
        content: Any = json.loads(read_bytes(path, RECORD_LARGEST) or b"{}")
    except (ValueError, RecursionError, StorageError):
        return {}
    return content if isinstance(content, dict) and content.get("version") == VERSION else {}
