"""Our own entry in a client's file: its content, whether it is correct, and the changes that repair it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from trayapp.clients.family import Document, Keys, lookup
from trayapp.clients.table import NAME, Client, Entry
from trayapp.model.config import HttpSettings
from trayapp.service.command_line import SHIM as SHIM_PROGRAM
from trayapp.service.command_line import TRAY, WHOLE

SHIM = "stdio"  # the verb that runs the shim
_PROGRAMS = frozenset((WHOLE, TRAY, SHIM_PROGRAM, "multi_mcp"))
_FILE, _MODULE, _DEV = ("trayapp", "__main__.py"), ("-m", "trayapp"), ("packaging", "dev.py")  # ways to run a checkout
_URLS = ("url", "serverUrl", "httpUrl", "uri")
_LAUNCH = ("type", "command", "cmd", "args")  # the keys that define what an entry starts


def holders(client: Client, document: Document) -> list[Keys]:
    """Return the key paths of the mappings that hold servers in a client's file, the newer form first."""
    newer = (*client.holder, client.inner)
    inside = lookup(document, newer) if client.inner else None
    if not isinstance(inside, Mapping) or any(isinstance(inside.get(key), str | list) for key in (*_LAUNCH, "url")):
        return [client.holder]  # the newer key is missing, or is the name of a server
    return [newer, client.holder]


def place_of(client: Client, document: Document, name: str) -> Keys:
    """Return the key path of our entry `name`, or the path to write it to if it is missing."""
    places = [(*holder, name) for holder in holders(client, document)]
    return next((place for place in places if lookup(document, place) is not None), places[0])


def wanted_entry(client: Client, command: Sequence[str], place: Keys = ()) -> Entry:
    """Return the entry that connects a client. `place` is the entry's key path, from place_of."""
    entry = client.entry(command[0], list(command[1:]))
    if place and "name" in entry:
        entry["name"] = place[-1]
    newer = client.inner and place[:-1] == (*client.holder, client.inner)
    return {key: value for key, value in entry.items() if key != "enabled"} if newer else entry


def flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry with the launch settings that Cline keeps in `transport` moved to its top level."""
    inside = entry.get("transport")
    if not isinstance(inside, Mapping):
        return entry
    return {key: value for key, value in entry.items() if key != "transport"} | dict(inside)


def words_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the program and the arguments of a client's entry, whichever keys hold them; [] if there are none."""
    entry = flat(entry)
    command = entry.get("command", entry.get("cmd"))
    if isinstance(command, Mapping):  # an older form in Zed: {path, args}
        return words_of({"command": command.get("path"), "args": command.get("args")})
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    args = entry.get("args")
    return [str(word) for word in [*words, *(args if isinstance(args, list) else [])]]


def is_ours(name: str, entry: Any) -> bool:
    """Return True if an entry leads to multi-mcp, which must never start itself.

    A local URL leads to multi-mcp if the entry has our name, or if the URL has our default port.
    """
    if not isinstance(entry, Mapping):
        return False
    entry = flat(entry)
    words = words_of(entry)
    if _starts_shim(words) or any(_starts_shim(word.split()) for word in words if SHIM in word):
        return True
    urls = [entry[key] for key in _URLS if isinstance(entry.get(key), str)]
    return any(_is_our_url(url, name) for url in (*urls, *(word for word in words if "://" in word)))


def starts_ours(entry: Any) -> bool:
    """Return True if an entry starts multi-mcp, of any version and from any path, or connects to its gateway."""
    words = words_of(entry)[:1] if isinstance(entry, Mapping) else []
    return is_ours(NAME, entry) or _is_program(words) or any(_is_program(word.split()[:1]) for word in words)


def is_own(entry: Any) -> bool:
    """Return True if we may repair the entry under our name: it starts multi-mcp, or it starts nothing."""
    if not isinstance(entry, Mapping):
        return True
    return starts_ours(entry) or not (words_of(entry) or any(flat(entry).get(key) for key in _URLS))


def options_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the arguments after the shim's command (`--profile office`); [] if the entry does not run the shim."""
    words = words_of(entry)
    words = words[0].split() if len(words) == 1 else words
    for at, word in enumerate(words):
        if word == SHIM and _is_program(words[:at]):
            return words[at + 1 :]
    at = next((at for at, word in enumerate(words) if _name_of(word) == SHIM_PROGRAM), len(words))
    return words[at + 1 :]


def _starts_shim(words: Sequence[str]) -> bool:
    """Return True if a command line runs the shim: its own program, or another of our programs with `stdio`."""
    return any(
        _name_of(word) == SHIM_PROGRAM or (word == SHIM and _is_program(words[:at])) for at, word in enumerate(words)
    )


def _is_program(words: Sequence[str]) -> bool:
    """Return True if these words end in a program or script that runs multi-mcp."""
    if not words:
        return False
    if tuple(words[-2:]) == _MODULE or _path(words[-1]).parts[-2:] == _FILE:
        return True
    return _name_of(words[-1]) in _PROGRAMS or (words[-1] == "run" and _path(words[-2:][0]).parts[-2:] == _DEV)


def _name_of(word: str) -> str:
    return _path(word).name.lower().removesuffix(".exe")


def _path(word: str) -> PurePath:
    word = word.strip("\"'")
    return PureWindowsPath(word) if "\\" in word else PurePath(word)


def _is_our_url(url: str, name: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    local = parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.path.rstrip("/") in ("/mcp", "/sse")
    return local and (name == NAME or port == HttpSettings().port)


def fault(entry: Any, command: Sequence[str], options: Sequence[str] | None = None) -> str:
    """Return what is wrong with our entry; "" if nothing is. `options` are the required ones; None accepts any."""
    if not isinstance(entry, Mapping):
        return "its entry is not a mapping"
    words = words_of(entry)
    if words[: len(command)] == list(command):
        is_right = options is None or words[len(command) :] == list(options)
        return "" if is_right else "it starts the shim with other options"
    if not words or not words[0]:
        return "its entry starts no program"
    if os.path.isabs(words[0]) and not Path(words[0]).exists():  # noqa: PTH117 (a path of another platform is not absolute here)
        return f"it points to {words[0]}, which does not exist"
    return f"it points to another program: {words[0]}"


def repairs(
    client: Client, entry: Mapping[str, Any], command: Sequence[str], options: Sequence[str] | None
) -> dict[str, Any]:
    """Return the keys of our entry that must change, with their new values (None: remove). For `options`, see fault."""
    wanted = wanted_entry(client, [*command, *(options_of(entry) if options is None else options)])
    changes = {key: wanted[key] for key in _LAUNCH if key in wanted and entry.get(key) != wanted[key]}
    changes |= {key: None for key in (*_URLS, *_LAUNCH) if key in entry and key not in wanted}
    changes |= {"transport": None} if isinstance(entry.get("transport"), Mapping) else {}
    return changes
