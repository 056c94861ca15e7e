"""Describe a server's availability in a status line, and why it cannot serve."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trayapp.backends.connection import Connection
from trayapp.gateway.calls.errors import shown
from trayapp.model.lifecycle import State, backoff_left_s
from trayapp.model.offer import Offer
from trayapp.model.settings import Settings


@dataclass(frozen=True, slots=True)
class Availability:
    """Availability of one server.

    - `word`: connected, cached, ...
    - `why`: for a model, why the server cannot serve now; else empty
    - `person`: the same for people
    - `note`: which of its lists are missing, and why
    """

    word: str
    why: str = ""
    person: str = ""
    note: str = ""
    connected: bool = False
    starts_when_called: bool = False
    enabled: bool = True

    @property
    def line(self) -> str:
        """Return `word: why` for a model."""
        return f"{self.word}: {self.why}" if self.why else self.word

    @property
    def line_for_people(self) -> str:
        """Return `word: why` for people."""
        return f"{self.word}: {self.person}" if self.person else self.word


def availability(
    name: str, connection: Connection, now: float, settings: Settings, offer: Offer | None
) -> Availability:
    """Return the first that applies:

    - disabled
    - connected
    - needs sign-in
    - keyring locked
    - failed, within its backoff
    - connecting
    - cached: its `offer` is known, and its first call starts it
    - not connected

    `now`: by the gateway's clock.
    """
    found = _availability(name, connection, now, settings, known=offer is not None)
    return replace(found, note=offer.failure) if offer is not None and offer.failed and found.enabled else found


def _availability(name: str, connection: Connection, now: float, settings: Settings, *, known: bool) -> Availability:
    state = connection.state
    if connection.server.disabled:
        return Availability("disabled", "switched off by the user", f"multi-mcp enable {name}", enabled=False)
    if state is State.CONNECTED:
        return Availability("connected", connected=True)
    if state is State.NEEDS_AUTH:
        return Availability("needs sign-in", f"ask the user to run: multi-mcp auth {name}", f"multi-mcp auth {name}")
    why = shown(connection.error.title) if connection.error else "unknown"
    if state is State.KEYRING_LOCKED:
        return Availability("keyring locked", f"{why}; ask the user to unlock it", why)
    if (left := backoff_left(connection, now, settings)) > 0 and connection.failed_at is not None:
        word, soon = f"failed {now - connection.failed_at:.0f}s ago", f"next try in {left:.0f}s"
        return Availability(
            word, f"{why}; {soon}, at once with connect", f"{why}; {soon}, or: multi-mcp reconnect {name}"
        )
    if state is State.CONNECTING:
        return Availability("connecting")
    if known:
        return Availability("cached", starts_when_called=True)
    return Availability("not connected", *((why, why) if connection.error else ()))


def backoff_left(connection: Connection, now: float, settings: Settings) -> float:
    """Return the seconds for which calls still fail at once; 0 if they are tried."""
    if connection.failed_at is None:
        return 0.0
    ago = now - connection.failed_at
    return max(backoff_left_s(ago, settings), connection.wait_asked_s - ago, 0.0)


def why_unknown(name: str, connection: Connection, offer: Offer | None, *, being_asked: bool) -> str:
    """Return one line for people: why the tools of an enabled server are unknown. `name`: as its view has it."""
    if offer is not None and offer.failure:
        return f"{name}: it {offer.failure}"
    if connection.state is State.NEEDS_AUTH:
        return f"{name}: sign in to see its tools: multi-mcp auth {name}"
    if being_asked or connection.state is State.CONNECTING:
        return f"{name}: not known yet, it is still starting. Ask again later"
    why = shown(connection.error.title) if connection.error else "it has not been asked"
    why = why.replace(connection.name, name)  # the key of a project's server is longer
    return f"{name}: not known: {why}"
