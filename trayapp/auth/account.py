"""The sign-in for one address: read from the vault once, and renewed before its token expires.

All requests share one renewal. An account never opens a browser. Without a renewable grant there is no token, and the
user is asked to sign in. login obtains grants.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.abc

from trayapp.auth.grant import Grant, GrantLostError, SignInError, covers, from_text, record_key
from trayapp.auth.vault import Vault
from trayapp.model.errors import KeyringUnavailableError
from trayapp.model.redact import KNOWN

if TYPE_CHECKING:
    from trayapp.model.status import SignInStatus

log = logging.getLogger(__name__)

RENEW_PAUSE_S = 5.0  # after a failed renewal: until then it is not repeated
FRESH_S = 10.0  # if the server refuses a token this new, another one would not help
STORE_WAIT_S = 5.0  # for the keyring, before a renewed token is used: it is already safe in memory
LAST_MOMENT_S = 5.0  # for a renewal in flight when the gateway ends: its new token must not get lost
RENEW_LIMIT_S = 40.0  # for one renewal, no matter what the sign-in service does


class ClientSettings(NamedTuple):
    """Sign-in settings of a server from servers.yaml, with variables resolved."""

    id: str | None = None
    secret: str | None = None
    scopes: tuple[str, ...] = ()
    account: str = ""  # selects one of several sign-ins at one address

    def __repr__(self) -> str:
        return f"ClientSettings({self.id!r})"


class _Renewal:
    """One renewal, awaited by all requests that need it."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.error: SignInError | None = None
        self.scope = anyio.CancelScope(shield=True)


