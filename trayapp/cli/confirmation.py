"""Questions to the user, and decisions that only a person may make: at a terminal, in the tray or in the panel.

Scripts must opt out explicitly.

Never here: the decisions themselves.
"""

from __future__ import annotations

import os
import sys

import click

from trayapp.cli.output import is_terminal
from trayapp.model.errors import UsageError
from trayapp.model.text import one_line

UNATTENDED = "MULTI_MCP_UNATTENDED"  # "1": a person wrote the script that runs this


def at_terminal() -> bool:
    """Return True if a person can be asked at this terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def unattended() -> bool:
    """Return True if a person declared that their script runs this (MULTI_MCP_UNATTENDED=1)."""
    return os.environ.get(UNATTENDED) == "1"


def require_person(what: str) -> bool:
    """Return True if a person is at this terminal, False if a script runs unattended. Raises UsageError otherwise.

    `what`: the decision, as in "approve a tool". AI tools' shells have no terminal either, so the error does not say
    how to decide for the user.
    """
    if at_terminal():
        return True
    if not unattended():
        raise UsageError(f"Only the user can {what}", "Ask the user to do it in a terminal or in the tray")
    return False


def agreed(question: str, *, default: bool = False) -> bool:
    """Ask a yes-or-no question. Raises UsageError if nobody can answer."""
    if not is_terminal(sys.stdin):
        raise UsageError("Cannot ask for confirmation (no terminal)", "Pass --yes to proceed or --dry-run to preview")
    return click.confirm(one_line(question), default=default)
