"""Tools as clients get them: valid schemas are unchanged, odd ones are repaired or withheld. All are valid MCP."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import Tool

from tests.catalog.strategies import json_objects, json_values
from trayapp.catalog.schema.mending import DEPTH_MOST
from trayapp.catalog.schema.tool import WithheldTool, repair, repaired, served_tool


@pytest.mark.parametrize("schema", [pytest.param(None, id="merge-07"), True, False, "object", [], 3])
def test_what_is_no_schema_becomes_the_empty_object(schema: Any) -> None:
    assert repaired(schema) == {"type": "object", "properties": {}}


def test_merge_08_a_good_schema_is_passed_through_untouched() -> None:
    schema = {"type": "object", "required": ["q"]}
    assert repaired(schema) is schema


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {}}}, {"type": None, "required": []}])
def test_a_schema_without_type_is_of_an_object(schema: dict[str, Any]) -> None:
    before = dict(schema)
    assert repaired(schema) == {**schema, "type": "object"}
    assert schema == before


def of(required: Any = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


GOOD: list[dict[str, Any]] = [
    of(a={"type": ["string", "null"], "default": None}),
    of(a={"$ref": "#/$defs/a"}) | {"$defs": {"a": {"type": "string"}}},
    of(value={}, next={"$ref": "#"}),
    of(a={"items": [{}]}) | {"$schema": "http://json-schema.org/draft-07/schema#"},
    of(a={"additionalProperties": False, "items": True, "enum": list(range(1000))}),
    of(a={"x-unknown": [1, {"type": 3}], "format": "date", "const": None}),
    of(a={"anyOf": [{"type": "string"}, {"type": "null"}], "title": "A"}, b={"not": {"type": "string"}}),
    of(a={"$ref": "#node"}, b={"$anchor": "node"}),
    {"type": "object", "additionalProperties": {"type": "integer"}, "patternProperties": {"^x": {}}},
    {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
]


@pytest.mark.requirement("schema-repaired")
@pytest.mark.parametrize("schema", GOOD)
def test_a_good_schema_is_the_server_s_own_object(schema: dict[str, Any]) -> None:
    assert repair(schema) is schema


ODD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("boolean parameters", of(a=True, b=False), of(a={}, b={"not": {}})),
    ("boolean form", of(a={"anyOf": [True, {"type": "string"}]}), of(a={"anyOf": [{}, {"type": "string"}]})),
    ("type object or null", {"type": ["object", "null"]}, {"type": "object"}),
    ("nowhere", of(a={"$ref": "#/$defs/no", "description": "d"}), of(a={"description": "d"})),
    ("elsewhere", of(a={"$ref": "https://example.com/s.json"}), of(a={})),
    ("a circle", of(a={"$ref": "#/$defs/a"}) | {"$defs": {"a": {"$ref": "#/$defs/a"}}},
     of(a={}) | {"$defs": {"a": {}}}),
    ("draft-04 bound", of(a={"minimum": 3, "exclusiveMinimum": True}), of(a={"exclusiveMinimum": 3})),
    ("draft-04 no bound", of(a={"maximum": 3, "exclusiveMaximum": False}), of(a={"maximum": 3})),
    ("draft-03 required", of(a={"required": True}, b={"required": False}), of(("a",), a={}, b={})),
    ("draft-03 inside", of(a={"items": {"type": "string", "required": True}}), of(a={"items": {"type": "string"}})),
    ("required at the top", {**of(a={}), "required": True}, of(a={})),
    ("one required name", {**of(a={}), "required": "a"}, of(("a",), a={})),
    ("wrong required", {**of(a={}), "required": [1]}, of(a={})),
    ("type any", of(a={"type": "any"}), of(a={})),
    ("types of Python", of(a={"type": "int"}, b={"type": "str"}, c={"type": "Dict"}, d={"type": ["list", "None"]}),
     of(a={"type": "integer"}, b={"type": "string"}, c={"type": "object"}, d={"type": ["array", "null"]})),
    ("types in capitals", of(a={"type": "STRING"}), of(a={"type": "string"})),
    ("unknown among known", of(a={"type": ["string", "blob"]}), of(a={})),
    ("tuple", of(a={"items": [{"type": "string"}], "additionalItems": False}),
     of(a={"prefixItems": [{"type": "string"}], "items": False})),
    ("empty tuple", of(a={"type": "array", "items": []}), of(a={"type": "array"})),
    ("no properties in PHP", {"type": "object", "properties": []}, {"type": "object"}),
    ("null", {"type": "object", "properties": None, "required": None, "description": None}, {"type": "object"}),
    ("wrong limits", of(a={"minimum": "1", "maxLength": -1, "pattern": 3, "enum": [], "minItems": 1.5}), of(a={})),
    ("wrong parts", of(a={"anyOf": [], "properties": [], "items": "x", "description": 5, "not": 3}), of(a={})),
    ("wrong dialect", {**of(), "$schema": "mine"}, of()),
    ("no schema of a parameter", of(a="string", b=None, c=[1]), of(a={}, b={}, c={})),
    (
        "forms at the top",
        {"oneOf": [of(("a", "c"), a={"type": "string"}, c={}), of(("b", "c"), b={}, c={})]},
        {"properties": {"a": {"type": "string"}, "c": {}, "b": {}}, "required": ["c"], "type": "object"},
    ),
    (
        "one parameter, two forms",
        {"type": "object", "anyOf": [of(a={"type": "string"}), of(a={"type": "null"})]},
        of(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ),
    (
        "all at the top",
        {**of(("a",), a={}), "additionalProperties": False, "allOf": [of(("b",), b={}), {"$ref": "#/$defs/c"}],
         "$defs": {"c": of(c={})}},
        {**of(("a", "b"), a={}, b={}, c={}), "$defs": {"c": of(c={})}},
    ),
    (
        "a reference at the top",
        {"$ref": "#/definitions/args", "definitions": {"args": of(("a",), a={})}},
        {**of(("a",), a={}), "definitions": {"args": of(("a",), a={})}},
    ),
    ("an enum at the top", {**of(a={}), "enum": [{"a": 1}]}, of(a={})),
    ("forms without an object around", {"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {}]}, of(a={})),
    ("no object among limits", {**of(a={}), "anyOf": [{"required": ["a"]}, {"type": "null"}]}, of(("a",), a={})),
]  # fmt: skip


@pytest.mark.requirement("schema-repaired")
@pytest.mark.parametrize(("schema", "mended"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_an_odd_schema_is_repaired(schema: dict[str, Any], mended: dict[str, Any]) -> None:
    assert repaired(schema) == mended


def test_a_huge_enum_is_told_instead() -> None:
    mended = repaired(of(a={"enum": [f"v{number}" for number in range(5000)], "description": "Which"}))
    told = "Which (one of 5000 values, such as v0, v1, v2, v3, v4)"
    assert mended == of(a={"description": told})


def test_what_is_nested_too_deep_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = of(a=schema)
    levels, here = 0, repaired(schema)
    while "properties" in here:
        levels, here = levels + 1, here["properties"]["a"]
    assert levels == DEPTH_MOST


@pytest.mark.requirement("schema-repaired")
@pytest.mark.parametrize(
    "schema",
    [{"type": "string"}, {"type": ["array", "null"]}, {"$ref": "#/$defs/no"}, {"$ref": "#"},
     {"properties": [{"name": "a"}]}, {"oneOf": [{"type": "string"}, {"type": "null"}]},
     {"$ref": "#/$defs/s", "$defs": {"s": {"type": "string"}}}],
)  # fmt: skip
def test_what_can_be_no_object_is_withheld_with_a_reason(schema: dict[str, Any]) -> None:
    found = repair(schema)
    assert isinstance(found, WithheldTool)
    assert "\n" not in found.reason
    assert "input schema" in found.reason


@pytest.mark.requirement("schema-kept")
@pytest.mark.parametrize(
    "limits",
    [
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"not": {"required": ["b"]}},
        {"oneOf": [{"properties": {"a": {"const": 1}}}, {"type": "object", "allOf": [{"required": ["a"]}]}]},
        {
            "allOf": [{"anyOf": [{"required": ["a"]}, {}]}],
            "if": {"required": ["a"]},
            "then": {"minProperties": 2},
            "additionalProperties": False,
        },
    ],
    ids=["one of them is required", "not both", "values", "all at once"],
)
def test_what_only_limits_the_parameters_beside_it_stays_as_it_is(limits: dict[str, Any]) -> None:
    schema = {**of(a={"type": "integer"}), "$schema": "https://json-schema.org/draft/2020-12/schema", **limits}
    assert repair(schema) is schema


# Patterns follow ECMAScript. A pattern that Python cannot parse may still be valid, so it is passed on.
NO_FORMATS = jsonschema.FormatChecker(())
keywords = st.sampled_from(
    ["type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "enum",
     "minimum", "exclusiveMinimum", "additionalProperties", "prefixItems", "not", "description", "pattern", "$schema",
     "if", "const", "default", "x-other", "minLength", "dependencies", "format", "examples"]
)  # fmt: skip
odd_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2)
    | st.sampled_from(["object", "string", "int", "#", "#/$defs/a", "#/properties/a", "http://x/y", "a", "b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords | st.sampled_from("ab"), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
odd_schemas = st.dictionaries(keywords, odd_values, max_size=6) | odd_values | json_values


@pytest.mark.requirement("schema-repaired")
@settings(deadline=None, max_examples=200)
@given(odd_schemas)
def test_whatever_is_served_is_a_valid_schema_of_an_object(schema: Any) -> None:
    found = repair(schema)
    mended = repaired(schema)
    assert mended["type"] == "object"
    assert not {"enum", "const", "$ref"} & mended.keys()
    assert not {"oneOf", "anyOf", "allOf", "not"} & mended.keys() or "properties" in mended
    jsonschema.validators.validator_for(mended, jsonschema.Draft202012Validator).check_schema(mended, NO_FORMATS)
    Tool.model_validate({"name": "t", "inputSchema": mended})
    if not isinstance(found, WithheldTool):
        assert repair(found) == found


@settings(deadline=None, max_examples=60)
@given(json_objects, st.dictionaries(st.sampled_from(["title", "description", "annotations", "outputSchema", "_meta"]),
                                     json_values | odd_schemas))  # fmt: skip
def test_whatever_a_server_sends_is_served_as_a_tool_of_mcp(unknown: dict[str, Any], known: dict[str, Any]) -> None:
    served = served_tool({**unknown, **known}, "s_t")
    kept = {key: value for key, value in served.items() if key in Tool.model_fields or key in known}
    Tool.model_validate({**kept, "name": "s_t", "inputSchema": served["inputSchema"]})


def test_a_tool_keeps_every_field_in_its_order_under_its_new_name() -> None:
    item = {"x-first": 1, "name": "get", "inputSchema": {"type": "object"}, "_meta": {"k": [1]}, "unknown": None}
    served = served_tool(item, "s_get")
    assert list(served.items()) == [
        ("x-first", 1), ("name", "s_get"), ("inputSchema", {"type": "object"}), ("_meta", {"k": [1]}), ("unknown", None)
    ]  # fmt: skip
    assert item["name"] == "get"


def test_a_tool_without_a_schema_gets_one() -> None:
    assert served_tool({"name": "a"}, "b") == {"name": "b", "inputSchema": {"type": "object", "properties": {}}}


def test_fields_that_no_client_could_read_are_left_out() -> None:
    item = {"name": "a", "inputSchema": of(), "description": None, "title": 3, "icons": "x", "outputSchema": "y",
            "annotations": {"readOnlyHint": "yes", "title": None, "x": 1}}  # fmt: skip
    assert served_tool(item, "a") == {
        "name": "a", "inputSchema": of(), "outputSchema": {"type": "object", "properties": {}}, "annotations": {"x": 1}
    }  # fmt: skip


OBJECT, TEXT = {"type": "object", "properties": {}}, {"type": "string"}


@pytest.mark.requirement("schema-output")
@pytest.mark.parametrize(
    ("output", "served"),
    [
        (OBJECT, OBJECT),
        ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}),
        ({"type": "array", "items": TEXT}, None),
        ({"type": ["object", "null"]}, None),
        ({"anyOf": [OBJECT, {"type": "null"}]}, None),
        ({"oneOf": [{"anyOf": [TEXT, OBJECT]}, OBJECT]}, None),
    ],
)
def test_an_output_schema_that_allows_other_values_is_left_out(output: Any, served: Any) -> None:
    """Clients would otherwise refuse valid results that are not objects."""
    item = {"name": "a", "inputSchema": of(), "outputSchema": output}
    assert served_tool(item, "a").get("outputSchema") == served


def test_what_is_served_is_the_server_s_own_description() -> None:
    item = {"name": "a", "description": "new", "inputSchema": {"type": "object"}}
    assert served_tool(item, "s_a")["description"] == "new"
