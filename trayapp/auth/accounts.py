"""The user's accounts, by server address, and sign-ins in progress.

An account's sign-in is read from the vault once, and renewed before its token expires. All requests share one renewal,
which never opens a browser. The SDK is imported in a thread, at the first sign-in, renewal or sign-out.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.abc
import anyio.to_thread

from trayapp.auth.grant import (
    EXPIRES_S,
    AccountKey,
    ClientSettings,
    Grant,
    GrantLostError,
    SignInError,
    Target,
    account_key,
    covers,
    from_text,
    record_key,
)
from trayapp.auth.os_keyring import Records
from trayapp.auth.vault import Vault
from trayapp.model.errors import KeyringUnavailableError
from trayapp.model.redact import KNOWN

if TYPE_CHECKING:
    from trayapp.auth.callback import Callback
    from trayapp.model.status import SignInStatus

log = logging.getLogger(__name__)

RENEW_PAUSE_S = 5.0  # pause between a failed renewal and the next attempt
FRESH_S = 10.0  # a refused token younger than this is not renewed: a new token would be refused, too
STORE_WAIT_S = 5.0  # limit on storing a renewed token; after that, it is used unstored, and stored later
LAST_MOMENT_S = 5.0  # when the gateway ends: limit on a renewal in flight, and on storing pending changes
RENEW_LIMIT_S = 40.0  # limit on one renewal, whatever the sign-in service does


class _Renewal:
    """One renewal, awaited by all requests that need it."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.error: SignInError | None = None
        self.scope = anyio.CancelScope(shield=True)


