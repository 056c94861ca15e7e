"""Named secrets for `${keyring:NAME}`: stored by the running gateway, or by this process if none runs.

The gateway gets a control request, whose content is never logged. The vault is loaded here only if no gateway runs.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

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

DIALOG_S = 90.0  # the user may have to unlock the keyring first
Value = TypeVar("Value")


def store_secret(name: str, value: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Store a value under a name. Return False if it will be lost with the gateway, because there is no keyring.

    Raises UsageError for a name that is invalid in servers.yaml, KeyringUnavailableError, ControlError.
    """
    try:
        return bool(_ask(environ, SECRET_SET, {"name": name, "value": value})["kept"])
    except NoGatewayError:
        return _in_vault(environ, lambda vault: vault.set_secret(name, value), changing=True)


def can_keep(environ: Mapping[str, str] = os.environ) -> bool:
    """Find out whether secrets can be stored permanently. The user may be asked to unlock the keyring."""
    try:
        return bool(_ask(environ, SECRET_LIST, {})["keyring"] == "available")
    except NoGatewayError:
        with suppress(KeyringUnavailableError):
            _in_vault(environ, lambda vault: vault.secret_names())
            return True
        return False


def secret_names(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return all names, sorted. The user may be asked to unlock the keyring. Raises KeyringUnavailableError."""
    try:
        return [str(name) for name in _ask(environ, SECRET_LIST, {})["names"]]
    except NoGatewayError:
        return _in_vault(environ, lambda vault: vault.secret_names())


def delete_secret(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Delete a value. Return False if there was none. Raises KeyringUnavailableError, ControlError."""
    try:
        return bool(_ask(environ, SECRET_DELETE, {"name": name})["deleted"])
    except NoGatewayError:
        return _in_vault(environ, lambda vault: vault.delete_secret(name), changing=True)


def _ask(environ: Mapping[str, str], method: str, params: dict[str, Any]) -> Any:
    with ControlClient(run_dir(dict(environ)), DIALOG_S) as client:
        return client.call(method, params)


def _in_vault(
    environ: Mapping[str, str], work: Callable[[Vault], Awaitable[Value]], *, changing: bool = False
) -> Value:
    """Run `work` on the vault in this process, with the token store that servers.yaml sets (see `with_vault`)."""
    from trayapp.auth.vault import with_vault

    file = find_paths(environ).config_file
    try:
        settings = parse(ConfigStore(file).read() or "", str(file)).settings
    except UnparsableError:
        settings = Settings()
    return with_vault(settings.token_store, file, environ, work, changing=changing)
