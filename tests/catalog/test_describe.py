"""Tests of tool descriptions in words: single cases, and a property test with arbitrary schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.catalog.schema.test_tool import odd_schemas
from tests.catalog.strategies import json_values
from trayapp.catalog.describe import LINES_MOST, compact, describe, parameters

CONFIG = {
    "type": "object",
    "properties": {
        "enabled": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
    },
    "required": ["enabled"],
}


def of(required: Any = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


CASES: list[tuple[str, Any, list[str]]] = [
    ("describe-01", {"type": "object", "properties": {}}, ["(no parameters)"]),
    ("no properties", {"type": "object"}, ["(object)"]),
    ("none at all", {"type": "object", "additionalProperties": False}, ["(no parameters)"]),
    ("describe-03", {"type": "string"}, ["(string)"]),
    ("describe-04", {}, ["(complex schema)"]),
    ("no schema", None, ["(no schema)"]),
    ("a list", {"type": "array", "items": {"type": "string"}}, ["(array)"]),
    (
        "describe-05",
        of(("a",), a={"type": "integer", "minimum": 1, "maximum": 5, "default": 3, "description": "count"}),
        ["a (integer) *required* - count [minimum: 1] [maximum: 5] [default: 3]"],
    ),
    ("describe-06", of(("simulatorId",), simulatorId={"type": "string"}), ["simulatorId (string) *required*"]),
    (
        "describe-08",
        of(target={"oneOf": [{"const": "draft"}, {"const": "published"}]}),
        ["target", "  oneOf:", '    - const "draft"', '    - const "published"'],
    ),
    (
        "describe-09",
        of(("config",), config=CONFIG),
        ["config (object) *required*", "  enabled (boolean) *required*", "  tags (array) [minItems: 1]",
         '    items (enum: "a", "b")'],
    ),
    (
        "describe-20",
        {"properties": {"simulatorId": {"type": "string", "description": "UDID"},
                        "wait": {"type": "boolean", "default": True}}, "required": ["simulatorId"]},
        ["simulatorId (string) *required* - UDID", "wait (boolean) [default: true]"],
    ),
    ("nullable", of(a={"anyOf": [{"type": "string"}, {"type": "null"}]}), ["a (string | null)"]),
    ("types", of(a={"type": ["string", "integer"]}), ["a (string | integer)"]),
    ("lines of a description", of(a={"description": "one\n  two"}), ["a - one two"]),
    ("default text", of(a={"type": "string", "default": ""}, b={"default": "x"}),
     ['a (string) [default: ""]', 'b [default: "x"]']),
    (
        "reference",
        {**of(p={"$ref": "#/$defs/p"}), "$defs": {"p": of(("x",), x={"type": "integer"})}},
        ["p (object)", "  x (integer) *required*"],
    ),
    ("map", of(m={"type": "object", "additionalProperties": {"type": "integer"}}),
     ["m (object)", "  (any name) (integer)"]),
    ("forms at the top", {"anyOf": [of(("a",), a={}), of(b={})]},
     ["anyOf:", "  - object", "    a *required*", "  - object", "    b"]),
    ("never", of(a=False, b=True), ["b"]),
    ("constant", of(a={"type": "string", "const": "k"}), ['a (const "k")']),
    ("items say it", of(a={"items": {"type": "string"}}), ["a (array)", "  items (string)"]),
    ("limits", of(a={"type": "string", "pattern": "^a", "format": "uri", "maxLength": 9, "minLength": 1}),
     ['a (string) [minLength: 1] [maxLength: 9] [format: "uri"] [pattern: "^a"]']),
    ("any form", of(a={"oneOf": [{}, {"type": "null"}]}), ["a", "  oneOf:", "    - any", "    - null"]),
]  # fmt: skip


@pytest.mark.requirement("describe-cases")
@pytest.mark.parametrize(("schema", "lines"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_parameters_are_described(schema: Any, lines: list[str]) -> None:
    assert parameters(schema).splitlines() == lines


def test_a_recursive_schema_ends() -> None:
    tree = of(value={"type": "integer"}, next={"$ref": "#/$defs/node"})
    text = parameters({**tree, "$defs": {"node": tree}})
    assert text.startswith("value (integer)\nnext (object)\n  value (integer)\n  next (object)")
    wide = {f"p{number}": {"$ref": "#/$defs/node"} for number in range(9)}
    assert len(parameters({**of(**wide), "$defs": {"node": of(**wide)}}).splitlines()) == LINES_MOST + 1


def test_a_tool_is_described_whole() -> None:
    tool = {"name": "boot.sim", "title": "Boot", "description": "Starts it.\n\nWaits too.", "inputSchema": of(),
            "annotations": {"destructiveHint": True, "readOnlyHint": False}}  # fmt: skip
    assert describe(tool, "xcode_boot_sim", "xcode").splitlines() == [
        "xcode_boot_sim (boot.sim of server xcode)", "Boot", "Starts it.", "", "Waits too.", "Hints: destructive",
        "", "Parameters:", "(no parameters)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (of(), "()"),
        (None, "()"),
        (of(("b",), a={"type": "integer", "default": 10}, b={"type": "string"}), "(b: string, a?: integer = 10)"),
        (of(s={"enum": ["open", "closed"]}), '(s?: "open"|"closed")'),
        (of(s={"enum": list(range(12))}), "(s?: 0|1|2|3|4|5|6|7|...)"),
        (of(l={"type": "array", "items": {"type": "string"}}), "(l?: string[])"),
        (of(l={"type": "array"}), "(l?: any[])"),
        (of(l={"items": {"enum": ["a", "b"]}}), '(l?: ("a"|"b")[])'),
        (of(o=of(("x",), x={"type": "number"})), "(o?: {x: number})"),
        (of(o=of(p=of(x={"type": "number"}))), "(o?: {p?: object})"),
        (of(n={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}), "(n?: string)"),
        (of(n={"type": ["integer", "string", "null"]}), "(n?: integer|string)"),
        (of(x={}), "(x?: any)"),
        (of(**{f"p{number:02d}": {"type": "string"} for number in range(14)}),
         "(" + ", ".join(f"p{number:02d}?: string" for number in range(12)) + ", ... 2 more)"),
    ],
)  # fmt: skip
def test_one_line_holds_the_parameters(schema: Any, line: str) -> None:
    assert compact({"inputSchema": schema}) == line


@settings(deadline=None)
@given(odd_schemas, json_values)
def test_anything_can_be_described(schema: Any, other: Any) -> None:
    texts = {"name": other, "title": other, "description": other}
    for tool in ({"inputSchema": schema}, texts, {"annotations": other}):
        assert "\n" not in compact(tool)
        assert describe(tool, "s_x", "s").startswith("s_x (")
