"""`asks`, `allow` and `deny`, and `call` with its question on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.persons import Person
from tests.cli.running import FakeGateway, environment, run_cli
from trayapp.cli.output import UNATTENDED
from trayapp.wire import control

CALL: dict[str, Any] = {
    "id": "3fa2b1",
    "kind": "call",
    "client": "Claude Code",
    "project": "/src/site",
    "server": "github",
    "tool": "delete_repo",
    "class": "destructive",
    "basis": "annotations",
    "hash": "h",
    "arguments": [{"name": "repo", "value": '"a\x1b[2J/b"'}],
    "answers": ["once", "session", "always", "deny"],
}
FIELDS = {
    "name": {"type": "string", "description": "Yours"},
    "paper": {"oneOf": [{"const": "a4", "title": "A4 sheet"}, {"const": "a5"}]},
    "extras": {"type": "array", "items": {"enum": ["seal", "ribbon"]}},
}
FORM = {"type": "object", "properties": FIELDS, "required": ["name"]}
QUESTION = {**CALL, "id": "9c01d4", "kind": "question", "tool": "", "message": "Who?", "schema": FORM, "url": None}
ANSWERS: dict[str, Any] = {
    control.ASKS: {"asks": [CALL, QUESTION], "always": [{"server": "a", "tool": "drop"}]},
    control.ALLOW: {"ask": CALL},
    control.DENY: {"ask": CALL},
}


@pytest.mark.requirement("ask-cli")
def test_asks_shows_who_what_with_which_arguments_and_how_to_answer(home: Path) -> None:
    with FakeGateway(home, ANSWERS):
        done = run_cli(home, "asks")
    assert done.returncode == 0
    for words in (
        "3fa2b1: Claude Code in /src/site wants to call github/delete_repo (destructive, as its server says)",
        '    repo = "a/b"',
        "multi-mcp allow 3fa2b1 [--session | --always], or multi-mcp deny 3fa2b1",
        "9c01d4: github asks Claude Code in /src/site: Who?",
        "    name* (string) Yours",
        "    paper (a4: A4 sheet|a5)",
        "    extras (list of seal|ribbon)",
        "multi-mcp allow 9c01d4 FIELD=VALUE ..., or multi-mcp deny 9c01d4",
        "1 tool always allowed",
        "  a/drop",
    ):
        assert words in done.stdout, done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.requirement("ask-cli")
@pytest.mark.parametrize(
    ("words", "method", "params"),
    [
        (("allow", "3fa2b1"), control.ALLOW, {"answer": "once", "content": None}),
        (("allow", "3fa2b1", "--session"), control.ALLOW, {"answer": "session", "content": None}),
        (("allow", "3fa2b1", "--always"), control.ALLOW, {"answer": "always", "content": None}),
        (("allow", "3fa2b1", "name=Ann"), control.ALLOW, {"answer": "once", "content": {"name": "Ann"}}),
        (("deny", "3fa2b1"), control.DENY, {}),
    ],
)
def test_each_verb_is_one_answer(home: Path, words: tuple[str, ...], method: str, params: dict[str, Any]) -> None:
    with FakeGateway(home, ANSWERS) as gateway:
        assert run_cli(home, *words).returncode == 0
    assert gateway.requests == [(method, {"id": "3fa2b1", "by": "the command line", **params})]


@pytest.mark.requirement("ask-cli")
def test_allow_wants_a_person_and_does_not_say_how_to_do_without_one(home: Path) -> None:
    agent = {name: value for name, value in environment(home).items() if name != UNATTENDED}
    with FakeGateway(home, ANSWERS) as gateway:
        done = run_cli(home, "allow", "3fa2b1", env=agent)
    assert (done.returncode, gateway.requests) == (2, [])
    assert "Only the user can allow a call" in done.stderr
    assert UNATTENDED not in done.stdout + done.stderr


@pytest.mark.requirement("ask-cli")
def test_deny_takes_an_always_back(home: Path) -> None:
    with FakeGateway(home, {control.DENY: {}}) as gateway:
        assert run_cli(home, "deny", "a/drop").returncode == 0
        said = run_cli(home, "deny", "a/drop", "--json").stdout
    assert json.loads(said) == {"server": "a", "tool": "drop", "always": False}
    assert gateway.requests == [(control.DENY, {"server": "a", "tool": "drop"})] * 2


@pytest.mark.requirement("ask-cli")
@pytest.mark.parametrize(("typed", "calls"), [("y\n", 2), ("n\n", 1), ("\n", 1)])
def test_call_asks_on_its_terminal(tmp_path: Path, typed: str, calls: int) -> None:
    person = Person(tmp_path / "home", tmp_path / "mine")

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        done = {"server": "github", "tool": "delete_repo", "result": {"content": [{"type": "text", "text": "done"}]}}
        return done if params.get("allowed") == "h" else {"ask": CALL}

    with FakeGateway(person.home, {control.CALL: answer}) as gateway:
        shown = person.answers("call", "delete_repo", "repo=a/b", typed=typed)
    assert "github/delete_repo (destructive, as its server says)" in shown
    assert [method for method, _ in gateway.requests] == [control.CALL] * calls
    assert ("done" in shown) == (calls == 2)
    assert ("Nothing was executed" in shown) == (calls == 1)


@pytest.mark.requirement("ask-cli")
def test_call_asks_again_if_the_tool_has_changed_meanwhile(tmp_path: Path) -> None:
    person = Person(tmp_path / "home", tmp_path / "mine")

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        done = {"server": "github", "tool": "delete_repo", "result": {"content": [{"type": "text", "text": "done"}]}}
        return (
            done if params.get("allowed") == "h2" else {"ask": {**CALL, "hash": "h2" if "allowed" in params else "h"}}
        )

    with FakeGateway(person.home, {control.CALL: answer}) as gateway:
        shown = person.answers("call", "delete_repo", "repo=a/b", typed="y\ny\n")
    assert "done" in shown
    assert len(gateway.requests) == 3
