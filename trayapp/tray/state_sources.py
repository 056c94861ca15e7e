"""The tray's sources of state: the supervisor, the start at login, and the AI tools' files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError
from trayapp.model.status import Snapshot
from trayapp.service.autostart import Autostart
from trayapp.service.supervisor import SupervisorView
from trayapp.tray.state.tray_state import ClientState, Offered, TrayState

log = logging.getLogger(__name__)

Clients = Callable[[], tuple[ClientState, ...]]
Offer = Callable[[], tuple[Offered, ...] | None]  # None: unknown, because reading failed


def no_offer() -> tuple[Offered, ...]:
    """Return no offered servers."""
    return ()


class StateSources:
    """The sources of the TrayState, and what each one last returned.

    - `clients`: finds the AI tools. It may block.
    - `offer`: finds servers in the AI tools' files that multi-mcp lacks. It may block.
    - `doubled`: finds servers in these files that multi-mcp also has. It may block.
    - `offer_told`: True if a notification already reported servers to import.
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
        self._seen = SupervisorView(ChildState.STARTING)
        self._clients: tuple[ClientState, ...] | None = None
        self._look_for_offer, self._offer_told = offer, offer_told
        self._offered: tuple[Offered, ...] | None = None
        self._look_for_doubled = doubled
        self._doubled: tuple[Offered, ...] = ()
        self._is_on = self._start_at_login()
        self._read: tuple[SupervisorView, TrayState] | None = None

    def look_around(self) -> None:
        """Read again what no snapshot shows: the AI tools' files, and the entry for start at login."""
        self._is_on = self._start_at_login()
        clients = self._look()
        offered = () if self._offered == () else self._look_for_offer()  # an offer that was empty once stays empty
        doubled = self._look_for_doubled() if any(client.connected for client in clients) else ()
        with self._lock:
            self._clients, self._offered, self._doubled = clients, offered, doubled or ()

    def _start_at_login(self) -> bool | None:
        try:
            return self._autostart.is_on()
        except MultiMcpError as error:
            log.warning("%s", error)
            return None

    def see(self, seen: SupervisorView) -> bool:
        """Store the supervisor's view. Return True if the state of the gateway's process changed."""
        with self._lock:
            before, self._seen = self._seen, seen
        return (before.state, before.hangs) != (seen.state, seen.hangs)

    def state(self) -> TrayState:
        """Return the whole state as it is now."""
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


def state_of(seen: SupervisorView) -> TrayState:
    """Convert the supervisor's view to a TrayState. If the snapshot cannot be read, the reason is the state's error."""
    state = TrayState(child=seen.state, error=seen.error, hangs=seen.hangs)
    if seen.snapshot is None:
        return state
    try:
        snapshot = Snapshot.from_json(seen.snapshot)
    except MultiMcpError as error:
        return replace(state, error=error.title)
    return replace(state, snapshot=snapshot)
