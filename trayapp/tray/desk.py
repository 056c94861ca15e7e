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
from trayapp.service.autostart.switch import Autostart
from trayapp.service.supervision import Seen
from trayapp.tray.state.state import ClientState, Offered, TrayState

log = logging.getLogger(__name__)

Clients = Callable[[], tuple[ClientState, ...]]
Offer = Callable[[], tuple[Offered, ...] | None]  # None: it could not be told


def no_offer() -> tuple[Offered, ...]:
    """Nothing to be taken over."""
    return ()


class Desk:
    """The newest TrayState. `clients`: looks into the clients' files, `offer`: for servers there, `doubled`: for those
    there that are here, too; they may block.

    `offer_told`: that there are such servers was told before.
    """

    def __init__(
        self,
        autostart: Autostart,
        clients: Clients,
        offer: Offer = no_offer,
        doubled: Offer = no_offer,
        *,
        offer_told: bool = False,
    ) -> None:
        self._autostart = autostart
        self._look = clients
        self._lock = threading.Lock()
        self._seen = Seen(ChildState.STARTING)
        self._clients: tuple[ClientState, ...] | None = None
        self._look_for_offer, self._offer_told = offer, offer_told
        self._offered: tuple[Offered, ...] | None = None
        self._look_for_doubled = doubled
        self._doubled: tuple[Offered, ...] = ()
        self._is_on = self._start_at_login()
        self._read: tuple[Seen, TrayState] | None = None

    def look_around(self) -> None:
        """Read again what no snapshot tells: the clients' files, the entry for start at login."""
        self._is_on = self._start_at_login()
        clients = self._look()
        offered = () if self._offered == () else self._look_for_offer()  # of a first start: once gone, gone for good
        doubled = self._look_for_doubled() if any(client.connected for client in clients) else ()
        with self._lock:
            self._clients, self._offered, self._doubled = clients, offered, doubled or ()

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
            seen, clients, is_on, offered = self._seen, self._clients, self._is_on, self._offered or ()
            doubled = self._doubled
            known = self._read
        if known is None or known[0] is not seen:
            known = seen, state_of(seen)
            with self._lock:
                self._read = known
        state = replace(known[1], clients=clients, autostart=is_on, offered=offered, offer_told=self._offer_told)
        return replace(state, doubled=doubled)


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
