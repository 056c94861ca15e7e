"""Import of clients' servers: choose and name them, remove them from the clients' files, and undo all of that."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from trayapp.clients import files
from trayapp.clients.connect import disconnected_text, entry_in, found_clients, with_entry
from trayapp.clients.context import ClientsContext, is_offer_declined, record_imports, recorded_imports
from trayapp.clients.family import Keys, lookup
from trayapp.clients.secrets import without_secrets
from trayapp.clients.servers import FoundServer, found_servers
from trayapp.clients.table import BY_NAME, Client
from trayapp.config.edits import LONGEST_KEY, add_server
from trayapp.config.files import wait_until_quiet, write_atomic
from trayapp.config.read.entry import read_one
from trayapp.model.config import SAMPLE, Config, ServerConfig, launch_hash, launch_settings
from trayapp.model.errors import MultiMcpError
from trayapp.model.text import count

LONGEST_NAME = 100  # characters; a client's name or a number may be appended within the limit of servers.yaml


@dataclass(frozen=True, slots=True)
class ImportOffer:
    """The offer to import one found server as `name`."""

    found: FoundServer
    name: str
    known: str = ""  # the name of a server that starts the same way, "" if none
    there: bool = False  # True if the known server is in our file, False if it is another offer
    fault: str = ""  # why the server cannot be imported

    @property
    def is_new(self) -> bool:
        """Return True if the server can be imported and no known server starts the same way."""
        return not self.known and not self.fault

    def written(self) -> dict[str, Any]:
        """Return the entry to write to our file. A user's shared command without `cwd` gets the home folder."""
        entry = dict(self.found.entry)
        if self.found.folder is None and "command" in entry and "cwd" not in entry and entry.get("scope") != "session":
            entry["cwd"] = "~"
        return entry

    def with_entry(self, entry: Mapping[str, Any]) -> ImportOffer:
        """Return this offer with another entry, for example one without secrets."""
        return replace(self, found=replace(self.found, entry=dict(entry)))


def offers(found: Iterable[FoundServer], existing: Mapping[Path | None, Config]) -> list[ImportOffer]:
    """Return an offer for each found server, in order. `existing`: our configurations by folder (None: servers.yaml).

    If the name is taken, the client's name or a number is appended. Servers that start the same way are imported once,
    even if the secrets of one are in the keyring, and under the name of an enabled one if there is one.
    """
    taken: dict[Path | None, dict[str, ServerConfig | None]] = {
        folder: {**dict.fromkeys(_invalid_names(config)), **config.servers} for folder, config in existing.items()
    }
    there = {(folder, name) for folder, names in taken.items() for name in names}
    every = list(enumerate(found))
    made: dict[int, ImportOffer] = {}
    for at, one in sorted(every, key=lambda each: each[1].entry.get("disabled") is True):
        names = taken.setdefault(one.folder, {})
        server = as_server(one.name, one.entry)
        ours = {name for folder, name in there if folder == one.folder}
        alike = (
            name for name, other in names.items() if other and server and _same_launch(other, server, name in ours)
        )
        known = next(alike, "") or _imported_as(one, names)
        name = known or next(free for free in _names_of(one) if free not in names)
        fault = "" if known else writing_fault(name, one.entry)
        made[at] = ImportOffer(one, name, known, (one.folder, known) in there, fault)
        if not fault:
            names[name] = server  # with its secrets: servers that differ only in a secret are different
    return [made[at] for at, _ in every]


def writing_fault(name: str, entry: Mapping[str, Any]) -> str:
    """Return why our files cannot hold an entry, "" if they can."""
    try:
        add_server("", name, entry)
    except (MultiMcpError, RecursionError, ValueError, TypeError):  # for example a TOML date
        keys = [str(key) for value in (entry, *entry.values()) if isinstance(value, Mapping) for key in value]
        return "a name in it is too long" if any(len(key) > LONGEST_KEY for key in keys) else "it cannot be written"
    return ""


def _imported_as(found: FoundServer, names: Mapping[str, ServerConfig | None]) -> str:
    """Return the name under which an earlier import added this server with its secrets in the keyring; "" if none did.

    Only the keyring references are compared, because the keyring is not read.
    """
    for name in itertools.islice(_names_of(found), 2):
        other, server = names.get(name), as_server(name, without_secrets(name, found.entry))
        if other and server and _same_launch(other, server, True):
            return name
    return ""


def _invalid_names(config: Config) -> list[str]:
    return [problem.server for problem in config.problems if problem.server]


def _same_launch(other: ServerConfig, found: ServerConfig, in_file: bool) -> bool:
    """Return True if both start the same way.

    `in_file`: `other` is in our file. Folder and scope are not compared if neither has a folder, or if `found` has none
    and `other` is in our file, because an import adds them.
    """
    if found.cwd in (None, "~") and (in_file or other.cwd in (None, "~")):
        other, found = (replace(each, cwd=None, scope="shared") for each in (other, found))
    return launch_settings(other) == launch_settings(found)


