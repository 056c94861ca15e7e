"""The vault for a process without a gateway: one question, then the process ends, so memory is no place to keep things.

Never here: a gateway's own vault, sign-ins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from trayapp.auth.places import place_for
from trayapp.auth.vault import NAMES, Vault
from trayapp.config.locks import locked

Value = TypeVar("Value")
Store = Literal["keyring", "file"]


def with_vault(
    store: Store, config_file: Path, environ: Mapping[str, str], work: Callable[[Vault], Awaitable[Value]]
) -> Value:
    """What `work` makes of the vault. Blocks. Raises KeyringUnavailableError when something could not be kept."""

    async def run() -> Value:
        vault = Vault(place_for(store, config_file, environ))
        try:
            value = await work(vault)
        finally:
            vault.close()
        if vault.refused is not None:
            raise vault.refused
        return value

    return asyncio.run(run())


def set_secret(store: Store, config_file: Path, environ: Mapping[str, str], name: str, value: str) -> bool:
    """Keep a named secret. Raises UsageError, KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.set_secret(name, value))


def secret_names(store: Store, config_file: Path, environ: Mapping[str, str]) -> list[str]:
    """All names. Raises KeyringUnavailableError."""
    return with_vault(store, config_file, environ, lambda vault: vault.secret_names())


def delete_secret(store: Store, config_file: Path, environ: Mapping[str, str], name: str) -> bool:
    """Forget one; False when there was none. Raises KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.delete_secret(name))


def _names(config_file: Path) -> Path:
    """Return what stands for the list of all names: a keyring has no file that could be locked."""
    return config_file.with_name(NAMES)
