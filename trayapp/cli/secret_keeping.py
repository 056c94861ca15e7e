"""Secrets that stand in clear text in entries to be written: offered to what can keep them here, and to nothing else.

Never here: finding them (clients/secrets), the keyring (service/secrets).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from trayapp.cli.output import is_terminal, note
from trayapp.cli.servers_file import own_config, own_store
from trayapp.cli.switch import tell_gateway
from trayapp.cli.text import count, one_line
from trayapp.clients.secrets import Secret
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.service.secrets import can_keep, store_secret

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
    if _can_keep():
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


def keep_all(secrets: Sequence[Secret], *, insist: bool) -> bool:
    """Keep all of them; False if that cannot be. Raises MultiMcpError where the user said that they must be."""
    try:
        if all(store_secret(secret.name, secret.value) for secret in secrets):
            return True
    except MultiMcpError:
        if insist:
            raise
    if insist:
        raise MultiMcpError("There is no keyring that would keep secrets", "Write them as they are with --clear")
    return False


def _can_keep() -> bool:
    try:
        return can_keep()
    except MultiMcpError:
        return False
