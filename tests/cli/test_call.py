"""`multi-mcp call`. Never here: what the words mean (test_call_args), what a result looks like (test_content)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.model.errors import ServerBackoffError, SignInWantedError, ToolNotFoundError
from trayapp.wire.control import CALL


def answered(**result: Any) -> dict[str, Any]:
    return {CALL: {"server": "github", "tool": "search", "result": result}}


TEXT = {"type": "text", "text": "found\x1b[31m it"}


@pytest.mark.requirement("cli-call")
def test_pairs_become_arguments_and_the_text_is_printed_clean(home: Path) -> None:
    with FakeGateway(home, answered(content=[TEXT])) as gateway:
        done = run_cli(home, "call", "search", "query=a b", "n=5", "--server", "github")
    assert (done.stdout, done.stderr, done.returncode) == ("found it\n", "", 0)
    words = {"query": "a b", "n": 5}
    params = {"tool": "search", "server": "github", "args": words, "typed": {"n": "5"}, "asks": True}
    assert gateway.requests == [(CALL, params)]


@pytest.mark.requirement("cli-call")
@pytest.mark.parametrize(("argument", "stdin"), [('{"query": "a"}', ""), ("-", '{"query": "a"}\n')])
def test_args_come_as_json_from_the_line_or_from_stdin(home: Path, argument: str, stdin: str) -> None:
    with FakeGateway(home, answered(content=[TEXT])) as gateway:
        done = run_cli(home, "call", "search", "--args", argument, stdin=stdin)
    assert done.returncode == 0
    assert gateway.requests[0][1]["args"] == {"query": "a"}


def test_json_is_the_raw_result_with_every_field(home: Path) -> None:
    result = {"content": [TEXT], "structuredContent": {"n": 1}, "x-unknown": [1], "isError": False}
    with FakeGateway(home, answered(**result)):
        done = run_cli(home, "call", "search", "--json")
    assert json.loads(done.stdout) == result
    assert "\x1b" not in done.stdout


@pytest.mark.requirement("cli-exit-codes")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_tool_that_answers_with_an_error_is_printed_and_exit_code_1(home: Path, flags: list[str]) -> None:
    with FakeGateway(home, answered(content=[TEXT], isError=True)):
        done = run_cli(home, "call", "search", *flags)
    assert "found" in done.stdout
    assert done.returncode == 1


@pytest.mark.requirement("cli-exit-codes")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ServerBackoffError("github", 3.0, "npx is not installed"), 5),
        (SignInWantedError("linear"), 6),
        (ToolNotFoundError("serch", ["github_search"]), 1),
    ],
)
def test_errors_of_the_gateway_have_their_exit_codes(home: Path, error: Any, code: int) -> None:
    with FakeGateway(home, {CALL: error}):
        done = run_cli(home, "call", "search")
    assert done.stderr == f"Error: {error.title}\n{error.hint}\n"
    assert done.returncode == code


@pytest.mark.requirement("cli-exit-codes", "cli-error-lines")
@pytest.mark.parametrize("words", [["text"], ["a=1", "--args", "{}"], ["--args", "{"], []])
def test_wrong_words_are_exit_code_2_in_two_lines_without_asking_anybody(home: Path, words: list[str]) -> None:
    done = run_cli(home, "call", *(["search", *words] if words else []))
    assert len(done.stderr.splitlines()) == 2
    assert (done.returncode, done.stdout) == (2, "")


def test_an_answer_of_nothing_says_so_beside_an_empty_stdout(home: Path) -> None:
    with FakeGateway(home, answered(content=[])):
        done = run_cli(home, "call", "search")
    assert (done.stdout, done.stderr, done.returncode) == ("", "The tool's answer is empty\n", 0)


@pytest.mark.requirement("cli-exit-codes")
def test_without_a_gateway_exit_code_4(home: Path) -> None:
    assert run_cli(home, "call", "search", "--no-start").returncode == 4


IMAGE = {"type": "image", "mimeType": "image/png", "data": "iVBORw0="}
BLOB = {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}


@pytest.mark.requirement("cli-call-out")
def test_what_is_no_text_is_saved_and_the_text_printed_as_ever(home: Path) -> None:
    with FakeGateway(home, answered(content=[TEXT, IMAGE, BLOB])):
        done = run_cli(home, "call", "shot", "--out", "page.png")
    assert (home / "page.png").read_bytes() == b"\x89PNG\r"
    assert (home / "page-2.png").read_bytes() == b"\0\0\0"
    assert done.stdout.startswith("found it\n[image, image/png, 5 bytes]\n")
    assert done.stderr == "Saved page.png (5 bytes)\nSaved page-2.png (3 bytes)\n"


@pytest.mark.requirement("cli-call-out")
@pytest.mark.parametrize("content", [[TEXT], [{**IMAGE, "data": "not base64!"}], [{**IMAGE, "data": 5}]])
def test_where_there_is_nothing_to_save_that_is_an_error(home: Path, content: list[Any]) -> None:
    with FakeGateway(home, answered(content=content)):
        done = run_cli(home, "call", "shot", "--out", "page.png")
    assert (done.returncode, (home / "page.png").exists()) == (1, False)
    assert "no image, audio or file" in done.stderr
