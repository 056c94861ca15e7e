"""`multi-mcp refresh` and `reconnect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.cli.refresh import change_text
from trayapp.wire.control import RECONNECT, REFRESH

FAILED = {"title": "npx is not installed", "hint": "Install node", "code": "connect_failed", "exit_code": 5}
NOTHING: dict[str, Any] = {"added": [], "gone": [], "back": [], "error": None}
OUTCOMES = {"github": {**NOTHING, "added": ["a", "b"], "gone": ["c"]}, "files": NOTHING}


def test_refresh_tells_what_changed_for_each_server(home: Path) -> None:
    with FakeGateway(home, {REFRESH: {"servers": OUTCOMES}}) as gateway:
        done = run_cli(home, "refresh")
    assert done.stdout == "github: 2 tools added (a, b), 1 tool removed (c)\nfiles: no change\n"
    assert (done.returncode, gateway.requests) == (0, [(REFRESH, {"server": None})])


def test_many_names_are_counted_and_not_all_told() -> None:
    assert change_text({**NOTHING, "back": list("abcdefg")}) == "7 tools back (a, b, c, d, e and 2 more)"


@pytest.mark.parametrize("verb", ["refresh", "reconnect"])
@pytest.mark.requirement("cli-exit-codes")
def test_one_failure_among_several_leaves_the_others_and_sets_the_exit_code(home: Path, verb: str) -> None:
    outcomes = {"a": {**NOTHING, "state": "failed", "error": FAILED}, "b": {**NOTHING, "state": "connected"}}
    with FakeGateway(home, {REFRESH: {"servers": outcomes}, RECONNECT: {"servers": outcomes}}):
        done = run_cli(home, verb)
    assert done.stdout.splitlines()[0] == "a: npx is not installed. Install node"
    assert done.stdout.splitlines()[1] in ("b: no change", "b: connected")
    assert done.returncode == 5


@pytest.mark.requirement("cli-error-lines")
def test_the_failure_of_the_server_that_was_asked_for_is_the_verbs_own(home: Path) -> None:
    failed = {"servers": {"github": {**NOTHING, "error": FAILED}}}
    with FakeGateway(home, {REFRESH: failed}):
        done = run_cli(home, "refresh", "github", "--json")
    assert done.stderr == "Error: npx is not installed\nInstall node\n"
    assert json.loads(done.stdout)["error"]["code"] == "connect_failed"
    assert done.returncode == 5


@pytest.mark.requirement("cli-exit-codes")
def test_a_sign_in_that_is_wanted_is_exit_code_6(home: Path) -> None:
    error = {"title": "linear needs a sign-in", "hint": "", "code": "needs_auth", "exit_code": 6}
    with FakeGateway(home, {RECONNECT: {"servers": {"linear": {"state": "needs_auth", "error": error}}}}):
        assert run_cli(home, "reconnect", "linear").returncode == 6


def test_json_is_the_answer_as_it_came(home: Path) -> None:
    with FakeGateway(home, {REFRESH: {"servers": OUTCOMES}}):
        done = run_cli(home, "refresh", "--json")
    assert json.loads(done.stdout) == {"servers": OUTCOMES}


def test_no_servers_say_so(home: Path) -> None:
    with FakeGateway(home, {RECONNECT: {"servers": {}}}):
        assert run_cli(home, "reconnect").stdout.startswith("Nothing to reconnect: no server is in use")
