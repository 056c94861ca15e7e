"""A tool as clients get it."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.catalog.schema import repaired, served_tool


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


def test_a_tool_keeps_every_field_in_its_order_under_its_new_name() -> None:
    item = {"x-first": 1, "name": "get", "inputSchema": {"type": "object"}, "_meta": {"k": [1]}, "unknown": None}
    served = served_tool(item, "s_get")
    assert list(served.items()) == [
        ("x-first", 1), ("name", "s_get"), ("inputSchema", {"type": "object"}), ("_meta", {"k": [1]}), ("unknown", None)
    ]  # fmt: skip
    assert item["name"] == "get"


def test_a_tool_without_a_schema_gets_one() -> None:
    assert served_tool({"name": "a"}, "b") == {"name": "b", "inputSchema": {"type": "object", "properties": {}}}


def test_what_is_served_is_the_server_s_own_description() -> None:
    """merge-05: one in servers.yaml is never served."""
    item = {"name": "a", "description": "new", "inputSchema": {"type": "object"}}
    assert served_tool(item, "s_a")["description"] == "new"
