"""All accounts by address, and sign-ins in progress. The gateway uses this when the user signs in or out.

The SDK is imported with the first sign-in or renewal, in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.abc
import anyio.to_thread

from trayapp.auth.account import LAST_MOMENT_S, Account, ClientSettings
from trayapp.auth.grant import (
    EXPIRES_S,
    AccountKey,
    AuthorizationResponse,
    Grant,
    SignInError,
    SignInRequest,
    UserAgent,
    account_key,
)
from trayapp.auth.vault import RecordPlace, Vault

if TYPE_CHECKING:
    from trayapp.auth.callback import Callback
    from trayapp.model.status import SignInStatus

log = logging.getLogger(__name__)

EXPIRED = "There was no answer for five minutes"


class Login(Protocol):
    """The OAuth flows, as implemented by trayapp.auth.login."""

    async def authorize(self, request: SignInRequest, ask: UserAgent, now: Callable[[], float]) -> Grant:
        """Sign in. Raises SignInError."""

    async def renew(self, grant: Grant, now: Callable[[], float]) -> Grant:
        """Renew the grant. Raises GrantLostError, SignInError."""

    async def revoke(self, grant: Grant) -> bool:
        """Revoke the grant."""


async def sdk_login() -> Login:
    """Import the login module and, with it, the SDK. Called at the first sign-in: no list may wait for the SDK."""

    def load() -> Login:
        from trayapp.auth import login

        return login

    return await anyio.to_thread.run_sync(load)


@dataclass(frozen=True, slots=True)
class Target:
    """The address that the user signs in to. `server`: its name, for people."""

    server: str
    url: str
    kind: str | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    client: ClientSettings = field(default_factory=ClientSettings, repr=False)
    callback_port: int = 0
    document_url: str | None = None

    @property
    def key(self) -> AccountKey:
        """Return the key of the account that will hold the grant."""
        return account_key(self.url, self.client.account)


class SignIn:
    """One sign-in in progress. Open `url` in a browser once `ready` is set without an `error`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.url = ""
        self.redirect_uri = ""
        self.error: SignInError | None = None
        self.ready = anyio.Event()
        self.done = anyio.Event()
        self._callback: Callback | None = None

    async def shown(self) -> str:
        """Wait for the address to open. Raises SignInError."""
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

    # -- UserAgent -----------------------------------------------------------------------------------------------------

    async def show(self, url: str, state: str, issuer: str | None, iss_required: bool) -> None:
        """Set the address to open, and expect its answer (UserAgent)."""
        from trayapp.auth.callback import Expected

        assert self._callback is not None
        self._callback.expect(Expected(state, issuer, iss_required))
        self.url = url
        self.ready.set()

    async def answer(self) -> AuthorizationResponse:
        """Wait for the answer (UserAgent). Raises SignInError."""
        assert self._callback is not None
        return await self._callback.answer()

    def open(self, callback: Callback) -> None:
        """Connect the listener for answers."""
        self._callback, self.redirect_uri = callback, callback.redirect_uri

    def end(self, error: SignInError | None) -> None:
        """Finish the sign-in, with the error if it failed."""
        self.error = error
        if self._callback is not None:
            self._callback.decide(error)
        self.ready.set()
        self.done.set()