class Account:
    """The sign-in at `url` (canonical). `name` distinguishes several at one address; most have none.

    The class is broad because tokens, client registration and the wait for a person end together.
    """

    def __init__(
        self,
        url: str,
        name: str,
        vault: Vault,
        tasks: anyio.abc.TaskGroup,
        now: Callable[[], float],
        renew: Callable[[Grant], Awaitable[Grant]],
        changed: Callable[[], None],
    ) -> None:
        self.url = url
        self.name = name
        self._key = record_key(url, name)
        self.wanted: str | None = None  # scopes that a refused request required
        self.settings: ClientSettings | None = None  # None: no connection has set them yet
        self._vault = vault
        self._tasks = tasks
        self._now = now
        self._renew_by = renew
        self._changed = changed
        self._grant: Grant | None = None
        self._loaded = False
        self.unread: KeyringUnavailableError | None = None  # why a sign-in that may be stored could not be read
        self._loading = anyio.Lock()
        self._renewal: _Renewal | None = None
        self._refused: str | None = None  # the token that the server no longer accepted and that could not be replaced
        self._failed: tuple[float, SignInError] | None = None  # when and why the last renewal failed

    # -- for requests --------------------------------------------------------------------------------------------

    async def authorization(self, asked: str, *, whole_origin: bool = False) -> str | None:
        """Return the Authorization value for a request to `asked`, or None if there is none.

        Raises SignInError while an expired token cannot be renewed.
        """
        if not covers(self.url, asked, whole_origin=whole_origin):
            return None
        grant = await self.grant()
        if grant is None or not grant.due(self._now()):
            return grant.header if grant else None
        if grant.refresh_token is None:
            return None if grant.expired(self._now()) else grant.header
        try:
            await self._renewed(grant)
        except GrantLostError:
            return None
        except SignInError:
            if grant.expired(self._now()):
                raise
        return self._grant.header if self._grant else None

    async def authorization_after(self, refused: str | None, asked: str, *, whole_origin: bool = False) -> str | None:
        """Return a new Authorization value after a server answered 401 to `refused`, or None. Raises SignInError."""
        if refused is None or not covers(self.url, asked, whole_origin=whole_origin):
            return None
        grant = await self.grant()
        if grant is None:
            return None
        if grant.header != refused:
            return grant.header  # another request had it renewed in the meantime
        if grant.refresh_token is None or self._is_within(grant.issued_at, FRESH_S):
            self._refused = refused
            self._changed()
            return None
        try:
            await self._renewed(grant)
        except GrantLostError:
            return None
        return self._grant.header if self._grant else None

    def _is_within(self, moment: float, seconds: float) -> bool:
        """Return True if the moment was less than `seconds` ago. Future moments do not count (clock set back)."""
        return 0 <= self._now() - moment < seconds

    def require_scope(self, scope: str | None) -> None:
        """Record a scope that a refused request needed (RFC 6750, insufficient_scope)."""
        had = (self.wanted or "").split()
        more = [word for word in (scope or "").split() if word not in had]
        if more or self.wanted is None:
            self.wanted = " ".join([*had, *more])
            self._changed()

    def limit_renewal(self) -> None:
        """Limit a renewal in flight to LAST_MOMENT_S, because the gateway ends."""
        if self._renewal is not None:
            self._renewal.scope.deadline = min(self._renewal.scope.deadline, anyio.current_time() + LAST_MOMENT_S)

    # -- the grant -----------------------------------------------------------------------------------------------

    async def grant(self, *, asked: bool = False) -> Grant | None:
        """Return the grant if it has a token. None if nobody is signed in, or if the keyring cannot be read."""
        await self._load(asked)
        grant = self._grant
        return grant if grant is not None and grant.access_token and self._fits(grant) else None

    def proving(self, grant: Grant) -> Grant:
        """Return the grant with its client secret. That of a user's own client comes from servers.yaml."""
        named, client = self.settings, grant.client
        own = client.kind == "given" and named is not None and client.id == named.id
        return replace(grant, client=replace(client, secret=named.secret)) if own and named else grant

    async def last(self) -> Grant | None:
        """Return the last grant, even one without a token: it still names its issuer."""
        await self._load(asked=True)
        return self._grant

    async def take(self, grant: Grant) -> None:
        """Store a grant after the user signed in."""
        self.wanted, self._failed = None, None
        await self._keep(grant, asked=True)

    async def forget(self) -> None:
        """Delete the grant after the user signed out."""
        self.wanted, self._failed = None, None
        self._grant, self._loaded, self.unread = None, True, None
        self._changed()
        await self._vault.delete(self._key, asked=True)

    @property
    def status(self) -> SignInStatus | None:
        """Return the state to show, or None if it was not read yet or cannot be read."""
        if not self._loaded and (self.unread is None or self.is_locked):
            return None
        from trayapp.model.status import SignInStatus  # loaded with its first use

        grant = self._grant
        if grant is None or not grant.access_token or not self._fits(grant) or grant.header == self._refused:
            return SignInStatus(False, wanted=self.wanted)
        kept = self._vault.kept(self._key)
        return SignInStatus(True, grant.expires_at, grant.refresh_token is not None, kept, grant.scope, self.wanted)

    @property
    def is_locked(self) -> bool:
        """True if there may be a stored sign-in that cannot be read now. Without a keyring there is none."""
        return self.unread is not None and self.unread.state == "locked"

    def _fits(self, grant: Grant) -> bool:
        """Return True if the grant was issued to the client that servers.yaml names."""
        if self.settings is None:
            return True
        named = self.settings.id
        if grant.client.kind == "given":
            return grant.client.id == named
        return named is None or named.startswith("https://")

    async def _load(self, asked: bool = False) -> None:
        if self._loaded:
            return
        async with self._loading:
            if self._loaded:
                return
            try:
                text = await self._vault.read(self._key, asked=asked)
            except KeyringUnavailableError as error:
                level = logging.DEBUG if self.unread else logging.INFO  # each request gets here
                self.unread = error
                log.log(level, "Cannot read the sign-in: %s", error.title)
                return
            self._hold(from_text(text, self.url))

    async def _keep(self, grant: Grant, *, asked: bool = False) -> None:
        """Store the grant before using it: after a crash in between, the vault has a working grant."""
        with anyio.move_on_after(None if asked else STORE_WAIT_S):
            await self._vault.write(self._key, grant.to_text(), asked=asked)
        self._hold(grant)

    def _hold(self, grant: Grant | None) -> None:
        if grant is not None:
            KNOWN.note(filter(None, (grant.access_token, grant.refresh_token)), renewed=True)
            KNOWN.note(filter(None, (grant.client.secret,)))
        self._grant, self._loaded, self.unread = grant, True, None
        self._changed()

    # -- renewal -------------------------------------------------------------------------------------------------

    async def _renewed(self, grant: Grant) -> None:
        """Renew `grant`, together with all others who request that. Raises SignInError."""
        if self._failed is not None and self._is_within(self._failed[0], RENEW_PAUSE_S):
            raise self._failed[1].with_traceback(None)
        if self._grant is not grant:
            return
        renewal = self._renewal
        if renewal is None:
            renewal = self._renewal = _Renewal()
            # A separate task: the caller may be cancelled, and a rotated token must not get lost with it.
            self._tasks.start_soon(self._run_renewal, renewal, grant)
        await renewal.done.wait()
        if renewal.error is not None:
            raise renewal.error.with_traceback(None)

    async def _run_renewal(self, renewal: _Renewal, grant: Grant) -> None:
        renewal.error = SignInError("The sign-in was not renewed in time", "Try again")
        try:
            renewal.scope.deadline = anyio.current_time() + RENEW_LIMIT_S
            with renewal.scope:
                renewal.error = await self._try(grant)
        finally:
            self._renewal = None
            renewal.done.set()

    async def _try(self, grant: Grant) -> SignInError | None:
        try:
            new = await self._renew_by(self.proving(grant))
        except GrantLostError as error:
            log.warning("The sign-in at %s has ended: %s", _host(self.url), error.title)
            if self._grant is grant:
                await self._keep(replace(grant, access_token="", refresh_token=None, expires_at=None))
            return error
        except SignInError as error:
            log.warning("Cannot renew the sign-in at %s: %s", _host(self.url), error.title)
            self._failed = (self._now(), error)
            return error
        self._failed = None
        if self._grant is grant:  # no sign-in or sign-out in the meantime
            await self._keep(replace(new, client=replace(new.client, secret=grant.client.secret)))
        return None


def _host(url: str) -> str:
    return url.split("/")[2] if url.count("/") > 1 else url
