"""The values that a schema allows, with their titles."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.model.json_schema import choices

TITLED = [{"const": "a4", "title": "A4 sheet"}, {"const": 7}]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["red", 2]}, [("red", "red"), (2, "2")]),
        ({"enum": ["r"], "enumNames": ["Red"]}, [("r", "Red")]),
        ({"enum": ["r"], "enumNames": ["Red", "Green"]}, [("r", "r")]),
        ({"oneOf": TITLED}, [("a4", "A4 sheet"), (7, "7")]),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, [("a", "a")]),
        ({"anyOf": [{"oneOf": TITLED}]}, [("a4", "A4 sheet"), (7, "7")]),
        ({"enum": 5, "oneOf": 5}, []),
        ({"type": "string"}, []),
        (None, []),
    ],
)
def test_enums_and_titled_constants_are_listed(schema: Any, expected: list[tuple[Any, str]]) -> None:
    assert choices(schema) == expected


def test_a_schema_nested_without_end_names_nothing() -> None:
    schema: dict[str, Any] = {"enum": ["a"]}
    for _ in range(5_000):
        schema = {"anyOf": [schema]}
    assert choices(schema) == []