def as_server(name: str, entry: Mapping[str, Any]) -> ServerConfig | None:
    """Return the server that servers.yaml would read from this entry; None if the entry is invalid there."""
    return read_one(name, entry)[0]


def _names_of(found: FoundServer) -> Iterator[str]:
    """Yield possible names of the server in our files, best first. Each is used only if the earlier ones are taken."""
    name = re.sub(r"[/\x00-\x1f\x7f]+", "-", found.name).strip()[:LONGEST_NAME] or found.client.name
    yield from (name, f"{name}-{found.client.name}")
    yield from (f"{name}-{n}" for n in itertools.count(2))


# --- the first start


def first_offers(config: Config | None, context: ClientsContext) -> list[ImportOffer]:
    """Return the clients' servers to offer for import at the first start.

    Return [] if servers.yaml has imports or a server besides the sample, or if the user declined. `config`: the content
    of servers.yaml, None if that file does not exist. Blocks.
    """
    config = config or Config()
    own = {*config.servers, *_invalid_names(config)} - {SAMPLE}
    if own or config.settings.imports or is_offer_declined(context):
        return []
    return [offer for offer in offers(found_servers(context.machine).servers, {None: config}) if offer.is_new]


def offer_text(made: Sequence[ImportOffer]) -> str:
    """Return a sentence such as `Cursor and Claude Code have 5 servers of their own`; "" if there are none."""
    if not made:
        return ""
    *most, last = dict.fromkeys(offer.found.client.title for offer in made)
    servers = count(len(made), "server")
    return f"{', '.join(most)} and {last} have {servers} of their own" if most else f"{last} has {servers} of its own"


def duplicates(config: Config, context: ClientsContext) -> list[ImportOffer]:
    """Return the servers in servers.yaml that connected clients also start themselves, as offers. Blocks."""
    connected = {state.name for state in found_clients(context) if state.state == "connected"}
    made = offers(found_servers(context.machine).servers, {None: config})
    return [offer for offer in made if offer.there and offer.found.client.name in connected]


# --- moving


@dataclass(frozen=True, slots=True)
class Move:
    """Servers removed from a client's file: `keys` are their key paths, `backup` has the file's previous text."""

    client: Client
    file: Path
    backup: Path
    keys: tuple[Keys, ...]

    def text_after(self, text: str) -> str:
        """Return `text`, the content of the client's file, without these servers."""
        for keys in self.keys:
            text = self.client.family.drop(text, keys, str(self.file))
        return text


def move_out(moved: Iterable[FoundServer], kept: Collection[Path] = ()) -> list[Move]:
    """Remove these servers from their clients' files, after a backup of each file. Return one move for each file.

    A file without any of the servers gets no move. `kept` are backups that must not be overwritten. Blocks. Raises
    StorageError, UnparsableError, EditRefusedError and FileChangedError.
    """
    places: dict[Path, tuple[Client, list[Keys]]] = {}
    for found in moved:
        for path, keys in ((found.file, found.keys), *found.also):
            places.setdefault(path, (found.client, []))[1].append(keys)
    moves: list[Move] = []
    for path, (client, paths) in places.items():
        endings = itertools.chain([files.BACKUP_MOVED], (f".before-import-{n}.bak" for n in itertools.count(2)))
        backups = (files.backup_of(path, ending) for ending in endings)
        moves.append(Move(client, path, next(place for place in backups if place not in kept), tuple(paths)))
    return [move for move in moves if files.retried(partial(_drop_all, move))]


def _drop_all(move: Move) -> bool:
    wait_until_quiet(move.file)
    text = files.read_text(move.file)
    if text is None or (after := move.text_after(text)) == text:
        return False
    files.replace_text(move.file, text, after, move.backup)
    return True


# --- undo


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """A server that an import wrote into a file of ours. `launch`: its launch hash; `secrets`: names in the keyring."""

    file: Path
    name: str
    launch: str
    secrets: tuple[str, ...] = ()

    def is_untouched(self, server: ServerConfig | None) -> bool:
        """Return True if `server` still has the launch settings that the import wrote; False if it is None."""
        return server is not None and launch_hash(server) == self.launch


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """The result of undoing one move. `whole`: all of the previous text is back. `why_not`: the error, if any."""

    move: Move
    whole: bool = False
    why_not: str = ""


def record_import(context: ClientsContext, taken: Iterable[ImportedServer], moves: Iterable[Move]) -> None:
    """Record an import for a later undo. Blocks. Raises StorageError."""
    rows = [{"file": str(t.file), "name": t.name, "launch": t.launch, "secrets": list(t.secrets)} for t in taken]
    moved = [
        {"client": m.client.name, "file": str(m.file), "backup": str(m.backup), "keys": [list(k) for k in m.keys]}
        for m in moves
    ]
    if rows or moved:
        record_imports(context, lambda known: [*known, {"taken": rows, "moved": moved}])


