"""Which servers are signed in to, and what follows a sign-in or a keyring that opens.

Never here: OAuth, the keyring (auth), control requests.
"""

from __future__ import annotations

import logging
from typing import Any

from trayapp.auth.accounts import Accounts
from trayapp.auth.grant import canonical
from trayapp.backends.connection import Connection
from trayapp.backends.launch import HttpLaunch
from trayapp.config.interpolate import expand, keyring_names
from trayapp.config.urls import url_fault
from trayapp.gateway.services import Services
from trayapp.model.errors import KeyringLockedError, ServerError, SignInWantedError
from trayapp.model.lifecycle import State
from trayapp.model.servers import ServerConfig, auth_of
from trayapp.model.status import SignInStatus

log = logging.getLogger(__name__)


class SignIns:
    """The sign-ins of one gateway's servers. Without accounts (tests of other things) nobody can sign in."""

    def __init__(self, services: Services, accounts: Accounts | None, environ: dict[str, str]) -> None:
        self._services = services
        self.accounts = accounts
        self._environ = environ

    # -- what is shown -------------------------------------------------------------------------------------------

    @property
    def keyring_state(self) -> Any:
        """Return the vault's state; None while nothing has needed it."""
        return self.accounts.vault.state if self.accounts else None

    @property
    def keyring_error(self) -> dict[str, str] | None:
        """Return why the vault's place cannot be used now: `{"title", "hint"}`."""
        refused = self.accounts.vault.refused if self.accounts else None
        return {"title": refused.title, "hint": refused.hint} if refused else None

    def status(self, server: ServerConfig) -> SignInStatus | None:
        """Return who is signed in there, None where that is not known."""
        if self.accounts is None or server.url is None or auth_of(server) != "oauth":
            return None
        url = self.address(server)
        return None if url is None else self.accounts.status(url)

    def is_signed_in(self, server: ServerConfig) -> bool:
        """Return True if its requests carry a sign-in of the user's."""
        status = self.status(server)
        return status is not None and status.signed_in

    def state_of(self, connection: Connection, server: ServerConfig, *, signed: bool) -> tuple[State, Any]:
        """Return its state and error. One that rests is not ready if it needs a sign-in that is not there.

        `signed`: it took a sign-in to read its lists.
        """
        if connection.state is not State.IDLE or not signed or self.accounts is None:
            return connection.state, connection.error
        url = self.address(server)
        account = self.accounts.of(url) if url else None
        if account is not None and account.is_locked:
            assert account.unread is not None
            return State.KEYRING_LOCKED, KeyringLockedError(server.name, account.unread)
        status = self.status(server)
        if status is not None and not status.signed_in:
            return State.NEEDS_AUTH, SignInWantedError(server.name)
        return connection.state, connection.error

    def address(self, server: ServerConfig) -> str | None:
        """Return where a server is, without asking the vault: by the environment, or as it was last opened."""
        if server.url is None or self.accounts is None:
            return None
        known = expand(server.url, self._environ.get, lambda name: None)
        url = self.accounts.met.get(server.name) if known.missing else known.text
        return None if url is None or url_fault(url) else url

    # -- reading -------------------------------------------------------------------------------------------------

    async def read(self, launch: HttpLaunch) -> None:
        """Read the user's sign-in at that address, as far as that takes no dialog."""
        if self.accounts is not None:
            await self.accounts.look([launch.url])

    async def look(self) -> None:
        """Read who is signed in at the configured addresses, without any dialog."""
        servers = [c.server for c in self._services.pool if c.server.url is not None and not c.server.disabled]
        wanted = [url for s in servers if auth_of(s) == "oauth" and (url := self.address(s)) is not None]
        if self.accounts is not None and wanted:
            await self.accounts.look(wanted)

    # -- what follows --------------------------------------------------------------------------------------------

    def at(self, url: str) -> list[Connection]:
        """Return all connections with that address."""
        key, addresses = canonical(url), {c: self.address(c.server) for c in self._services.pool}
        return [c for c, address in addresses.items() if address is not None and canonical(address) == key]

    async def reconnect(self, url: str) -> None:
        """Reconnect every server with that address at once: somebody has signed in there."""
        for connection in self.at(url):
            if connection.server.disabled or connection.state is State.DISABLED:
                continue
            try:
                await self._services.pool.reconnect(connection)
            except ServerError as error:
                log.info("%s", error)

    async def keyring_is_back(self) -> None:
        """Try servers again that could not be served without the keyring."""
        await self.look()
        for connection in list(self._services.pool):
            state, signed_in = connection.state, self.is_signed_in(connection.server)
            if state is State.KEYRING_LOCKED or (state is State.FAILED and keyring_names(connection.server)):
                connection.begin_close()
            if state is State.KEYRING_LOCKED and signed_in:
                self._services.spawn(_connect, connection)
            address = self.address(connection.server)
            if state is State.NEEDS_AUTH and signed_in and address is not None:
                await self.reconnect(address)


async def _connect(connection: Connection) -> None:
    """Connect, in one attempt with all others that want the server now."""
    try:
        await connection.ensure(explicit=True)
    except ServerError as error:
        log.info("%s", error)
