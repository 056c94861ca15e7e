"""All accounts by address, and the sign-ins that are under way: what the gateway asks when the user signs in or out.

Never here: HTTP, one account's own business. The SDK is imported with the first sign-in or renewal, in a thread.
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
from trayapp.auth.asking import EXPIRES_S, Answer, Ask, SignInRequest
from trayapp.auth.grant import AccountKey, Grant, SignInError, account_key
from trayapp.auth.vault import RecordPlace, Vault
from trayapp.model.status import SignInStatus

if TYPE_CHECKING:
    from trayapp.auth.callback import Callback

log = logging.getLogger(__name__)

EXPIRED = "Nobody has answered for five minutes"


class Login(Protocol):
    """The OAuth conversations, as trayapp.auth.login has them."""

    async def authorize(self, wish: SignInRequest, ask: Ask, now: Callable[[], float]) -> Grant:
        """Sign in. Raises SignInError."""

    async def renew(self, grant: Grant, now: Callable[[], float]) -> Grant:
        """Renew. Raises GrantLostError, SignInError."""

    async def revoke(self, grant: Grant) -> bool:
        """Give back."""


async def sdk_login() -> Login:
    """Load the one over the SDK. Not before somebody signs in: no list may wait for the SDK."""

    def load() -> Login:
        from trayapp.auth import login

        return login

    return await anyio.to_thread.run_sync(load)


@dataclass(frozen=True, slots=True)
class Target:
    """What the user wants to sign in to. `server`: its name, for people."""

    server: str
    url: str
    kind: str | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    client: ClientSettings = field(default_factory=ClientSettings, repr=False)
    callback_port: int = 0
    document_url: str | None = None

    @property
    def key(self) -> AccountKey:
        """Return which account the grant will be."""
        return account_key(self.url, self.client.account)


class SignIn:
    """One sign-in under way. `url` is to be opened in a browser, once `ready` is set without an `error`."""

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
        """Wait for the end. Raises SignInError."""
        await self.done.wait()
        if self.error is not None:
            raise self.error.with_traceback(None)

    def paste(self, address: str) -> None:
        """The address that a browser elsewhere ended at. Raises SignInError."""
        if self._callback is None or self.done.is_set():
            raise SignInError("No sign-in is waiting for an answer", f"Start one: multi-mcp auth {self.target.server}")
        self._callback.paste(address)

    # -- Ask -----------------------------------------------------------------------------------------------------

    async def show(self, url: str, state: str, issuer: str | None, iss_required: bool) -> None:
        """See Ask."""
        from trayapp.auth.callback import Expected

        assert self._callback is not None
        self._callback.expect(Expected(state, issuer, iss_required))
        self.url = url
        self.ready.set()

    async def answer(self) -> Answer:
        """See Ask."""
        assert self._callback is not None
        return await self._callback.answer()

    def open(self, callback: Callback) -> None:
        """Answers come here."""
        self._callback, self.redirect_uri = callback, callback.redirect_uri

    def end(self, error: SignInError | None) -> None:
        """It is over."""
        self.error = error
        if self._callback is not None:
            self._callback.decide(error)
        self.ready.set()
        self.done.set()


class Accounts:
    """Lives inside `tasks`. `changed` is called when a status is another one. Nothing here opens a browser."""

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
        self._under_way: dict[AccountKey, SignIn] = {}
        self.met: dict[str, str] = {}  # server -> its address once its variables were resolved
        self.signed_in: Callable[[AccountKey], None] = lambda key: None  # called after every sign-in

    def of(self, url: str, name: str = "") -> Account:
        """Return that account; every server and session with its address and name shares it."""
        key = account_key(url, name)
        if key not in self._accounts:
            self._accounts[key] = Account(*key, self.vault, self._tasks, self._now, self._renew, self._changed)
        return self._accounts[key]

    def status(self, url: str, name: str = "") -> SignInStatus | None:
        """Return what may be shown of it; None when nobody has looked yet."""
        account = self._accounts.get(account_key(url, name))
        return account.status if account else None

    def use(self, place: RecordPlace) -> None:
        """From now on sign-ins lie there; who is signed in has to be looked at again."""
        self.vault.use(place)
        self._accounts.clear()

    async def close(self) -> None:
        """The gateway ends. What lives in memory only is kept if that can be done without a dialog."""
        for account in self._accounts.values():
            account.hurry()
        with anyio.move_on_after(LAST_MOMENT_S):
            await self.vault.keep_now()

    async def look(self, keys: Iterable[AccountKey]) -> None:
        """Read what is kept of these, so that it can be shown."""
        for key in keys:
            await self.of(*key).grant()

    def sign_in(self, target: Target) -> SignIn:
        """Start one, because the user said so; the one that is under way where there is one."""
        key = target.key
        if key not in self._under_way:
            self._under_way[key] = made = SignIn(target)
            self._tasks.start_soon(self._run, key, made)
        return self._under_way[key]

    async def sign_out(self, url: str, name: str = "") -> bool:
        """Forget the grant and have it revoked; False when there was none."""
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
        """One sign-in from start to end: the boundary at which its failure stops."""
        name, error = sign_in.target.server, SignInError("The gateway is ending", "Try again")
        outcome: SignInError | None = error
        try:
            from trayapp.auth.callback import listening  # with its page: not before somebody signs in

            async with listening(name, sign_in.target.callback_port) as callback:
                sign_in.open(callback)
                outcome = await self._in_time(sign_in, callback)
                self._end(key, sign_in, outcome)
        except SignInError as failure:
            outcome = failure
        except Exception as failure:
            log.exception("A sign-in to %s failed in a way that we do not know", name)
            outcome = SignInError(f"The sign-in failed: {type(failure).__name__}", "See gateway.log")
        finally:
            self._end(key, sign_in, outcome)
        log.info("Sign-in to %s: %s", name, outcome.title if outcome else "done")

    def _end(self, key: AccountKey, sign_in: SignIn, outcome: SignInError | None) -> None:
        if self._under_way.get(key) is sign_in:
            del self._under_way[key]
        if not sign_in.done.is_set():
            sign_in.end(outcome)

    async def _in_time(self, sign_in: SignIn, callback: Callback) -> SignInError | None:
        """The conversation, within EXPIRES_S by the clock; why it came to nothing, None when it did not."""
        name = sign_in.target.server
        outcome: SignInError | None = SignInError(EXPIRED, f"Start again: multi-mcp auth {name}")
        async with anyio.create_task_group() as tasks:

            async def expire() -> None:
                await self._sleep(EXPIRES_S)
                tasks.cancel_scope.cancel()

            tasks.start_soon(expire)
            outcome = await self._converse(sign_in, callback)
            tasks.cancel_scope.cancel()
        return outcome

    async def _converse(self, sign_in: SignIn, callback: Callback) -> SignInError | None:
        """Its failure is returned: a task group would wrap it."""
        target = sign_in.target
        account = self.of(*target.key)
        try:
            login = await self._login()
            grant = await login.authorize(await self._wish(target, callback), sign_in, self._now)
            account.settings = target.client
            await account.take(grant)
            self.signed_in(target.key)
        except SignInError as error:
            return error
        return None

    async def _wish(self, target: Target, callback: Callback) -> SignInRequest:
        account = self.of(*target.key)
        return SignInRequest(
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
