"""`multi-mcp secret`: manage the values of `${keyring:NAME}` in the keyring. A value is never a command-line argument.

Never here: access to the keyring (service/secrets).
"""

from __future__ import annotations

import sys

import click

from trayapp.cli.options import examples, json_option
from trayapp.cli.output import is_terminal, note, print_json, say
from trayapp.cli.text import one_line
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.service.secrets import delete_secret, secret_names, store_secret

LONGEST = 1 << 20  # characters read from stdin; secrets are shorter


@click.group("secret", epilog=examples("multi-mcp secret set github", "pass github | multi-mcp secret set github"))
def secret_verb() -> None:
    """Keep secrets for servers.yaml in the keyring.

    A server's entry refers to one as ${keyring:NAME} and gets it when the server starts.
    """


@secret_verb.command("set", epilog=examples("multi-mcp secret set github"))
@click.argument("name")
@click.argument("value", nargs=-1, metavar="")
@json_option
def set_verb(name: str, value: tuple[str, ...], as_json: bool) -> None:
    """Keep a value under NAME. It is asked for, or read from stdin."""
    if value:
        title = "A secret on the command line is visible to every program"
        raise UsageError(title, f"Give it when asked, or on stdin: multi-mcp secret set {name}")
    kept = store_secret(name, _value(name))
    if as_json:
        print_json({"name": name, "kept": kept})
    else:
        say(f"{'Kept' if kept else 'In memory'}: ${{keyring:{one_line(name)}}}")
    if not kept:
        note("No keyring keeps it: it is lost when the gateway ends.")
        note("See: multi-mcp doctor")


@secret_verb.command("list")
@json_option
def list_verb(as_json: bool) -> None:
    """List the names, never the values."""
    names = secret_names()
    if as_json:
        print_json(names)
    else:
        say(*(one_line(name) for name in names) if names else ("No secrets",))


@secret_verb.command("delete", epilog=examples("multi-mcp secret delete github"))
@click.argument("name")
@json_option
def delete_verb(name: str, as_json: bool) -> None:
    """Forget the value of NAME."""
    deleted = delete_secret(name)
    if not deleted:
        raise MultiMcpError(f"No secret is named {name}", "See: multi-mcp secret list")
    if as_json:
        print_json({"name": name, "deleted": True})
    else:
        say(f"Deleted {one_line(name)}")


def _value(name: str) -> str:
    """Read the value: from a person without echo, or from stdin without its last line end. Raises UsageError."""
    if is_terminal(sys.stdin):
        return str(click.prompt(f"Value of {one_line(name)}", hide_input=True, err=True))
    value = sys.stdin.read(LONGEST)
    value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise UsageError("No value came on stdin", f"For example: printf %s VALUE | multi-mcp secret set {name}")
    return value
