"""Connect and disconnect clients: the planned change, the change itself, and the state of each client.

The check for `doctor` is here because service/checks must not import clients.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trayapp.clients import entry as ours
from trayapp.clients import files
from trayapp.clients.context import RECORD, ClientsContext, ConnectionRecord, record_connection, recorded_connection
from trayapp.clients.family import Keys, lookup
from trayapp.clients.files import ClientFile, Machine, locate
from trayapp.clients.table import CLIENTS, NAME, Client, find_client
from trayapp.config.problems import UnparsableError
from trayapp.model.errors import MultiMcpError, StorageError, UsageError
from trayapp.model.redact import redacted
from trayapp.model.text import one_line
from trayapp.service.checks.check import Check, CheckContext, CheckResult

State = Literal["connected", "not connected", "drifted", "not found", "unreadable"]
CHECK_CODE = "clients.connected"


class ForeignEntryError(MultiMcpError):
    """Raised when another server in a client's file has the name of our entry, and `replace` is False."""

    code = "foreign_entry"


class ClientNotFoundError(MultiMcpError):
    """Raised when the client is not installed on this machine."""

    code = "client_not_found"


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """The state of one client. `reason`: what is wrong or notable, if anything. `profile`: its profile, if any."""

    name: str
    title: str
    state: State
    file: Path
    reason: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to one file. `before` and `after` are the file's text, None if the file does not exist."""

    client: Client
    file: Path
    before: str | None
    after: str | None
    wanted: Literal["connected", "disconnected"]
    keep: bool = False  # keep `before` as a backup
    restores: bool = False  # `after` is the text of the backup
    entry: str = NAME  # the name of the entry to connect, or to remove if others stay
    left: tuple[str, ...] = ()  # our other entries, which stay when one is removed

    @property
    def changes(self) -> bool:
        """Return True if the file's text changes."""
        return self.before != self.after

    def diff(self) -> list[str]:
        """Return the change as lines of a unified diff, without line ends."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        return list(difflib.unified_diff(old, new, str(self.file), str(self.file), lineterm="", n=2))


@dataclass(frozen=True, slots=True)
class OwnEntry:
    """One of our entries. `options`: those after `multi-mcp stdio`, or None to keep the options in the file."""

    name: str = NAME
    options: tuple[str, ...] | None = None


MAIN = OwnEntry()


# --- the state of clients


def found_clients(context: ClientsContext) -> list[ClientStatus]:
    """Return the state of every client installed here, in the order of the table. Blocks: reads their files."""
    return [state for client in CLIENTS if (state := client_state(client.name, context)).state != "not found"]


def client_state(name: str, context: ClientsContext) -> ClientStatus:
    """Return the state of a client; "unreadable" if its file cannot be read or parsed. Blocks.

    Raises UsageError for an unknown name.
    """
    client = find_client(name)
    place = locate(client, context.machine)
    if not place.found:
        return ClientStatus(client.name, client.title, "not found", place.path)
    try:
        state, reason, profile = _state(client, place.path, context)
    except UnparsableError as error:
        state, reason, profile = "unreadable", error.title.removeprefix(str(place.path)).lstrip(",: "), ""
    except StorageError as error:
        state, reason, profile = "unreadable", error.title, ""
    return ClientStatus(client.name, client.title, state, place.path, reason, profile)


def _state(client: Client, file: Path, context: ClientsContext) -> tuple[State, str, str]:
    text = files.read_text(file) or ""
    known = _record_of(client, context, file)
    made = known.entries if known is not None else ()
    state: State = "not connected"
    off = profile = ""
    for name in dict.fromkeys((NAME, *made)):
        entry = entry_in(client, text, file, name)
        if entry is None:
            if name in made:
                return "drifted", f"its file has no multi-mcp entry{'' if name == NAME else f' named {name}'}", ""
        elif not ours.is_own(entry):
            if name in made or not made:
                return "not connected", f"its file has another server named {name}: {_launch_text(entry)}", ""
        elif wrong := ours.fault(entry, context.command):
            return "drifted", wrong if name == NAME else f"{name}: {wrong}", ""
        else:
            state = "connected"
            is_off = entry.get("disabled") is True or entry.get("enabled") is False
            off = off or (f"{name} is disabled there" if is_off else "")
            options = ours.options_of(entry) if name == NAME else []
            profile = options[options.index("--profile") + 1] if "--profile" in options[:-1] else profile
    return state, off, profile


def entry_in(client: Client, text: str, file: Path, name: str = NAME) -> Any:
    """Return the entry of that name in a client's file; None if there is none. Raises UnparsableError."""
    document = client.family.read(text, str(file))
    return lookup(document, ours.place_of(client, document, name))


