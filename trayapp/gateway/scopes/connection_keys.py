"""Name the connections of each server. Record the purpose of each connection, and which one a session uses.

The user sees all connections of a server as one server. The module `sharing` decides which of them a session uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from trayapp.config.read.command import is_relative
from trayapp.gateway.calls.client_capabilities import Purpose
from trayapp.gateway.client import ClientSession
from trayapp.model.config import ServerConfig
from trayapp.wire.capabilities import NO_KIND, ClientKind, kind_of

# Limits on a server's connections for single requests, by whether the server is remote, so that a connection needs no
# process. CALLS_MOST limits busy connections: further requests wait. PARKED_MOST limits all connections, including
# parked ones, which wait for a client that was sent a question and may never answer.
CALLS_MOST = {False: 4, True: 32}
PARKED_MOST = {False: 12, True: 64}


class ConnectionKeys:
    """The keys of one gateway's connections: `NAME` for a server's first one, `NAME#SUFFIX` for each further one."""

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self._numbers: WeakKeyDictionary[ClientSession, int] = WeakKeyDictionary()
        self._used: WeakKeyDictionary[ClientSession, dict[str, str]] = WeakKeyDictionary()
        self._purposes: dict[str, Purpose] = {}  # of all further connections, by key

    # -- keys ----------------------------------------------------------------------------------------------------

    def own(self, session: ClientSession, server: str) -> str:
        """Return the key of the server's connection that only this session uses. Record the connection if it is new."""
        number = self._numbers.get(session)
        if number is None:
            self._numbers[session] = number = next(self._count)
        key = f"{server}#{number}"
        return key if key in self._purposes else self._further(key, Purpose(server, holder=ref(session), alone=True))

    def of_era(self, server: str, *, newer: bool) -> str:
        """Return the key of the server's connection for sessions of that era, and record the connection."""
        return self._further(era_key(server, newer=newer), Purpose(server, newer))

    def of_kind(self, server: str, kind: ClientKind) -> str:
        """Return the key of the connection that announces a client of that kind and era, and record the connection."""
        key = "-".join((era_key(server, newer=kind.newer), *(sorted(kind.able) or ["weak"])))
        return self._further(key, Purpose(server, kind.newer, alone=True, kind=kind))

    def of_requests(self, server: str) -> str:
        """Return the key of the connection for single requests of clients that can be asked. Record the connection."""
        return self._further(f"{server}#requests", Purpose(server, requests=True))

    def _further(self, key: str, purpose: Purpose) -> str:
        self._purposes[key] = purpose
        return key

    def of_call(
        self, session: ClientSession, server: str, state: Callable[[str], str], *, remote: bool = False
    ) -> str | None:
        """Reserve a connection for a session that is a single request. Return its key, or None while none is free.

        `remote`: True for a server at a URL. `state`: returns the state of the connection with a key: "free", "parked"
        (its calls wait for clients) or "busy".
        """
        states = self._states_of_calls(server, state)
        for key in states:
            if self._purposes[key].session is session:
                return key
        free = next((key for key, now in states.items() if now == "free"), None)
        if free is None:
            busy = sum(now == "busy" for now in states.values())
            if busy >= CALLS_MOST[remote] or len(states) >= PARKED_MOST[remote]:
                return None
            free = f"{server}#call-{len(states) + 1}"
        return self._further(free, Purpose(server, holder=ref(session), alone=True, single=True))

    def parked(self, server: str, state: Callable[[str], str], *, remote: bool = False) -> list[str]:
        """Return the keys of a server's parked connections if only they keep single requests waiting, or else []."""
        states = self._states_of_calls(server, state)
        busy = sum(now == "busy" for now in states.values())
        if len(states) < PARKED_MOST[remote] or busy >= CALLS_MOST[remote] or "free" in states.values():
            return []
        return [key for key, now in states.items() if now == "parked"]

    def _states_of_calls(self, server: str, state: Callable[[str], str]) -> dict[str, str]:
        calls = {key: one for key, one in self._purposes.items() if one.single and one.server == server}
        return {key: state(key) if one.session is None else "busy" for key, one in calls.items()}

    def use(self, session: ClientSession, server: str, key: str) -> None:
        """Record which connection of a server the session uses from now on."""
        self._used.setdefault(session, {})[server] = key

    def key(self, session: ClientSession, server: str) -> str:
        """Return the key of the connection that the session uses for a server: the last recorded one, or else the first
        one.
        """
        used = self._used.get(session)
        return used.get(server, server) if used else server

    def purpose(self, key: str) -> Purpose:
        return self._purposes.get(key) or Purpose(key)

    def kind(self, key: str) -> ClientKind:
        """Return the kind of client that a session's own connection serves, or NO_KIND for any other connection."""
        session = self.purpose(key).session
        return kind_of(session.client.capabilities, newer=session.client.modern) if session is not None else NO_KIND

    def shared_key(self, key: str) -> str:
        """Return the key of the server that the connection with that key belongs to."""
        further = self._purposes.get(key)
        return key if further is None else further.server

    def is_own(self, key: str) -> bool:
        """Return True if the key belongs to a further connection, not to a server's first one."""
        return key in self._purposes

    def serves(self, key: str, session: ClientSession) -> bool:
        """Return True if the connection with that key may serve the session, which may use the connection's server."""
        purpose = self.purpose(key)
        if purpose.alone:
            return purpose.session is session
        if purpose.requests:
            return not session.lasting
        return purpose.newer is None or purpose.newer == session.client.modern

    # -- sessions ------------------------------------------------------------------------------------------------

    def drop(self, session: ClientSession) -> bool:
        """Forget a session that has ended. Return True if it leaves connections that the caller must close.

        The connection that only a single request used stays open, and becomes free for others.
        """
        held = {key: one for key, one in self._purposes.items() if one.session is session}
        for key, purpose in held.items():
            if purpose.single:
                self._purposes[key] = purpose._replace(holder=None)
            else:
                del self._purposes[key]
        self._used.pop(session, None)
        return any(not purpose.single for purpose in held.values())

    def servers(self, shared: dict[str, ServerConfig]) -> dict[str, ServerConfig]:
        """Return the entries of all further connections, by key. `shared`: the servers' current entries."""
        found: dict[str, ServerConfig] = {}
        for key, purpose in self._purposes.items():
            if (server := shared.get(purpose.server)) is None:
                continue
            if purpose.session is not None and server.scope == "session":
                found[key] = replace(server, cwd=folder_of(server, purpose.session.cwd))
            else:
                found[key] = replace(server, lifecycle="lazy")
        return found


def era_key(server: str, *, newer: bool) -> str:
    """Return the key of a server's connection for sessions of one era."""
    return f"{server}#{'newer' if newer else 'older'}"


def folder_of(server: ServerConfig, client_cwd: Any) -> str | None:
    """Return the working folder of a per-session server: its `cwd`, relative to the client's folder, or that folder.

    Return `cwd` unchanged if the client's folder is unknown or a root folder, in which a desktop starts its programs.
    """
    folder = Path(client_cwd if isinstance(client_cwd, str) else "")
    if not folder.is_absolute() or folder == Path(folder.anchor):
        return server.cwd
    if server.cwd is not None and is_relative(server.cwd):
        return str(folder / server.cwd)
    return server.cwd or str(client_cwd)
