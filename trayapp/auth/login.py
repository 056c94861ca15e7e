"""The OAuth conversations: the SDK's provider, with the checks and the words for people that it lacks around it.

With auth/answers the only importer of mcp.client.auth, whose exceptions end here with httpx2's. Never here: when to
sign in, where a grant is kept, browsers. Sources: RFC 6749, 7009, 7591, 8414, 8707, 9207, 9728; MCP authorization.
"""

from __future__ import annotations

import functools
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.utils import extract_field_from_www_auth, issuers_match, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from trayapp.auth.answers import (
    WELL_KNOWN,
    bounded,
    check_metadata,
    explained,
    is_safe,
    json_object,
    oauth_error,
    plain_token,
    require_outside,
    require_safe,
    shown_host,
    why_of,
)
from trayapp.auth.asking import Ask, Wish
from trayapp.auth.grant import Client, ClientKind, Grant, GrantLostError, SignInError, canonical, lifetime
from trayapp.config.urls import is_inside

# Its texts quote what services answered, at every level; ours below say what happened without that.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)

REQUEST_S = 15.0  # for one request to a sign-in service
REVOKE_S = 5.0  # a courtesy: signing out does not hang on it
CLIENT_NAME = "multi-mcp"
LOST = frozenset(("invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
                  "invalid_target"))  # fmt: skip  # RFC 6749 5.2, RFC 8707 2: asking again brings the same