def _place(client: Client, text: str, file: Path, name: str = NAME) -> Keys:
    return ours.place_of(client, client.family.read(text, str(file)), name)


def _own_entries(client: Client, text: str, file: Path, context: ClientsContext) -> dict[str, Any]:
    """Return our entries by name, in the order of the file: the main one (NAME), and those that the record names."""
    document = client.family.read(text, str(file))
    known = _record_of(client, context, file)
    names = (NAME, *(known.entries if known is not None else ()))
    found = {name: lookup(document, ours.place_of(client, document, name)) for name in names}
    held = [list(lookup(document, holder) or ()) for holder in ours.holders(client, document)]
    order = [name for names in held for name in names]
    own = [name for name, entry in found.items() if entry is not None and ours.is_own(entry)]
    return {name: found[name] for name in sorted(own, key=order.index)}


def _record_of(client: Client, context: ClientsContext, file: Path) -> ConnectionRecord | None:
    known = recorded_connection(context, client.name)
    return known if known is not None and known.file == file else None


def _launch_text(entry: Any) -> str:
    return one_line(redacted(" ".join(ours.words_of(entry)) or str(entry.get("url", ""))))


# --- plans


def plan_connect(name: str, context: ClientsContext, own: OwnEntry = MAIN, *, replace: bool = False) -> Change:
    """Return the change that connects a client. With `replace`, also replace a foreign server of the same name.

    A repaired entry keeps its options unless `own` has others. A disabled entry stays disabled. Blocks: waits while the
    client is writing its file. Raises UsageError, ClientNotFoundError, ForeignEntryError, StorageError,
    EditRefusedError, and UnparsableError: a file that cannot be parsed is left alone.
    """
    client = find_client(name)
    place = _found_file(client, context)
    text = files.read_text(place.path)
    document = text or ""
    entry = entry_in(client, document, place.path, own.name)
    after = text
    foreign = entry is not None and not ours.is_own(entry)
    if foreign and not replace:
        title = f"{client.title} has another server named {own.name}: {_launch_text(entry)}"
        words = ["connect", name, *(own.options or ()), *(["--as", own.name] if own.name != NAME else []), "--replace"]
        raise ForeignEntryError(title, f"Rename it in {place.path}, or replace it: multi-mcp {shlex.join(words)}")
    if foreign or not isinstance(entry, Mapping):
        keys = _place(client, document, place.path, own.name)
        command = [*context.command, *(own.options or ())]
        after = with_entry(client, document, ours.wanted_entry(client, command, keys), place.path, own.name)
    elif ours.fault(entry, context.command, own.options):
        after = _repaired(client, document, entry, own, context, place.path)
    keep = not _own_entries(client, document, place.path, context) or not files.backup_of(place.path).exists()
    return Change(client, place.path, text, after, "connected", keep=keep, entry=own.name)


