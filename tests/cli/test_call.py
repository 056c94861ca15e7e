"""`multi-mcp call` and `prompt`: words become arguments, and results become text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.cli.call import example_call, from_json, from_pairs, result_text, value_of
from trayapp.model.errors import ExitCode, ServerBackoffError, SignInWantedError, ToolNotFoundError, UsageError
from trayapp.wire.control import CALL, PROMPT

RESULT = {"messages": [{"role": "user", "content": {"type": "text", "text": "Plan\x1b[1m it"}}, {"role": "assistant"}]}


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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('"5"', "5"),
        ("", ""),
        ("hello world", "hello world"),
        ("True", "True"),
        ("01", "01"),
        ("1.2.3", "1.2.3"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[1, 2", "[1, 2"),
        ("[" * 100_000, "[" * 100_000),
        ("12345678901234567890123", 12345678901234567890123),
    ],
)
@pytest.mark.requirement("cli-call")
def test_a_value_is_json_where_it_is_json_and_else_text(text: str, value: Any) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


def test_pairs_split_at_the_first_equals_sign() -> None:
    assert from_pairs(["query=a=b", "n=1", "empty=", "url=http://x/?a=b"]) == {
        "query": "a=b",
        "n": 1,
        "empty": "",
        "url": "http://x/?a=b",
    }


@pytest.mark.parametrize("words", [["text"], ["=x"], ["a=1", "a=2"], ["\x1b[31mred"]])
def test_words_that_are_no_pairs_are_a_usage_error(words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        from_pairs(words)
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.hint
    assert "\x1b" not in caught.value.title


@pytest.mark.parametrize("text", ["", "{", "[1]", "5", "null", '{"a": NaN}', '{"a":' * 100_000])
def test_args_have_to_be_one_json_object(text: str) -> None:
    with pytest.raises(UsageError):
        from_json(text)


def test_args_are_taken_as_they_are() -> None:
    assert from_json('{"a": "5", "b": null}') == {"a": "5", "b": None}


@pytest.mark.requirement("cli-describe")
@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ({"type": "string", "examples": ["Europe/Berlin"]}, "a=Europe/Berlin"),
        ({"type": "string", "enum": ["one two", "b"]}, "'a=one two'"),
        ({"type": "string", "default": "$HOME"}, "'a=$HOME'"),
        ({"type": "string"}, "a=text"),
        ({"type": ["integer", "null"]}, "a=1"),
        ({"type": "boolean"}, "a=true"),
        ({"type": "array"}, "'a=[]'"),
        ({"const": {"x": 1}}, "'a={\"x\": 1}'"),
        (True, "a=..."),
        (None, "a=..."),
    ],
)
def test_an_example_call_names_what_a_tool_needs_fit_for_a_shell(parameter: Any, words: str) -> None:
    schema = {"properties": {"a": parameter, "more": {"type": "string"}}, "required": ["a"]}
    assert example_call("t_x", schema) == f"multi-mcp call t_x {words}"


@pytest.mark.parametrize("schema", [None, {}, {"required": "a"}, {"properties": [], "required": [5]}])
def test_without_a_schema_that_names_something_the_example_is_the_name(schema: Any) -> None:
    assert example_call("t_x", schema) == "multi-mcp call t_x"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "text", "text": "two\nlines"}, "two\nlines"),
        ({"type": "text", "text": "\x1b[31mred\x1b[0m"}, "red"),
        ({"type": "image", "mimeType": "image/png", "data": "A" * 16000}, "[image, image/png, 12 kB]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAA="}, "[audio, audio/wav, 2 bytes]"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}, "[resource, file:///a, 3 bytes]"),
        ({"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"}, "[link, a.txt, file:///a.txt]"),
        ({"type": "hologram", "x": 1}, "[hologram]"),
        ({"type": "image\n\x1b[2J", "data": 5}, "[image]"),
        ({"no": "type"}, "[None]"),
        ({"type": "resource", "resource": "odd"}, "[resource]"),
    ],
)
def test_each_block_is_its_text_or_a_line_in_its_place(block: dict[str, Any], shown: str) -> None:
    assert result_text({"content": [block]}) == shown


def test_structured_content_is_shown_where_there_is_no_text() -> None:
    assert result_text({"content": [], "structuredContent": {"n": 1}}) == '{\n  "n": 1\n}'
    both = {"content": [{"type": "text", "text": "n is 1"}], "structuredContent": {"n": 1}}
    assert result_text(both) == "n is 1"


@pytest.mark.parametrize("result", [{}, {"content": None}, {"content": ["odd", 5]}])
def test_a_result_without_content_is_empty_text(result: dict[str, Any]) -> None:
    assert result_text(result) == ""


@pytest.mark.requirement("prompt-line")
def test_a_prompt_is_printed_message_by_message(home: Path) -> None:
    with FakeGateway(home, {PROMPT: {"server": "b", "prompt": "plan", "result": RESULT}}) as gateway:
        assert run_cli(home, "prompt", "b_plan", "ai", "date=today").stdout == "user:\nPlan it\n\nassistant:\n\n"
        assert json.loads(run_cli(home, "prompt", "b_plan", "--line", "'x y'", "--json").stdout) == RESULT
        assert run_cli(home, "prompt", "b_plan", "x", "--line", "y").returncode == 2
    assert [params["words"] for _, params in gateway.requests] == [["ai", "date=today"], "'x y'"]
