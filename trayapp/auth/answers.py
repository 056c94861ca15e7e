"""What sign-in services answer, read and put into words for people; which addresses may be trusted with a code.

Never here: the conversation (login), what is kept. No text that could repeat a secret leaves this module.
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

WORDS_MAX = 200  # characters of a foreign text
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
ANSWER_MOST = 1 << 20  # bytes, unpacked; real ones are some KB
_OF_THE_WAY = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # headers of a body as it came
WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
NO_REGISTRATION = "Register multi-mcp there yourself, and write client_id and client_secret into the server's entry"


async def bounded(response: httpx2.Response) -> httpx2.Response:
    """Read a streamed answer, whatever it unpacks to. Raises HTTPError, and SignInError for one that is too large."""
    body, request = bytearray(), response.request
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > ANSWER_MOST:
                raise SignInError(f"The sign-in service at {request.url.host} gave an answer that is too large",
                                  "Tell its makers")  # fmt: skip
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WAY]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


def plain_token(response: httpx2.Response) -> httpx2.Response:
    """A token answer as the SDK wants it: `expires_in` is a number of seconds or absent (RFC 6749 5.1).

    A token that no header can hold is absent, too (RFC 6750 2.1).
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
    """A service that fails to describe itself is asked again later: the SDK would guess instead."""
    if response.status_code >= 500 and response.request.url.path.startswith(WELL_KNOWN):
        host, status = response.request.url.host, response.status_code
        raise SignInError(f"The sign-in service at {host} fails (HTTP {status})", "Try again later")


def explained(error: Exception, last: list[httpx2.Response], url: str) -> SignInError:
    """What went wrong in words for people. No text of a service's that could repeat a secret is in it."""
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
        return SignInError(f"The sign-in service at {host} takes no new clients ({why})", NO_REGISTRATION)
    if status >= 400 and last[0].request.method == "POST":
        return SignInError(f"The sign-in service at {host} refused ({kind or f'HTTP {status}'})", "Try again")
    if isinstance(error, OAuthFlowError) and not isinstance(error, OAuthTokenError):  # that one quotes the answer
        return SignInError(_words(str(error)), "Tell the makers of the server, or check its url")
    return SignInError(f"The sign-in service at {host} gave an answer that cannot be read", "Try again later")


def why_of(error: Exception, host: str) -> str:
    """Why a request came to nothing; of what breaks in an answer only the kind, since it quotes that."""
    is_network = isinstance(error, httpx2.NetworkError | httpx2.TimeoutException)
    return reason_of(error, host) if is_network else type(error).__name__


def _asked_host(error: httpx2.HTTPError, host: str | None) -> str:
    with suppress(RuntimeError):  # an error that belongs to no request
        return str(error.request.url.host)
    return host or "The sign-in service"


def _words(text: str) -> str:
    return redacted(" ".join(text.split()))[:WORDS_MAX]


def oauth_error(response: httpx2.Response) -> str | None:
    """The `error` of RFC 6749 5.2, None when the answer holds none."""
    kind = json_object(response).get("error")
    return kind[:60] if isinstance(kind, str) and kind.replace("_", "").isalnum() else None


def json_object(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object of an answer, an empty one when it holds none."""
    try:
        body = response.json()
    except (ValueError, RecursionError):  # nested without end
        return {}
    return body if isinstance(body, dict) else {}


def is_safe(url: str) -> bool:
    """Whether codes and tokens may be sent there: encrypted, or never leaving this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS)


def require_safe(url: str) -> None:
    """Raise SignInError for an address that is not."""
    if not is_safe(url):
        raise SignInError(f"{shown_host(url)} is not encrypted: a sign-in needs https", "Check the url of the server")


def require_outside(url: str, server: str) -> None:
    """Raise SignInError when a server elsewhere sends us to this machine, its link or its cloud's metadata (SSRF)."""
    if is_inside(url) and not is_inside(server):
        raise SignInError(f"The server sends us to {shown_host(url)}, which is no place of a server elsewhere",
                          "Tell the makers of the server, or do not use it")  # fmt: skip


def shown_host(url: str | None) -> str:
    """Host and port of an address, for people."""
    return (urlsplit(url).netloc if url else "") or "nobody"
