"""Tests that every promise has a test, and that every promise named by a test exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).resolve().parent


def marks_in(source: str) -> Iterator[ast.Call]:
    """Yield every `pytest.mark.requirement(...)` in the source, including those in `pytestmark` and in parameters."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
            yield node


def ids_in(mark: ast.Call) -> list[str]:
    """Return the ids in a mark. Raises ValueError if one is not a plain string, which this scan cannot evaluate."""
    ids = [ast.literal_eval(argument) for argument in mark.args]
    if not ids or not all(isinstance(name, str) for name in ids):
        raise ValueError(f"line {mark.lineno}: a requirement mark wants ids")
    return ids


@cache
def ids_by_file() -> dict[str, set[str]]:
    """Return the ids named in each test file."""
    return {
        path.relative_to(TESTS).as_posix(): {
            name for mark in marks_in(path.read_text(encoding="utf-8")) for name in ids_in(mark)
        }
        for path in TESTS.rglob("test_*.py")
    }


def test_every_named_requirement_has_a_row() -> None:
    unknown = {path: names - REQUIREMENTS.keys() for path, names in ids_by_file().items()}
    assert {path: names for path, names in unknown.items() if names} == {}


def test_every_row_has_a_test() -> None:
    proven = {name for names in ids_by_file().values() for name in names}
    missing = sorted(REQUIREMENTS.keys() - proven)
    assert not missing, f"{len(missing)} of {len(REQUIREMENTS)} promises have no test: {', '.join(missing)}"


def test_rows_are_single_sentences_with_ids_of_one_form() -> None:
    assert [name for name in REQUIREMENTS if not all(part.isalnum() for part in name.split("-"))] == []
    assert [name for name, text in REQUIREMENTS.items() if not text.endswith(".")] == []
    assert len(set(REQUIREMENTS.values())) == len(REQUIREMENTS)


def test_marks_are_found_wherever_they_stand() -> None:
    source = """
pytestmark = pytest.mark.requirement("one")
@pytest.mark.requirement("two", "three")
def test_it(): pass
case = pytest.param(1, marks=pytest.mark.requirement("four"))
"""
    assert sorted(name for mark in marks_in(source) for name in ids_in(mark)) == ["four", "one", "three", "two"]


def test_a_mark_without_a_plain_id_is_refused() -> None:
    (mark,) = marks_in("pytest.mark.requirement(NAME)")
    with pytest.raises(ValueError):  # noqa: PT011 - literal_eval words it, not this file
        ids_in(mark)
