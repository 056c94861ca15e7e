"""Track which servers the user is signed in to. Reconnect servers after a sign-in or when the keyring opens."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from trayapp.auth.accounts import Accounts
from trayapp.auth.grant import AccountKey, account_key
from trayapp.backends.connection import Connection
from trayapp.backends.launch import HttpLaunch
from trayapp.config.interpolate import expand, keyring_names
from trayapp.config.urls import url_fault
from trayapp.gateway.services import Services
from trayapp.model.config import ServerConfig, auth_of
from trayapp.model.errors import KeyringLockedError, ServerError, SignInWantedError
from trayapp.model.lifecycle import State

if TYPE_CHECKING:
    from trayapp.model.status import SignInStatus

log = logging.getLogger(__name__)


class SignIns:
    """The sign-ins to one gateway's servers."""

    def __init__(self, services: Services, accounts: Accounts, environ: dict[str, str]) -> None:
        self._services = services
        self.accounts = accounts
        self._environ = environ

    @property
    def keyring_error(self) -> dict[str, str] | None:
        """Return why the vault cannot be used now, as `{"title", "hint"}`, or None if it can."""
        refused = self.accounts.vault.refused
        return {"title": refused.title, "hint": refused.hint} if refused else None

    def status(self, server: ServerConfig) -> SignInStatus | None:
        """Return the sign-in status of a server, or None if it does not use OAuth or its account is unknown."""
        key = self.key_of(server) if auth_of(server) == "oauth" else None
        return None if key is None else self.accounts.status(*key)

    def is_signed_in(self, server: ServerConfig) -> bool:
        """Return True if the server uses OAuth and the user is signed in to it."""
        status = self.status(server)
        return status is not None and status.signed_in

    def state_of(self, connection: Connection, server: ServerConfig, *, signed: bool) -> tuple[State, Any]:
        """Return the state and error of a server: those of its connection, with one exception.

        If its lists were read with a sign-in (`signed`), an idle server is NEEDS_AUTH when there is no sign-in, and
        KEYRING_LOCKED while the sign-in cannot be read.
        """
        if connection.state is not State.IDLE or not signed:
            return connection.state, connection.error
        key = self.key_of(server)
        account = self.accounts.of(*key) if key else None
        if account is not None and account.is_locked:
            assert account.unread is not None
            return State.KEYRING_LOCKED, KeyringLockedError(server.name, account.unread)
        status = self.status(server)
        if status is not None and not status.signed_in:
            return State.NEEDS_AUTH, SignInWantedError(server.name)
        return connection.state, connection.error

    def address(self, server: ServerConfig) -> str | None:
        """Return the address of a server without reading the vault, or None if the address is unknown or invalid.

        If the server's URL has variables that the environment lacks, return the address of its last connection.
        """
        if server.url is None:
            return None
        known = expand(server.url, self._environ.get, lambda name: None)
        url = self.accounts.met.get(server.name) if known.missing else known.text
        return None if url is None or url_fault(url) else url

    def key_of(self, server: ServerConfig) -> AccountKey | None:
        """Return the account of a server, or None while its `address` is unknown."""
        url = self.address(server)
        return None if url is None else account_key(url, server.account)

    async def read(self, launch: HttpLaunch) -> None:
        """Read the user's sign-in at the server's address from the vault, unless that would open a dialog."""
        await self.accounts.look([account_key(launch.url, launch.client.account)])

    async def look(self) -> None:
        """Read the sign-ins at the configured addresses from the vault, without opening a dialog."""
        servers = [c.server for c in self._services.pool if not c.server.disabled and auth_of(c.server) == "oauth"]
        await self.accounts.look([key for server in servers if (key := self.key_of(server)) is not None])

    def at(self, key: AccountKey) -> list[Connection]:
        """Return all connections to servers that use that account."""
        return [connection for connection in self._services.pool if self.key_of(connection.server) == key]

    async def reconnect(self, key: AccountKey) -> None:
        """Reconnect every enabled server that uses that account, because the user has signed in."""
        for connection in self.at(key):
            if connection.server.disabled or connection.state is State.DISABLED:
                continue
            if self._services.shared_key(connection.key) != connection.key:
                await connection.close()  # its next request connects again
                continue
            try:
                await self._services.pool.reconnect(connection)
            except ServerError as error:
                log.info("%s", error)

    async def keyring_is_back(self) -> None:
        """Reconnect the servers that waited for the keyring. Close failed servers that use secrets, for a retry."""
        await self.look()
        for connection in list(self._services.pool):
            state, signed_in = connection.state, self.is_signed_in(connection.server)
            if state is State.KEYRING_LOCKED or (state is State.FAILED and keyring_names(connection.server)):
                connection.begin_close()
            if self._services.shared_key(connection.key) != connection.key:
                continue
            if state is State.KEYRING_LOCKED and signed_in:
                self._services.spawn(self._services.pool.connect, connection)
            key = self.key_of(connection.server)
            if state is State.NEEDS_AUTH and signed_in and key is not None:
                await self.reconnect(key)
