"""Access control for HTTP requests, before their bodies are read.

A page in the user's browser can send requests to 127.0.0.1. The headers Host, Origin, Referer and Sec-Fetch-Site reveal
such requests, even after DNS rebinding. The token keeps out other users and programs.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import Any

from trayapp.gateway.http.asgi import CONNECTION, JSON, Asgi, Headers, respond
from trayapp.gateway.http.manage import SERVERS
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import INVALID_REQUEST, RpcError

HEADERS_MOST = 100  # clients send about ten headers
HEADER_BYTES = 32 * 1024
LONG_HEADERS = "There are too many headers, or they are too long"
UNAUTHORIZED = 401

CHANGING = frozenset({"POST", "DELETE"})
PANEL = "/panel"


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens that authorize requests.

    `client`: the token of AI tools, or "" if `settings.http.token` requires none. `owner`: the token in the endpoint
    file, which also allows adding and removing servers. `place`: where the file with the client token is, for messages.
    """

    client: str
    owner: str
    place: str = "http-token beside servers.yaml"


class Guard:
    """An ASGI application that passes allowed requests on to another application, and refuses all others."""

    def __init__(self, app: Asgi, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, message = refusal
        if status == UNAUTHORIZED:
            await respond(send, dumps(unauthorized(message, scope["path"])), status, more=[challenge(message)])
        else:
            await respond(send, dumps({"error": message}), status)

    def _refusal(self, scope: Any) -> tuple[int, str] | None:
        headers = Headers(scope)
        size = sum(len(name) + len(value) for name, value in headers.lines)
        if len(headers.lines) > HEADERS_MOST or size > HEADER_BYTES:
            return 431, LONG_HEADERS
        panel = is_of_panel(scope["path"])  # the panel has its own cookie, and accepts requests only from its own pages
        refusal = of_another_page(headers, scope["server"][1] if panel or not self._access.client else None)
        if refusal := refusal or (None if panel else self._without_token(headers, scope)):
            return refusal
        connection = scope.get("state", {}).get(CONNECTION)
        if connection is not None and not connection.let_in():
            return 403, "Other users of this machine are not allowed"
        length = headers.get("content-length") or "0"  # a body without a declared length is checked when it is read
        return (413, "The body is too large") if length.isdigit() and int(length[:20]) > MAX_FRAME_BYTES else None

    def _without_token(self, headers: Headers, scope: Any) -> tuple[int, str] | None:
        access, given = self._access, headers.all("authorization")
        if not access.client:
            # Pages of other origins need a preflight to send JSON (CORS).
            is_json = len(headers.all("content-type")) == 1 and headers.content == JSON
            return None if scope["method"] != "POST" or is_json else (415, f"The body must be {JSON}")
        if shows(given, access.owner):
            return None
        if not shows(given, access.client):
            return UNAUTHORIZED, f"The token is missing or wrong. Send the token in the file {access.place}"
        if scope["method"] in CHANGING and scope["path"].startswith(SERVERS):  # a new server can start a program
            hint = "To add or remove servers, send the token in the gateway's endpoint.json"
            return 403, f"This is a client's token. {hint}"
        return None


def is_of_panel(path: str) -> bool:
    return path == PANEL or path.startswith(f"{PANEL}/")


def unauthorized(message: str, path: str) -> dict[str, Any]:
    """Return the body of a 401 response, in the form whose message clients show.

    The MCP endpoint answers with a JSON-RPC error without an id (MCP 2025-11-25, transports). After any 401, clients
    with OAuth look for metadata and try to register. All other paths therefore answer with an OAuth error, whose
    description these clients show (RFC 6749, 5.2).
    """
    if path.rstrip("/") == "/mcp":
        return {"jsonrpc": "2.0", "id": None, "error": RpcError(INVALID_REQUEST, message).body()}
    return {"error": "invalid_token", "error_description": message}


def challenge(message: str) -> tuple[bytes, bytes]:
    """Return the WWW-Authenticate header (RFC 6750, 3). It names no metadata, because no sign-in is possible."""
    said = message.replace("\\", "/").replace('"', "'").encode("ascii", "replace").decode()
    return b"www-authenticate", f'Bearer error="invalid_token", error_description="{said}"'.encode()


def of_another_page(headers: Headers, own_port: int | None) -> tuple[int, str] | None:
    """Return the status and message that refuse a request from a foreign page, or None if the request may pass.

    Pages on this machine's other ports are foreign only if `own_port` is given.
    """
    hosts = headers.all("host")
    if len(hosts) != 1 or not is_own(HOST, hosts[0]):
        return 403, "The Host header does not name the gateway"
    for name, pattern in (("Origin", ORIGIN), ("Referer", REFERER)):
        if not all(is_own(pattern, value, own_port) for value in headers.all(name.lower())):
            return 403, f"A foreign {name} is not allowed"
    if own_port is not None and not OWN_FETCH.issuperset(headers.all("sec-fetch-site")):
        return 403, "Requests from pages of another server are not allowed"
    return None


def shows(authorization: list[str], token: str) -> bool:
    """Return True if there is exactly one Authorization value, the bearer token. An empty token matches nothing."""
    if len(authorization) != 1 or not token:
        return False
    kind, _, given = authorization[0].partition(" ")
    return hmac.compare_digest(given.strip().encode("latin-1"), token.encode()) and kind.lower() == "bearer"


# -- Host, Origin and Referer: pure rules ----------------------------------------------------------------------------

_AUTHORITY = r"(?:localhost|127\.0\.0\.1|\[::1\])(?::(?P<port>[0-9]{1,5}))?"
HOST = re.compile(_AUTHORITY, re.IGNORECASE)
ORIGIN = re.compile(r"(?P<scheme>https?)://" + _AUTHORITY, re.IGNORECASE)
REFERER = re.compile(ORIGIN.pattern + r"(?:[/?#].*)?", re.IGNORECASE)
PORTS_END = 65_536
OWN_FETCH = frozenset({"same-origin", "none"})  # Sec-Fetch-Site of requests from our own pages and from the address bar


def is_own(pattern: re.Pattern[str], text: str, port: int | None = None) -> bool:
    """Return True if a header matches the pattern, and so names this machine.

    `port`: the port that it must also name, over HTTP, or None for any port.
    """
    found = pattern.fullmatch(text)
    if found is None or int(found["port"] or 0) >= PORTS_END:
        return False
    return port is None or (found["scheme"].lower() == "http" and int(found["port"] or 80) == port)
