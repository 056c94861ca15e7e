"""Selection of the vault's storage by setting, passphrase and home, and the vault of a process without a gateway.

That process answers one request and ends, so nothing may stay only in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from trayapp.auth.chunks import ChunkedRecords, Records
from trayapp.auth.os_keyring import KeyringEntries
from trayapp.auth.sealed import PASSPHRASE, SealedFile
from trayapp.auth.vault import NAMES, RecordPlace, Vault
from trayapp.config.files import locked
from trayapp.config.paths import HOME_VARIABLE

SERVICE = "multi-mcp"
SEALED_NAME = "secrets.sealed"  # beside servers.yaml
HOME_HEX = 8
Value = TypeVar("Value")
Store = Literal["keyring", "file"]


class Place(NamedTuple):
    """A RecordPlace: records in the keyring, or in the encrypted file, whose key may be in the keyring."""

    records: Records
    keyring: KeyringEntries | None

    def would_ask(self, *, writing: bool) -> bool:
        """Return True if an access now would show the user a dialog (RecordPlace). Blocks."""
        return self.keyring is not None and self.keyring.would_ask(writing=writing)


def place_for(store: Store, config_file: Path, environ: Mapping[str, str]) -> RecordPlace:
    """Return the place that `settings.token_store` selects. Opens nothing."""
    entries = KeyringEntries(service_of(environ))
    if store == "keyring":
        return Place(ChunkedRecords(entries), entries)
    passphrase = environ.get(PASSPHRASE, "")
    keyring = None if passphrase else entries
    return Place(SealedFile(config_file.with_name(SEALED_NAME), passphrase, keyring), keyring)


def service_of(environ: Mapping[str, str]) -> str:
    """Return the prefix of our keyring entries. Each MULTI_MCP_HOME has its own.

    Two gateways that renew one sign-in independently would end it, since a refresh token is valid only once.
    """
    home = environ.get(HOME_VARIABLE, "").strip()
    if not home:
        return SERVICE
    place = str(Path(home).expanduser().absolute())
    return f"{SERVICE}@{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:HOME_HEX]}"


def with_vault(
    store: Store, config_file: Path, environ: Mapping[str, str], work: Callable[[Vault], Awaitable[Value]]
) -> Value:
    """Run `work` on the vault; return its result. Blocks. Raises KeyringUnavailableError if the last access failed."""

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
    """Store a named secret. Return True if it was stored. Raises UsageError, KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.set_secret(name, value))


def secret_names(store: Store, config_file: Path, environ: Mapping[str, str]) -> list[str]:
    """Read the names of all secrets, and return them sorted. Raises KeyringUnavailableError."""
    return with_vault(store, config_file, environ, lambda vault: vault.secret_names())


def delete_secret(store: Store, config_file: Path, environ: Mapping[str, str], name: str) -> bool:
    """Delete a secret. Return False if there was none. Raises KeyringUnavailableError, StorageError."""
    with locked(_names(config_file)):
        return with_vault(store, config_file, environ, lambda vault: vault.delete_secret(name))


def _names(config_file: Path) -> Path:
    """Return the path whose lock guards the stored list of names: a keyring has no file to lock."""
    return config_file.with_name(NAMES)
