"""Authorization of requests to one server: the user's sign-in is added where allowed, and renewed once after a 401."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import httpx2

from trayapp.auth.accounts import Account, Accounts
from trayapp.auth.grant import SignInError
from trayapp.backends.http.refusal import SIGN_IN_DATA, UNAUTHORIZED, HttpRefusal
from trayapp.backends.launch import HttpLaunch
from trayapp.wire.messages import INTERNAL_ERROR, RpcError

FORBIDDEN = 403
SCOPE_WANTED = "insufficient_scope"  # RFC 6750 3.1
AUTHORIZATION = "Authorization"

_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"([^"]{0,2000})"|([^\s,"]{1,2000}))')

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


class RequestSigner:
    """Adds the sign-in to one connection's requests.

    With `whole_origin`, requests for any path of the origin get it, since a legacy SSE server names its own endpoint.
    """

    def __init__(self, account: Account, server: str, refusal: HttpRefusal, *, whole_origin: bool) -> None:
        self._account = account
        self._server = server
        self._refusal = refusal
        self._whole_origin = whole_origin

    async def send(self, request: httpx2.Request, send: Send) -> httpx2.Response:
        """Send a request with the current Authorization and return the response. After a 401, renew and send once more.

        Raises RpcError if an expired sign-in cannot be renewed, or if the request needs more scopes (step-up).
        """
        url = str(request.url)
        try:
            header = await self._account.authorization(url, whole_origin=self._whole_origin)
            response = await _sent_with(request, header, send)
            if response.status_code == UNAUTHORIZED:
                again = await self._account.authorization_after(header, url, whole_origin=self._whole_origin)
                if again is not None:
                    await response.aclose()
                    response = await _sent_with(request, again, send)
                self._refusal.unread = self._account.unread if self._account.is_locked else None
        except SignInError as error:
            told = {"code": error.code, "exit_code": int(error.exit_code)}
            raise RpcError(INTERNAL_ERROR, f"Cannot renew the sign-in to {self._server}: {error.title}", told) from None
        challenge = challenge_of(response.headers.get("www-authenticate", ""))
        if response.status_code != FORBIDDEN or challenge.get("error") != SCOPE_WANTED:
            return response
        await response.aclose()
        self._account.require_scope(challenge.get("scope"))
        self._refusal.scope_wanted = True
        scope = f" ({challenge['scope']})" if challenge.get("scope") else ""
        words = f"{self._server} needs more permissions{scope}. Grant them with: multi-mcp auth {self._server}"
        raise RpcError(INTERNAL_ERROR, words, SIGN_IN_DATA)


def signer_for(launch: HttpLaunch, accounts: Accounts | None, refusal: HttpRefusal) -> RequestSigner | None:
    """Return a server's RequestSigner, or None if it uses no sign-in. Record the server's address in `accounts`."""
    if accounts is None or launch.auth != "oauth":
        return None
    account = accounts.of(launch.url, launch.client.account)
    accounts.met[launch.server] = launch.url
    account.settings = launch.client
    return RequestSigner(account, launch.server, refusal, whole_origin=launch.kind == "sse")


async def _sent_with(request: httpx2.Request, header: str | None, send: Send) -> httpx2.Response:
    """Send with `header`, if any, then restore the request: a redirected request must not inherit the header."""
    if header is None:
        return await send(request)
    before = request.headers.get(AUTHORIZATION)
    request.headers[AUTHORIZATION] = header
    try:
        return await send(request)
    finally:
        del request.headers[AUTHORIZATION]
        request.headers.update({} if before is None else {AUTHORIZATION: before})


def challenge_of(header: str) -> dict[str, str]:
    """Return the parameters of all challenges in a WWW-Authenticate header, by lower-case name (RFC 9110 11.6.1).

    If a name occurs more than once, the last one counts.
    """
    return {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(header)}
