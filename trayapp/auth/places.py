"""Which place the vault keeps things in: by the setting, the passphrase, and whose home it is.

Never here: keeping anything.
"""

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
        """See RecordPlace."""
        return self.entries.would_ask(writing=writing)


@dataclass(frozen=True, slots=True)
class SealedPlace:
    """Records in the encrypted file, whose key may lie in the keyring."""

    records: Records
    keyring: KeyringEntries | None

    def would_ask(self, *, writing: bool) -> bool:
        """See RecordPlace."""
        return self.keyring is not None and self.keyring.would_ask(writing=writing)


def place_for(store: Literal["keyring", "file"], config_file: Path, environ: Mapping[str, str]) -> RecordPlace:
    """Where `settings.token_store` says. Opens nothing."""
    entries = KeyringEntries(service_of(environ))
    if store == "keyring":
        return KeyringPlace(ChunkedRecords(entries), entries)
    passphrase = environ.get(PASSPHRASE, "")
    keyring = None if passphrase else entries
    return SealedPlace(SealedFile(config_file.with_name(SEALED_NAME), passphrase, keyring), keyring)


def service_of(environ: Mapping[str, str]) -> str:
    """The name that our entries begin with. Each MULTI_MCP_HOME has its own: two gateways that renew one sign-in each
    on its own end it, since a refresh token counts once."""
    home = environ.get(HOME_VARIABLE, "").strip()
    if not home:
        return SERVICE
    place = str(Path(home).expanduser().absolute())
    return f"{SERVICE}@{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:HOME_HEX]}"
