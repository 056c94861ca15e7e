"""Cache of what each server last listed: one JSON file per server, without secrets.

Reading and writing block.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from trayapp import __version__
from trayapp.catalog.schema.tool import RULES, is_sound
from trayapp.catalog.variants import Variant, as_json, from_json
from trayapp.config.files import replace_file
from trayapp.model.errors import StorageError
from trayapp.model.logs import file_stem
from trayapp.model.offer import LISTS, NO_TRAITS, Offer, ServerTraits
from trayapp.wire.jsonio import dumps, loads

VERSION = 1  # version of the file format; files of another version are not read
SOUND_RULES = f"{__version__}/{RULES}"  # the version that computed `sound`; results of other versions are ignored
FILE_LARGEST = 64 << 20  # bytes; a server cannot send more in one frame
KEPT_S = 30 * 86_400.0  # age limit of an unconfigured server's file: the server may return, or belong to a project
LEFT_S = 86_400.0  # age at which the temporary file of an interrupted write is deleted

# Non-blocking: opening a pipe would hang the start.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_OFFER_FIELDS = tuple(field.name for field in fields(Offer))

log = logging.getLogger(__name__)


class CacheEntry(NamedTuple):
    """One server's offer, the launch hash for which it is valid, and when it was fetched (Unix seconds)."""

    server: str
    hash: str
    saved_at: float
    offer: Offer
    sound: frozenset[int] | None = None  # positions of the tools that clients get unchanged; None if not checked
    traits: ServerTraits = NO_TRAITS
    variants: tuple[Variant, ...] = ()


def with_sound(entry: CacheEntry) -> CacheEntry:
    """Return `entry` with `sound` filled in. Takes about 0.1 ms per tool."""
    if entry.sound is not None:
        return entry
    return entry._replace(sound=frozenset(place for place, tool in enumerate(entry.offer.tools) if is_sound(tool)))


def file_name(server: str) -> str:
    """Return the name of a server's file, in the cache and among the approvals."""
    return f"{file_stem(server)}.json"


def load_all(folder: Path, servers: Iterable[str]) -> dict[str, CacheEntry]:
    """Read the usable entries of `servers`, by name, in that order."""
    entries = ((server, load(folder, server)) for server in servers)
    return {server: entry for server, entry in entries if entry is not None}


def load(folder: Path, server: str) -> CacheEntry | None:
    """Read the entry of one server. Return None if there is none, or if it cannot be used, which is logged."""
    try:
        return _entry(read_own(folder / file_name(server), VERSION, server))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.info("The cached catalog of %s is not used: %s", server, error)
        return None


def save(folder: Path, entry: CacheEntry) -> None:
    """Replace the server's file atomically, or leave it unchanged. Raises StorageError."""
    write_own(folder / file_name(entry.server), _as_json(entry), f"the cached catalog of {entry.server}")


def sweep(folder: Path, servers: Iterable[str], now: float) -> None:
    """Delete other servers' files older than KEPT_S, and leftovers of interrupted writes. `now` is a Unix time."""
    kept = {file_name(server) for server in servers}
    with suppress(OSError):
        for path in list(folder.iterdir()):
            is_cut_off = path.name.startswith(".") and path.suffix == ".tmp"
            limit_s = KEPT_S if path.suffix == ".json" else LEFT_S if is_cut_off else None
            if limit_s is None or path.name in kept:
                continue
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mtime < now - limit_s:
                    path.unlink()


def read_file(path: Path) -> bytes:
    """Read one of our own files. Raises OSError, or ValueError if it is not a regular file or is too large."""
    # Four times as fast as Path.read_bytes, and start-up reads two files per server
    descriptor = os.open(path, _READING)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a file")
        if status.st_size > FILE_LARGEST:
            raise ValueError(f"{status.st_size} bytes is too large")
        return b"".join(iter(lambda: os.read(descriptor, status.st_size + 1), b""))
    finally:
        os.close(descriptor)


