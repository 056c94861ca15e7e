"""`multi-mcp secret`: manage the values of `${keyring:NAME}` in the keyring. A value is never a command-line argument.

Verbs that write new entries move clear-text secrets into the keyring or an encrypted file with `may_keep` and
`keep_all`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import click

from trayapp.cli.edit import own_config, own_store, tell_gateway
from trayapp.cli.options import examples, verb
from trayapp.cli.output import agreed, is_terminal, note, print_result
from trayapp.clients.secrets import Secret
from trayapp.config import edits
from trayapp.config.paths import PASSPHRASE
from trayapp.model.errors import KeyringUnavailableError, MultiMcpError, UsageError
from trayapp.model.text import count, one_line
from trayapp.service.secrets import can_keep, delete_secret, secret_names, store_secret

LONGEST = 1 << 20  # characters read from stdin; secrets are shorter


@click.group("secret", epilog=examples("multi-mcp secret set github", "pass github | multi-mcp secret set github"))
def secret_verb() -> None:
    """Keep secrets for servers.yaml in the keyring.

    A server's entry refers to a secret as ${keyring:NAME}. The server gets the secret when it starts.
    """


@verb("set", "multi-mcp secret set github", group=secret_verb)
@click.argument("name")
@click.argument("value", nargs=-1, metavar="")
def set_verb(name: str, value: tuple[str, ...], as_json: bool) -> None:
    """Keep a value under NAME. You type it when asked, or pass it on stdin."""
    if value:
        title = "A secret on the command line is visible to every program"
        raise UsageError(title, f"Type it when asked, or pass it on stdin: multi-mcp secret set {name}")
    if is_terminal(sys.stdin):
        secret = str(click.prompt(f"Value of {one_line(name)}", hide_input=True, err=True))
    else:
        secret = sys.stdin.read(LONGEST).removesuffix("\n").removesuffix("\r")
        if not secret:
            raise UsageError("stdin contained no value", f"For example: printf %s VALUE | multi-mcp secret set {name}")
    kept = store_secret(name, secret)
    line = f"{'Kept' if kept else 'In memory'}: ${{keyring:{one_line(name)}}}"
    print_result(as_json, {"name": name, "kept": kept}, line)
    if not kept:
        note("No keyring stores the secret: it is lost when the gateway ends.")
        note("See: multi-mcp doctor")


@verb("list", group=secret_verb)
def list_verb(as_json: bool) -> None:
    """List the names, never the values."""
    names = secret_names()
    print_result(as_json, names, *(one_line(name) for name in names) if names else ("No secrets",))


@verb("delete", "multi-mcp secret delete github", group=secret_verb)
@click.argument("name")
def delete_verb(name: str, as_json: bool) -> None:
    """Forget the value of NAME."""
    deleted = delete_secret(name)
    if not deleted:
        raise MultiMcpError(f"No secret is named {name}", "See: multi-mcp secret list")
    print_result(as_json, {"name": name, "deleted": True}, f"Deleted {one_line(name)}")


def may_keep(names: Sequence[str], hide: bool | None, asks: bool) -> bool:
    """Return True to keep these secrets out of the file, according to the option `hide` or the user's answer.

    The user is asked only if `hide` is None, `asks` is True, and this machine can keep secrets or the passphrase of an
    encrypted file is set. In the last case, a yes also sets `token_store: file`. Without a question, return `hide is
    True`.
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
            store.edit(lambda text: edits.set_setting(text, "token_store", "file"))
            tell_gateway()
            return True
        return False
    note(f"No keyring here can keep secrets. In clear text: {what}. See: multi-mcp doctor")
    return False


def keep_all(secrets: Sequence[Secret], *, insist: bool) -> set[str]:
    """Keep each secret. Return the names of the kept ones, and print a note about the others with the reasons.

    `insist`: if any secret cannot be kept, keep none and raise MultiMcpError.
    """
    refused: dict[str, MultiMcpError] = {}
    keyring: MultiMcpError | None = None  # the error of an unusable keyring, for all later secrets
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
    """Keep one secret. Return the error if it cannot be kept; None otherwise."""
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
    """Return True if this machine can keep secrets. The user may be asked to unlock the keyring."""
    try:
        return can_keep()
    except MultiMcpError:
        return False
