"""The OAuth flows: the SDK's provider, with the checks and readable error texts that it lacks.

Only this module imports mcp.client.auth. Its exceptions and those of httpx2 end here. No service text that could
repeat a secret leaves this module. Sources: RFC 6749, 7009, 7591, 8414, 8707, 9207, 9728; MCP authorization.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import extract_field_from_www_auth, issuers_match, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from trayapp.auth.callback import Callback, Expected
from trayapp.auth.grant import ClientKind, Grant, GrantLostError, OAuthClient, SignInError, Target, canonical, lifetime
from trayapp.config.urls import is_inside
from trayapp.model.reasons import reason_of
from trayapp.model.redact import redacted

WORDS_MAX = 200  # the most characters of another program's text that an error quotes
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
ANSWER_MOST = 1 << 20  # limit on an answer's decoded bytes; real answers have a few KB
_OF_THE_WAY = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # do not apply to a decoded body
WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
NO_REGISTRATION = "Register multi-mcp there yourself, then set client_id and client_secret in the server's entry"
# The SDK's log texts quote service responses at every level. Our own do not.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)
REQUEST_S = 15.0  # limit on one request to a sign-in service
REVOKE_S = 5.0  # limit on a revocation; signing out does not depend on it
CLIENT_NAME = "multi-mcp"
LOST = frozenset(("invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
                  "invalid_target"))  # fmt: skip  # RFC 6749 5.2, RFC 8707 2: a retry would have the same result
ACCEPT = {"accept": "application/json, text/event-stream"}
trusted_certificates = cache(httpx2.create_ssl_context)  # httpx2's default trust store; loading it takes 50 ms
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}  # harmless; a 401 response names the sign-in service


async def authorize(
    target: Target,
    callback: Callback,
    show: Callable[[str], None],
    now: Callable[[], float],
    before: Grant | None,
    wanted: str | None,
) -> Grant:
    """Run the whole sign-in, from discovery to tokens, and return the grant. Raises SignInError.

    `show` is called with the address to open, and `callback` receives the answer. `before` is the account's last grant.
    `wanted` holds the scopes that a refused request needed.
    """
    provider = _Provider(target, callback, show, before)
    last: list[httpx2.Response] = []
    try:
        async with _client() as client:
            probe, challenge = await _challenged(client, target, before, wanted)
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
                with suppress(RuntimeError):  # closing fails if the flow was interrupted in the middle of an operation
                    await flow.aclose()
    except SignInError:
        raise
    except (OAuthFlowError, ValueError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise explained(error, last, target.url) from None
    return provider.grant(now())


async def renew(grant: Grant, now: Callable[[], float]) -> Grant:
    """Get new tokens from the service that issued those of `grant`, and return the grant with the new ones.

    Raises GrantLostError if the grant has ended, SignInError if the renewal failed for now.
    """
    try:
        provider = _Provider.of(grant)
    except ValueError:  # written by a different version, or by hand
        raise GrantLostError("The stored sign-in cannot be used", "Sign in again") from None
    host = urlsplit(provider.token_endpoint).hostname or "the sign-in service"
    try:
        request = await provider.refresh_request()
        async with _client() as client:
            response = plain_token(await _sent(client, request))
    except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise SignInError(f"No usable answer from {host}: {why_of(error, host)}", "Check the network") from None
    if response.status_code in (200, 201):
        with suppress(ValueError):
            return provider.renewed(OAuthToken.model_validate_json(response.content), now())
        raise SignInError(f"{host} answered without a token", "Try again, or sign in again")
    kind = oauth_error(response)
    if kind in LOST:
        raise GrantLostError(f"{host} does not renew the sign-in ({kind})", "Sign in again")
    raise SignInError(f"{host} answered HTTP {response.status_code}", "Try again later")


async def revoke(grant: Grant) -> bool:
    """Revoke the tokens at the service (RFC 7009). Return True if the service accepted the request."""
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


class _KnownClientStorage:
    """A TokenStorage for the SDK. It returns the known client and stores nothing: the provider holds the results."""

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
    """The SDK's flow, with our checks before each irreversible step."""

    _grant: Grant | None = None
    _own_issuer: str | None = None

    def __init__(
        self,
        target: Target,
        callback: Callback | None = None,
        show: Callable[[str], None] = lambda url: None,
        before: Grant | None = None,
    ) -> None:
        self._target = target
        self._callback = callback
        self._show_address = show
        self._before = before
        named, by_document = target.client, target.document_url
        given = None
        if named.id is not None and named.id != by_document:
            method = None if named.secret else "none"
            given = OAuthClientInformationFull(
                client_id=named.id, client_secret=named.secret, token_endpoint_auth_method=method
            )
        redirect = callback.redirect_uri if callback else "http://127.0.0.1/callback"
        metadata = OAuthClientMetadata.model_validate({"client_name": CLIENT_NAME, "redirect_uris": [redirect]})
        super().__init__(target.url, metadata, _KnownClientStorage(given), self._show, self._answered, by_document)
        self._kind: ClientKind = "given" if given else "registered"

    @classmethod
    def of(cls, grant: Grant) -> _Provider:
        """Return a provider that can renew and revoke that grant, with the metadata of its sign-in."""
        provider = cls(Target("", grant.url))
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

    @property
    def token_endpoint(self) -> str:
        return self._get_token_endpoint()

    async def refresh_request(self) -> httpx2.Request:
        """Return the request for new tokens. Raises OAuthFlowError, SignInError."""
        require_safe(self.token_endpoint)
        require_outside(self.token_endpoint, self._target.url)
        self._choose_method()
        return await self._refresh_token()

    def renewed(self, token: OAuthToken, now: float) -> Grant:
        """Return the renewed grant. It keeps a refresh token or scope that the response omits (RFC 6749, section 6)."""
        assert self._grant is not None
        return replace(
            self._grant,
            access_token=token.access_token,
            refresh_token=token.refresh_token or self._grant.refresh_token,
            scope=token.scope or self._grant.scope,
            issued_at=now,
            expires_at=_end(token, now),
        )

    def check(self, outgoing: httpx2.Request) -> None:
        """Raise SignInError for a request of the flow that must not be sent.

        A remote server may not direct a request to this machine or its network. A POST holds secrets, so it may not go
        over plain http to another machine. Nor may it go to an endpoint that the SDK guesses for a service that the
        server named.
        """
        require_outside(str(outgoing.url), self._target.url)
        if outgoing.method != "POST":
            return  # metadata is public; its content is checked below and by the SDK
        require_safe(str(outgoing.url))
        named = self.context.auth_server_url
        if named is not None and self.context.oauth_metadata is None:  # the SDK would guess the server's own origin
            host = urlsplit(named).hostname
            raise SignInError(f"The sign-in service at {host} publishes no metadata", "Try again later")

    def as_expected(self, response: httpx2.Response) -> httpx2.Response:
        """Return a response in the form that the SDK expects. In the answer to a POST, `expires_in` becomes a number.

        A service at the server's own origin, discovered as in 2025-03-26, may use a path of that origin as its issuer.
        The SDK gets the bare origin, which it expects, and refuses any other issuer itself.
        """
        is_metadata = response.request.url.path.startswith(WELL_KNOWN) and response.status_code == 200
        if response.request.method == "POST":
            return plain_token(response)
        if self.context.auth_server_url is not None or not is_metadata:
            return response
        metadata = json_object(response)
        own, issuer = urlsplit(self._target.url), urlsplit(str(metadata.get("issuer")))
        if (own.scheme, own.netloc) != (issuer.scheme, issuer.netloc):
            return response
        self._own_issuer = issuer.geturl()
        metadata["issuer"] = f"{own.scheme}://{own.netloc}"
        return httpx2.Response(200, json=metadata, request=response.request)

    def as_found(self) -> None:
        """Restore the name that the issuer gives itself: the `iss` of an answer is compared with it (RFC 9207)."""
        metadata = self.context.oauth_metadata
        if self._own_issuer is not None and metadata is not None:
            known = {**metadata.model_dump(mode="json"), "issuer": self._own_issuer}
            self.context.oauth_metadata = OAuthMetadata.model_validate(known)

    def grant(self, now: float) -> Grant:
        """Return the grant that the flow obtained. Raises SignInError."""
        context = self.context
        token, client = context.current_tokens, context.client_info
        if token is None or client is None or not token.access_token:
            raise SignInError("The sign-in returned no token", "Try again")
        kind: ClientKind = "document" if client.client_id == self._target.document_url else self._kind
        secret = None if kind == "given" else client.client_secret  # stored in servers.yaml, or in the keyring by name
        return Grant(
            url=canonical(self._target.url),
            access_token=token.access_token,
            client=OAuthClient(client.client_id, secret, client.token_endpoint_auth_method, kind),
            issued_at=now,
            refresh_token=token.refresh_token,
            expires_at=_end(token, now),
            scope=token.scope,
            issuer=_dumped(context.oauth_metadata),
            resource=_dumped(context.protected_resource_metadata),
        )

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """Check the service's issuer, PKCE and addresses, then return the SDK's result. Raises SignInError."""
        self._check_issuer()
        metadata = self.context.oauth_metadata
        if metadata is not None:
            methods = metadata.code_challenge_methods_supported
            # Some services support S256 but omit the list. A list without S256 lacks the PKCE that MCP requires.
            if methods is not None and "S256" not in methods:
                title = "The sign-in service does not protect its codes (PKCE with S256)"
                raise SignInError(title, "Report this to its developers")
            require_safe(str(metadata.authorization_endpoint))
            require_safe(str(metadata.token_endpoint))
        return await super()._perform_authorization_code_grant()

    def _check_issuer(self) -> None:
        """Raise SignInError if the server now names another issuer, or none, for a client that the user registered.

        Such a client belongs to one service: its secret must not be sent to another (mix-up).
        """
        before = self._before
        known = (before.issuer or {}).get("issuer") if before is not None and before.client.kind == "given" else None
        if self._kind != "given" or not known:
            return
        metadata = self.context.oauth_metadata
        current = str(metadata.issuer) if metadata else None
        if current is None or not issuers_match(known, current):
            hosts = f"{shown_host(current)} instead of {shown_host(known)}"
            hint = "If that is right, sign out first: multi-mcp auth SERVER --logout"
            raise SignInError(f"The server now names another sign-in service: {hosts}", hint)

    async def _exchange_token_authorization_code(self, auth_code: str, code_verifier: str) -> httpx2.Request:
        self._choose_method()
        return await super()._exchange_token_authorization_code(auth_code, code_verifier)

    def _choose_method(self) -> None:
        """Choose how a client with a secret authenticates, if not known yet. The default is basic (RFC 8414)."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or client.token_endpoint_auth_method or not client.client_secret:
            return
        offered = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
        by_post = "client_secret_basic" not in offered and "client_secret_post" in offered
        client.token_endpoint_auth_method = "client_secret_post" if by_post else "client_secret_basic"

    async def _show(self, url: str) -> None:
        assert self._callback is not None
        metadata = self.context.oauth_metadata
        state = parse_qs(urlsplit(url).query)["state"][0]
        required = bool(metadata and metadata.authorization_response_iss_parameter_supported)
        self._callback.expect(Expected(state, str(metadata.issuer) if metadata else None, required))
        self._show_address(url)

    async def _answered(self) -> AuthorizationCodeResult:
        assert self._callback is not None
        answer = await self._callback.answer()
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss)


async def _challenged(
    client: httpx2.AsyncClient, target: Target, before: Grant | None, wanted: str | None
) -> tuple[httpx2.Request, httpx2.Response]:
    """Send a probe. Return the probe, and a 401 for the SDK with the metadata URL and the scopes to request.

    If the server does not refuse the probe, the 401 has no metadata URL, and the SDK tries the well-known ones. Raises
    HTTPError.
    """
    headers = {**target.headers, **ACCEPT}
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    method, json = ("GET", None) if target.kind == "sse" else ("POST", PING)
    probe = client.build_request(method, target.url, json=json, headers=headers)
    answer = await client.send(probe, stream=True)
    await answer.aclose()
    refusal = answer if answer.status_code in (401, 403) else httpx2.Response(401, request=probe)
    fields = {"resource_metadata": extract_field_from_www_auth(refusal, "resource_metadata")}
    fields["scope"] = " ".join(target.client.scopes) or extract_field_from_www_auth(refusal, "scope")
    if wanted:  # step-up: a refused request's scopes are added to those already granted
        granted = before.scope if before is not None else None
        fields["scope"] = union_scopes(union_scopes(granted, fields["scope"]), wanted)
    challenge = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value and '"' not in value)
    headers = {"www-authenticate": f"Bearer {challenge}"} if challenge else {}
    return probe, httpx2.Response(401, headers=headers, request=probe)


def _end(token: OAuthToken, now: float) -> float | None:
    seconds = lifetime(token.expires_in)
    return now + seconds if seconds is not None else None


def _dumped(metadata: OAuthMetadata | ProtectedResourceMetadata | None) -> dict[str, Any] | None:
    return metadata.model_dump(mode="json", exclude_none=True) if metadata else None


@asynccontextmanager
async def _client(limit_s: float = REQUEST_S) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=limit_s, verify=trusted_certificates()) as client:
        yield client


async def _sent(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request and return the response with its decoded body. Raises HTTPError, or SignInError if too large."""
    response, body = await client.send(request, stream=True), bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > ANSWER_MOST:
                title = f"The sign-in service at {request.url.host} gave an answer that is too large"
                raise SignInError(title, "Report this to its developers")
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WAY]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


