"""The context of connect and import, and the record of connections and imports (clients.json)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trayapp.clients.files import Machine
from trayapp.clients.table import NAME
from trayapp.config.files import locked, read_bytes, wait_until_quiet, write_atomic
from trayapp.config.paths import find_paths
from trayapp.model.errors import StorageError
from trayapp.service.command_line import shim_command

RECORD = "clients.json"  # beside servers.yaml
VERSION = 1
CONNECTED = "connected"
IMPORTS = "imports"
NO_OFFER = "no_offer"  # the user declined the offer to import servers
RECORD_LARGEST = 1_000_000  # bytes of the record; each entry takes about 100


@dataclass(frozen=True, slots=True)
class ClientsContext:
    """The context of connect and import: the clients' machine, our record, and the shim's command line."""

    machine: Machine  # the machine on which clients keep their files
    record: Path  # the path of clients.json
    command: list[str] = field(default_factory=shim_command)  # the command line of the shim
    settle: Callable[[Path], object] = wait_until_quiet  # waits while a client is writing its file


def own_context() -> ClientsContext:
    """Return the context of this process: the user's machine and record."""
    return ClientsContext(Machine(), find_paths(os.environ).config_file.with_name(RECORD))


@dataclass(frozen=True, slots=True)
class ConnectionRecord:
    """The record of one client: the file with our entries, whether we created that file, and the entries' names."""

    file: Path
    made: bool = False
    entries: tuple[str, ...] = (NAME,)


def recorded_connection(context: ClientsContext, client: str) -> ConnectionRecord | None:
    """Return the record of a client; None if it is missing or malformed. Blocks."""
    entry = _read(context.record).get(client)
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return None
    names = entry.get("entries")
    entries = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else (NAME,)
    return ConnectionRecord(Path(entry["file"]), entry.get("made") is True, entries)


def record_connection(context: ClientsContext, client: str, what: ConnectionRecord | None) -> None:
    """Record a client's connection, or remove the record if `what` is None. Blocks. Raises StorageError."""
    with locked(context.record):
        known = _read(context.record)
        changed = {name: entry for name, entry in known.items() if name != client}
        if what is not None:
            more = {} if what.entries == (NAME,) else {"entries": list(what.entries)}
            changed[client] = {"file": str(what.file), "made": what.made} | more
        if changed != known:
            _write(context.record, {CONNECTED: changed})


def is_offer_declined(context: ClientsContext) -> bool:
    """Return True if the user declined the offer to import servers. Blocks."""
    return _content(context.record).get(NO_OFFER) is True


def decline_offer(context: ClientsContext) -> None:
    """Record that the user declined the offer to import servers. Blocks. Raises StorageError."""
    with locked(context.record):
        _write(context.record, {NO_OFFER: True})


def recorded_imports(context: ClientsContext) -> list[dict[str, Any]]:
    """Return the recorded imports (clients/imports defines their shape), oldest first. Blocks."""
    listed = _content(context.record).get(IMPORTS)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def record_imports(context: ClientsContext, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Replace the recorded imports with what `change` returns for them. Blocks. Raises StorageError."""
    with locked(context.record):
        known = recorded_imports(context)
        changed = change(known)
        if changed != known:
            _write(context.record, {IMPORTS: changed})


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
