"""Undo imports: put servers back into the clients' files, and record what imports wrote into ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.clients import files
from trayapp.clients.connect import disconnected_text, entry_in, with_entry
from trayapp.clients.context import ClientsContext, note_imports, noted_imports
from trayapp.clients.family import lookup
from trayapp.clients.importing import ImportOffer, Move, as_server, without
from trayapp.clients.table import BY_NAME
from trayapp.config.files import write_atomic
from trayapp.model.errors import MultiMcpError
from trayapp.model.servers import ServerConfig, launch_hash


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """A server that an import wrote into a file of ours. `launch`: its launch hash; `secrets`: names in the keyring."""

    file: Path
    name: str
    launch: str
    secrets: tuple[str, ...] = ()

    def is_untouched(self, server: ServerConfig | None) -> bool:
        """Return True if the server's launch settings are still those of the import."""
        return server is not None and launch_hash(server) == self.launch


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """The result for one file.

    `whole`: its previous text is back, apart from our own entry. `why_not`: the reason why nothing was put back.
    """

    move: Move
    whole: bool = False
    why_not: str = ""


def remember(world: ClientsContext, taken: Iterable[ImportedServer], moves: Iterable[Move]) -> None:
    """Record an import, so that it can be undone. Blocks. Raises StorageError."""
    rows = [{"file": str(t.file), "name": t.name, "launch": t.launch, "secrets": list(t.secrets)} for t in taken]
    moved = [
        {"client": m.client.name, "file": str(m.file), "backup": str(m.backup), "keys": [list(k) for k in m.keys]}
        for m in moves
    ]
    if rows or moved:
        note_imports(world, lambda known: [*known, {"taken": rows, "moved": moved}])


def taken_as(file: Path, offer: ImportOffer, secrets: Iterable[str]) -> ImportedServer:
    """Return the record of a server that an import wrote into a file of ours."""
    server = as_server(offer.name, offer.written())
    return ImportedServer(file, offer.name, launch_hash(server) if server else "", tuple(secrets))


def all_taken(world: ClientsContext) -> list[ImportedServer]:
    """Return every server written by an import that was not undone, newest first. Blocks."""
    rows = [row for entry in reversed(noted_imports(world)) for row in reversed(_rows(entry, "taken"))]
    return [
        ImportedServer(
            Path(row["file"]), row["name"], str(row.get("launch")), tuple(map(str, row.get("secrets") or ()))
        )
        for row in rows
        if isinstance(row.get("file"), str) and isinstance(row.get("name"), str)
    ]


def all_moves(world: ClientsContext) -> list[Move]:
    """Return every move that was not undone, newest first. Blocks."""
    rows = [row for entry in reversed(noted_imports(world)) for row in reversed(_rows(entry, "moved"))]
    return [
        Move(
            BY_NAME[row["client"]], Path(row["file"]), Path(row["backup"]),
            tuple(tuple(map(str, keys)) for keys in row.get("keys") or ()),
        )
        for row in rows
        if row.get("client") in BY_NAME and isinstance(row.get("file"), str) and isinstance(row.get("backup"), str)
    ]  # fmt: skip


def _rows(entry: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    rows = entry.get(kind)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def forget_taken(world: ClientsContext) -> None:
    """Remove all imported servers from the record; moves that were not undone stay. Blocks. Raises StorageError."""
    note_imports(world, lambda known: [{**entry, "taken": []} for entry in known if entry.get("moved")])


def put_back(world: ClientsContext) -> list[RestoredFile]:
    """Put every moved server back into its client's file, newest move first. A move that fails stays in the record.

    Blocks. Raises StorageError for our own record.
    """
    return [_noted(_put_back(move, world), world) for move in all_moves(world)]


def _noted(done: RestoredFile, world: ClientsContext) -> RestoredFile:
    """Record the result of one file at once, so that neither a failure nor an interruption repeats it."""
    if done.why_not:
        return done
    backup = str(done.move.backup)

    def change(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        entries = [
            {**entry, "moved": [row for row in _rows(entry, "moved") if row.get("backup") != backup]} for entry in known
        ]
        return [entry for entry in entries if entry["moved"] or entry.get("taken")]

    note_imports(world, change)
    if done.whole:
        files.forget(done.move.backup)
    return done


def _put_back(move: Move, world: ClientsContext) -> RestoredFile:
    try:
        world.settle(move.file)
        now, before = files.read_text(move.file), files.read_text(move.backup)
        if now is None:
            return RestoredFile(move, why_not="it is gone")
        if before is None:
            return RestoredFile(move, why_not="" if _has_all(move, now) else "their backup is gone")
        after = _whole(move, now, before, world)
        whole = after is not None
        if after is None:
            after = _entry_by_entry(move, now, before)
        if after != now:
            files.replace_text(move.file, now, after, None)
        if whole:
            _renew_backup(move, after, before)
        return RestoredFile(move, whole)
    except MultiMcpError as error:
        return RestoredFile(move, why_not=error.title)


def _has_all(move: Move, now: str) -> bool:
    """Return True if the client's file has every server that was moved out of it."""
    held = move.client.family.read(now, str(move.file))
    return all(lookup(held, keys) is not None for keys in move.keys)


def _renew_backup(move: Move, now: str, before: str) -> None:
    """Update the backup of connect, so that a later disconnect restores the file's text from before the import."""
    kept = files.backup_of(move.file)
    if now != before and kept.exists() and entry_in(move.client, before, move.file) is None:
        write_atomic(kept, before.encode("utf-8"))


def _whole(move: Move, now: str, before: str, world: ClientsContext) -> str | None:
    """Return the text before the move, with our own entry as it is now; None if anything else changed since."""
    moved, client, file = without(move, before), move.client, move.file
    if now == moved:
        return before
    if now == disconnected_text(client, moved, file, world):
        return disconnected_text(client, before, file, world)
    entry = entry_in(client, now, file)
    if entry is not None and entry_in(client, moved, file) is None and now == with_entry(client, moved, entry, file):
        return with_entry(client, before, entry, file)
    return None


def _entry_by_entry(move: Move, now: str, before: str) -> str:
    """Return the text with the moved servers that are missing. A server that is back stays as it is."""
    held = move.client.family.read(before, str(move.file))
    for keys in move.keys:
        value = lookup(held, keys)
        if value is not None and lookup(move.client.family.read(now, str(move.file)), keys) is None:
            now = move.client.family.put(now, keys, value, str(move.file))
    return now
