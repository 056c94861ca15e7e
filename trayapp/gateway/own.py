"""Servers with `scope: session`: a process of its own for each client session, started by its first call.

It runs under a key of its own; its lists are the server's, read once for all. Never here: processes, names for clients.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trayapp.config.relative_paths import is_relative
from trayapp.model.servers import ServerConfig

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session


@dataclass(slots=True)
class _Own:
    number: int
    keys: dict[str, str] = field(default_factory=dict)  # the server's key -> the session's own


class OwnServers:
    """Which session has which servers for itself."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sessions: WeakKeyDictionary[Session, _Own] = WeakKeyDictionary()
        self._bases: dict[str, str] = {}

    def take(self, session: Session, key: str) -> tuple[str, bool]:
        """The key under which the session has that server for itself, and whether it is new."""
        own = self._sessions.get(session)
        if own is None:
            self._sessions[session] = own = _Own(next(self._numbers))
        if key in own.keys:
            return own.keys[key], False
        own.keys[key] = mine = f"{key}#{own.number}"
        self._bases[mine] = key
        return mine, True

    def key(self, session: Session, key: str) -> str:
        """Under what key a session reaches a server: its own, where it has one."""
        own = self._sessions.get(session)
        return own.keys.get(key, key) if own else key

    def base(self, key: str) -> str:
        """The key of the server that a session has for itself; of others their own."""
        return self._bases.get(key, key)

    def is_own(self, key: str) -> bool:
        """Whether what runs under that key runs for one session alone."""
        return key in self._bases

    def drop(self, session: Session) -> bool:
        """The session has ended; whether it had any."""
        own = self._sessions.pop(session, None)
        for mine in own.keys.values() if own else ():
            self._bases.pop(mine, None)
        return own is not None

    def servers(self, shared: dict[str, ServerConfig], sessions: Iterable[Session]) -> dict[str, ServerConfig]:
        """All of them by key, as the configuration has them now, in their sessions' folders."""
        found: dict[str, ServerConfig] = {}
        for session in sessions:
            own = self._sessions.get(session)
            for key, mine in own.keys.items() if own else ():
                server = shared.get(key)
                if server is not None and server.scope == "session":
                    found[mine] = replace(server, name=mine, cwd=folder_of(server, session.cwd))
        return found


def folder_of(server: ServerConfig, said: Any) -> str | None:
    """Return the folder of a session's own server: that of its entry, else the session's; both joined if relative.

    `said`: where the session's client runs. A root is no folder that one works in: programs that the desktop starts
    run there.
    """
    folder = (
        said if isinstance(said, str) and Path(said).is_absolute() and Path(said) != Path(Path(said).anchor) else None
    )
    if server.cwd is None or folder is None or not is_relative(server.cwd):
        return server.cwd or folder
    return str(Path(folder, server.cwd))


def shared_form(server: ServerConfig) -> ServerConfig:
    """A server as all share it: one that each session has for itself is only asked for its lists."""
    return replace(server, lifecycle="lazy") if server.scope == "session" else server
