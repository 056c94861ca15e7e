"""What a sign-in asks for, and how it talks to the user: the shapes between who starts one and the conversation.

Never here: the conversation itself (login), the listener (callback), the SDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from trayapp.auth.grant import Grant

EXPIRES_S = 300.0  # from the address being shown; a person who has not answered by then has gone away


@dataclass(frozen=True, slots=True)
class Answer:
    """What the browser came back with; state and issuer were compared already."""

    code: str = field(repr=False)
    state: str = field(repr=False)
    iss: str | None = None


class Ask(Protocol):
    """The user, in front of a browser."""

    async def show(self, url: str, state: str, issuer: str | None, iss_required: bool) -> None:
        """Here is the address to open; an answer has to carry that state and, if it names one, that issuer."""

    async def answer(self) -> Answer:
        """Wait. Raises SignInError."""


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """What to sign in to. `before`: the last grant there; `wanted`: scopes that a request was refused for."""

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
