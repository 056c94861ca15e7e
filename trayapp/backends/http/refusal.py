"""HTTP refusals, and the errors that users get for them.

This module loads no HTTP library, since `connect` imports it at start-up.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from trayapp.model.config import Auth
from trayapp.model.errors import (
    ConnectFailedError,
    KeyringLockedError,
    KeyringUnavailableError,
    ServerError,
    SignInWantedError,
)

# The error data of a request that the server did not execute: it had forgotten our session, or could not be reached.
# The request may be sent again on a new session. No server can guess the value, so its own errors are not mistaken for
# this one.
NOT_EXECUTED = f"not-executed-{secrets.token_hex(8)}"
UNAUTHORIZED = 401
# The machine-readable data of an error that requires a sign-in. gateway/calls/errors adds the same for exceptions.
SIGN_IN_DATA: dict[str, object] = {"code": SignInWantedError.code, "exit_code": int(SignInWantedError.exit_code)}
BUSY = frozenset({429, 503})  # with Retry-After, nothing is sent until that time (RFC 9110 10.2.3, RFC 6585 4)
LONGEST_WAIT_S = 3600.0  # limit on the wait that a busy server requests
SSE_AFTER = frozenset({404, 405, 406, 415})  # statuses after which legacy SSE is tried (MCP transports)


@dataclass(slots=True)
class HttpRefusal:
    """The refusals on one HTTP connection: the last error status, its Retry-After, and any refused authorization."""

    status: int | None = None
    retry_after_s: float | None = None
    why: str = ""  # why the connection failed or ended, in words

    auth: Auth = "oauth"  # how requests are authorized
    unauthorized: bool = False  # True once any request has got a 401, even if later ones succeed
    scope_wanted: bool = False  # the user has to grant more scopes
    unread: KeyringUnavailableError | None = None  # why the user's sign-in, if there is one, could not be read

    @property
    def asks_to_wait(self) -> bool:
        """True if the last answer came from a busy server and named a time to retry."""
        return self.status in BUSY and bool(self.retry_after_s)

    @property
    def refuses_authorization(self) -> bool:
        """True if the server answers but refuses the user's authorization."""
        return self.unauthorized or self.status == UNAUTHORIZED or self.scope_wanted


def refused(server: str, refusal: HttpRefusal) -> ServerError:
    """Return the error for `refuses_authorization`: the user has to sign in, unlock the keyring, or check the token."""
    if refusal.auth == "oauth":
        return KeyringLockedError(server, refusal.unread) if refusal.unread else SignInWantedError(server)
    hint = f"Check bearer_token_env and headers of {server} in servers.yaml"
    if refusal.auth == "none":
        hint = f"To sign in, set auth: oauth for {server} in servers.yaml. To use a token, set bearer_token_env"
    return ConnectFailedError(server, f"{server} refused access (HTTP {refusal.status})", hint)
