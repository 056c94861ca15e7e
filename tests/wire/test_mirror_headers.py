"""Tests of the annotations that repeat a tool's parameters in HTTP headers."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.catalog.schema.tool import WithheldTool, repair
from trayapp.wire.mirror_headers import why_no_headers


def of(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def text(header: Any, kind: Any = "string") -> dict[str, Any]:
    """Return the schema of a parameter that is repeated in a header."""
    return {"type": kind, "x-mcp-header": header}


FINE = [
    None,
    of(a={"type": "string"}),
    of(a=text("Region"), b=text("Priority", "integer"), c=text("Verbose", "boolean")),
    of(a=of(b=text("Inner"))),
    of(a={"type": "string", "default": {"x-mcp-header": ""}, "enum": [{"x-mcp-header": ""}]}),
]

WRONG = [
    ("empty", of(a=text("")), "x-mcp-header of a is not a header name: ''"),
    ("no text", of(a=text(5)), "x-mcp-header of a is not a header name: 5"),
    ("a space", of(a=text("My Region")), "x-mcp-header of a is not a header name: 'My Region'"),
    ("a colon", of(a=text("Region:1")), "x-mcp-header of a is not a header name: 'Region:1'"),
    ("not ASCII", of(a=text("Région")), "x-mcp-header of a is not a header name: 'Région'"),
    ("a line break", of(a=text("A\n")), "x-mcp-header of a is not a header name: 'A\\n'"),
    *(
        (str(kind), of(a=text("A", kind)), "x-mcp-header of a is not on a string, integer or boolean")
        for kind in ("object", "array", "null", "number", ["string"])
    ),
    ("twice", of(a=text("A"), b=text("A")), "x-mcp-header of a is used by another parameter: A"),
    ("twice but for case", of(a=text("My"), b=text("mY")), "x-mcp-header of a is used by another parameter: My"),
    ("at the top", {**of(), "x-mcp-header": "A"}, "x-mcp-header is not on a parameter"),
    ("in a list", of(a={"type": "array", "items": text("A")}), "x-mcp-header is not on a parameter"),
    ("in a choice", of(a={"anyOf": [text("A")]}), "x-mcp-header is not on a parameter"),
    ("in a definition", {**of(), "$defs": {"a": text("A")}}, "x-mcp-header is not on a parameter"),
]  # fmt: skip


@pytest.mark.requirement("schema-headers")
@pytest.mark.parametrize("schema", FINE)
def test_annotations_as_mcp_has_them_are_fine(schema: Any) -> None:
    assert why_no_headers(schema) is None


@pytest.mark.requirement("schema-headers")
@pytest.mark.parametrize(("schema", "why"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_tool_with_any_other_annotation_is_withheld_with_the_reason(schema: dict[str, Any], why: str) -> None:
    assert why_no_headers(schema) == why
    assert repair(schema) == WithheldTool(why)
