"""Name the connections of each server, and record whom each one serves and which one a session uses.

For the user all connections of a server are one server. The module `sharing` decides which one a session should use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from trayapp.config.read.command import is_relative
from trayapp.gateway.calls.client_capabilities import Purpose
from trayapp.gateway.client import ClientSession
from trayapp.model.config import ServerConfig
from trayapp.wire.capabilities import NO_KIND, ClientKind, kind_of

# Limits on a server's connections for single requests. The key is True for a server at an address, where connections
# cost no process. CALLS_MOST: busy connections; further requests wait. PARKED_MOST: all connections, including parked
# ones, whose clients were asked and may never come back.
CALLS_MOST = {False: 4, True: 32}
PARKED_MOST = {False: 12, True: 64}


@dataclass(slots=True)
class _ConnectionKey:
    number: int
    keys: dict[str, str] = field(default_factory=dict)  # server's key -> key of the session's own connection


class ConnectionKeys:
    """Keys of one gateway's connections: `NAME` for a server's first one, `NAME#SUFFIX` for each further one."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._own: WeakKeyDictionary[ClientSession, _ConnectionKey] = WeakKeyDictionary()
        self._used: WeakKeyDictionary[ClientSession, dict[str, str]] = WeakKeyDictionary()
        self._owners: dict[str, tuple[str, ref[ClientSession]]] = {}
        self._eras: dict[str, tuple[str, bool]] = {}
        self._kinds: dict[str, tuple[str, ClientKind]] = {}
        self._requests: dict[str, str] = {}
        self._calls: dict[str, tuple[str, ref[ClientSession] | None]] = {}

    # -- keys ----------------------------------------------------------------------------------------------------

    def own(self, session: ClientSession, server: str) -> str:
        """Return the key of the session's own connection of a server."""
        own = self._own.get(session)
        if own is None:
            self._own[session] = own = _ConnectionKey(next(self._numbers))
        if server not in own.keys:
            own.keys[server] = mine = f"{server}#{own.number}"
            self._owners[mine] = server, ref(session)
        return own.keys[server]

    def of_era(self, server: str, *, newer: bool) -> str:
        """Return the key of the connection for sessions of that era."""
        key = era_key(server, newer=newer)
        self._eras[key] = server, newer
        return key

    def of_kind(self, server: str, kind: ClientKind) -> str:
        """Return the key of the connection that announces a client of that kind and era."""
        key = "-".join((era_key(server, newer=kind.newer), *(sorted(kind.able) or ["weak"])))
        self._kinds[key] = server, kind
        return key

    def of_requests(self, server: str) -> str:
        """Return the key of the connection for single requests of clients that can be asked."""
        key = f"{server}#requests"
        self._requests[key] = server
        return key

    def of_call(
        self, session: ClientSession, server: str, state: Callable[[str], str], *, remote: bool = False
    ) -> str | None:
        """Reserve a connection for that single request alone, and return its key; None while none is free.

        `remote`: the server is at an address. `state`: key -> "free", "parked" (all its open calls wait for clients),
        or "busy".
        """
        states = self._states_of_calls(server, state)
        for key in states:
            if self._holder(key) is session:
                return key
        free = next((key for key, now in states.items() if now == "free"), None)
        if free is None:
            busy = sum(now == "busy" for now in states.values())
            if busy >= CALLS_MOST[remote] or len(states) >= PARKED_MOST[remote]:
                return None
            free = f"{server}#call-{len(states) + 1}"
        self._calls[free] = server, ref(session)
        return free

    def parked(self, server: str, state: Callable[[str], str], *, remote: bool = False) -> list[str]:
        """Return the keys of a server's parked connections if they keep a single request waiting, otherwise []."""
        states = self._states_of_calls(server, state)
        busy = sum(now == "busy" for now in states.values())
        if len(states) < PARKED_MOST[remote] or busy >= CALLS_MOST[remote] or "free" in states.values():
            return []
        return [key for key, now in states.items() if now == "parked"]

    def _states_of_calls(self, server: str, state: Callable[[str], str]) -> dict[str, str]:
        keys = [key for key, (of, _) in self._calls.items() if of == server]
        return {key: "busy" if self._holder(key) is not None else state(key) for key in keys}

    def _holder(self, key: str) -> ClientSession | None:
        held = self._calls[key][1]
        return held() if held is not None else None

    def use(self, session: ClientSession, server: str, key: str) -> None:
        """Record which connection of a server the session uses from now on."""
        used = self._used.get(session)
        if used is None:
            self._used[session] = used = {}
        used[server] = key

    def key(self, session: ClientSession, server: str) -> str:
        """Return the key of the connection that the session uses for a server: the first, or the one last recorded."""
        used = self._used.get(session)
        return used.get(server, server) if used else server

    def purpose(self, key: str) -> Purpose:
        """Return the purpose of the connection with that key."""
        if key in self._owners:
            server, session = self._owners[key]
            return Purpose(server, session=session(), alone=True)
        if key in self._calls:
            return Purpose(self._calls[key][0], session=self._holder(key), alone=True)
        if key in self._eras:
            return Purpose(*self._eras[key])
        if key in self._kinds:
            server, kind = self._kinds[key]
            return Purpose(server, newer=kind.newer, alone=True, kind=kind)
        if key in self._requests:
            return Purpose(self._requests[key], requests=True)
        return Purpose(key)

    def kind(self, key: str) -> ClientKind:
        """Return the kind of client that a session's own connection serves; NO_KIND for any other connection, where the
        kind does not matter.
        """
        session = self.purpose(key).session
        return kind_of(session.client.capabilities, newer=session.client.modern) if session is not None else NO_KIND

    def shared_key(self, key: str) -> str:
        """Return the key of the server that the connection with that key belongs to."""
        return self.purpose(key).server if "#" in key else key

    def is_own(self, key: str) -> bool:
        """Return True if the key belongs to a further connection, not to a server's first one."""
        return any(key in keys for keys in (self._owners, self._calls, self._eras, self._kinds, self._requests))

    def serves(self, key: str, session: ClientSession) -> bool:
        """Return True if the connection with that key may serve the session, provided that it has the server."""
        purpose = self.purpose(key)
        if purpose.alone:
            return purpose.session is session
        if purpose.requests:
            return not session.lasting
        return purpose.newer is None or purpose.newer == session.client.modern

    # -- sessions ------------------------------------------------------------------------------------------------

    def drop(self, session: ClientSession) -> bool:
        """Forget a session that has ended. Return True if it had connections of its own, which are to be closed.

        The connection that a single request had to itself becomes free for others.
        """
        own = self._own.pop(session, None)
        for mine in own.keys.values() if own else ():
            self._owners.pop(mine, None)
        for key, (server, held) in self._calls.items():
            if held is not None and held() is session:
                self._calls[key] = server, None
        self._used.pop(session, None)
        return own is not None

    def servers(self, shared: dict[str, ServerConfig], sessions: Iterable[ClientSession]) -> dict[str, ServerConfig]:
        """Return the entries of all further connections by key, with the current configuration."""
        found: dict[str, ServerConfig] = {}
        for session in sessions:
            own = self._own.get(session)
            for key, mine in own.keys.items() if own else ():
                server = shared.get(key)
                if server is not None and server.scope == "session":  # it runs in the session's folder
                    found[mine] = replace(server, cwd=folder_of(server, session.cwd))
                elif server is not None:
                    found[mine] = replace(server, lifecycle="lazy")
        of_all = self._requests | {
            key: server for keys in (self._kinds, self._eras, self._calls) for key, (server, _) in keys.items()
        }
        return found | {key: replace(shared[name], lifecycle="lazy") for key, name in of_all.items() if name in shared}


def era_key(server: str, *, newer: bool) -> str:
    """Return the key of a server's connection for one era."""
    return f"{server}#{'newer' if newer else 'older'}"


def folder_of(server: ServerConfig, said: Any) -> str | None:
    """Return the working folder of a per-session server: its `cwd`, or else `said`; a relative `cwd` is below `said`.

    `said`: the folder in which the session's client runs. A root folder is ignored: the desktop starts programs there.
    """
    folder = (
        said if isinstance(said, str) and Path(said).is_absolute() and Path(said) != Path(Path(said).anchor) else None
    )
    if server.cwd is None or folder is None or not is_relative(server.cwd):
        return server.cwd or folder
    return str(Path(folder, server.cwd))