def plan_disconnect(name: str, context: ClientsContext, entry: str | None = None) -> Change:
    """Return the change that removes our entries, or only `entry`, from a client.

    Blocks: waits while the client is writing its file. Raises UsageError (also if there is no such entry),
    ClientNotFoundError, StorageError, EditRefusedError, UnparsableError.
    """
    client = find_client(name)
    place = _found_file(client, context)
    text = files.read_text(place.path)
    entries = _own_entries(client, text or "", place.path, context)
    if entry is not None and entry not in entries:
        hint = f"It has: {', '.join(entries)}" if entries else "It is not connected"
        raise UsageError(f"{client.title} has no multi-mcp entry named {entry}", hint)
    if text is None or not entries:
        return Change(client, place.path, text, text, "disconnected")
    if entry is not None and len(entries) > 1:
        after = _dropped(client, text, [entry], place.path)
        left = tuple(name for name in entries if name != entry)
        return Change(client, place.path, text, after, "disconnected", entry=entry, left=left)
    known = _record_of(client, context, place.path)
    made = known is not None and known.made and not place.path.is_symlink()
    if made and _with_entries(client, "", entries, place.path) == text:
        return Change(client, place.path, text, None, "disconnected")
    original = _original(client, text, entries, place.path)
    after = _dropped(client, text, entries, place.path) if original is None else original
    return Change(client, place.path, text, after, "disconnected", restores=original is not None)


def disconnected_text(client: Client, text: str, file: Path, context: ClientsContext) -> str:
    """Return the text of a client's file without our entries. Blocks. Raises UnparsableError, EditRefusedError."""
    entries = _own_entries(client, text, file, context)
    if not entries:
        return text
    original = _original(client, text, entries, file)
    return _dropped(client, text, entries, file) if original is None else original


def _dropped(client: Client, text: str, names: Iterable[str], file: Path) -> str:
    """Return the text without these entries of ours. Foreign entries that they replaced are taken from the backup."""
    before = _backup_text(client, file)
    for name in names:
        place = _place(client, text, file, name)
        stood = entry_in(client, before, file, name) if before is not None else None
        if stood is not None and not ours.starts_ours(stood):
            text = client.family.put(text, place, stood, str(file))
        else:
            text = client.family.drop(text, place, str(file))
    return text


def _found_file(client: Client, context: ClientsContext) -> ClientFile:
    place = locate(client, context.machine)
    if not place.found:
        hint = f"Its configuration would be {place.path}. Start {client.title} once, then try again"
        raise ClientNotFoundError(f"{client.title} was not found here", hint)
    context.settle(place.path)
    return place


def with_entry(client: Client, text: str, entry: Any, file: Path, name: str = NAME) -> str:
    """Return the text with `entry` under `name`. An empty file also gets the client's `fresh` text."""
    if client.fresh and not client.family.read(text, str(file)):
        text = text + ("" if not text or text.endswith("\n") else "\n") + client.fresh
    return client.family.put(text, _place(client, text, file, name), entry, str(file))


def _with_entries(client: Client, text: str, entries: Mapping[str, Any], file: Path) -> str:
    for name, entry in entries.items():
        text = with_entry(client, text, entry, file, name)
    return text


def _repaired(
    client: Client, text: str, entry: Mapping[str, Any], own: OwnEntry, context: ClientsContext, file: Path
) -> str:
    path = _place(client, text, file, own.name)
    for key, value in ours.repairs(client, entry, context.command, own.options).items():
        if value is None:
            text = client.family.drop(text, (*path, key), str(file))
        else:
            text = client.family.put(text, (*path, key), value, str(file))
    return text


def _original(client: Client, text: str, entries: Mapping[str, Any], file: Path) -> str | None:
    """Return the text of the backup if only our entries have changed since the backup; None otherwise."""
    backup = _backup_text(client, file)
    if backup is None:
        return None
    by_key = backup
    try:
        if _with_entries(client, backup, entries, file) == text:
            return backup
        for name, entry in entries.items():
            stood = entry_in(client, backup, file, name)
            if stood is None:
                by_key = with_entry(client, by_key, entry, file, name)
            elif isinstance(stood, Mapping) and isinstance(entry, Mapping):
                place = _place(client, by_key, file, name)
                for key in (key for key in entry if stood.get(key) != entry[key]):
                    by_key = client.family.put(by_key, (*place, key), entry[key], str(file))
    except MultiMcpError:
        return None
    return backup if by_key == text else None


