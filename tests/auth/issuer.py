"""An authorization server on loopback, built from parts of the SDK, and an MCP server that accepts its tokens.

Tests change the servers' behavior at any time by setting fields.
"""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.contract.http_servers import HttpServer, ReceivedRequest
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
RENEWAL = "renewal"
SECRET_WORDS = "s3cr3t"  # part of every token and code, so that tests can search for leaks

Answer = Response | None


@dataclass
class Issuer:
    """An authorization server that grants every sign-in, unless a field changes that.

    It is the provider for the SDK's routes.
    """

    now: Callable[[], float] = time.time
    # In seconds. With 0 or None, tokens never expire, and None also omits expires_in.
    lifetime: int | None = 3600
    rotates: bool = True  # each refresh token can be used only once
    renewable: bool = True
    registers: bool = True
    takes_documents: bool = False
    names_itself: bool = True  # sends `iss` in authorization responses (RFC 9207)
    other_iss: str | None = None  # a wrong `iss` in authorization responses
    other_issuer: str | None = None  # a wrong issuer in its metadata
    denies: str | None = None  # the error of all authorization responses (RFC 6749 4.1.2.1)
    metadata_status: int = 200
    token_status: int = 200
    methods: list[str] | None = field(default_factory=lambda: ["S256"])
    token_methods: list[str] = field(default_factory=lambda: ["client_secret_post", "client_secret_basic"])
    scopes: list[str] | None = None
    also_says: dict[str, Any] = field(default_factory=dict)  # extra members of its metadata
    echoes: bool = False  # token errors repeat the request body, as in careless services
    delay: anyio.Event | None = None  # token requests wait for this event
    token_padding: int = 0  # number of letters appended to each token and code
    instead: dict[str, Response] = field(default_factory=dict)  # responses by path, or by RENEWAL for renewals
    expires_in: str | None = None  # raw JSON sent as expires_in
    port: int = 0

    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)  # all tokens, codes and client secrets ever issued
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # (grant type, form) of each token request
    visits: list[dict[str, str]] = field(default_factory=list)  # query parameters of each authorization request
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)  # (method, path, headers) of each request
    registered: int = 0
    revoked: int = 0
    _number: Iterator[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        """The issuer identifier."""
        return f"http://127.0.0.1:{self.port}"

    def refreshes(self) -> int:
        """Return the number of token requests that were renewals."""
        return sum(kind == "refresh_token" for kind, _ in self.asked)

    def end_all(self) -> None:
        """Revoke every token."""
        self.access.clear()
        self.refresh.clear()

    def forget_clients(self) -> None:
        """Forget all registered clients, like a service that lost its database."""
        self.clients.clear()

    # -- the SDK's provider ------------------------------------------------------------------------------------------

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if self.takes_documents and client_id.startswith("https://"):
            return OAuthClientInformationFull(
                client_id=client_id, redirect_uris=[AnyUrl(self.asked_redirect)], token_endpoint_auth_method="none"
            )
        return self.clients.get(client_id)

    asked_redirect: str = "http://127.0.0.1/callback"

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.registered += 1
        if client_info.client_secret:
            self.secrets.add(client_info.client_secret)
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        iss = (self.other_iss or self.url) if self.names_itself else None
        if self.denies:
            return construct_redirect_uri(str(params.redirect_uri), error=self.denies, state=params.state, iss=iss)
        code = self._made("code")
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, iss=iss)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.rotates:
            del self.refresh[refresh_token.token]
        return self._tokens(client.client_id, scopes, refresh_token.resource, None if self.rotates else refresh_token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self.access.get(token)
        return known if known and (known.expires_at is None or known.expires_at > self.now()) else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked += 1
        self.access = {k: v for k, v in self.access.items() if v.client_id != token.client_id}
        self.refresh = {k: v for k, v in self.refresh.items() if v.client_id != token.client_id}

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise NotImplementedError

    def _made(self, kind: str) -> str:
        made = f"{kind}-{SECRET_WORDS}-{next(self._number)}-{secrets.token_urlsafe(24)}" + "x" * self.token_padding
        self.secrets.add(made)
        return made

    def _tokens(
        self, client: str, scopes: list[str], resource: str | None, kept: RefreshToken | None = None
    ) -> OAuthToken:
        access, renewal = self._made("access"), None
        end = int(self.now()) + self.lifetime if self.lifetime else None
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=end, resource=resource
        )
        if self.renewable and kept is None:
            renewal = self._made("refresh")
            self.refresh[renewal] = RefreshToken(token=renewal, client_id=client, scopes=scopes, resource=resource)
        scope = " ".join(scopes) or None
        return OAuthToken(access_token=access, expires_in=self.lifetime, scope=scope, refresh_token=renewal)

    # -- HTTP --------------------------------------------------------------------------------------------------------

    def app(self) -> Starlette:
        """Return an ASGI app with the SDK's routes for this provider."""
        options = ClientRegistrationOptions(enabled=True, valid_scopes=None)
        routes = create_auth_routes(self, AnyHttpUrl(self.url), None, options, RevocationOptions(enabled=True))
        return Starlette(routes=list(routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI request as the fields prescribe, or else through the SDK's routes."""
        request = Request(scope, receive)
        body = await request.body()
        self.seen.append((request.method, request.url.path, dict(request.headers)))
        answer = self.instead.get(request.url.path) or await self._switched(request, body)
        if answer is not None:
            await answer(scope, receive, send)
        else:
            await self._app(scope, _again(body), send if self.expires_in is None else self._with_lifetime(send))

    def _with_lifetime(self, send: Send) -> Send:
        """Return a `send` that replaces the lifetime in token responses with `expires_in`."""
        start: list[Any] = []

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
                return
            body = re.sub(rb'"expires_in":\s*\d+', b'"expires_in":' + str(self.expires_in).encode(), message["body"])
            kept = [(name, value) for name, value in start[0]["headers"] if name != b"content-length"]
            await send({**start[0], "headers": [*kept, (b"content-length", str(len(body)).encode())]})
            await send({**message, "body": body})

        return sent

    async def _switched(self, request: Request, body: bytes) -> Answer:
        path = request.url.path
        if path == METADATA:
            return (
                JSONResponse(self.metadata(), self.metadata_status)
                if self.metadata_status == 200
                else Response("", self.metadata_status)
            )
        if path == "/register" and not self.registers:
            return Response("", 404)
        if path == "/authorize":
            self.visits.append(dict(request.query_params))
            self.asked_redirect = request.query_params.get("redirect_uri", "")
        if path == "/token":
            return await self._token(body)
        return None

    async def _token(self, body: bytes) -> Answer:
        form = dict(httpx2.QueryParams(body.decode()))
        self.asked.append((form.get("grant_type", ""), form))
        if form.get("grant_type") == "refresh_token" and RENEWAL in self.instead:
            return self.instead[RENEWAL]
        if self.delay is not None:
            await self.delay.wait()
        if self.token_status != 200:
            words = body.decode() if self.echoes else "no"
            error = {"error": "temporarily_unavailable", "error_description": words, "error_uri": words}
            return JSONResponse(error, self.token_status)
        if form.get("client_id") not in self.clients and not self.takes_documents:
            return JSONResponse({"error": "invalid_client"}, 401)
        return None

    def metadata(self) -> dict[str, Any]:
        """Return the server's metadata (RFC 8414)."""
        said = {
            "issuer": self.other_issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": self.token_methods,
            "authorization_response_iss_parameter_supported": self.names_itself,
            "client_id_metadata_document_supported": self.takes_documents,
            "code_challenge_methods_supported": self.methods,
            "scopes_supported": self.scopes,
            "registration_endpoint": f"{self.url}/register" if self.registers else None,
            **self.also_says,
        }
        return {name: value for name, value in said.items() if value is not None}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Issuer]:
        """Serve until the block ends, on a free port if `port` is 0."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.at(listener.getsockname()[1])
        async with serving(self, listener):
            yield self

    def at(self, port: int) -> None:
        """Set the port and build the routes for its URL."""
        self.port = port
        self._app = self.app()


@asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI app with uvicorn on `listener` until the block ends."""
    server = _Quiet(uvicorn.Config(app, log_level=logging.CRITICAL, lifespan="off", timeout_graceful_shutdown=0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        with anyio.fail_after(stretched(10.0)):
            while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
                await anyio.sleep(0.005)
        try:
            yield
        finally:
            for open_listener in server.servers:
                open_listener.close()
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            listener.close()
            tasks.cancel_scope.cancel()


class _Quiet(uvicorn.Server):
    """A uvicorn server that leaves signal handling to pytest."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _again(body: bytes) -> Receive:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


@dataclass
class Guarded(HttpServer):
    """An MCP server that accepts tokens of one issuer. `needs` maps JSON-RPC methods to the scopes they require."""

    issuer: Issuer = field(default_factory=Issuer)
    describes_itself: bool = True  # serves RFC 9728 metadata
    points: bool = True  # its 401 and 403 responses link to that metadata
    other_resource: str | None = None  # a wrong resource URL in that metadata
    resource_status: int = 200
    resource_scopes: list[str] | None = None
    challenge_scope: str | None = None
    needs: dict[str, str] = field(default_factory=dict)
    open_methods: set[str] = field(default_factory=set)  # JSON-RPC methods that need no token
    redirect_to: str | None = None

    def tokens(self) -> list[str]:
        """Return the Authorization values received, in order."""
        return [seen.headers["authorization"] for seen in self.seen if "authorization" in seen.headers]

    def refuse(self, seen: ReceivedRequest) -> Response | None:
        """Return metadata, a redirect or a refusal, or None to let the MCP server answer the request."""
        if seen.path.startswith(RESOURCE):
            return self.issuer.instead.get(RESOURCE) or self._metadata(seen.path)
        if self.redirect_to is not None:
            return Response(status_code=307, headers={"location": self.redirect_to})
        if seen.method in self.open_methods:
            return None
        token = self._token(seen)
        if token is None:
            return self._challenge(seen, 401, {"scope": self.challenge_scope} if self.challenge_scope else {})
        scope = self.needs.get(seen.method or "")
        if scope is not None and scope not in token.scopes:
            return self._challenge(seen, 403, {"error": "insufficient_scope", "scope": scope})
        return None

    def _token(self, seen: ReceivedRequest) -> AccessToken | None:
        kind, _, value = seen.headers.get("authorization", "").partition(" ")
        known = self.issuer.access.get(value) if kind == "Bearer" else None
        ended = known is not None and known.expires_at is not None and known.expires_at <= self.issuer.now()
        return None if ended else known

    def _challenge(self, seen: ReceivedRequest, status: int, told: dict[str, str]) -> Response:
        place = "/mcp" if seen.path == "/mcp" else "/sse"
        pointer = {"resource_metadata": self.url(RESOURCE + place)} if self.points and self.describes_itself else {}
        parameters = ", ".join(f'{name}="{value}"' for name, value in {**told, **pointer}.items())
        return Response(status_code=status, headers={"www-authenticate": f"Bearer {parameters}".strip()})

    def _metadata(self, path: str) -> Response:
        if not self.describes_itself or path not in (RESOURCE, f"{RESOURCE}/mcp", f"{RESOURCE}/sse"):
            return Response(status_code=404)
        if self.resource_status != 200:
            return Response(status_code=self.resource_status)
        place = self.url(path.removeprefix(RESOURCE) or "/mcp")
        said = {"resource": self.other_resource or place, "authorization_servers": [self.issuer.url]}
        return JSONResponse(said | ({"scopes_supported": self.resource_scopes} if self.resource_scopes else {}))


class SelfIssuing(Guarded):
    """An MCP server that is its own authorization server, as in protocol revision 2025-03-26."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass OAuth requests to the issuer and all others to the MCP server."""
        own = scope["path"] not in ("/authorize", "/token", "/register", METADATA)
        await (super().__call__(scope, receive, send) if own else self.issuer(scope, receive, send))


async def browse(url: str) -> str:
    """Open a URL as a browser does, following redirects, and return the final page."""
    async with httpx2.AsyncClient(verify=NO_CERTIFICATES, follow_redirects=True, timeout=20) as browser:
        return (await browser.get(url)).text


@asynccontextmanager
async def guarded(**switches: Any) -> AsyncIterator[Guarded]:
    """Run an MCP server and its issuer, and yield the MCP server."""
    issuer = switches.pop("issuer", None) or Issuer()
    made = Guarded(issuer=issuer, **switches)
    async with issuer.running(), made.running():
        yield made