def plain_token(response: httpx2.Response) -> httpx2.Response:
    """Return a token response as the SDK requires it: `expires_in` is a number of seconds or absent (RFC 6749 5.1).

    An access token with characters that a header cannot hold is removed (RFC 6750 2.1).
    """
    body = json_object(response)
    token = body.get("access_token")
    if not isinstance(token, str):
        return response
    if not all("!" <= letter <= "~" for letter in token):
        del body["access_token"]
    seconds = lifetime(body.pop("expires_in", None))
    if seconds is not None:
        body["expires_in"] = int(seconds)
    return httpx2.Response(response.status_code, json=body, request=response.request)


def check_metadata(response: httpx2.Response) -> None:
    """Raise SignInError if a service fails (HTTP 5xx) to return its metadata: the SDK would guess endpoints instead."""
    if response.status_code >= 500 and response.request.url.path.startswith(WELL_KNOWN):
        host, status = response.request.url.host, response.status_code
        raise SignInError(f"The sign-in service at {host} failed (HTTP {status})", "Try again later")


def explained(error: Exception, last: list[httpx2.Response], url: str) -> SignInError:
    """Return an error that explains a failure to the user. It contains no service text that could repeat a secret."""
    host = last[0].request.url.host if last else urlsplit(url).hostname
    if isinstance(error, httpx2.TimeoutException):
        return SignInError(f"{_asked_host(error, host)} did not answer in time", "Try again later")
    if isinstance(error, httpx2.HTTPError):
        host = _asked_host(error, host)
        return SignInError(f"Cannot reach {host}: {why_of(error, host)}", "Check the network")
    kind = oauth_error(last[0]) if last else None
    status = last[0].status_code if last else 0
    why = kind or f"HTTP {status}"
    if isinstance(error, OAuthRegistrationError):
        return SignInError(f"The sign-in service at {host} does not register new clients ({why})", NO_REGISTRATION)
    if status >= 400 and last[0].request.method == "POST":
        return SignInError(f"The sign-in service at {host} rejected the sign-in: {why}", "Try again")
    if isinstance(error, OAuthFlowError) and not isinstance(error, OAuthTokenError):  # token errors quote the response
        text = redacted(" ".join(str(error).split()))[:WORDS_MAX]
        return SignInError(text, "Report this to the server's developers, or check its url")
    return SignInError(f"The sign-in service at {host} gave an answer that cannot be read", "Try again later")


