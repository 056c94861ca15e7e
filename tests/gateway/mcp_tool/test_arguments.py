"""The quick check of arguments, which accepts nothing that the full check rejects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.catalog.schema.arguments import problems
from trayapp.gateway.mcp_tool.request import fits_plainly

VALUES = st.sampled_from(["text", "", 5, -1, 1.5, float("nan"), True, None, [1], {"a": 1}])
INNER = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "array", None]),
        "minLength": st.just(3),
    },
)
NAMES = st.sampled_from(["a", "b", "c"])
SCHEMAS = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "string"]), "properties": st.dictionaries(NAMES, INNER)},
    optional={
        "required": st.lists(NAMES, unique=True),
        "additionalProperties": st.booleans(),
        "maxProperties": st.just(1),
    },
)


@pytest.mark.requirement("one-tool-call")
@given(st.dictionaries(NAMES, VALUES), SCHEMAS)
def test_what_fits_plainly_has_no_problem(args: dict[str, Any], schema: Any) -> None:
    assert not (fits_plainly(args, schema) and problems(args, schema))


@pytest.mark.parametrize(
    ("args", "plain"),
    [
        ({"a": "x"}, True),
        ({"a": "x", "n": 5}, True),
        ({}, False),
        ({"a": "x", "server": "y"}, False),
        ({"a": 5}, False),
    ],
)
def test_a_common_call_is_plain(args: dict[str, Any], plain: bool) -> None:
    properties = {"a": {"type": "string", "description": "d"}, "n": {"type": "integer", "default": 3}}
    schema = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    assert fits_plainly(args, schema) is plain


@pytest.mark.parametrize("schema", [None, True, {}, {"type": "object"}, {"type": "object", "properties": []}])
def test_an_odd_schema_is_not_plain(schema: Any) -> None:
    assert not fits_plainly({}, schema)
