"""Decisions that belong to a person: at a terminal, in the tray or in the panel. A script says so on purpose.

Never here: what is decided.
"""

from __future__ import annotations

import os
import sys

from trayapp.cli.output import is_terminal
from trayapp.model.errors import UsageError

UNATTENDED = "MULTI_MCP_UNATTENDED"  # "1": a person wrote the script that runs this


def at_terminal() -> bool:
    """True if a person can be asked here."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def unattended() -> bool:
    """True if a person wrote the script that runs this, and said so."""
    return os.environ.get(UNATTENDED) == "1"


def require_person(what: str) -> bool:
    """True if a person is at this terminal; False if a script runs unattended on purpose. Raises UsageError otherwise.

    `what`: the decision, as in "approve a tool". Programs without a terminal are AI tools' shells, too: they are not
    told how to decide for the user.
    """
    if at_terminal():
        return True
    if not unattended():
        raise UsageError(f"Only the user can {what}", "Ask the user to do it in a terminal or in the tray")
    return False
