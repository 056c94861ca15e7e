"""Words of a command line to a tool's arguments. Never here: calling."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.cli.call import example_call, from_json, from_pairs, value_of
from trayapp.model.errors import ExitCode, UsageError


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