class Accounts:
    """All accounts. Lives inside `tasks`. `changed` is called when a status changes. Nothing here opens a browser."""

    def __init__(
        self,
        vault: Vault,
        tasks: anyio.abc.TaskGroup,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        changed: Callable[[], None] = lambda: None,
        login: Callable[[], Awaitable[Login]] = sdk_login,
    ) -> None:
        self.vault = vault
        self._tasks = tasks
        self._now = now
        self._sleep = sleep
        self._changed = changed
        self._login = login
        self._accounts: dict[AccountKey, Account] = {}
        self._in_progress: dict[AccountKey, SignIn] = {}
        self.met: dict[str, str] = {}  # server -> its address with resolved variables
        self.signed_in: Callable[[AccountKey], None] = lambda key: None  # called after every sign-in

    def of(self, url: str, name: str = "") -> Account:
        """Return the account; all servers and sessions with its address and name share it."""
        key = account_key(url, name)
        if key not in self._accounts:
            self._accounts[key] = Account(*key, self.vault, self._tasks, self._now, self._renew, self._changed)
        return self._accounts[key]

    def status(self, url: str, name: str = "") -> SignInStatus | None:
        """Return the account's state to show, or None if it was not read yet."""
        account = self._accounts.get(account_key(url, name))
        return account.status if account else None

    def use(self, place: RecordPlace) -> None:
        """Store sign-ins in another place from now on. The sign-ins there must be read again."""
        self.vault.use(place)
        self._accounts.clear()

    async def close(self) -> None:
        """Hurry pending renewals when the gateway ends. Store what is only in memory, if that needs no dialog."""
        for account in self._accounts.values():
            account.limit_renewal()
        with anyio.move_on_after(LAST_MOMENT_S):
            await self.vault.store_now()

    async def look(self, keys: Iterable[AccountKey]) -> None:
        """Read the stored sign-ins of these accounts, so that they can be shown."""
        for key in keys:
            await self.of(*key).grant()

    def sign_in(self, target: Target) -> SignIn:
        """Start a sign-in at the user's request, or return the one in progress."""
        key = target.key
        if key not in self._in_progress:
            self._in_progress[key] = made = SignIn(target)
            self._tasks.start_soon(self._run, key, made)
        return self._in_progress[key]

    async def sign_out(self, url: str, name: str = "") -> bool:
        """Delete the grant and have it revoked. Return False if there was none."""
        account = self.of(url, name)
        grant = await account.grant(asked=True)
        await account.forget()
        if grant is None:
            return False
        await (await self._login()).revoke(account.proving(grant))
        return True

    async def _renew(self, grant: Grant) -> Grant:
        return await (await self._login()).renew(grant, self._now)

    async def _run(self, key: AccountKey, sign_in: SignIn) -> None:
        """Run one sign-in from start to end. This is the boundary at which its failure stops."""
        name, error = sign_in.target.server, SignInError("The gateway is ending", "Try again")
        outcome: SignInError | None = error
        try:
            from trayapp.auth.callback import listening  # loaded with its page at the first sign-in

            async with listening(name, sign_in.target.callback_port) as callback:
                sign_in.open(callback)
                outcome = await self._run_within_limit(sign_in, callback)
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

    async def _run_within_limit(self, sign_in: SignIn, callback: Callback) -> SignInError | None:
        """Run the OAuth flow within EXPIRES_S by the clock. Return the error, or None."""
        name = sign_in.target.server
        outcome: SignInError | None = SignInError(EXPIRED, f"Start again: multi-mcp auth {name}")
        async with anyio.create_task_group() as tasks:

            async def expire() -> None:
                await self._sleep(EXPIRES_S)
                tasks.cancel_scope.cancel()

            tasks.start_soon(expire)
            outcome = await self._run_flow(sign_in, callback)
            tasks.cancel_scope.cancel()
        return outcome

    async def _run_flow(self, sign_in: SignIn, callback: Callback) -> SignInError | None:
        """Run the OAuth flow. Return its error: a task group would wrap it."""
        target = sign_in.target
        account = self.of(*target.key)
        try:
            login = await self._login()
            request = SignInRequest(
                url=target.url,
                redirect_uri=callback.redirect_uri,
                headers=target.headers,
                kind=target.kind,
                client_id=target.client.id,
                client_secret=target.client.secret,
                scopes=target.client.scopes,
                document_url=target.document_url,
                before=await account.last(),
                wanted=account.wanted,
            )
            grant = await login.authorize(request, sign_in, self._now)
            account.settings = target.client
            await account.take(grant)
            self.signed_in(target.key)
        except SignInError as error:
            return error
        return None
