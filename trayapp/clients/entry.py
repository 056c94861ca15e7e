"""Our own entry in a client's file: how it reads there, whether it is right, what would set it right.

Never here: files, formats.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from trayapp.clients.table import NAME, Client, Entry

SHIM = "stdio"  # the verb
_URLS = ("url", "serverUrl", "httpUrl", "uri")
_LAUNCH = ("type", "command", "cmd", "args")  # the keys of an entry that say what is started
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ENDPOINTS = ("/mcp", "/sse")


def wanted_entry(client: Client, command: Sequence[str]) -> Entry:
    """What stands in that client's file when it is connected."""
    return client.entry(command[0], list(command[1:]))


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
    if SHIM in words and any(_is_program(word) for word in words):
        return True
    url = next((entry[key] for key in _URLS if isinstance(entry.get(key), str)), None)
    return url is not None and _is_our_url(url, name)


def _is_program(word: str) -> bool:
    path = PureWindowsPath(word) if "\\" in word else PurePath(word)
    if path.name.removesuffix(".exe") in (NAME, "multi_mcp"):
        return True
    return path.parts[-2:] == ("trayapp", "__main__.py")


def _is_our_url(url: str, name: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    local = parts.hostname in _LOOPBACK and parts.path in _ENDPOINTS
    return local and (name == NAME or port == 7461)


def fault(client: Client, entry: Any, command: Sequence[str]) -> str:
    """Why our entry does not do what it should; "" when it does. Options behind the shim's own words are fine."""
    if not isinstance(entry, Mapping):
        return "its entry is no mapping"
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return "multi-mcp is switched off there"
    words = words_of(entry)
    if words[: len(command)] == list(command):
        return ""
    program = words[0] if words else ""
    if not program:
        return "its entry starts no program"
    if os.path.isabs(program) and not Path(program).exists():  # noqa: PTH117 (a path of another system is none)
        return f"it points at {program}, which is not there"
    return f"it points at another program: {program}"


def repairs(client: Client, entry: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Keys of our entry that must change, and to what; None: the key must go. What else the user wrote stays."""
    wanted = wanted_entry(client, command)
    changes = {key: wanted[key] for key in _LAUNCH if key in wanted and entry.get(key) != wanted[key]}
    changes |= {key: None for key in (*_URLS, *_LAUNCH) if key in entry and key not in wanted}
    changes |= {"transport": None} if isinstance(entry.get("transport"), Mapping) else {}
    if entry.get("disabled") is True:
        changes["disabled"] = False
    if entry.get("enabled") is False:
        changes["enabled"] = True
    return changes
