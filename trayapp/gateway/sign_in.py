"""Signing in and out, and named secrets: the control requests about them, and what follows a sign-in.

Never here: OAuth, the keyring (auth), opening a browser: whoever asked does that.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trayapp.auth.accounts import Accounts, SignIn, Target
from trayapp.auth.asking import EXPIRES_S
from trayapp.auth.grant import canonical
from trayapp.backends.connection import Connection
from trayapp.backends.launch import HttpLaunch, Keyring, prepared
from trayapp.config.interpolate import expand, keyring_names
from trayapp.config.urls import url_fault
from trayapp.gateway.errors import error_json
from trayapp.gateway.router import text_of
from trayapp.model.errors import (
    KeyringLockedError,
    KeyringUnavailableError,
    MultiMcpError,
    ServerDisabledError,
    ServerError,
    SignInWantedError,
    UsageError,
)
from trayapp.model.lifecycle import State
from trayapp.model.servers import ServerConfig, auth_of
from trayapp.model.status import SignInStatus
from trayapp.wire import control

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

log = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class SignIns:
    """For one gateway. Without accounts (tests of other things) nobody can sign in."""

    def __init__(self, gateway: Gateway, accounts: Accounts | None, environ: dict[str, str], keyring: Keyring) -> None:
        self._gateway = gateway
        self._accounts = accounts
        self._environ = environ
        self._keyring = keyring
        self._last: dict[str, SignIn] = {}  # by address: whose end may still be asked for

    @property
    def handlers(self) -> dict[str, Handler]:
        """By the name of the control request."""
        if self._accounts is None:
            return {}
        return {
            control.LOGIN: self._login,
            control.LOGIN_WAIT: self._wait,
            control.LOGIN_ANSWER: self._answer,
            control.LOGOUT: self._logout,
            control.KEYRING: self._keyring_asked,
            control.SECRET_SET: self._secret_set,
            control.SECRET_LIST: self._secret_list,
            control.SECRET_DELETE: self._secret_delete,
        }

    # -- what is shown -------------------------------------------------------------------------------------------

    @property
    def keyring_state(self) -> Any:
        """Of the vault; None while nothing has needed it."""
        return self._accounts.vault.state if self._accounts else None

    @property
    def keyring_error(self) -> dict[str, str] | None:
        """Return why the vault's place cannot be used now: `{"title", "hint"}`."""
        refused = self._accounts.vault.refused if self._accounts else None
        return {"title": refused.title, "hint": refused.hint} if refused else None

    def status(self, server: ServerConfig) -> SignInStatus | None:
        """Who is signed in there, as far as anybody has looked."""
        if self._accounts is None or server.url is None or auth_of(server) != "oauth":
            return None
        url = self._address(server)
        return None if url is None else self._accounts.status(url)

    def is_signed_in(self, server: ServerConfig) -> bool:
        """True if its requests carry a sign-in of the user's."""
        status = self.status(server)
        return status is not None and status.signed_in

    def standing(self, connection: Connection, server: ServerConfig, *, signed: bool) -> tuple[State, Any]:
        """Return its state and error. One that rests is not ready if it needs a sign-in that is not there.

        `signed`: it took a sign-in to read its lists.
        """
        if connection.state is not State.IDLE or not signed or self._accounts is None:
            return connection.state, connection.error
        url = self._address(server)
        account = self._accounts.of(url) if url else None
        if account is not None and account.is_locked:
            assert account.unread is not None
            return State.KEYRING_LOCKED, KeyringLockedError(server.name, account.unread)
        status = self.status(server)
        if status is not None and not status.signed_in:
            return State.NEEDS_AUTH, SignInWantedError(server.name)
        return connection.state, connection.error

    async def read(self, launch: HttpLaunch) -> None:
        """Have the user's sign-in at that address read, as far as that takes no dialog."""
        if self._accounts is not None:
            await self._accounts.look([launch.url])

    def _address(self, server: ServerConfig) -> str | None:
        """Where a server is, without asking the vault: by the environment, or as it was when it was last opened."""
        if server.url is None or self._accounts is None:
            return None
        known = expand(server.url, self._environ.get, lambda name: None)
        url = self._accounts.met.get(server.name) if known.missing else known.text
        return None if url is None or url_fault(url) else url

    async def keyring_is_back(self) -> None:
        """Servers that could not be served without it are tried again."""
        await self.look()
        for connection in list(self._gateway.pool):
            state, signed_in = connection.state, self.is_signed_in(connection.server)
            if state is State.KEYRING_LOCKED or (state is State.FAILED and keyring_names(connection.server)):
                connection.begin_close()
            if state is State.KEYRING_LOCKED and signed_in:
                self._gateway.spawn(self._connect, connection)
            address = self._address(connection.server)
            if state is State.NEEDS_AUTH and signed_in and address is not None:
                await self.reconnect(address)

    async def look(self) -> None:
        """Read who is signed in at the configured addresses, without any dialog."""
        servers = [c.server for c in self._gateway.pool if c.server.url is not None and not c.server.disabled]
        wanted = [url for s in servers if auth_of(s) == "oauth" and (url := self._address(s)) is not None]
        if self._accounts is not None and wanted:
            await self._accounts.look(wanted)

    # -- control requests ----------------------------------------------------------------------------------------

    async def _login(self, params: dict[str, Any]) -> Any:
        accounts, connection = self._known(), self._connection(params)
        locked = self.keyring_state == "locked"
        if locked:
            await self._unlock()
        target = await self._target(connection)
        if locked and await accounts.of(target.url).grant(asked=True) is not None:
            outcome = await self._outcome(connection.name)
            if outcome["state"] != State.NEEDS_AUTH:
                return {"url": None, "outcome": outcome}
        begun = accounts.sign_in(target)
        self._last[canonical(target.url)] = begun
        url = await begun.shown()
        return {"url": url, "redirect_uri": begun.redirect_uri, "expires_s": EXPIRES_S}

    async def _wait(self, params: dict[str, Any]) -> Any:
        """Until it is over, and the server was connected anew."""
        connection = self._connection(params)
        begun = await self._begun(connection)
        await begun.finished()
        return await self._outcome(connection.name)

    async def _outcome(self, name: str) -> dict[str, Any]:
        """Connect the server with the sign-in that there is; what became of it."""
        connection = self._gateway.pool.find(name)
        error = None
        try:
            if not connection.server.disabled:
                await connection.ensure(explicit=True)
        except ServerDisabledError:
            pass
        except MultiMcpError as failure:
            error = error_json(failure)
        status = self.status(connection.server)
        return {"auth": asdict(status) if status else None, "state": connection.state.value, "error": error}

    async def _answer(self, params: dict[str, Any]) -> Any:
        begun = await self._begun(self._connection(params))
        begun.paste(text_of(params, "url", "the request"))
        return {}

    async def _logout(self, params: dict[str, Any]) -> Any:
        connection = self._connection(params)
        target = await self._target(connection)
        signed_out = await self._known().sign_out(target.url)
        for one in self._at(target.url):
            one.begin_close()
        return {"signed_out": signed_out}

    async def _begun(self, connection: Connection) -> SignIn:
        begun = self._last.get(canonical((await self._target(connection)).url))
        if begun is None:
            name = connection.name
            raise UsageError(f"No sign-in to {name} is under way", f"Start one: multi-mcp auth {name}")
        return begun

    def _known(self) -> Accounts:
        assert self._accounts is not None  # there are no handlers without
        return self._accounts

    def _connection(self, params: dict[str, Any]) -> Connection:
        """Raises ServerNotFoundError, RpcError."""
        return self._gateway.pool.find(text_of(params, "server", "the request"))

    async def _target(self, connection: Connection) -> Target:
        """What there is to sign in to. Raises UsageError, MultiMcpError."""
        server, name = connection.server, connection.name
        if server.url is None:
            raise UsageError(f"{name} is a program of this machine: there is no sign-in", "See: multi-mcp status")
        if (auth := auth_of(server)) != "oauth":
            hint = "Take its token out of servers.yaml, or set auth: oauth" if auth == "bearer" else "Set auth: oauth"
            raise UsageError(f"{name} takes no sign-in: its auth is {auth}", hint)
        launch = await prepared(server, self._environ, self._keyring, self._gateway.clock.time())
        assert isinstance(launch, HttpLaunch)
        document = self._gateway.config.settings.client_metadata_url
        own = launch.client.id
        document = own if own is not None and own.startswith("https://") else document
        return Target(name, launch.url, launch.kind, launch.headers, launch.client, server.callback_port, document)

    # -- the keyring ---------------------------------------------------------------------------------------------

    async def _keyring_asked(self, params: dict[str, Any]) -> Any:
        """Look whether the place of sign-ins and secrets opens; to `unlock` it the user gets its own dialog."""
        if params.get("unlock") is True:
            await self._unlock()
        else:
            with suppress(KeyringUnavailableError):
                await self._known().vault.look()
        return {"keyring": self.keyring_state, "error": self.keyring_error}

    async def _unlock(self) -> None:
        with suppress(KeyringUnavailableError):
            await self._known().vault.look(asked=True)

    # -- what follows --------------------------------------------------------------------------------------------

    def _at(self, url: str) -> list[Connection]:
        """All connections with that address."""
        key, addresses = canonical(url), {c: self._address(c.server) for c in self._gateway.pool}
        return [c for c, address in addresses.items() if address is not None and canonical(address) == key]

    async def reconnect(self, url: str) -> None:
        """Somebody has signed in there: every server with that address is connected anew, at once."""
        for connection in self._at(url):
            if connection.server.disabled or connection.state is State.DISABLED:
                continue
            try:
                await self._gateway.pool.reconnect(connection)
            except ServerError as error:
                log.info("%s", error)

    @staticmethod
    async def _connect(connection: Connection) -> None:
        """Connect, in one attempt with all others that want the server now."""
        try:
            await connection.ensure(explicit=True)
        except ServerError as error:
            log.info("%s", error)

    # -- secrets -------------------------------------------------------------------------------------------------

    async def _secret_set(self, params: dict[str, Any]) -> Any:
        name = text_of(params, "name", "the request")
        value = params.get("value")
        if not isinstance(value, str):
            raise UsageError("A secret is a text", "Give it on stdin")
        kept = await self._known().vault.set_secret(name, value)
        self._try_again(name)
        return {"kept": kept, "keyring": self.keyring_state}

    async def _secret_list(self, params: dict[str, Any]) -> Any:
        vault = self._known().vault
        names = await vault.secret_names()
        if vault.refused is not None and vault.refused.state == "locked" and not names:
            raise vault.refused.with_traceback(None)
        return {"names": names, "keyring": self.keyring_state}

    async def _secret_delete(self, params: dict[str, Any]) -> Any:
        return {"deleted": await self._known().vault.delete_secret(text_of(params, "name", "the request"))}

    def _try_again(self, secret: str) -> None:
        """Servers that failed for want of that secret need not wait for their backoff."""
        for connection in self._gateway.pool:
            if connection.state is State.FAILED and secret in keyring_names(connection.server):
                connection.begin_close()