def why_of(error: Exception, host: str) -> str:
    """Return why a request failed, or only the kind of the error if its text may quote the response."""
    is_network = isinstance(error, httpx2.NetworkError | httpx2.TimeoutException)
    return reason_of(error, host) if is_network else type(error).__name__


def _asked_host(error: httpx2.HTTPError, host: str | None) -> str:
    with suppress(RuntimeError):  # an error without a request
        return str(error.request.url.host)
    return host or "The sign-in service"


def oauth_error(response: httpx2.Response) -> str | None:
    """Return the `error` of RFC 6749 5.2, or None if the response has none."""
    kind = json_object(response).get("error")
    return kind[:60] if isinstance(kind, str) and kind.replace("_", "").isalnum() else None


def json_object(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of a response, or {} if it has none."""
    try:
        body = response.json()
    except (ValueError, RecursionError):  # RecursionError: nested too deeply
        return {}
    return body if isinstance(body, dict) else {}


def is_safe(url: str) -> bool:
    """Return True if codes and tokens may be sent to `url`: over https, or to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS)


def require_safe(url: str) -> None:
    """Raise SignInError for an address that is neither https nor on this machine."""
    if not is_safe(url):
        raise SignInError(f"{shown_host(url)} is not encrypted: a sign-in needs https", "Check the server's URL")


def require_outside(url: str, server: str) -> None:
    """Raise SignInError if a remote server names an address of this machine, its network or its cloud (SSRF)."""
    if is_inside(url) and not is_inside(server):
        title = f"The server redirects to {shown_host(url)}, an address of this machine or its network"
        raise SignInError(title, "Report this to the server's developers, or do not use it")


def shown_host(url: str | None) -> str:
    """Return the host and port of an address for display, or "an unnamed service" if there is no address."""
    return (urlsplit(url).netloc if url else "") or "an unnamed service"
