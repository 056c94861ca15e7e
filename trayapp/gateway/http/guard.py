"""Who may come in over HTTP: checked before anything of a request is read (PRODUCT 14).

A page in the user's browser can send requests to 127.0.0.1: Host and Origin tell them apart (DNS rebinding), the token
keeps out other users and programs. Never here: routes, MCP.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import dumps

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS_MOST = 100  # clients send about ten
HEADER_BYTES = 32 * 1024
OURSELVES = frozenset({"127.0.0.1", "localhost", "::1"})


class Guard:
    """An ASGI application around another. `token` empty: none is asked for (`settings.http.token: false`)."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await answer(send, *refusal)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        if len(headers) > HEADERS_MOST or sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
            return 431, "Too many headers, or too long ones"
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts = values.get(b"host", [])
        if len(hosts) != 1 or not is_ourselves("http://" + hosts[0].decode("latin-1")):
            return 403, "This Host is not the gateway's"
        for name in (b"origin", b"referer"):
            if any(not is_ourselves(value.decode("latin-1")) for value in values.get(name, [])):
                return 403, f"A foreign {name.decode().title()} may not come in"
        if self._token and not self._knows(values.get(b"authorization", [])):
            return 401, "The token is missing or wrong; it stands in the file http-token beside servers.yaml"
        length = values.get(b"content-length", [b"0"])[0]
        if length.isdigit() and int(length[:20]) > MAX_FRAME_BYTES:  # one without is counted by its route
            return 413, "The body is too large"
        return None

    def _knows(self, values: list[bytes]) -> bool:
        if len(values) != 1:
            return False
        kind, _, given = values[0].partition(b" ")
        return hmac.compare_digest(given.strip(), self._token) and kind.lower() == b"bearer"


def is_ourselves(url: str) -> bool:
    """Whether a URL, or what a browser sends as an Origin, names this machine by loopback."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.hostname in OURSELVES and "@" not in parts.netloc
    except ValueError:
        return False


async def answer(send: Send, status: int, message: str) -> None:
    """A refusal as JSON. No WWW-Authenticate: there is nothing to sign in to."""
    body = dumps({"error": message})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
