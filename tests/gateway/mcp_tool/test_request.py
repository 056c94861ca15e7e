"""The fields of the one tool, and the mode that they select. A mistake is an error, never a request for the status."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.gateway.mcp_tool.request import ToolRequest, WrongFieldsError, check_inside, read_request


@pytest.mark.requirement("one-tool-modes")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (None, ToolRequest("status")),
        ({}, ToolRequest("status")),
        ({"server": "gh"}, ToolRequest("server", "gh")),
        ({"server": "gh", "offset": 50, "limit": 5}, ToolRequest("server", "gh", offset=50, limit=5)),
        ({"search": "issue"}, ToolRequest("search", "issue")),
        ({"search": "x", "server": "gh", "limit": 3}, ToolRequest("search", "x", "gh", limit=3)),
        (
            {"search": "^a", "regex": True, "includeSchemas": True},
            ToolRequest("search", "^a", regex=True, schemas=True),
        ),
        ({"search": ""}, ToolRequest("search")),
        ({"search": "", "server": "gh"}, ToolRequest("search", "", "gh")),
        ({"describe": "t"}, ToolRequest("describe", "t")),
        ({"describe": "t", "server": "gh"}, ToolRequest("describe", "t", "gh")),
        ({"tool": "t"}, ToolRequest("tool", "t")),
        ({"tool": "t", "args": {"a": 1}, "server": "gh"}, ToolRequest("tool", "t", "gh", args={"a": 1})),
        ({"tool": "t", "args": '{"a": 1}'}, ToolRequest("tool", "t", args='{"a": 1}')),
        ({"connect": "gh"}, ToolRequest("connect", "gh")),
        ({"result": "r1"}, ToolRequest("result", "r1")),
        ({"result": "r1", "offset": 9}, ToolRequest("result", "r1", offset=9)),
        # a call or a description wins over a search
        ({"tool": "t", "search": "x", "regex": True, "limit": 2}, ToolRequest("tool", "t", regex=True, limit=2)),
        ({"describe": "d", "search": "x"}, ToolRequest("describe", "d")),
        # some models fill in every field or send every value as text
        ({"search": "x", "tool": "", "describe": None, "server": ""}, ToolRequest("search", "x")),
        ({"search": "x", "args": {}, "offset": 0, "connect": ""}, ToolRequest("search", "x", args={})),
        ({"search": "x", "regex": "false", "limit": "5"}, ToolRequest("search", "x", limit=5)),
        ({"result": "r1", "offset": 5.0}, ToolRequest("result", "r1", offset=5)),
        ({"tool": " t ", "server": "gh "}, ToolRequest("tool", "t", "gh")),
    ],
)
def test_the_fields_say_the_mode(arguments: Any, expected: ToolRequest) -> None:
    assert read_request(arguments) == expected


@pytest.mark.requirement("one-tool-wrong-fields")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "x"}, ["query"]),
        ({"serch": "x"}, ["serch", "search"]),
        ({"tool": "t", "query": "x"}, ["query", "args"]),
        ({"tool": "t", "limit": 5}, ["limit", "args"]),
        ({"tool": "t", "server": "s", "offset": 5}, ["offset"]),
        ({"args": {"a": 1}}, ["args without tool"]),
        ({"args": {}}, ["args without tool"]),
        ({"args": {"tool": "t", "args": {}}}, ["tool", "beside args"]),
        ({"args": {"search": "x"}}, ["search", "beside args"]),
        ({"tool": "t", "arguments": {"a": 1}}, ["arguments", "Did you mean args?"]),
        ({"tool": "t", "args": {"a": 1}, "input": "x"}, ["input", '"args": {"input"']),
        ({"search": "x", "args": {"a": 1}}, ["args without tool"]),
        ({"regex": True}, ["regex", "search"]),
        ({"limit": 5}, ["limit"]),
        ({"offset": 5}, ["offset"]),
        ({"describe": "t", "regex": True}, ["regex", "search"]),
        ({"connect": "gh", "limit": 3}, ["limit"]),
        ({"tool": ""}, ["tool is empty"]),
        ({"server": " "}, ["server is empty"]),
        ({"search": 5}, ["search must be text"]),
        ({"tool": ["t"]}, ["tool must be text"]),
        ({"search": "x", "regex": "maybe"}, ["regex must be true or false"]),
        ({"search": "x", "limit": "many"}, ["limit must be a whole number"]),
        ({"search": "x", "limit": "--5"}, ["limit must be a whole number"]),
        ({"search": "x", "limit": True}, ["limit must be a whole number"]),
        ({"search": "x", "limit": 1.5}, ["limit must be a whole number"]),
        ({"search": "x", "limit": float("nan")}, ["limit must be a whole number"]),
        ([1], ["object"]),
        ("search", ["object"]),
    ],
)
def test_a_mistake_is_an_error_that_says_what_goes_where(arguments: Any, words: list[str]) -> None:
    with pytest.raises(WrongFieldsError) as caught:
        read_request(arguments)
    assert [word for word in words if word not in str(caught.value)] == []


NO_SUCH = {"type": "object", "properties": {"text": {"type": "string"}}}


@pytest.mark.requirement("one-tool-wrong-fields")
@pytest.mark.parametrize(
    ("args", "schema"),
    [
        ({"text": "a", "server": "gh"}, NO_SUCH),
        ({"tool": "t"}, {"type": "object", "properties": {}}),
        ({"args": {}}, {**NO_SUCH, "additionalProperties": False}),
    ],
)
def test_fields_of_the_one_tool_inside_args_are_an_error(args: dict[str, Any], schema: Any) -> None:
    with pytest.raises(WrongFieldsError, match="beside args"):
        check_inside(args, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"server": {}, "limit": {}}},
        {**NO_SUCH, "additionalProperties": True},
        {**NO_SUCH, "additionalProperties": {"type": "integer"}},
        {**NO_SUCH, "patternProperties": {"^s": {}}},
        {**NO_SUCH, "anyOf": [{}]},
        {"type": "object"},
        None,
        True,
    ],
)
def test_a_tool_that_takes_such_parameters_gets_them(schema: Any) -> None:
    check_inside({"server": "x", "limit": 1}, schema)
