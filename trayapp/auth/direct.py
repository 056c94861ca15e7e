"""The vault for a process without a gateway. It answers one request and ends, so nothing may stay only in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from trayapp.auth.places import place_for
from trayapp.auth.vault import NAMES, Vault
from trayapp.config.files import locked

Value = TypeVar("Value")
Store = Literal["keyring", "file"]


def with_vault(
    store: Store, config_file: Path, environ: Mapping[str, str], work: Callable[[Vault], Awaitable[Value]]
) -> Value:
    """Return the result of `work` with the vault. Blocks. Raise KeyringUnavailableError if something was not stored."""

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
    """Store a named secret. Raise UsageError, KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.set_secret(name, value))


def secret_names(store: Store, config_file: Path, environ: Mapping[str, str]) -> list[str]:
    """Return all names. Raise KeyringUnavailableError."""
    return with_vault(store, config_file, environ, lambda vault: vault.secret_names())


def delete_secret(store: Store, config_file: Path, environ: Mapping[str, str], name: str) -> bool:
    """Delete a secret. Return False if there was none. Raise KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.delete_secret(name))


def _names(config_file: Path) -> Path:
    """Return a path to lock for the list of all names: a keyring has no file that could be locked."""
    return config_file.with_name(NAMES)
