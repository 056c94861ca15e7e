"""Answer control requests about sign-ins, the keyring and named secrets. The requesting program opens the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from trayapp.auth.accounts import SignIn
from trayapp.auth.grant import EXPIRES_S, AccountKey, Target
from trayapp.backends.connection import Connection
from trayapp.backends.launch import HttpLaunch, Keyring, prepare_start
from trayapp.config.interpolate import keyring_names
from trayapp.gateway.calls.errors import error_json
from trayapp.gateway.client import text_of
from trayapp.gateway.scopes.sign_ins import SignIns
from trayapp.gateway.services import Services
from trayapp.model.config import auth_of
from trayapp.model.errors import KeyringUnavailableError, MultiMcpError, ServerDisabledError, UsageError
from trayapp.model.lifecycle import State
from trayapp.wire import control

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class AccountRequests:
    """Requests about sign-ins, the keyring and secrets. A sign-in outlasts the control connection that began it."""

    def __init__(self, services: Services, sign_ins: SignIns, environ: dict[str, str], keyring: Keyring) -> None:
        self._services = services
        self._sign_ins = sign_ins
        self._environ = environ
        self._keyring = keyring
        self._last: dict[AccountKey, SignIn] = {}  # account -> its last sign-in, for later requests about it
        self.handlers: dict[str, Handler] = {
            control.LOGIN: self._login,
            control.LOGIN_WAIT: self._login_wait,
            control.LOGIN_ANSWER: self._login_answer,
            control.LOGOUT: self._logout,
            control.KEYRING: self._check_keyring,
            control.SECRET_SET: self._secret_set,
            control.SECRET_LIST: self._secret_list,
            control.SECRET_DELETE: self._secret_delete,
        }

    # -- sign-ins ------------------------------------------------------------------------------------------------

    async def _login(self, params: dict[str, Any]) -> Any:
        accounts, connection = self._sign_ins.accounts, self._connection(params)
        locked = self._sign_ins.accounts.vault.state == "locked"
        if locked:
            await self._look(asked=True)
        target = await self._target(connection)
        if locked and await accounts.of(*target.key).grant(asked=True) is not None:
            outcome = await self._outcome(connection.key)
            if outcome["state"] != State.NEEDS_AUTH:
                return {"url": None, "outcome": outcome}
        begun = accounts.sign_in(target)
        self._last[target.key] = begun
        url = await begun.shown()
        return {"url": url, "redirect_uri": begun.redirect_uri, "expires_s": EXPIRES_S}

    async def _login_wait(self, params: dict[str, Any]) -> Any:
        """Wait until the sign-in is over, connect the server, and return the `_outcome`.

        Raises MultiMcpError if the sign-in fails.
        """
        connection = self._connection(params)
        begun = await self._find_sign_in(connection)
        await begun.finished()
        return await self._outcome(connection.key)

    async def _outcome(self, name: str) -> dict[str, Any]:
        """Connect the server with the current sign-in, unless it is disabled. Return `{"auth", "state", "error"}`."""
        connection, error = self._services.pool.find(name), None
        try:
            await connection.ensure(explicit=True)
        except ServerDisabledError:
            pass
        except MultiMcpError as failure:
            error = error_json(failure)
        status = self._sign_ins.status(connection.server)
        return {"auth": asdict(status) if status else None, "state": connection.state.value, "error": error}

    async def _login_answer(self, params: dict[str, Any]) -> Any:
        (await self._find_sign_in(self._connection(params))).paste(text_of(params, "url"))
        return {}

    async def _logout(self, params: dict[str, Any]) -> Any:
        connection = self._connection(params)
        target = await self._target(connection)
        signed_out = await self._sign_ins.accounts.sign_out(*target.key)
        for one in self._sign_ins.at(target.key):
            one.begin_close()
        return {"signed_out": signed_out}

    async def _find_sign_in(self, connection: Connection) -> SignIn:
        begun = self._last.get((await self._target(connection)).key)
        if begun is None:
            name = connection.name
            raise UsageError(f"No sign-in to {name} is in progress", f"Start one: multi-mcp auth {name}")
        return begun

    def _connection(self, params: dict[str, Any]) -> Connection:
        return self._services.pool.find(text_of(params, "server"))

    async def _target(self, connection: Connection) -> Target:
        """Return where to sign in for a connection. Raises UsageError if its server does not use OAuth."""
        server, name = connection.server, connection.name
        if server.url is None:
            raise UsageError(f"Cannot sign in to {name}: it runs on this machine", "See: multi-mcp status")
        if (auth := auth_of(server)) != "oauth":
            hint = "Remove its token from servers.yaml, or set auth: oauth" if auth == "bearer" else "Set auth: oauth"
            raise UsageError(f"Cannot sign in to {name}: its auth is {auth}", hint)
        launch = await prepare_start(server, self._environ, self._keyring, self._services.clock.time())
        assert isinstance(launch, HttpLaunch)
        own, document = launch.client.id, self._services.settings().client_metadata_url
        document = own if own is not None and own.startswith("https://") else document
        return Target(name, launch.url, launch.kind, launch.headers, launch.client, server.callback_port, document)

    # -- the keyring and its secrets -----------------------------------------------------------------------------

    async def _check_keyring(self, params: dict[str, Any]) -> Any:
        """Check the vault, and return `{"keyring", "error"}`. With `unlock`, the keyring may show its own dialog."""
        await self._look(asked=params.get("unlock") is True)
        return {"keyring": self._sign_ins.accounts.vault.state, "error": self._sign_ins.keyring_error}

    async def _look(self, *, asked: bool) -> None:
        with suppress(KeyringUnavailableError):
            await self._sign_ins.accounts.vault.look(asked=asked)

    async def _secret_set(self, params: dict[str, Any]) -> Any:
        name, value = text_of(params, "name"), params.get("value")
        if not isinstance(value, str):
            raise UsageError("A secret must be text", "Pass it on stdin")
        kept = await self._sign_ins.accounts.vault.set_secret(name, value)
        for connection in self._services.pool:  # close failed connections, so that the next call retries immediately
            if connection.state is State.FAILED and name in keyring_names(connection.server):
                connection.begin_close()
        return {"kept": kept, "keyring": self._sign_ins.accounts.vault.state}

    async def _secret_list(self, params: dict[str, Any]) -> Any:
        vault = self._sign_ins.accounts.vault
        names = await vault.secret_names()
        if vault.refused is not None and vault.refused.state == "locked" and not names:
            raise vault.refused.with_traceback(None)
        return {"names": names, "keyring": self._sign_ins.accounts.vault.state}

    async def _secret_delete(self, params: dict[str, Any]) -> Any:
        return {"deleted": await self._sign_ins.accounts.vault.delete_secret(text_of(params, "name"))}
