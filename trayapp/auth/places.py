"""Selection of the vault's storage by setting, passphrase and home."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trayapp.auth.chunks import ChunkedRecords, Records
from trayapp.auth.os_keyring import KeyringEntries
from trayapp.auth.sealed import PASSPHRASE, SealedFile
from trayapp.auth.vault import RecordPlace

SERVICE = "multi-mcp"
HOME_VARIABLE = "MULTI_MCP_HOME"
SEALED_NAME = "secrets.sealed"  # beside servers.yaml
HOME_HEX = 8


@dataclass(frozen=True, slots=True)
class KeyringPlace:
    """Records in the operating system's keyring."""

    records: Records
    entries: KeyringEntries

    def would_ask(self, *, writing: bool) -> bool:
        """Return True if an access now would show the user a dialog (RecordPlace). Blocks."""
        return self.entries.would_ask(writing=writing)


@dataclass(frozen=True, slots=True)
class SealedPlace:
    """Records in the encrypted file, whose key may be in the keyring."""

    records: Records
    keyring: KeyringEntries | None

    def would_ask(self, *, writing: bool) -> bool:
        """Return True if an access now would show the user a dialog (RecordPlace). Blocks."""
        return self.keyring is not None and self.keyring.would_ask(writing=writing)


def place_for(store: Literal["keyring", "file"], config_file: Path, environ: Mapping[str, str]) -> RecordPlace:
    """Return the place that `settings.token_store` selects. Opens nothing."""
    entries = KeyringEntries(service_of(environ))
    if store == "keyring":
        return KeyringPlace(ChunkedRecords(entries), entries)
    passphrase = environ.get(PASSPHRASE, "")
    keyring = None if passphrase else entries
    return SealedPlace(SealedFile(config_file.with_name(SEALED_NAME), passphrase, keyring), keyring)


def service_of(environ: Mapping[str, str]) -> str:
    """Return the prefix of our entries. Each MULTI_MCP_HOME has its own.

    Two gateways that renew one sign-in independently would end it, since a refresh token is valid only once.
    """
    home = environ.get(HOME_VARIABLE, "").strip()
    if not home:
        return SERVICE
    place = str(Path(home).expanduser().absolute())
    return f"{SERVICE}@{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:HOME_HEX]}"
