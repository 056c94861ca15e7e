"""Responses of sign-in services, parsed and explained for people, and checks of which addresses may receive a code.

No text that could repeat a secret leaves this module.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from trayapp.auth.grant import SignInError, lifetime
from trayapp.config.urls import is_inside
from trayapp.model.reasons import reason_of
from trayapp.model.redact import redacted

WORDS_MAX = 200  # characters of foreign text
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
ANSWER_MOST = 1 << 20  # bytes, decoded; real ones have a few KB
_OF_THE_WAY = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # headers of the raw body
WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
NO_REGISTRATION = "Register multi-mcp there yourself, then set client_id and client_secret in the server's entry"


async def bounded(response: httpx2.Response) -> httpx2.Response:
    """Read a streamed response, up to ANSWER_MOST decoded bytes. Raise HTTPError, and SignInError for a larger one."""
    body, request = bytearray(), response.request
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > ANSWER_MOST:
                raise SignInError(f"The sign-in service at {request.url.host} gave an answer that is too large",
                                  "Report this to its makers")  # fmt: skip
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WAY]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


def plain_token(response: httpx2.Response) -> httpx2.Response:
    """Return a token response as the SDK requires it: `expires_in` is a number of seconds or absent (RFC 6749 5.1).

    A token with characters that a header cannot hold is removed, too (RFC 6750 2.1).
    """
    said = json_object(response)
    token = said.get("access_token")
    if not isinstance(token, str):
        return response
    if not all("!" <= letter <= "~" for letter in token):
        del said["access_token"]
    seconds = lifetime(said.pop("expires_in", None))
    if seconds is not None:
        said["expires_in"] = int(seconds)
    return httpx2.Response(response.status_code, json=said, request=response.request)


def check_metadata(response: httpx2.Response) -> None:
    """Raise SignInError if a service fails to return its metadata: the SDK would guess it instead."""
    if response.status_code >= 500 and response.request.url.path.startswith(WELL_KNOWN):
        host, status = response.request.url.host, response.status_code
        raise SignInError(f"The sign-in service at {host} fails (HTTP {status})", "Try again later")


def explained(error: Exception, last: list[httpx2.Response], url: str) -> SignInError:
    """Return an error that explains a failure to people. It contains no service text that could repeat a secret."""
    host = last[0].request.url.host if last else urlsplit(url).hostname
    if isinstance(error, httpx2.TimeoutException):
        return SignInError(f"{_asked_host(error, host)} did not answer in time", "Try again later")
    if isinstance(error, httpx2.HTTPError):
        host = _asked_host(error, host)
        return SignInError(f"{host} cannot be reached: {why_of(error, host)}", "Check the network")
    kind = oauth_error(last[0]) if last else None
    status = last[0].status_code if last else 0
    if isinstance(error, OAuthRegistrationError):
        why = kind or f"HTTP {status}"
        return SignInError(f"The sign-in service at {host} does not register new clients ({why})", NO_REGISTRATION)
    if status >= 400 and last[0].request.method == "POST":
        return SignInError(f"The sign-in service at {host} refused ({kind or f'HTTP {status}'})", "Try again")
    if isinstance(error, OAuthFlowError) and not isinstance(error, OAuthTokenError):  # that one quotes the response
        return SignInError(_words(str(error)), "Report this to the makers of the server, or check its url")
    return SignInError(f"The sign-in service at {host} gave an answer that cannot be read", "Try again later")


def why_of(error: Exception, host: str) -> str:
    """Return why a request failed. For errors while reading a response, only their kind, since they quote it."""
    is_network = isinstance(error, httpx2.NetworkError | httpx2.TimeoutException)
    return reason_of(error, host) if is_network else type(error).__name__


def _asked_host(error: httpx2.HTTPError, host: str | None) -> str:
    with suppress(RuntimeError):  # an error without a request
        return str(error.request.url.host)
    return host or "The sign-in service"


def _words(text: str) -> str:
    return redacted(" ".join(text.split()))[:WORDS_MAX]


def oauth_error(response: httpx2.Response) -> str | None:
    """Return the `error` of RFC 6749 5.2, or None if the response has none."""
    kind = json_object(response).get("error")
    return kind[:60] if isinstance(kind, str) and kind.replace("_", "").isalnum() else None


def json_object(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of a response, or {} if it has none."""
    try:
        body = response.json()
    except (ValueError, RecursionError):  # nested too deeply
        return {}
    return body if isinstance(body, dict) else {}


def is_safe(url: str) -> bool:
    """Return True if codes and tokens may be sent there: encrypted, or to this machine only."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS)


def require_safe(url: str) -> None:
    """Raise SignInError for an unsafe address."""
    if not is_safe(url):
        raise SignInError(f"{shown_host(url)} is not encrypted: a sign-in needs https", "Check the url of the server")


def require_outside(url: str, server: str) -> None:
    """Raise SignInError if a remote server sends us to this machine, its link or its cloud's metadata (SSRF)."""
    if is_inside(url) and not is_inside(server):
        raise SignInError(f"The server redirects to {shown_host(url)}, an address of this machine or its network",
                          "Report this to the makers of the server, or do not use it")  # fmt: skip


def shown_host(url: str | None) -> str:
    """Return host and port of an address, for people."""
    return (urlsplit(url).netloc if url else "") or "nobody"
