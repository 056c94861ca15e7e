"""What a sign-in brought, as a frozen value and as the text that the vault keeps; which addresses it is for.

Never here: how it is come by, clocks (times are passed in), the SDK.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from trayapp.model.errors import ExitCode, MultiMcpError

DEFAULT_PORTS = {"http": 80, "https": 443}
LEFT_ALONE = "/?%:@!$&'()*+,;=~-._"  # letters of an address that are not escaped, or are already
KEY_HEX = 32  # of a SHA-256 over the address: no two addresses share a record
RENEW_AHEAD_S = 60.0  # before the end: the longest that a request and two wrong clocks should take
RENEW_AHEAD_PART = 0.2  # of a short life, where a minute would be most of it
FORM = 1  # of the text
LONGEST_LIFE_S = 10 * 365 * 86_400.0
LAST_MOMENT = 253_402_300_799.0  # the end of the year 9999
LONGEST_NUMBER = 30  # characters

ClientKind = Literal["registered", "given", "document"]  # by RFC 7591, by the user, by its own address


class AccountKey(NamedTuple):
    """One account: its canonical address, and its name among several there."""

    url: str
    name: str = ""


class SignInError(MultiMcpError):
    """A sign-in did not come about, or cannot be renewed now."""

    code = "sign_in_failed"
    exit_code = ExitCode.SIGN_IN_WANTED


class GrantLostError(SignInError):
    """The sign-in service will not renew this grant any more: the user has to sign in again."""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Who we are to a sign-in service. `method`: how that is proven at the token endpoint."""

    id: str
    secret: str | None = field(default=None, repr=False)
    method: str | None = None
    kind: ClientKind = "registered"


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens for one address, and all that is needed to renew them after a restart. Times are Unix seconds.

    `issuer` and `resource` are the metadata (RFC 8414, RFC 9728) that the sign-in went by: a renewal goes to that
    token endpoint, whatever anybody says meanwhile. Without an access token it only remembers who issued the last one.
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
        """The Authorization value, None when there is no token."""
        return f"Bearer {self.access_token}" if self.access_token else None

    @property
    def issuer_name(self) -> str | None:
        """The `issuer` of the metadata."""
        name = (self.issuer or {}).get("issuer")
        return str(name) if name else None

    def expired(self, now: float) -> bool:
        """Whether the access token has ended."""
        return self.expires_at is not None and now >= self.expires_at

    def due(self, now: float) -> bool:
        """Whether it should be renewed before it is used."""
        if self.expires_at is None:
            return False
        ahead = min(RENEW_AHEAD_S, max(0.0, self.expires_at - self.issued_at) * RENEW_AHEAD_PART)
        return now >= self.expires_at - ahead

    def to_text(self) -> str:
        """The record."""
        return json.dumps({"form": FORM, **asdict(self)}, ensure_ascii=True)


def from_text(text: str | None, url: str) -> Grant | None:
    """The grant of a record; None when it is none, or one for another address. A time that is none counts as unsaid."""
    try:
        read = json.loads(text or "null")
        known = {item.name for item in fields(Grant)}
        values = {name: value for name, value in read.items() if name in known}
        values["expires_at"] = moment(values.get("expires_at"))
        values["issued_at"] = moment(values.get("issued_at")) or 0.0
        client = OAuthClient(**values.pop("client"))
        grant = Grant(client=client, **values)
        return grant if grant.url == canonical(url) and _is_sound(grant) else None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _is_sound(grant: Grant) -> bool:
    """True if every field is of its kind: an older version, or anything else, may have written the record."""
    texts = (grant.refresh_token, grant.scope, grant.client.secret, grant.client.method)
    objects = (grant.issuer, grant.resource)
    return (
        isinstance(grant.access_token, str)
        and isinstance(grant.client.id, str)
        and all(text is None or isinstance(text, str) for text in texts)
        and all(one is None or isinstance(one, dict) for one in objects)
    )


def lifetime(said: Any) -> float | None:
    """Seconds from an `expires_in` as services write it; None for one that says nothing of use.

    A negative one, and one beyond ten years, mean a token that does not end: it is used until it is refused.
    """
    if isinstance(said, str) and len(said) <= LONGEST_NUMBER:
        with suppress(ValueError):
            said = float(said)
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said) if 0 <= said <= LONGEST_LIFE_S else None  # no NaN is in there


def moment(value: Any) -> float | None:
    """A time in Unix seconds, None for what is none or lies beyond what a calendar shows."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LAST_MOMENT else None


def canonical(url: str) -> str:
    """The one spelling of an address: scheme and host in small letters, no default port, no fragment, a path.

    A trailing slash and a query count: they may name another server. Raises ValueError for what is no address.
    """
    parts = urlsplit(url.strip())
    scheme, host = parts.scheme.lower(), _plain_host((parts.hostname or "").rstrip("."))
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, DEFAULT_PORTS.get(scheme)) else f":{parts.port}"
    path = quote(_without_dots(parts.path or "/"), LEFT_ALONE)
    return urlunsplit((scheme, host + port, path, quote(parts.query, LEFT_ALONE), ""))


def _without_dots(path: str) -> str:
    """`/a/../b` is `/b` by the time that it is sent (RFC 3986 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept) + ("/" if path.endswith(("/.", "/..")) else "")


def _plain_host(host: str) -> str:
    """As it goes over the wire; one that cannot is left as it is, and then fits no request."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


def account_key(url: str, name: str = "") -> AccountKey:
    """Return the key of the account of that name at an address as anybody writes it."""
    return AccountKey(canonical(url), name)


def record_key(url: str, account: str = "") -> str:
    """Return the name under which the vault keeps the grant of an account at an address.

    The address may hold a secret: only its host is readable. The whole of it stands in the record and is compared.
    """
    whole = canonical(url)
    host = urlsplit(whole).hostname or ""
    whole += f"#{account}" if account else ""  # no canonical address has a fragment
    return f"account:{host[:60]}:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:KEY_HEX]}"


def covers(url: str, asked: str, *, whole_origin: bool = False) -> bool:
    """Whether a token for `url` may be sent to `asked`: the same address but for a slash at the end of its path.

    `whole_origin`: any path of the same scheme, host and port, for legacy SSE, whose server names where to post.
    """
    try:
        ours, theirs = urlsplit(canonical(url)), urlsplit(canonical(asked))
    except ValueError:
        return False
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc) or "@" in urlsplit(asked).netloc:
        return False
    same = ours.path.rstrip("/") == theirs.path.rstrip("/") and ours.query == theirs.query
    return same or whole_origin