def _backup_text(client: Client, file: Path) -> str | None:
    try:
        backup = files.read_text(files.backup_of(file))
        entry_in(client, backup or "", file)
    except MultiMcpError:
        return None  # a backup that cannot be read cannot be restored
    return backup


# --- the change


def apply(change: Change, context: ClientsContext) -> Change:
    """Apply a change, update the record, and return the change. Blocks. Raises FileChangedError, StorageError."""
    backup = files.backup_of(change.file)
    known = recorded_connection(context, change.client.name)
    own = _record_of(change.client, context, change.file) or ConnectionRecord(change.file, entries=())
    made = change.before is None or own.made
    entries = change.left or tuple(dict.fromkeys((*own.entries, change.entry)))
    adds = change.wanted == "connected"
    record = ConnectionRecord(change.file, made, entries) if adds or change.left else None
    if adds:  # record it before the file changes: an unrecorded entry could not be removed later
        record_connection(context, change.client.name, record)
    try:
        if change.changes and change.after is None:
            files.remove(change.file, change.before or "")
        elif change.changes and change.after is not None:
            files.replace_text(change.file, change.before, change.after, backup if change.keep else None)
    except MultiMcpError:
        if adds:
            with suppress(StorageError):
                record_connection(context, change.client.name, known)
        raise
    if not adds:
        record_connection(context, change.client.name, record)
    if record is None and change.restores:
        files.forget(backup)
    return change


def connect(name: str, context: ClientsContext, own: OwnEntry = MAIN, *, replace: bool = False) -> Change:
    """Write or repair our entry in a client's file. Return the change. Raises the errors of plan_connect and apply."""
    return files.retried(lambda: apply(plan_connect(name, context, own, replace=replace), context))


def disconnect(name: str, context: ClientsContext, entry: str | None = None) -> Change:
    """Remove our entries from a client's file. Return the change. Raises the errors of plan_disconnect and apply."""
    return files.retried(lambda: apply(plan_disconnect(name, context, entry), context))


# --- the check of doctor


def connected(surroundings: CheckContext) -> list[CheckResult]:
    """Return a result for each connected, drifted or unreadable client. Blocks.

    Add a note if no client is connected or drifted.
    """
    machine = Machine(environ=surroundings.environ, platform=surroundings.platform)
    context = ClientsContext(machine, surroundings.paths.config_file.with_name(RECORD))
    states = found_clients(context)
    findings = [finding for state in states if (finding := _finding(state)) is not None]
    if any(state.state in ("connected", "drifted") for state in states):
        return findings
    if not states:
        return [CheckResult(CHECK_CODE, "note", "No known AI tool was found")]
    what = f"None of these is connected: {', '.join(state.title for state in states)}"
    return [*findings, CheckResult(CHECK_CODE, "note", what, "Connect all of them: multi-mcp connect --all")]


def _finding(state: ClientStatus) -> CheckResult | None:
    what = f"{state.title}: {state.reason} ({state.file})"
    match state.state:
        case "connected" if state.reason:
            return CheckResult(CHECK_CODE, "note", what, "Enable it there")
        case "connected":
            return CheckResult(CHECK_CODE, "ok", f"{state.title}: {state.file}")
        case "drifted":
            return CheckResult(CHECK_CODE, "problem", what, f"Fix it with: multi-mcp connect {state.name}")
        case "unreadable":
            what = f"{state.title}: cannot read {state.file}: {state.reason}"
            return CheckResult(CHECK_CODE, "note", what, "Correct the file. Until then, multi-mcp does not edit it")
    return None


CLIENT_CHECKS = (Check(CHECK_CODE, connected),)