def read_own(path: Path, version: int, server: str) -> dict[str, Any]:
    """Read a server's file. Raises OSError, or ValueError unless it was written with this version for this server."""
    raw = loads(read_file(path))
    if not isinstance(raw, dict) or raw.get("version") != version or raw.get("server") != server:
        raise ValueError("not written by this version for this server")
    return raw


def write_own(path: Path, content: Any, what: str) -> None:
    """Replace the file atomically with `content` as JSON, or raise a StorageError that names `what`."""
    try:
        data = dumps(content)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, data)
    except (OSError, TypeError, ValueError, RecursionError) as error:
        hint = f"Check the free space and the permissions of {path.parent}"
        raise StorageError(f"Cannot write {what}: {error}", hint) from error


def _as_json(entry: CacheEntry) -> dict[str, Any]:
    head = {"version": VERSION, "server": entry.server, "hash": entry.hash, "saved_at": float(entry.saved_at)}
    sound = {"sound": {"rules": SOUND_RULES, "tools": sorted(entry.sound)}} if entry.sound is not None else {}
    traits = {"older": entry.traits.older, "newer": entry.traits.newer, "asks": sorted(entry.traits.asks)}
    known: dict[str, Any] = {"traits": traits} if entry.traits != NO_TRAITS else {}
    known |= {"variants": found} if (found := as_json(entry.variants)) else {}
    return head | sound | known | {name: getattr(entry.offer, name) for name in _OFFER_FIELDS}


def _entry(raw: dict[str, Any]) -> CacheEntry:
    """Return the entry of a file. Raises ValueError for anything that `save` did not write."""
    _expect(raw, str, "hash", "protocol")
    _expect(raw, float, "saved_at")
    _expect(raw, (dict, type(None)), "capabilities", "server_info", "older_capabilities")
    _expect(raw, (str, type(None)), "instructions", "older_instructions")
    _expect(raw, (int, type(None)), "ttl_ms")
    _expect(raw, dict, "failed", "results", "older")
    facts: dict[str, Any] = {name: raw.get(name) for name in _OFFER_FIELDS}
    facts |= {name: _items(raw, name) for name in LISTS}
    facts["older"] = {name: _items(raw["older"], name) for name in LISTS if name in raw["older"]}
    facts["results"] = {name: more for name, more in raw["results"].items() if isinstance(more, dict)}
    facts["failed"] = {name: str(why) for name, why in raw["failed"].items() if name in LISTS}
    facts["signed"] = raw.get("signed") is True
    sound, variants = _sound(raw.get("sound")), from_json(raw.get("variants"))
    return CacheEntry(raw["server"], raw["hash"], raw["saved_at"], Offer(**facts), sound, _traits(raw), variants)


def _traits(raw: dict[str, Any]) -> ServerTraits:
    found = raw.get("traits")
    if not isinstance(found, dict) or not isinstance(asks := found.get("asks"), list):
        return NO_TRAITS
    older, newer = (era if isinstance(era := found.get(name), bool) else None for name in ("older", "newer"))
    return ServerTraits(older, newer, frozenset(name for name in asks if isinstance(name, str)))


def _sound(raw: Any) -> frozenset[int] | None:
    if not isinstance(raw, dict) or raw.get("rules") != SOUND_RULES or not isinstance(raw.get("tools"), list):
        return None
    return frozenset(place for place in raw["tools"] if isinstance(place, int))


def _items(raw: dict[str, Any], name: str) -> tuple[dict[str, Any], ...]:
    items = raw.get(name)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name} is not a list of objects")
    return tuple(items)


def _expect(raw: dict[str, Any], kinds: type | tuple[type, ...], *names: str) -> None:
    for name in names:
        if name not in raw or not isinstance(raw[name], kinds) or isinstance(raw[name], bool):
            raise ValueError(f"{name} has the wrong type")
