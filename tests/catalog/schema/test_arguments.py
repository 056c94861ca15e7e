"""Tests of checking arguments before a call: which are refused, and with which message. Valid arguments pass."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trayapp.catalog.schema.arguments import InvalidArgumentsError, as_typed, problems, read_arguments


def schema_of(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


READ: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("args-03", '{"a":1}', {}, {"a": 1}),
    ("args-04", {"a": 1}, {}, {"a": 1}),
    ("args-12", {"list": "[1,2]"}, {"list": {"type": ["array", "null"]}}, {"list": [1, 2]}),
    ("args-13", {"s": "[1,2]"}, {"s": {"type": ["string", "array"]}}, {"s": "[1,2]"}),
    ("none", None, {}, {}),
    ("empty text", "  ", {}, {}),
    ("object in a text", {"o": ' {"b": 2} '}, {"o": {"type": "object"}}, {"o": {"b": 2}}),
    ("text of another kind", {"o": "[1]"}, {"o": {"type": "object"}}, {"o": "[1]"}),
    ("not quite JSON", {"o": "{b"}, {"o": {"type": "object"}}, {"o": "{b"}),
    ("said by anyOf", {"l": "[1]"}, {"l": {"anyOf": [{"type": "array"}, {"type": "null"}]}}, {"l": [1]}),
    ("a string is as good", {"l": "[1]"}, {"l": {"anyOf": [{"type": "array"}, {"type": "string"}]}}, {"l": "[1]"}),
    ("nothing is said", {"x": "[1]"}, {}, {"x": "[1]"}),
    ("a text inside JSON text", '{"list": "[1]"}', {"list": {"type": "array"}}, {"list": [1]}),
]


@pytest.mark.parametrize(("given_", "properties", "read"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_arguments_are_read(given_: Any, properties: dict[str, Any], read: Any) -> None:
    assert read_arguments(given_, schema_of(**properties)) == read


TYPED = schema_of(
    s={"type": "string"}, n={"type": "integer"}, b={"type": ["string", "boolean"]},
    r={"$ref": "#/$defs/s"}, e={"enum": ["1"]},
) | {"$defs": {"s": {"type": "string"}}}  # fmt: skip


@pytest.mark.parametrize(
    ("args", "typed", "sent"),
    [
        ({"s": 5}, {"s": "5"}, {"s": "5"}),
        ({"s": None, "r": [1]}, {"s": "null", "r": "[1]"}, {"s": "null", "r": "[1]"}),
        ({"n": 5}, {"n": "5"}, {"n": 5}),
        ({"n": 5.5}, {"n": "5.5"}, {"n": 5.5}),  # wrong in either form, so the parsed value is sent
        ({"b": True}, {"b": "true"}, {"b": True}),
        ({"e": 1}, {"e": "1"}, {"e": "1"}),
        ({"x": 1, "s": "a"}, {"x": "1"}, {"x": 1, "s": "a"}),
        ({"s": 5}, {}, {"s": 5}),
    ],
)
def test_a_typed_word_is_text_where_only_text_is_wanted(
    args: dict[str, Any], typed: dict[str, str], sent: dict[str, Any]
) -> None:
    assert as_typed(args, typed, TYPED) == sent
    assert as_typed(args, typed, None) == args


@pytest.mark.parametrize(
    "args",
    [pytest.param("[1]", id="args-05"), pytest.param("3", id="args-06"), pytest.param("{bad", id="args-07"),
     pytest.param(5, id="args-09"), [1], True, '"text"', "null", "[" * 100_000],
)  # fmt: skip
def test_what_is_no_object_is_refused(args: Any) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        read_arguments(args, {})
    assert caught.value.code == "invalid_arguments"


WRONG: list[tuple[str, Any, dict[str, Any], list[str]]] = [
    ("args-10", {"a": math.nan}, {}, ["a: nan is not a number that JSON can hold"]),
    ("deep", {"a": [{"b": math.inf}]}, {}, ["a[0].b: inf is not a number that JSON can hold"]),
    (
        "infinite", {"n": math.inf}, schema_of(n={"type": "integer"}),
        ["n: inf is not a number that JSON can hold", "n: must be an integer, not Infinity"],
    ),
    ("no properties", {"a": 1}, {"properties": 5, "additionalProperties": False}, ["a: unknown parameter"]),
    ("missing", {}, {"required": ["q", "r"]}, ["q: is missing", "r: is missing"]),
    ("type", {"n": "5"}, schema_of(n={"type": "integer"}), ['n: must be an integer, not "5"']),
    ("types", {"n": []}, schema_of(n={"type": ["integer", "null"]}), ["n: must be an integer or null, not []"]),
    ("boolean", {"n": True}, schema_of(n={"type": "number"}), ["n: must be a number, not true"]),
    ("fraction", {"n": 1.5}, schema_of(n={"type": "integer"}), ["n: must be an integer, not 1.5"]),
    ("enum", {"s": "x"}, schema_of(s={"enum": ["a", 1]}), ['s: must be one of "a", 1, not "x"']),
    ("const", {"s": "x"}, schema_of(s={"const": "a"}), ['s: must be "a", not "x"']),
    ("least", {"n": 0}, schema_of(n={"minimum": 1}), ["n: must be at least 1, not 0"]),
    ("more", {"n": 1}, schema_of(n={"exclusiveMinimum": 1}), ["n: must be more than 1, not 1"]),
    ("less", {"n": 3}, schema_of(n={"exclusiveMaximum": 3}), ["n: must be less than 3, not 3"]),
    ("short", {"s": ""}, schema_of(s={"minLength": 2}), ["s: must have at least 2 characters, not 0"]),
    ("long", {"l": [1, 2]}, schema_of(l={"maxItems": 1}), ["l: must have at most 1 items, not 2"]),
    (
        "unknown", {"quary": 1}, {"properties": {"query": {}}, "additionalProperties": False},
        ["quary: unknown parameter; did you mean query?"],
    ),
    (
        "inside", {"o": {"l": [1, "x"]}}, schema_of(o=schema_of(l={"type": "array", "items": {"type": "integer"}})),
        ['o.l[1]: must be an integer, not "x"'],
    ),
    (
        "reference", {"p": {}}, {**schema_of(p={"$ref": "#/$defs/p"}), "$defs": {"p": schema_of(("x",))}},
        ["p.x: is missing"],
    ),
    (
        "nearest form", {"p": {}}, schema_of(p={"anyOf": [{"type": "null"}, schema_of(("x",))]}),
        ["p.x: is missing"],
    ),
    (
        "no form", {"p": 1}, schema_of(p={"oneOf": [{"type": "null"}, {"type": "string"}]}),
        ["p: matches none of the allowed forms; p: must be null, not 1"],
    ),
    ("both", {"n": "x"}, {"allOf": [schema_of(("m",)), schema_of(n={"type": "null"})]},
     ["m: is missing", 'n: must be null, not "x"']),
    ("never", {"n": 1}, schema_of(n=False), ["n: no value is allowed here"]),
]  # fmt: skip


@pytest.mark.requirement("args-checked")
@pytest.mark.parametrize(("args", "schema", "found"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_all_that_is_wrong_is_said(args: Any, schema: dict[str, Any], found: list[str]) -> None:
    assert problems(args, schema) == found


@pytest.mark.parametrize(
    ("args", "schema"),
    [
        ({"a": 1}, None),
        ({"a": 1}, True),
        ({"a": 1}, {}),
        ({"a": 1}, "object"),
        ({"a": 1}, {"properties": []}),
        ({"a": 1}, {"properties": {"a": {"type": "any"}}}),
        ({"a": 1}, {"properties": {"a": {"type": 3, "enum": "x", "minimum": True, "items": 4}}}),
        ({"a": 1.0}, schema_of(a={"type": "integer"})),
        ({"a": 1}, schema_of(a={"$ref": "#/nowhere"})),
        ({"a": 1}, schema_of(a={"$ref": "other.json#/x"})),
        ({"a": 1}, schema_of(a={"$ref": "#anchor"})),
        ({"a": 3}, schema_of(a={"minimum": 3, "exclusiveMinimum": True})),
        ({"x-a": 1}, {"additionalProperties": False, "patternProperties": {"^x-": {}}}),
        ({"a": 1}, {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {}},
                    "properties": {"a": {"$ref": "#/definitions/n", "type": "string"}}}),
        ({"a": {"b": 1}}, schema_of(a={"$id": "http://x/y", "properties": {"b": {"$ref": "#/properties/a"}}})),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_passes(args: Any, schema: Any) -> None:
    assert problems(args, schema) == []


def test_a_schema_that_doubles_the_work_at_each_level_ends() -> None:
    names = [f"d{level}" for level in range(60)]
    following = dict(pairwise(names))
    defs = {name: {"anyOf": [{"$ref": f"#/$defs/{following.get(name, 'd0')}"}] * 2} for name in names}
    assert problems({"a": 1}, {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}) == []


def test_a_schema_of_itself_follows_the_arguments_as_deep_as_they_go() -> None:
    tree = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}}
    assert problems({"v": 1, "next": {"v": 2, "next": {"v": 3}}}, tree) == []
    assert problems({"next": {"next": {"v": "x"}}}, tree) == ['next.next.v: must be an integer, not "x"']


class Chance:
    """Random schemas and values, with few names and numbers so that they often match. They are drawn much faster than
    with Hypothesis strategies.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        plain = [None, True, False, 0, 1, 3, -2, 0.5, 1.0, "", "a", "ab", "bbb"]
        kind = self._random.randrange(6 if depth < 2 else 4)
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self._random.randrange(4))]
        return self.arguments(depth + 1) if kind == 5 else self._random.choice(plain)

    def arguments(self, depth: int = 0) -> dict[str, Any]:
        return {name: self.value(depth) for name in self._random.sample("abc", self._random.randrange(4))}

    def schema(self, depth: int = 0, refs: tuple[str, ...] = ("#/$defs/a", "#/$defs/b")) -> Any:
        if depth > 3 or (depth and not self._random.randrange(6)):
            return self._random.choice([True, False, {}, {"type": "integer"}])
        keys = self._random.sample(KEYWORDS, self._random.randrange(1, 5))
        return {key: self._keyword(key, depth + 1, refs) for key in keys if key != "$ref" or refs}

    def _keyword(self, key: str, depth: int, refs: tuple[str, ...]) -> Any:
        several = range(self._random.randrange(1, 4))
        if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            return [self.schema(depth, refs) for _ in several]
        if key in ("properties", "patternProperties"):
            return {name: self.schema(depth, refs) for name in "abc"[: len(several)]}
        if key in ("additionalProperties", "items", "not", "if", "then"):
            return self.schema(depth, refs)
        if key in ("enum", "const"):
            return [self.value() for _ in several] if key == "enum" else self.value()
        choices: dict[str, list[Any]] = {
            "type": [*TYPES, ["string", "null"], ["integer", "array", "object"]],
            "required": [[], ["a"], ["a", "b"]], "$ref": list(refs), "uniqueItems": [True, False],
        }  # fmt: skip
        return self._random.choice(choices.get(key, [0, 1, 2, 3]))


TYPES = ["string", "integer", "number", "boolean", "object", "array", "null"]
KEYWORDS = [
    "type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "items",
    "prefixItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "$ref", "minimum", "exclusiveMaximum", "minLength",
    "maxItems", "minProperties", "uniqueItems",
]  # fmt: skip


@pytest.mark.requirement("args-checked")
@settings(deadline=None, max_examples=40)
@given(st.integers())
def test_nothing_valid_is_ever_refused(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(25):
        args, schema = chance.arguments(), chance.schema()
        whole = {**schema, "$defs": {name: chance.schema(2, ()) for name in "ab"}}
        valid, found = jsonschema.Draft202012Validator(whole).is_valid(args), problems(args, whole)
        assert not (valid and found), json.dumps([args, whole, found])


@given(st.integers())
def test_reading_never_makes_valid_arguments_others(seed: int) -> None:
    chance = Chance(seed)
    args, schema = chance.arguments(), chance.schema(refs=())
    if not problems(args, schema):
        assert read_arguments(args, schema) == args
    assert read_arguments(json.dumps(args), schema) == read_arguments(args, schema)
