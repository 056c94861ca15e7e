"""The check of the encrypted file for secrets: its form, its key, and whether `settings.token_store` uses it.

The file is opened only by a passphrase, which shows no dialog. desktop checks the keyring.
"""

from __future__ import annotations

import json
from pathlib import Path

from trayapp.model.errors import KeyringUnavailableError
from trayapp.service.checks.desktop import PASSPHRASE, gateways_keyring
from trayapp.service.checks.finding import CheckContext, CheckResult
from trayapp.service.checks.servers import read_config
from trayapp.service.secrets import secret_names

CODE = "secrets.file"
SEALED_NAME = "secrets.sealed"  # as in auth/places, which this package must not import


def sealed_file(world: CheckContext) -> list[CheckResult]:
    """Report the state of the file, if it exists. A change of `settings.token_store` does not move secrets."""
    path, config = world.paths.config_file.with_name(SEALED_NAME), read_config(world)
    if config is None or not path.exists():
        return []
    if config.settings.token_store != "file":
        what = f"{path} holds secrets that are not used: settings.token_store is {config.settings.token_store}"
        remedy = "To use them, set token_store: file in servers.yaml; otherwise remove that file"
        return [CheckResult(CODE, "note", what, remedy)]
    made_with = _key_of(path)
    if made_with is None:
        return [
            CheckResult(CODE, "problem", f"{path} is damaged", "Restore a copy of it, or remove it and sign in again")
        ]
    answer = gateways_keyring(world)
    if answer is not None:
        return (
            [] if answer["error"] else [CheckResult(CODE, "ok", f"{path} is used")]
        )  # keyring.available reports the error
    if (made_with == "passphrase") != bool(world.environ.get(PASSPHRASE)):
        how = "with" if made_with == "passphrase" else "without"
        do = "Set" if made_with == "passphrase" else "Unset"
        return [
            CheckResult(
                CODE,
                "note",
                f"{path} was created {how} a passphrase",
                f"{do} {PASSPHRASE} in the environment of the gateway",
            )
        ]
    if made_with == "passphrase":
        try:
            secret_names(world.environ)
        except KeyringUnavailableError as error:
            return [CheckResult(CODE, "note", error.title, error.hint)]
    return [CheckResult(CODE, "ok", f"{path} is used")]


def _key_of(path: Path) -> str | None:
    """Return the kind of key that the file names; None if it is not one of our files."""
    try:
        outer = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(outer, dict) and all(isinstance(outer.get(member), str) for member in ("key", "salt", "sealed"))
    return str(outer["key"]) if whole else None
