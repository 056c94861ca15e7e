"""Secrets that stand in clear text in entries to be written: offered to what can keep them here, and to nothing else.

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
    """Ask a yes-or-no question. Raises UsageError where nobody can answer."""
    if not is_terminal(sys.stdin):
        raise UsageError("Cannot ask for confirmation (no terminal)", "Pass --yes to proceed or --dry-run to preview")
    return click.confirm(one_line(question), default=default)


def may_keep(names: Sequence[str], hide: bool | None, asks: bool) -> bool:
    """True if these secrets are to be kept apart: said by an option, or asked where something here can keep them.

    An encrypted file is offered where there is no keyring and its passphrase is set; it is then switched on.
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
    note(f"{what} in clear text: no keyring here would keep them. See: multi-mcp doctor")
    return False


def keep_all(secrets: Sequence[Secret], *, insist: bool) -> set[str]:
    """Keep each of them; return the names of those that are kept, and note the others with the reason.

    Where the user said that all must be kept, raise MultiMcpError instead, and keep none.
    """
    refused: dict[str, MultiMcpError] = {}
    keyring: MultiMcpError | None = None  # the error of one that opens for no secret: its user is not asked again
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
    """Keep one; return why it is not kept."""
    try:
        if store_secret(secret.name, secret.value):
            return None
    except MultiMcpError as error:
        return error
    return MultiMcpError("There is no keyring that would keep secrets", "Write them as they are with --clear")


def _refusal(refused: Mapping[str, MultiMcpError]) -> MultiMcpError:
    """Return one error for all of them: which secrets, each reason once, what to do."""
    names: dict[str, list[str]] = {}
    for name, error in refused.items():
        names.setdefault(error.title, []).append(name)
    why = "; ".join(f"{title} ({', '.join(of)})" for title, of in names.items())
    hints = dict.fromkeys(error.hint for error in refused.values() if error.hint)
    error = MultiMcpError(one_line(f"{count(len(refused), 'secret')} not kept: {why}"), "\n".join(hints))
    error.code = next(iter(refused.values())).code
    return error


def keeps_secrets() -> bool:
    """True if something here would keep secrets."""
    try:
        return can_keep()
    except MultiMcpError:
        return False
