"""The interface between a sign-in flow and its caller: what to sign in to, and how to reach the user.

The flow itself is in login, the listener in callback.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from trayapp.auth.grant import Grant

EXPIRES_S = 300.0  # from showing the address; after that, the person is assumed to be gone


@dataclass(frozen=True, slots=True)
class Answer:
    """The parameters that the browser returned with. State and issuer are already checked."""

    code: str = field(repr=False)
    state: str = field(repr=False)
    iss: str | None = None


class Ask(Protocol):
    """The user, in front of a browser."""

    async def show(self, url: str, state: str, issuer: str | None, iss_required: bool) -> None:
        """Show the address to open. The answer must carry `state` and, if it names an issuer, `issuer`."""

    async def answer(self) -> Answer:
        """Wait for the answer. Raise SignInError."""


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """A request to sign in. `before`: the last grant there; `wanted`: scopes that a refused request required."""

    url: str
    redirect_uri: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    kind: str | None = None  # "sse": the address is an event stream
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    document_url: str | None = None  # of a client id metadata document
    before: Grant | None = None
    wanted: str | None = None