ACCEPT = {"accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}  # a request without effects, to be told who signs people in


async def authorize(wish: Wish, ask: Ask, now: Callable[[], float]) -> Grant:
    """The whole sign-in, from "who signs people in here?" to tokens. Raises SignInError."""
    provider = _Provider(wish, ask)
    last: list[httpx2.Response] = []
    try:
        async with _client() as client:
            probe, challenge = await _challenged(client, wish)
            flow = provider.async_auth_flow(probe)
            try:
                await anext(flow)
                outgoing = await flow.asend(challenge)
                while outgoing is not probe:
                    provider.check(outgoing)
                    response = await _sent(client, outgoing)
                    last[:] = [response]
                    check_metadata(response)
                    outgoing = await flow.asend(provider.as_expected(response))
                    provider.as_found()
            finally:
                await _close(flow)
    except SignInError:
        raise
    except (OAuthFlowError, ValueError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise explained(error, last, wish.url) from None
    return provider.grant(now())


async def renew(grant: Grant, now: Callable[[], float]) -> Grant:
    """New tokens for the old ones, from the service that issued those.

    Raises GrantLostError when that is over, SignInError when it could not be done for now.
    """
    provider = _Provider.of(grant)
    host = urlsplit(provider.token_endpoint).hostname or "the sign-in service"
    try:
        request = await provider.refresh_request()
        async with _client() as client:
            response = plain_token(await _sent(client, request))
    except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise SignInError(f"{host} cannot be reached: {why_of(error, host)}", "Check the network") from None
    if response.status_code in (200, 201):
        with suppress(ValueError):
            return provider.renewed(OAuthToken.model_validate_json(response.content), now())
        raise SignInError(f"{host} answered without a token", "Try again, or sign in again")
    kind = oauth_error(response)
    if kind in LOST:
        raise GrantLostError(f"{host} does not renew it ({kind})", "Sign in again")
    raise SignInError(f"{host} answered HTTP {response.status_code}", "Try again later")


async def revoke(grant: Grant) -> bool:
    """Tell the service that the tokens are not wanted any more (RFC 7009); whether it took that."""
    endpoint = (grant.issuer or {}).get("revocation_endpoint")
    if not isinstance(endpoint, str) or not is_safe(endpoint) or (is_inside(endpoint) and not is_inside(grant.url)):
        return False
    hint = "refresh_token" if grant.refresh_token else "access_token"
    data = {"token": grant.refresh_token or grant.access_token, "token_type_hint": hint, "client_id": grant.client.id}
    try:
        body, headers = _Provider.of(grant).context.prepare_token_auth(data, {})
        async with _client(REVOKE_S) as client:
            request = client.build_request("POST", endpoint, data=body, headers=headers)
            return (await _sent(client, request)).is_success
    except (SignInError, OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return False


class _Nowhere:
    """Implements the SDK's TokenStorage: what is known beforehand is the client, what is found is taken from the
    provider when all is done."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


class _Provider(OAuthClientProvider):
    """The SDK's flow with our checks before each thing that cannot be taken back."""

    def __init__(self, wish: Wish, ask: Ask | None = None) -> None:
        self._wish = wish
        self._ask = ask
        by_document = wish.document_url
        given = None if wish.client_id is None or wish.client_id == by_document else _given(wish)
        about = {"client_name": CLIENT_NAME, "redirect_uris": [wish.redirect_uri]}
        metadata = OAuthClientMetadata.model_validate(about)
        super().__init__(wish.url, metadata, _Nowhere(given), self._show, self._answered, by_document)
        self._kind: ClientKind = "given" if given else "registered"

    @classmethod
    def of(cls, grant: Grant) -> _Provider:
        """One that can renew and revoke that grant, with what was found when it was issued."""
        provider = cls(Wish(grant.url, "http://127.0.0.1/callback"))
        context, client = provider.context, grant.client
        context.client_info = OAuthClientInformationFull(
            client_id=client.id, client_secret=client.secret, token_endpoint_auth_method=client.method
        )
        context.oauth_metadata = OAuthMetadata.model_validate(grant.issuer) if grant.issuer else None
        if grant.resource:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(grant.resource)
        context.current_tokens = OAuthToken(
            access_token=grant.access_token, refresh_token=grant.refresh_token, scope=grant.scope
        )
        provider._grant = grant
        return provider

    _grant: Grant | None = None
    _own_issuer: str | None = None

    # -- renewing ------------------------------------------------------------------------------------------------

    @property
    def token_endpoint(self) -> str:
        """Where tokens come from."""
        return self._get_token_endpoint()

    async def refresh_request(self) -> httpx2.Request:
        """The one that asks for new tokens. Raises OAuthFlowError, SignInError."""
        require_safe(self.token_endpoint)
        require_outside(self.token_endpoint, self._wish.url)
        self._choose_method()
        return await self._refresh_token()

    def renewed(self, token: OAuthToken, now: float) -> Grant:
        """The grant after a renewal; what the answer leaves out stays (RFC 6749 6)."""
        assert self._grant is not None
        return replace(
            self._grant,
            access_token=token.access_token,
            refresh_token=token.refresh_token or self._grant.refresh_token,
            scope=token.scope or self._grant.scope,
            issued_at=now,
            expires_at=_end(token, now),
        )

    # -- signing in ----------------------------------------------------------------------------------------------

    def check(self, outgoing: httpx2.Request) -> None:
        """Before a request of the flow goes out. Raises SignInError."""
        require_outside(str(outgoing.url), self._wish.url)
        if outgoing.method != "POST":
            return  # metadata, which is nobody's secret; what it says is checked below and by the SDK
        require_safe(str(outgoing.url))
        named = self.context.auth_server_url
        if named is not None and self.context.oauth_metadata is None:
            # The SDK would go on at the server's own origin: never with a service that nobody named.
            host = urlsplit(named).hostname
            raise SignInError(f"The sign-in service at {host} does not describe itself", "Try again later")

    def as_expected(self, response: httpx2.Response) -> httpx2.Response:
        """A service at the server's own origin, found as in 2025-03-26, may call itself by a path of that origin; the
        SDK expects the bare origin. Any other issuer is left for the SDK to refuse. A token's life is a number."""
        is_metadata = response.request.url.path.startswith(WELL_KNOWN) and response.status_code == 200
        if response.request.method == "POST":
            return plain_token(response)
        if self.context.auth_server_url is not None or not is_metadata:
            return response
        said = json_object(response)
        own, issuer = urlsplit(self._wish.url), urlsplit(str(said.get("issuer")))
        if (own.scheme, own.netloc) != (issuer.scheme, issuer.netloc):
            return response
        self._own_issuer = issuer.geturl()
        said["issuer"] = f"{own.scheme}://{own.netloc}"
        return httpx2.Response(200, json=said, request=response.request)

    def as_found(self) -> None:
        """The issuer is again what it calls itself: answers are compared with that (RFC 9207)."""
        metadata = self.context.oauth_metadata
        if self._own_issuer is not None and metadata is not None:
            known = {**metadata.model_dump(mode="json"), "issuer": self._own_issuer}
            self.context.oauth_metadata = OAuthMetadata.model_validate(known)

    def grant(self, now: float) -> Grant:
        """What the flow has brought. Raises SignInError."""
        context = self.context
        token, client = context.current_tokens, context.client_info
        if token is None or client is None or not token.access_token:
            raise SignInError("The sign-in brought no token", "Try again")
        kind: ClientKind = "document" if client.client_id == self._wish.document_url else self._kind
        secret = None if kind == "given" else client.client_secret  # servers.yaml has it, or the keyring by name
        return Grant(
            url=canonical(self._wish.url),
            access_token=token.access_token,
            client=Client(client.client_id, secret, client.token_endpoint_auth_method, kind),
            issued_at=now,
            refresh_token=token.refresh_token,
            expires_at=_end(token, now),
            scope=token.scope,
            issuer=_dumped(context.oauth_metadata),
            resource=_dumped(context.protected_resource_metadata),
        )

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """The SDK's, after a look at who it is that the user would be sent to."""
        self._check_issuer()
        metadata = self.context.oauth_metadata
        if metadata is not None:
            methods = metadata.code_challenge_methods_supported
            # Some good services leave the list out; one that lists others does not do PKCE as MCP wants it.
            if methods is not None and "S256" not in methods:
                raise SignInError("The sign-in service does not protect its codes (PKCE with S256)", "Tell its makers")
            require_safe(str(metadata.authorization_endpoint))
            require_safe(str(metadata.token_endpoint))
        return await super()._perform_authorization_code_grant()

    def _check_issuer(self) -> None:
        """A client that the user registered belongs to one service: a server that suddenly names another one would
        get its secret sent there (mix-up)."""
        before = self._wish.before
        known = before.issuer_name if before is not None and before.client.kind == "given" else None
        if self._kind != "given" or known is None:
            return
        metadata = self.context.oauth_metadata
        current = str(metadata.issuer) if metadata else None
        if current is None or not issuers_match(known, current):
            title = (
                f"The server now names another sign-in service: {shown_host(current)} instead of {shown_host(known)}"
            )
            raise SignInError(title, "If that is right, sign out first: multi-mcp auth SERVER --logout")

    async def _exchange_token_authorization_code(self, auth_code: str, code_verifier: str) -> httpx2.Request:
        self._choose_method()
        return await super()._exchange_token_authorization_code(auth_code, code_verifier)

    def _choose_method(self) -> None:
        """How a client that was given a secret proves itself, where nobody has said it (RFC 8414: basic)."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or client.token_endpoint_auth_method or not client.client_secret:
            return
        offered = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
        known = [method for method in ("client_secret_basic", "client_secret_post") if method in offered]
        client.token_endpoint_auth_method = known[0] if known else "client_secret_basic"

    async def _show(self, url: str) -> None:
        assert self._ask is not None
        metadata = self.context.oauth_metadata
        state = parse_qs(urlsplit(url).query)["state"][0]
        required = bool(metadata and metadata.authorization_response_iss_parameter_supported)
        await self._ask.show(url, state, str(metadata.issuer) if metadata else None, required)

    async def _answered(self) -> AuthorizationCodeResult:
        assert self._ask is not None
        answer = await self._ask.answer()
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss)


def _given(wish: Wish) -> OAuthClientInformationFull:
    method = None if wish.client_secret else "none"
    return OAuthClientInformationFull(
        client_id=wish.client_id or "", client_secret=wish.client_secret, token_endpoint_auth_method=method
    )


async def _sent(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request and read the answer, within bounds. Raises HTTPError, SignInError."""
    return await bounded(await client.send(request, stream=True))


async def _challenged(client: httpx2.AsyncClient, wish: Wish) -> tuple[httpx2.Request, httpx2.Response]:
    """A request that the server refuses, and its refusal, with the scopes that we want in it.

    A server that refuses nothing, or only some tools, is asked by its well-known addresses instead. Raises HTTPError.
    """
    headers = {**wish.headers, **ACCEPT}
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    if wish.kind == "sse":
        probe = client.build_request("GET", wish.url, headers=headers)
    else:
        probe = client.build_request("POST", wish.url, json=PING, headers=headers)
    answer = await client.send(probe, stream=True)
    await answer.aclose()
    refusal = answer if answer.status_code in (401, 403) else httpx2.Response(401, request=probe)
    fields = {"resource_metadata": extract_field_from_www_auth(refusal, "resource_metadata")}
    fields["scope"] = _scopes(wish, extract_field_from_www_auth(refusal, "scope"))
    challenge = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value and '"' not in value)
    told = {"www-authenticate": f"Bearer {challenge}"} if challenge else {}
    return probe, httpx2.Response(401, headers=told, request=probe)


def _scopes(wish: Wish, challenged: str | None) -> str | None:
    """Configured ones count instead of the server's; what was refused for want of a scope comes on top of what was
    granted (step-up)."""
    base = " ".join(wish.scopes) or challenged
    if not wish.wanted:
        return base
    granted = wish.before.scope if wish.before is not None else None
    return union_scopes(union_scopes(granted, base), wish.wanted)


def _end(token: OAuthToken, now: float) -> float | None:
    seconds = lifetime(token.expires_in)
    return now + seconds if seconds is not None else None


def _dumped(metadata: OAuthMetadata | ProtectedResourceMetadata | None) -> dict[str, Any] | None:
    return metadata.model_dump(mode="json", exclude_none=True) if metadata else None


async def _close(flow: AsyncGenerator[httpx2.Request, httpx2.Response]) -> None:
    with suppress(RuntimeError):  # it was in the middle of something when that failed
        await flow.aclose()


@asynccontextmanager
async def _client(limit_s: float = REQUEST_S) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=limit_s, verify=_trusted()) as client:
        yield client


@functools.cache
def _trusted() -> ssl.SSLContext:
    """What httpx2 trusts by itself; reading it takes 50 ms each time."""
    return httpx2.create_ssl_context()