@dataclass(eq=False, repr=False)
class Account:
    """The sign-in at `url` (canonical). `name` distinguishes several accounts at one address; it is usually "".

    The class is broad because a token, its client registration and its renewal share one lifetime.
    """

    url: str
    name: str
    _vault: Vault
    _tasks: anyio.abc.TaskGroup
    _now: Callable[[], float]
    _renew_by: Callable[[Grant], Awaitable[Grant]]
    _changed: Callable[[], None]

    def __post_init__(self) -> None:
        self._key = record_key(self.url, self.name)
        self.wanted: str | None = None  # scopes that a refused request required
        self.settings: ClientSettings | None = None  # None: no connection has set them yet
        self._grant: Grant | None = None
        self._loaded = False
        self.unread: KeyringUnavailableError | None = None  # why the stored sign-in, if any, could not be read
        self._loading = anyio.Lock()
        self._renewal: _Renewal | None = None
        self._refused: str | None = None  # the Authorization value that was refused and could not be renewed
        self._failed: tuple[float, SignInError] | None = None  # when and why the last renewal failed

    async def authorization(self, asked: str, *, whole_origin: bool = False) -> str | None:
        """Return the Authorization value for a request to `asked`, or None if there is no token for that address.

        A token that is about to expire is renewed first. Raises SignInError if an expired token cannot be renewed now.
        Return None if an expired token can never be renewed.
        """
        if not covers(self.url, asked, whole_origin=whole_origin):
            return None
        grant = await self.grant()
        if grant is None or not grant.due(self._now()):
            return grant.header if grant else None
        if grant.refresh_token is None:
            return None if grant.expired(self._now()) else grant.header
        try:
            return await self._renewed(grant)
        except SignInError:
            if grant.expired(self._now()):
                raise
        return self._header()

    async def authorization_after(self, refused: str | None, asked: str, *, whole_origin: bool = False) -> str | None:
        """Return another Authorization value after a 401 to `refused`, or None if there is none. Raises SignInError."""
        if refused is None or not covers(self.url, asked, whole_origin=whole_origin):
            return None
        grant = await self.grant()
        if grant is None:
            return None
        if grant.header != refused:
            return grant.header  # another request renewed it in the meantime
        if grant.refresh_token is None or self._is_within(grant.issued_at, FRESH_S):
            self._refused = refused
            self._changed()
            return None
        return await self._renewed(grant)

    def _header(self) -> str | None:
        return self._grant.header if self._grant else None

    def _is_within(self, moment: float, seconds: float) -> bool:
        """Return True if the moment was less than `seconds` ago, False if the clock has been set back since then."""
        return 0 <= self._now() - moment < seconds

    def require_scope(self, scope: str | None) -> None:
        """Record a scope that a refused request needed (RFC 6750, insufficient_scope)."""
        had = (self.wanted or "").split()
        more = [word for word in (scope or "").split() if word not in had]
        if more or self.wanted is None:
            self.wanted = " ".join([*had, *more])
            self._changed()

    def limit_renewal(self) -> None:
        """Limit a renewal in flight to LAST_MOMENT_S, because the gateway is ending."""
        if self._renewal is not None:
            self._renewal.scope.deadline = min(self._renewal.scope.deadline, anyio.current_time() + LAST_MOMENT_S)

    async def grant(self, *, asked: bool = False) -> Grant | None:
        """Return the grant. Read it from the vault the first time.

        Return None if there is none for our client, or if the vault cannot be read. `asked` means the same as in
        `Vault.read`.
        """
        await self._load(asked)
        return self._usable()

    def _usable(self) -> Grant | None:
        grant = self._grant
        return grant if grant is not None and grant.access_token and self._fits(grant) else None

    def proving(self, grant: Grant) -> Grant:
        """Return the grant with the client secret to send. For the user's own client, it comes from servers.yaml."""
        named, client = self.settings, grant.client
        own = client.kind == "given" and named is not None and client.id == named.id
        return replace(grant, client=replace(client, secret=named.secret)) if own and named else grant

    async def last(self) -> Grant | None:
        """Return the last grant, even one without a token (it still names its issuer), or None."""
        await self._load(asked=True)
        return self._grant

    async def take(self, grant: Grant) -> None:
        """Store and use the grant of a new sign-in."""
        self.wanted, self._failed = None, None
        await self._keep(grant, asked=True)

    async def forget(self) -> None:
        """Delete the grant: the user signed out."""
        self.wanted, self._failed = None, None
        self._grant, self._loaded, self.unread = None, True, None
        self._changed()
        await self._vault.delete(self._key, asked=True)

    @property
    def status(self) -> SignInStatus | None:
        """Return the state to show; None if the sign-in has not been read yet, perhaps due to a locked keyring."""
        if not self._loaded and (self.unread is None or self.is_locked):
            return None
        from trayapp.model.status import SignInStatus  # loaded at its first use

        grant = self._usable()
        if grant is None or grant.header == self._refused:
            return SignInStatus(False, wanted=self.wanted)
        kept = self._vault.kept(self._key)
        return SignInStatus(True, grant.expires_at, grant.refresh_token is not None, kept, grant.scope, self.wanted)

    @property
    def is_locked(self) -> bool:
        """True if the sign-in could not be read because the keyring is locked."""
        return self.unread is not None and self.unread.state == "locked"

    def _fits(self, grant: Grant) -> bool:
        """Return True if the grant was issued to the client that servers.yaml names, or if that is not known yet.

        If the file names no client, or a metadata document, the grant's client must be one of ours.
        """
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
                level = logging.DEBUG if self.unread else logging.INFO  # INFO only once: every request tries again
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

    async def _renewed(self, grant: Grant) -> str | None:
        """Renew `grant` unless another grant has replaced it. All callers share one renewal.

        Return the Authorization value, or None if the grant is lost. Raises SignInError, without a new attempt shortly
        after a failed one.
        """
        if self._failed is not None and self._is_within(self._failed[0], RENEW_PAUSE_S):
            raise self._failed[1].with_traceback(None)
        if self._grant is not grant:
            return self._header()
        renewal = self._renewal
        if renewal is None:
            renewal = self._renewal = _Renewal()
            # A separate task: the caller may be cancelled, and a rotated token must not get lost with it.
            self._tasks.start_soon(self._run_renewal, renewal, grant)
        await renewal.done.wait()
        if isinstance(renewal.error, GrantLostError):
            return None
        if renewal.error is not None:
            raise renewal.error.with_traceback(None)
        return self._header()

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
            log.warning("The sign-in at %s has ended: %s", urlsplit(self.url).netloc, error.title)
            if self._grant is grant:
                await self._keep(replace(grant, access_token="", refresh_token=None, expires_at=None))
            return error
        except SignInError as error:
            log.warning("Cannot renew the sign-in at %s: %s", urlsplit(self.url).netloc, error.title)
            self._failed = (self._now(), error)
            return error
        self._failed = None
        if self._grant is grant:  # no sign-in or sign-out in the meantime
            await self._keep(replace(new, client=replace(new.client, secret=grant.client.secret)))
        return None


async def load_login() -> None:
    """Import the login module, and with it the SDK, in a thread, so no other request waits for the import."""
    await anyio.to_thread.run_sync(import_module, "trayapp.auth.login")


