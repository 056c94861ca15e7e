"""The values of a sign-in: its target, its grant and the grant's text for the vault. Also canonical addresses.

Pure: times are passed in. The flow itself is in login, the listener in callback.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from trayapp.model.errors import ExitCode, MultiMcpError

LEFT_ALONE = "/?%:@!$&'()*+,;=~-._"  # characters of an address that stay as they are when it is escaped
KEY_HEX = 32  # hex digits of an address's SHA-256 in the name of its record
RENEW_AHEAD_S = 60.0  # renew this long before expiry, at most a fifth of the lifetime: clocks differ
LONGEST_LIFE_S = 10 * 365 * 86_400.0
LAST_MOMENT = 253_402_300_799.0  # the end of the year 9999
# The source of a client: our registration (RFC 7591), the user, or a metadata document.
ClientKind = Literal["registered", "given", "document"]
EXPIRES_S = 300.0  # limit on a whole sign-in; after that, the user is assumed to be gone


class AccountKey(NamedTuple):
    """The key of one account: its canonical address, and its name if there are several."""

    url: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Our client at a sign-in service. `method`: how it authenticates at the token endpoint; None: not known yet."""

    id: str
    secret: str | None = field(default=None, repr=False)
    method: str | None = None
    kind: ClientKind = "registered"


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens for one address, with everything needed to renew them after a restart. Times are Unix seconds.

    `issuer` and `resource` are the metadata (RFC 8414, RFC 9728) of the sign-in. A renewal uses the token endpoint
    named there, even if the service's metadata changes later. Without an access token, a grant only records the issuer.
    """

    url: str
    access_token: str = field(repr=False)
    client: OAuthClient
    issued_at: float
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    scope: str | None = None
    issuer: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None

    @property
    def header(self) -> str | None:
        """Return the Authorization value, or None if there is no token."""
        return f"Bearer {self.access_token}" if self.access_token else None

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    def due(self, now: float) -> bool:
        """Return True if the token should be renewed before use."""
        if self.expires_at is None:
            return False
        ahead = min(RENEW_AHEAD_S, max(0.0, self.expires_at - self.issued_at) / 5)
        return now >= self.expires_at - ahead

    def to_text(self) -> str:
        """Return the grant as JSON, for the vault."""
        return json.dumps({"form": 1, **asdict(self)})  # `form`: the version of the format


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Sign-in settings of a server from servers.yaml, with variables resolved."""

    id: str | None = None
    secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    account: str = ""  # selects one of several sign-ins at one address


@dataclass(frozen=True, slots=True)
class Target:
    """An address to sign in to. `server` is the server's name, for messages; `callback_port` 0 is a random port."""

    server: str
    url: str
    kind: str | None = None  # "sse": the address is an event stream
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    client: ClientSettings = ClientSettings()
    callback_port: int = 0
    document_url: str | None = None  # URL of the client ID metadata document

    @property
    def key(self) -> AccountKey:
        return account_key(self.url, self.client.account)


class SignInError(MultiMcpError):
    """A sign-in failed, or cannot be renewed now."""

    code = "sign_in_failed"
    exit_code = ExitCode.SIGN_IN_WANTED


class GrantLostError(SignInError):
    """The sign-in service no longer renews this grant. The user must sign in again."""


def from_text(text: str | None, url: str) -> Grant | None:
    """Return the grant of a record, or None if it is invalid or for another address. An invalid time is ignored."""
    try:
        read = json.loads(text or "null")
        known = {item.name for item in fields(Grant)}
        values = {name: value for name, value in read.items() if name in known}
        values["expires_at"] = moment(values.get("expires_at"))
        values["issued_at"] = moment(values.get("issued_at")) or 0.0
        client = OAuthClient(**values.pop("client"))
        grant = Grant(client=client, **values)
        # The record may be damaged, or from an older version.
        texts = (grant.refresh_token, grant.scope, client.secret, client.method)
        is_sound = all(isinstance(text, str) for text in (grant.access_token, client.id))
        is_sound = is_sound and all(isinstance(text, str | None) for text in texts)
        is_sound = is_sound and all(isinstance(one, dict | None) for one in (grant.issuer, grant.resource))
        return grant if grant.url == canonical(url) and is_sound else None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def lifetime(value: Any) -> float | None:
    """Return `expires_in` (a number or a string) in seconds, or None if it is invalid, negative or over ten years."""
    if isinstance(value, str) and len(value) <= 30:
        with suppress(ValueError):
            value = float(value)
    return _number(value, LONGEST_LIFE_S)


def moment(value: Any) -> float | None:
    """Return a time in Unix seconds, or None if it is invalid or after the year 9999."""
    return _number(value, LAST_MOMENT)


def _number(value: Any, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None  # excludes NaN


def canonical(url: str) -> str:
    """Return an address with scheme and host in lower case, a path, and no user, default port or fragment.

    A trailing slash and a query are kept: they may identify another server. Raises ValueError for an invalid address.
    """
    parts = urlsplit(url.strip())
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    with suppress(UnicodeError):  # an invalid host is kept, and the address matches no request
        host = host if host.isascii() else host.encode("idna").decode()  # in the form in which it is sent
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(scheme)) else f":{parts.port}"
    path = quote(_without_dots(parts.path or "/"), LEFT_ALONE)
    return urlunsplit((scheme, host + port, path, quote(parts.query, LEFT_ALONE), ""))


def _without_dots(path: str) -> str:
    """Return a path without dot segments: `/a/../b` is sent as `/b` (RFC 3986 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept) + ("/" if path.endswith(("/.", "/..")) else "")


def account_key(url: str, name: str) -> AccountKey:
    """Return the key of the account with that name at an address in any spelling."""
    return AccountKey(canonical(url), name)


def record_key(url: str, account: str = "") -> str:
    """Return the name under which the vault stores the grant of an account at an address.

    The address may contain a secret, so only its host is readable. The record holds the whole address for comparison.
    """
    whole = canonical(url)
    host = urlsplit(whole).hostname or ""
    whole += f"#{account}" if account else ""  # no canonical address has a fragment
    return f"account:{host[:60]}:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:KEY_HEX]}"


def covers(url: str, asked: str, *, whole_origin: bool = False) -> bool:
    """Return True if a token for `url` may be sent to `asked`: the same address, except for a slash at the path's end.

    With `whole_origin`, any path of the same origin is covered, because a legacy SSE server names its POST endpoint.
    """
    try:
        ours, theirs = urlsplit(canonical(url)), urlsplit(canonical(asked))
    except ValueError:
        return False
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc) or "@" in urlsplit(asked).netloc:
        return False
    same = ours.path.rstrip("/") == theirs.path.rstrip("/") and ours.query == theirs.query
    return same or whole_origin
