"""The differences between two definitions, and whether calls written for the old one still match the new one."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.catalog.changes import LINES_MOST, difference, in_approved_form, still_takes

A = {"type": "string"}
SCHEMAS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"properties": {"a": A}}, {"properties": {"a": A}}, True),
    ({"properties": {"a": A}}, {"properties": {"a": A, "b": A}}, True),
    ({"properties": {"a": A}}, {"properties": {"a": A, "b": A}, "required": ["b"]}, False),
    ({"properties": {"a": A}, "required": ["a"]}, {"properties": {"a": A}}, True),
    ({"properties": {"a": A}}, {"properties": {"a": {"type": ["string", "null"]}}}, True),
    ({"properties": {"a": A}}, {"properties": {"a": {"type": "number"}}}, False),
    ({"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"type": "number"}}}, True),
    ({"properties": {"a": {**A, "enum": ["x"]}}}, {"properties": {"a": {**A, "enum": ["x", "y"]}}}, True),
    ({"properties": {"a": {**A, "enum": ["x", "y"]}}}, {"properties": {"a": {**A, "enum": ["x"]}}}, False),
    ({"properties": {"a": A}}, {"properties": {"a": {**A, "enum": ["x"]}}}, False),
    ({"properties": {"a": A}}, {"properties": {"a": {**A, "pattern": "x"}}}, False),
    ({"properties": {"a": {**A, "pattern": "x"}}}, {"properties": {"a": A}}, True),
    ({"properties": {"a": A}}, {"properties": {"a": {**A, "description": "other words"}}}, True),
    ({"properties": {"a": A}}, {"properties": {}}, False),
    ({"properties": {"a": A}}, {"properties": {"a": A}, "additionalProperties": False}, False),
    ({"properties": {"a": {"type": "array", "items": A}}}, {"properties": {"a": {"type": "array", "items": {}}}}, True),
    ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": A}},
     {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "number"}}}, False),
    ({"anyOf": [{"required": ["a"]}]}, {"anyOf": [{"required": ["b"]}]}, False),
    ({}, {"properties": {"a": True}}, True),
]  # fmt: skip


@pytest.mark.requirement("pin-held")
@pytest.mark.parametrize(("old", "new", "fits"), SCHEMAS)
def test_whether_old_calls_fit_the_new_schema(old: dict[str, Any], new: dict[str, Any], fits: bool) -> None:
    before, after = {"inputSchema": {"type": "object", **old}}, {"inputSchema": {"type": "object", **new}}
    assert still_takes(before, after) is fits


@pytest.mark.requirement("pin-held")
def test_in_its_approved_form_a_tool_is_no_less_careful_than_it_says_now() -> None:
    old = {
        "name": "a",
        "icons": [0],
        "annotations": {"readOnlyHint": True, "title": "A"},
        "outputSchema": {"type": "object"},
    }
    new = {"name": "a", "annotations": {"readOnlyHint": False}, "icons": [1]}
    assert in_approved_form(old, new) == {"name": "a", "annotations": {"title": "A"}, "icons": [0]}


@pytest.mark.requirement("pin-approve")
def test_a_difference_is_lines_of_before_and_after_that_hide_nothing() -> None:
    lines = difference({"description": "one\ntwo"}, {"description": "one\nt\u200bwo\x1b[2J", "title": "T"})
    assert lines == ["title:", "+ T", "description:", "  one", "- two", "+ t<U+200B>wo<U+001B>[2J"]


@pytest.mark.requirement("pin-approve")
def test_a_difference_without_end_is_cut() -> None:
    lines = difference({}, {"description": "\n".join(map(str, range(100_000)))})
    assert len(lines) == LINES_MOST + 1
    assert all(len(line) < 1_000 for line in lines)


@pytest.mark.requirement("pin-approve")
@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("word " * 500, "word " * 250 + "poison " + "word " * 250, "poison"),
        ("Ignore case", "Ign\u043ere case", "<U+043E>"),
        ("a b", "a\u00a0b", "<U+00A0>"),
        ("x" * 120_000, "x" * 119_000 + "poison", "more characters"),
        ("line\n" * 300, "line\n" * 300 + "poison", "poison"),
        ("поиск файлов", "поиск файлов!", "поиск файлов!"),
    ],
)
def test_what_differs_is_shown_wherever_it_stands(before: str, after: str, shown: str) -> None:
    lines = difference({"description": before}, {"description": after})
    assert any(line.startswith("+ ") and shown in line for line in lines), lines
