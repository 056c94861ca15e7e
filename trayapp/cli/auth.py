"""`multi-mcp auth`: sign in to a server in a browser on this or another machine, sign out, or list sign-ins."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from trayapp.cli.options import as_error, ask, verb
from trayapp.cli.output import Table, is_terminal, note, print_json, print_result, print_table, say, waiting
from trayapp.cli.status import signed_in_words
from trayapp.model.errors import ExitCode
from trayapp.model.text import one_line
from trayapp.service.desktop_programs import open_url
from trayapp.wire.control import KEYRING, LOGIN, LOGIN_ANSWER, LOGIN_WAIT, LOGOUT, SNAPSHOT, ControlError

START_S = 120.0  # time for the gateway to discover the authorization server, and for the user to unlock the keyring
END_S = 420.0  # five minutes for the user, plus the server's start
NOT_UNLOCKED = "Its dialog was closed, or cannot be shown here. Unlock it with the program that manages it"
PASTES = 5  # attempts to paste the right address


@verb("auth", "multi-mcp auth linear", "multi-mcp auth linear --paste")
@click.argument("server", required=False)
@click.option("--logout", is_flag=True, help="Sign out: forget the tokens and revoke them.")
@click.option("--paste", is_flag=True, help="For a browser on another machine: paste the address where it ends up.")
@click.option("--no-browser", is_flag=True, help="Only print the address to open.")
def auth_verb(server: str | None, logout: bool, paste: bool, no_browser: bool, as_json: bool) -> int:
    """Sign in to a server, or sign out.

    A browser opens. After that, multi-mcp renews the sign-in automatically. Without SERVER, show where you are signed
    in, and unlock the keyring if it is locked.
    """
    if server is None:
        return _show(as_json)
    if logout:
        with waiting(f"Signing out of {server}", quiet=as_json):
            signed_out = bool(ask(LOGOUT, {"server": server}, timeout=START_S)["signed_out"])
        words = "Signed out of" if signed_out else "You were not signed in to"
        print_result(as_json, {"server": server, "signed_out": signed_out}, f"{words} {one_line(server)}")
        return ExitCode.OK
    with waiting(f"Finding the sign-in service of {server}", quiet=as_json):
        begun = ask(LOGIN, {"server": server}, timeout=START_S)
    if begun["url"] is None:  # a stored sign-in was found in the keyring that the user just unlocked
        return _report_outcome(server, begun["outcome"], as_json)
    opened = not paste and not no_browser and open_url(begun["url"], os.environ)
    # the address is on a separate line, for copying
    whose, address = one_line(server), one_line(begun["url"])
    if opened:
        note(f"Your browser opens to sign in to {whose}. If it does not, go to:", address)
    else:
        note(f"To sign in to {whose}, open this address in a browser:", address)
    if paste or (not opened and is_terminal(sys.stdin)):
        _take_address(server)
    with waiting("Waiting for the browser", quiet=as_json):
        outcome = ask(LOGIN_WAIT, {"server": server}, timeout=END_S)
    return _report_outcome(server, outcome, as_json)


def _take_address(server: str) -> None:
    """Read from stdin the address that the browser ended up at, and send it to the gateway.

    If the gateway refuses it, print why and read another address, at most PASTES in all. An empty line means that the
    browser reached the gateway by itself.
    """
    note("Then paste the address that the browser ends up at (it begins with http://127.0.0.1) and press Enter.")
    note("If the browser is on this machine and shows that you are signed in, just press Enter.")
    for _ in range(PASTES):
        address = sys.stdin.readline()
        if not address.strip():
            return
        try:
            ask(LOGIN_ANSWER, {"server": server, "url": address.strip()})
        except ControlError as error:
            note(one_line(f"{error.title}. {error.hint}"))
        else:
            return


def _report_outcome(server: str, outcome: dict[str, Any], as_json: bool) -> int:
    error = outcome["error"]
    if as_json:
        print_json({"server": server, **outcome})
    else:
        say(f"{one_line(server)}: {signed_in_words(outcome['auth']) or 'signed in'}")
        if outcome["auth"] and not outcome["auth"]["kept"]:
            note("The sign-in is not stored, and is lost when the gateway stops. See: multi-mcp doctor")
    if error is not None:
        raise as_error(error)
    return ExitCode.OK


def _show(as_json: bool) -> int:
    snapshot = ask(SNAPSHOT)
    if snapshot["gateway"].get("keyring") == "locked" and not as_json:
        with waiting("Unlock the keyring in the dialog that opens"):
            error = ask(KEYRING, {"unlock": True}, timeout=START_S)["error"]
        if error:
            # do not suggest the command that the user is running
            hint = NOT_UNLOCKED if error["hint"].endswith("multi-mcp auth") else error["hint"]
            note(one_line(f"{error['title']}. {hint}"))
        snapshot = ask(SNAPSHOT)
    shown = ("needs_auth", "keyring_locked")
    rows = [row for row in snapshot["servers"] if row.get("auth") or row["state"] in shown]
    if as_json:
        print_json([{"server": row["name"], "state": row["state"], "auth": row.get("auth")} for row in rows])
    elif rows:
        without = {"keyring_locked": "keyring locked"}  # state -> words
        words = [signed_in_words(row.get("auth")) or without.get(row["state"], "not signed in") for row in rows]
        table_rows = [(one_line(row["name"]), word) for row, word in zip(rows, words, strict=True)]
        print_table(Table(("SERVER", "SIGN-IN"), table_rows, wraps=True))
    else:
        say("No server needs a sign-in")
    return ExitCode.OK
