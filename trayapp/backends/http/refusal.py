"""What went wrong over HTTP, and which error that is for people.

Never here: requests, the SDK (the top of this room reads refusals before anything is loaded).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from trayapp.model.errors import (
    ConnectFailedError,
    KeyringLockedError,
    KeyringUnavailableError,
    ServerError,
    SignInWantedError,
)
from trayapp.model.servers import Auth

# The error data of a request that the server refused because it had forgotten our session: nothing was executed, it may
# be sent again on a new one. Unguessable, so that no server's own error is taken for it.
NOT_EXECUTED = f"not-executed-{secrets.token_hex(8)}"
UNAUTHORIZED = 401
# What an error answer tells programs besides its words, as gateway/calls/errors does of exceptions
SIGN_IN_DATA: dict[str, object] = {"code": SignInWantedError.code, "exit_code": int(SignInWantedError.exit_code)}
BUSY = frozenset({429, 503})  # with Retry-After: left alone until then (RFC 9110 10.2.3, RFC 6585 4)
LONGEST_WAIT_S = 3600.0  # however long a busy server asks us to wait
SSE_AFTER = frozenset(
    {404, 405, 406, 415}
)  # HTTP answers that mean "no Streamable HTTP here" (MCP transports, backwards compatibility)


@dataclass(slots=True)
class HttpRefusal:
    """What went wrong on HTTP last: the status of an error answer, and for how many seconds it asks us to wait."""

    status: int | None = None
    retry_after_s: float | None = None
    why: str = ""  # a connection that failed without an answer

    auth: Auth = "oauth"  # how the server was told who asks
    unauthorized: bool = False  # some request was answered 401, whatever became of later ones
    scope_wanted: bool = False  # the user has to grant more than was granted
    unread: KeyringUnavailableError | None = None  # why the user's sign-in, if there is one, could not be read

    @property
    def asks_to_wait(self) -> bool:
        """True if the last answer was that of a busy server which said when to come again."""
        return self.status in BUSY and bool(self.retry_after_s)

    @property
    def is_of_us(self) -> bool:
        """True if the server answers, but not to the one who asks."""
        return self.unauthorized or self.status == UNAUTHORIZED or self.scope_wanted


def refused(server: str, refusal: HttpRefusal) -> ServerError:
    """The error for a refusal that `is_of_us`: the user may sign in, or has to look at a token of his own."""
    if refusal.auth == "oauth":
        return KeyringLockedError(server, refusal.unread) if refusal.unread else SignInWantedError(server)
    hint = f"Check bearer_token_env and headers of {server} in servers.yaml"
    if refusal.auth == "none":
        hint = f"Set auth: oauth for {server} in servers.yaml to sign in, or give it a token"
    failure = ConnectFailedError(server, f"{server} does not accept us (HTTP {refusal.status})", hint)
    failure.http_status = refusal.status
    return failure