class SignIn:
    """One sign-in in progress. Once `ready` is set without an `error`, the user can open `url` in a browser."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.url = ""
        self.redirect_uri = ""
        self.error: SignInError | None = None
        self.ready = anyio.Event()
        self.done = anyio.Event()
        self._callback: Callback | None = None

    async def shown(self) -> str:
        """Wait for the address that the user should open, and return it. Raises SignInError."""
        await self.ready.wait()
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.url

    async def finished(self) -> None:
        """Wait until the sign-in has ended. Raises SignInError if it failed."""
        await self.done.wait()
        if self.error is not None:
            raise self.error.with_traceback(None)

    def paste(self, address: str) -> None:
        """Accept the address that a browser on another machine was sent to. Raises SignInError."""
        if self._callback is None or self.done.is_set():
            raise SignInError("No sign-in is waiting for an answer", f"Start one: multi-mcp auth {self.target.server}")
        self._callback.paste(address)

    def open(self, callback: Callback) -> None:
        self._callback, self.redirect_uri = callback, callback.redirect_uri

    def show(self, url: str) -> None:
        self.url = url
        self.ready.set()

    def end(self, error: SignInError | None) -> None:
        """Finish the sign-in, with the error if it failed."""
        self.error = error
        if self._callback is not None:
            self._callback.decide(error)
        self.ready.set()
        self.done.set()


@dataclass(eq=False, repr=False)
class Accounts:
    """All accounts. `_changed` is called when a status changes. Nothing here opens a browser."""

    vault: Vault
    _tasks: anyio.abc.TaskGroup
    _now: Callable[[], float]
    _sleep: Callable[[float], Awaitable[None]]
    _changed: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._accounts: dict[AccountKey, Account] = {}
        self._in_progress: dict[AccountKey, SignIn] = {}
        self.met: dict[str, str] = {}  # server -> its address with resolved variables
        self.signed_in: Callable[[AccountKey], None] = lambda key: None  # called after every sign-in

    def of(self, url: str, name: str = "") -> Account:
        """Return the account that all servers and sessions with this address and name share."""
        key = account_key(url, name)
        if key not in self._accounts:
            self._accounts[key] = Account(*key, self.vault, self._tasks, self._now, self._renew, self._changed)
        return self._accounts[key]

    def status(self, url: str, name: str = "") -> SignInStatus | None:
        """Return the account's state to show, or None if it has not been read yet (see `Account.status`)."""
        account = self._accounts.get(account_key(url, name))
        return account.status if account else None

    def use(self, records: Records) -> None:
        """Use another store from now on, and forget the sign-ins read from the old one."""
        self.vault.use(records)
        self._accounts.clear()

    async def close(self) -> None:
        """Limit renewals in flight, since the gateway is ending. Store pending changes, unless that needs a dialog."""
        for account in self._accounts.values():
            account.limit_renewal()
        with anyio.move_on_after(LAST_MOMENT_S):
            await self.vault.store_now()

    async def look(self, keys: Iterable[AccountKey]) -> None:
        """Read the stored sign-ins of these accounts, to show them."""
        for key in keys:
            await self.of(*key).grant()

    def sign_in(self, target: Target) -> SignIn:
        """Start a sign-in at the user's request, or return the sign-in in progress for that account."""
        key = target.key
        if key not in self._in_progress:
            self._in_progress[key] = made = SignIn(target)
            self._tasks.start_soon(self._run, key, made)
        return self._in_progress[key]

    async def sign_out(self, url: str, name: str = "") -> bool:
        """Delete the grant and have it revoked. Return False if there was none, or if it could not be read."""
        account = self.of(url, name)
        grant = await account.grant(asked=True)
        await account.forget()
        if grant is None:
            return False
        await load_login()
        from trayapp.auth import login

        await login.revoke(account.proving(grant))
        return True

    async def _renew(self, grant: Grant) -> Grant:
        await load_login()
        from trayapp.auth import login

        return await login.renew(grant, self._now)

    async def _run(self, key: AccountKey, sign_in: SignIn) -> None:
        """Run one sign-in from start to end. Exception boundary: its failure affects nothing else."""
        name = sign_in.target.server
        outcome: SignInError | None = SignInError("The gateway is ending", "Try again")
        try:
            from trayapp.auth.callback import listening  # loaded late: it holds a whole web page

            async with listening(name, sign_in.target.callback_port) as callback:
                sign_in.open(callback)
                outcome = await self._flow(sign_in, callback)
                self._end(key, sign_in, outcome)
        except SignInError as failure:
            outcome = failure
        except Exception as failure:
            log.exception("Unexpected error in the sign-in to %s", name)
            outcome = SignInError(f"The sign-in failed: {type(failure).__name__}", "See gateway.log")
        finally:
            self._end(key, sign_in, outcome)
        log.info("Sign-in to %s: %s", name, outcome.title if outcome else "done")

    def _end(self, key: AccountKey, sign_in: SignIn, outcome: SignInError | None) -> None:
        if self._in_progress.get(key) is sign_in:
            del self._in_progress[key]
        if not sign_in.done.is_set():
            sign_in.end(outcome)

    async def _flow(self, sign_in: SignIn, callback: Callback) -> SignInError | None:
        """Run the OAuth flow for at most EXPIRES_S. Return its error or None: a task group would wrap an exception."""
        target = sign_in.target
        account = self.of(*target.key)
        hint = f"Start again: multi-mcp auth {target.server}"
        outcome: SignInError | None = SignInError("There was no answer for five minutes", hint)
        async with anyio.create_task_group() as tasks:

            async def expire() -> None:
                await self._sleep(EXPIRES_S)
                tasks.cancel_scope.cancel()

            tasks.start_soon(expire)
            try:
                await load_login()
                from trayapp.auth import login

                before = await account.last()
                grant = await login.authorize(target, callback, sign_in.show, self._now, before, account.wanted)
                account.settings = target.client
                await account.take(grant)
                self.signed_in(target.key)
                outcome = None
            except SignInError as error:
                outcome = error
            tasks.cancel_scope.cancel()
        return outcome
