"""Named secrets for `${keyring:NAME}`: stored by the running gateway, or by this process if none runs.

The gateway gets a control request, whose content is never logged. The vault is loaded only if no gateway runs.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trayapp.config.paths import find_paths
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore
from trayapp.model.config import Settings
from trayapp.model.errors import KeyringUnavailableError, NoGatewayError
from trayapp.wire.control import SECRET_DELETE, SECRET_LIST, SECRET_SET, ControlClient
from trayapp.wire.rundir import run_dir

if TYPE_CHECKING:
    from trayapp.auth.vault import Vault

DIALOG_S = 90.0  # limit for an answer, because the user may have to unlock the keyring first


def store_secret(name: str, value: str) -> bool:
    """Store a value under a name. Return False if it will be lost when the gateway ends, because there is no keyring.

    Raises UsageError for a name that is invalid in servers.yaml, KeyringUnavailableError, ControlError.
    """
    params = {"name": name, "value": value}
    return bool(_do(os.environ, SECRET_SET, params, "kept", lambda vault: vault.set_secret(name, value)))


def can_keep() -> bool:
    """Return True if secrets can be stored permanently. The keyring may prompt the user."""

    async def state(vault: Vault) -> str:
        await vault.secret_names()
        return "available"

    with suppress(KeyringUnavailableError):
        return bool(_do(os.environ, SECRET_LIST, {}, "keyring", state) == "available")
    return False


def secret_names(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of all secrets, sorted. The keyring may prompt the user. Raises KeyringUnavailableError."""
    return [str(name) for name in _do(environ, SECRET_LIST, {}, "names", lambda vault: vault.secret_names())]


def delete_secret(name: str) -> bool:
    """Delete the secret with that name. Return False if there is none. Raises KeyringUnavailableError, ControlError."""
    return bool(_do(os.environ, SECRET_DELETE, {"name": name}, "deleted", lambda vault: vault.delete_secret(name)))


def _do(
    environ: Mapping[str, str],
    method: str,
    params: dict[str, str],
    member: str,
    work: Callable[[Vault], Awaitable[Any]],
) -> Any:
    """Return a member of the gateway's answer or, if no gateway runs, the result of `work` on the vault.

    In the second case, servers.yaml selects the vault's token store (see `with_vault`).
    """
    try:
        with ControlClient(run_dir(dict(environ)), DIALOG_S) as client:
            return client.call(method, params)[member]
    except NoGatewayError:
        from trayapp.auth.vault import with_vault

        file = find_paths(environ).config_file
        try:
            settings = parse(ConfigStore(file).read() or "", str(file)).settings
        except UnparsableError:
            settings = Settings()
        return with_vault(settings.token_store, file, environ, work, changing=method != SECRET_LIST)
