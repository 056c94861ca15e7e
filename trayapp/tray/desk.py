"""What the tray knows, gathered from where it comes from: the supervisor, the desktop, the clients' files.

Never here: what is shown for it (view), what is told of it (news).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError
from trayapp.model.status import Snapshot
from trayapp.service.autostart import Autostart
from trayapp.service.supervision import Seen
from trayapp.tray.state import ClientState, TrayState

log = logging.getLogger(__name__)

Clients = Callable[[], tuple[ClientState, ...]]


class Desk:
    """The newest TrayState. `clients`: looks into the clients' files; it may block."""

    def __init__(self, autostart: Autostart, clients: Clients) -> None:
        self._autostart = autostart
        self._look = clients
        self._lock = threading.Lock()
        self._seen = Seen(ChildState.STARTING)
        self._clients: tuple[ClientState, ...] = ()
        self._is_on: bool | None = None
        self._read: tuple[Seen, TrayState] | None = None

    def look_around(self) -> None:
        """Read again what no snapshot tells: the clients' files, the entry for start at login."""
        clients, is_on = self._look(), self._start_at_login()
        with self._lock:
            self._clients, self._is_on = clients, is_on

    def _start_at_login(self) -> bool | None:
        try:
            return self._autostart.is_on()
        except MultiMcpError as error:
            log.warning("%s", error)
            return None

    def see(self, seen: Seen) -> bool:
        """Take what the supervisor sees; whether the gateway's process is in another state than before."""
        with self._lock:
            before, self._seen = self._seen, seen
        return (before.state, before.hangs) != (seen.state, seen.hangs)

    def state(self) -> TrayState:
        """All of it as of now."""
        with self._lock:
            seen, clients, is_on = self._seen, self._clients, self._is_on
            known = self._read
        if known is None or known[0] is not seen:
            known = seen, state_of(seen)
            with self._lock:
                self._read = known
        return replace(known[1], clients=clients, autostart=is_on)


def state_of(seen: Seen) -> TrayState:
    """What the supervisor sees, read; a snapshot that cannot be read is the state's error."""
    state = TrayState(child=seen.state, error=seen.error, hangs=seen.hangs)
    if seen.snapshot is None:
        return state
    try:
        snapshot = Snapshot.from_json(seen.snapshot)
    except MultiMcpError as error:
        return replace(state, error=error.title)
    return replace(state, snapshot=snapshot)


KEYRING_ERRORS = {"missing": "There is no keyring here", "locked": "The keyring is locked"}


def _keyring_error(snapshot: Snapshot) -> str | None:
    """Why sign-ins are not kept: of interest only to those who have or want one."""
    touched = any(server.signed_in is not None for server in snapshot.servers)
    return KEYRING_ERRORS.get(snapshot.gateway.keyring or "") if touched else None
