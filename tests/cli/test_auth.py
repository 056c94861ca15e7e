"""`multi-mcp auth` as a person uses it, with real processes and a fake gateway."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, environment, run_cli
from tests.cli.samples import server, snapshot
from trayapp.auth.grant import SignInError
from trayapp.auth.os_keyring import UNLOCK
from trayapp.cli.auth import NOT_UNLOCKED
from trayapp.model.errors import ServerError, UsageError
from trayapp.model.lifecycle import State
from trayapp.model.status import SignInStatus
from trayapp.wire.control import KEYRING, LOGIN, LOGIN_ANSWER, LOGIN_WAIT, LOGOUT, SNAPSHOT

URL = "https://as.example/authorize?state=x&code_challenge=y"
BEGUN = {"url": URL, "redirect_uri": "http://127.0.0.1:1/callback", "expires_s": 300}
SIGNED_IN = {"signed_in": True, "until": None, "renews": True, "kept": True, "scope": None, "wanted": None}
DONE: dict[str, Any] = {"auth": SIGNED_IN, "state": "connected", "error": None}


def browser(home: Path) -> dict[str, str]:
    """Return an environment in which `xdg-open` writes its URL to a file."""
    program = home / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {home}/opened\n', encoding="utf-8")
    program.chmod(0o755)
    return environment(home, DISPLAY=":99", PATH=f"{program.parent}:{os.environ['PATH']}")


def test_a_browser_opens_and_the_end_is_told(home: Path) -> None:
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: DONE}) as gateway:
        ran = run_cli(home, "auth", "web", env=browser(home))
    assert (ran.returncode, ran.stdout) == (0, "web: signed in, renewed automatically\n")
    assert URL in ran.stderr.splitlines()
    assert (home / "opened").read_text(encoding="utf-8") == URL
    assert [method for method, _ in gateway.requests] == [LOGIN, LOGIN_WAIT]


def test_without_a_browser_the_address_stands_alone_in_its_line(home: Path) -> None:
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: DONE}):
        ran = run_cli(home, "auth", "web")
        silent = run_cli(home, "auth", "web", "--no-browser", env=browser(home))
    for one in (ran, silent):
        assert URL in one.stderr.splitlines()
        assert "open this address" in one.stderr
    assert not (home / "opened").exists()


@pytest.mark.requirement("auth-callback")
def test_the_address_is_pasted_until_it_is_the_right_one(home: Path) -> None:
    def answer(params: dict[str, Any]) -> Any:
        good = params["url"].endswith("code=good")
        return {} if good else SignInError("This is not the address of this sign-in", "Paste the whole address")

    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_ANSWER: answer, LOGIN_WAIT: DONE}) as gateway:
        typed = "nonsense\n http://127.0.0.1:1/callback?code=good \nnever read\n"
        ran = run_cli(home, "auth", "web", "--paste", stdin=typed)
    assert (ran.returncode, ran.stdout) == (0, "web: signed in, renewed automatically\n")
    assert "not the address" in ran.stderr
    assert [params.get("url") for method, params in gateway.requests if method == LOGIN_ANSWER] == [
        "nonsense",
        "http://127.0.0.1:1/callback?code=good",
    ]


def test_json_is_one_document(home: Path) -> None:
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: DONE}):
        ran = run_cli(home, "auth", "web", "--json")
    assert json.loads(ran.stdout) == {"server": "web", **DONE}


@pytest.mark.requirement("cli-exit-codes", "cli-error-lines")
def test_a_sign_in_that_fails_exits_with_6_and_says_why(home: Path) -> None:
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: SignInError("The sign-in was declined", "Try again")}):
        ran = run_cli(home, "auth", "web")
    assert ran.returncode == 6
    assert ran.stderr.endswith("Error: The sign-in was declined\nTry again\n")


def test_a_server_that_fails_after_the_sign_in_is_said_to(home: Path) -> None:
    failure = ServerError("web", "Cannot reach web", "Look at it")
    error = {"title": failure.title, "hint": failure.hint, "code": failure.code, "exit_code": 5}
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: {**DONE, "error": error}}):
        ran = run_cli(home, "auth", "web")
    assert (ran.returncode, "signed in" in ran.stdout) == (5, True)
    assert "Cannot reach web" in ran.stderr


def test_a_sign_in_that_is_not_kept_is_said_to(home: Path) -> None:
    lost = {**DONE, "auth": {**SIGNED_IN, "kept": False}}
    with FakeGateway(home, {LOGIN: BEGUN, LOGIN_WAIT: lost}):
        ran = run_cli(home, "auth", "web")
    assert "lost when the gateway stops" in ran.stderr


@pytest.mark.requirement("auth-locked")
def test_a_sign_in_that_was_found_once_the_keyring_was_unlocked_opens_no_browser(home: Path) -> None:
    with FakeGateway(home, {LOGIN: {"url": None, "outcome": DONE}}):
        ran = run_cli(home, "auth", "web")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("web: signed in")


@pytest.mark.requirement("auth-locked")
def test_without_a_server_it_unlocks_the_keyring(home: Path) -> None:
    shown = snapshot(server("web", State.KEYRING_LOCKED))
    shown = replace(shown, gateway=replace(shown.gateway, keyring="locked"))
    asked: list[Any] = []

    def unlock(params: Any) -> Any:
        asked.append(params)
        return {"keyring": "locked", "error": {"title": "The keyring is locked", "hint": UNLOCK}}

    with FakeGateway(home, {SNAPSHOT: shown.to_json(), KEYRING: unlock}):
        ran = run_cli(home, "auth")
        assert (asked, ran.stderr) == ([{"unlock": True}], f"The keyring is locked. {NOT_UNLOCKED}\n"), "no circle"
        assert ran.stdout.split("\n")[1].split() == ["web", "keyring", "locked"]
        run_cli(home, "auth", "--json")
    assert len(asked) == 1


def test_a_server_without_sign_in_is_a_usage_error(home: Path) -> None:
    with FakeGateway(home, {LOGIN: UsageError("Cannot sign in to web: its auth is bearer", "Take its token out")}):
        ran = run_cli(home, "auth", "web")
    assert ran.returncode == 2


@pytest.mark.requirement("auth-sign-out")
def test_signing_out_says_whether_there_was_something(home: Path) -> None:
    with FakeGateway(home, {LOGOUT: {"signed_out": True}}):
        assert run_cli(home, "auth", "web", "--logout").stdout == "Signed out of web\n"
    with FakeGateway(home, {LOGOUT: {"signed_out": False}}):
        assert run_cli(home, "auth", "web", "--logout").stdout == "You were not signed in to web\n"


def test_without_a_server_it_shows_where_one_is_signed_in(home: Path) -> None:
    rows = (
        server("tool"),
        server("web", State.CONNECTED, auth=SignInStatus(True, 1_800_000_000.0, True)),
        server("new", State.NEEDS_AUTH, auth=SignInStatus(False)),
    )
    with FakeGateway(home, {SNAPSHOT: snapshot(*rows).to_json()}):
        ran = run_cli(home, "auth", env=environment(home, TZ="UTC"))
        shown = run_cli(home, "auth", "--json")
    assert ran.stdout.splitlines() == [
        "SERVER  SIGN-IN",
        "web     signed in until 2027-01-15 08:00, renewed automatically",
        "new     not signed in",
    ]
    assert [row["server"] for row in json.loads(shown.stdout)] == ["web", "new"]


def test_without_a_gateway_exit_code_4(home: Path) -> None:
    assert run_cli(home, "auth", "web", "--no-start").returncode == 4