def imported_record(file: Path, offer: ImportOffer, secrets: Iterable[str]) -> ImportedServer:
    """Return the record of a server that an import wrote into a file of ours."""
    server = as_server(offer.name, offer.written())
    return ImportedServer(file, offer.name, launch_hash(server) if server else "", tuple(secrets))


def imported_servers(context: ClientsContext) -> list[ImportedServer]:
    """Return every server written by an import that was not undone, newest first. Blocks."""
    return [
        ImportedServer(Path(row["file"]), row["name"], str(row.get("launch")), tuple(row.get("secrets") or ()))
        for row in _every_row(context, "taken")
        if isinstance(row.get("file"), str) and isinstance(row.get("name"), str)
    ]


def recorded_moves(context: ClientsContext) -> list[Move]:
    """Return every move that was not undone, newest first. Blocks."""
    return [
        Move(
            BY_NAME[row["client"]], Path(row["file"]), Path(row["backup"]),
            tuple(tuple(map(str, keys)) for keys in row.get("keys") or ()),
        )
        for row in _every_row(context, "moved")
        if row.get("client") in BY_NAME and isinstance(row.get("file"), str) and isinstance(row.get("backup"), str)
    ]  # fmt: skip


def _every_row(context: ClientsContext, kind: str) -> list[dict[str, Any]]:
    return [row for entry in recorded_imports(context) for row in _rows(entry, kind)][::-1]


def _rows(entry: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    rows = entry.get(kind)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def forget_imported(context: ClientsContext) -> None:
    """Remove all imported servers from the record; moves that were not undone stay. Blocks. Raises StorageError."""
    record_imports(context, lambda known: [{**entry, "taken": []} for entry in known if entry.get("moved")])


def put_back(context: ClientsContext) -> list[RestoredFile]:
    """Put every moved server back into its client's file, newest move first. Return the result of each move.

    A move that fails stays in the record. Blocks. Raises StorageError if our own record cannot be written.
    """
    return [_recorded(_put_back(move, context), context) for move in recorded_moves(context)]


def _recorded(done: RestoredFile, context: ClientsContext) -> RestoredFile:
    """Remove a move from the record if it was undone, and return `done`.

    Called immediately after each move, so that no move is undone twice, even after an interruption.
    """
    if done.why_not:
        return done
    backup = str(done.move.backup)

    def change(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        left = [[row for row in _rows(entry, "moved") if row.get("backup") != backup] for entry in known]
        entries = ({**entry, "moved": rows} for entry, rows in zip(known, left, strict=True))
        return [entry for entry in entries if entry["moved"] or entry.get("taken")]

    record_imports(context, change)
    if done.whole:
        files.forget(done.move.backup)
    return done


def _put_back(move: Move, context: ClientsContext) -> RestoredFile:
    try:
        context.settle(move.file)
        now, before = files.read_text(move.file), files.read_text(move.backup)
        if now is None:
            return RestoredFile(move, why_not="the file no longer exists")
        if before is None:
            held = move.client.family.read(now, str(move.file))
            has_all = all(lookup(held, keys) is not None for keys in move.keys)
            return RestoredFile(move, why_not="" if has_all else "the backup no longer exists")
        after = _whole(move, now, before, context)
        whole = after is not None
        after = _entry_by_entry(move, now, before) if after is None else after
        if after != now:
            files.replace_text(move.file, now, after, None)
        # update the backup of `connect`: a later `disconnect` then restores the text from before the import
        kept = files.backup_of(move.file)
        if whole and after != before and kept.exists() and entry_in(move.client, before, move.file) is None:
            write_atomic(kept, before.encode("utf-8"))
        return RestoredFile(move, whole)
    except MultiMcpError as error:
        return RestoredFile(move, why_not=error.title)


def _whole(move: Move, now: str, before: str, context: ClientsContext) -> str | None:
    """Return the text before the move, with our own entry as it is now; None if anything else has changed."""
    moved, client, file = move.text_after(before), move.client, move.file
    if now == moved:
        return before
    if now == disconnected_text(client, moved, file, context):
        return disconnected_text(client, before, file, context)
    entry = entry_in(client, now, file)
    if entry is not None and entry_in(client, moved, file) is None and now == with_entry(client, moved, entry, file):
        return with_entry(client, before, entry, file)
    return None


def _entry_by_entry(move: Move, now: str, before: str) -> str:
    """Return the text `now` with the moved servers that it lacks, as in `before`. Servers that it has do not change."""
    held = move.client.family.read(before, str(move.file))
    for keys in move.keys:
        value = lookup(held, keys)
        if value is not None and lookup(move.client.family.read(now, str(move.file)), keys) is None:
            now = move.client.family.put(now, keys, value, str(move.file))
    return now
