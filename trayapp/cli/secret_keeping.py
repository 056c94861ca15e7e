"""Moving secrets from clear text in new entries into the keyring, or an encrypted file, if this machine has one.

Never here: finding them (clients/secrets), the keyring (service/secrets).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import click

from trayapp.cli.output import is_terminal, note
from trayapp.cli.servers_file import own_config, own_store
from trayapp.cli.switch import tell_gateway
from trayapp.cli.text import count, one_line
from trayapp.clients.secrets import Secret
from trayapp.model.errors import KeyringUnavailableError, MultiMcpError, UsageError
from trayapp.service.secrets import can_keep, delete_secret, store_secret

PASSPHRASE = "MULTI_MCP_PASSPHRASE"  # opens the encrypted file (auth/sealed)


def agreed(question: str, *, default: bool = False) -> bool:
    """Ask a yes-or-no question. Raises UsageError if nobody can answer."""
    if not is_terminal(sys.stdin):
        raise UsageError("Cannot ask for confirmation (no terminal)", "Pass --yes to proceed or --dry-run to preview")
    return click.confirm(one_line(question), default=default)


def may_keep(names: Sequence[str], hide: bool | None, asks: bool) -> bool:
    """Return True if these secrets are to be kept out of the file: by an option, or because the user agrees.

    The user is asked only if the keyring can keep them, or if there is none but the passphrase of an encrypted file is
    set. In the second case a yes also enables that file.
    """
    if hide is not None or not asks:
        return hide is True
    what = f"{count(len(names), 'secret')} ({', '.join(names)})"
    if keeps_secrets():
        return agreed(f"Put {what} into the keyring?", default=True)
    if os.environ.get(PASSPHRASE) and own_config(own_store()).settings.token_store != "file":
        if agreed(f"No keyring here. Keep {what} in an encrypted file (settings: token_store: file)?", default=True):
            store = own_store()
            store.create()
            store.set_setting("token_store", "file")
            tell_gateway()
            return True
        return False
    note(f"{what} in clear text: no keyring here can keep them. See: multi-mcp doctor")
    return False


def keep_all(secrets: Sequence[Secret], *, insist: bool) -> set[str]:
    """Keep each secret. Return the names of those that are kept, and note the others with the reason.

    `insist`: if one cannot be kept, keep none and raise MultiMcpError.
    """
    refused: dict[str, MultiMcpError] = {}
    keyring: MultiMcpError | None = None  # the error of a keyring that does not open: do not ask its user again
    for secret in secrets:
        error = keyring or _kept(secret)
        if error is not None:
            refused[secret.name] = error
            keyring = error if error.code == KeyringUnavailableError.code else None
    kept = {secret.name for secret in secrets} - refused.keys()
    if refused and insist:
        for name in kept:
            with suppress(MultiMcpError):
                delete_secret(name)
        raise _refusal(refused)
    if refused:
        error = _refusal(refused)
        note(error.title, *error.hint.splitlines())
    return kept


def _kept(secret: Secret) -> MultiMcpError | None:
    """Keep one secret. Return the error if it cannot be kept, else None."""
    try:
        if store_secret(secret.name, secret.value):
            return None
    except MultiMcpError as error:
        return error
    return MultiMcpError("No keyring here can keep secrets", "To write them in clear text, pass --clear")


def _refusal(refused: Mapping[str, MultiMcpError]) -> MultiMcpError:
    """Return one error for all refused secrets: their names, each reason once, and what to do."""
    names: dict[str, list[str]] = {}
    for name, error in refused.items():
        names.setdefault(error.title, []).append(name)
    why = "; ".join(f"{title} ({', '.join(of)})" for title, of in names.items())
    hints = dict.fromkeys(error.hint for error in refused.values() if error.hint)
    error = MultiMcpError(one_line(f"{count(len(refused), 'secret')} not kept: {why}"), "\n".join(hints))
    error.code = next(iter(refused.values())).code
    return error


def keeps_secrets() -> bool:
    """Return True if this machine can keep secrets."""
    try:
        return can_keep()
    except MultiMcpError:
        return False
