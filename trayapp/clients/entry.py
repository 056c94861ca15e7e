"""Our own entry in a client's file: how it reads there, whether it is right, what would set it right.

Never here: files, formats.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from trayapp.clients.family import Document, Keys, lookup
from trayapp.clients.table import NAME, Client, Entry
from trayapp.model.settings import HttpSettings
from trayapp.service.command_line import SHIM as SHIM_PROGRAM
from trayapp.service.command_line import TRAY, WHOLE

SHIM = "stdio"  # the verb
_PROGRAMS = frozenset((WHOLE, TRAY, SHIM_PROGRAM, "multi_mcp"))
_FILE, _MODULE, _DEV = ("trayapp", "__main__.py"), ("-m", "trayapp"), ("packaging", "dev.py")  # ways to run a checkout
_DEFAULT_PORT = HttpSettings().port
_URLS = ("url", "serverUrl", "httpUrl", "uri")
_LAUNCH = ("type", "command", "cmd", "args")  # the keys of an entry that say what is started
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ENDPOINTS = ("/mcp", "/sse")


def holders(client: Client, document: Document) -> list[Keys]:
    """The keys that lead to servers in that file, those of its newer form first."""
    newer = (*client.holder, client.inner)
    inside = lookup(document, newer) if client.inner else None
    is_server = isinstance(inside, Mapping) and any(
        isinstance(inside.get(key), str | list) for key in (*_LAUNCH, "url")
    )
    return [newer, client.holder] if isinstance(inside, Mapping) and not is_server else [client.holder]


def place_of(client: Client, document: Document, name: str = NAME) -> Keys:
    """Return the keys that lead to our entry `name`, or will once it is there."""
    places = [(*holder, name) for holder in holders(client, document)]
    return next((place for place in places if lookup(document, place) is not None), places[0])


def wanted_entry(client: Client, command: Sequence[str], place: Keys = ()) -> Entry:
    """Return what stands in that client's file when it is connected, at `place` (as place_of)."""
    entry = client.entry(command[0], list(command[1:]))
    if place and "name" in entry:
        entry["name"] = place[-1]
    newer = client.inner and place[:-1] == (*client.holder, client.inner)
    return {key: value for key, value in entry.items() if key != "enabled"} if newer else entry


def flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry with the launch settings that Cline keeps inside of `transport` among its own keys."""
    inside = entry.get("transport")
    if not isinstance(inside, Mapping):
        return entry
    return {**{key: value for key, value in entry.items() if key != "transport"}, **inside}


def words_of(entry: Mapping[str, Any]) -> list[str]:
    """Program and arguments of a client's entry, in whichever keys it keeps them."""
    entry = flat(entry)
    command = entry.get("command", entry.get("cmd"))
    if isinstance(command, Mapping):  # an older form of Zed's: {path, args}
        return words_of({"command": command.get("path"), "args": command.get("args")})
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    args = entry.get("args")
    return [str(word) for word in [*words, *(args if isinstance(args, list) else [])]]


def is_ours(name: str, entry: Any) -> bool:
    """Whether an entry leads to multi-mcp: such a one is never imported, it would start itself."""
    if not isinstance(entry, Mapping):
        return False
    entry = flat(entry)
    words = words_of(entry)
    if _starts_shim(words) or any(_starts_shim(word.split()) for word in words if SHIM in word):
        return True
    urls = [entry[key] for key in _URLS if isinstance(entry.get(key), str)]
    return any(_is_our_url(url, name) for url in (*urls, *(word for word in words if "://" in word)))


def starts_ours(entry: Any) -> bool:
    """True if an entry starts multi-mcp, in whichever version or place."""
    words = words_of(entry) if isinstance(entry, Mapping) else []
    return is_ours(NAME, entry) or _is_program(words[:1]) or any(_is_program(word.split()[:1]) for word in words[:1])


def is_own(entry: Any) -> bool:
    """True if what stands under our name may be set right: it is ours, or it starts nothing."""
    if not isinstance(entry, Mapping):
        return True
    return starts_ours(entry) or not (words_of(entry) or any(flat(entry).get(key) for key in _URLS))


def is_off(entry: Any) -> bool:
    """True if an entry is switched off in its client."""
    return isinstance(entry, Mapping) and (entry.get("disabled") is True or entry.get("enabled") is False)


def options_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the arguments behind the shim's own words: `--profile office`."""
    words = words_of(entry)
    words = words[0].split() if len(words) == 1 else words
    for at, word in enumerate(words):
        if word == SHIM and _is_program(words[:at]):
            return words[at + 1 :]
    at = next((at for at, word in enumerate(words) if _name_of(word) == SHIM_PROGRAM), len(words))
    return words[at + 1 :]


def _starts_shim(words: Sequence[str]) -> bool:
    """Whether a command line runs the shim: our program and the verb behind it, whatever starts them."""
    if any(_name_of(word) == SHIM_PROGRAM for word in words):
        return True
    return any(word == SHIM and _is_program(words[:at]) for at, word in enumerate(words))


def _is_program(words: Sequence[str]) -> bool:
    """Whether these words end in what runs multi-mcp."""
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
    local = parts.hostname in _LOOPBACK and parts.path.rstrip("/") in _ENDPOINTS
    return local and (name == NAME or port == _DEFAULT_PORT)


def fault(client: Client, entry: Any, command: Sequence[str], options: Sequence[str] | None = None) -> str:
    """Return why our entry does not do what it should; "" when it does.

    `options`: what must stand behind the shim's own words; None: anything may. An entry that is off is fine.
    """
    if not isinstance(entry, Mapping):
        return "its entry is no mapping"
    words = words_of(entry)
    if words[: len(command)] == list(command):
        return "" if options is None or words[len(command) :] == list(options) else "it shows something else"
    program = words[0] if words else ""
    if not program:
        return "its entry starts no program"
    if os.path.isabs(program) and not Path(program).exists():  # noqa: PTH117 (a path of another system is none)
        return f"it points at {program}, which is not there"
    return f"it points at another program: {program}"


def repairs(
    client: Client, entry: Mapping[str, Any], command: Sequence[str], options: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the keys of our entry that must change, and to what; None: the key must go.

    What else the user wrote stays, its `options` too unless others are given (as in fault).
    """
    wanted = wanted_entry(client, [*command, *(options_of(entry) if options is None else options)])
    changes = {key: wanted[key] for key in _LAUNCH if key in wanted and entry.get(key) != wanted[key]}
    changes |= {key: None for key in (*_URLS, *_LAUNCH) if key in entry and key not in wanted}
    changes |= {"transport": None} if isinstance(entry.get("transport"), Mapping) else {}
    return changes
