"""Tests of npm version ranges: a table of all forms, and generated ranges compared with a simple implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.backends.stdio.npm_versions import Version, is_range, read_version, satisfies

RANGES: list[tuple[str, str, bool]] = [
    ("1.2.3", "1.2.3", True),
    ("1.2.3", "=1.2.3", True),
    ("1.2.3", "v1.2.3", True),
    ("1.2.3", "1.2.4", False),
    ("1.2.3", "*", True),
    ("1.2.3", "x", True),
    ("1.2.3", "", True),
    ("1.9.0", "^1.2.3", True),
    ("2.0.0", "^1.2.3", False),
    ("0.2.9", "^0.2.3", True),
    ("0.3.0", "^0.2.3", False),
    ("0.0.3", "^0.0.3", True),
    ("0.0.4", "^0.0.3", False),
    ("0.0.9", "^0.0", True),
    ("0.9.9", "^0", True),
    ("1.2.9", "~1.2.3", True),
    ("1.3.0", "~1.2.3", False),
    ("1.9.9", "~1", True),
    ("1.2.9", "~> 1.2", True),
    ("1.5.0", "1.x", True),
    ("1.5.0", "1.5.X", True),
    ("2.5.0", "1.*", False),
    ("1.5.0", ">=1.2 <2", True),
    ("1.5.0", ">= 1.2 < 1.5", False),
    ("1.3.0", ">1.2", True),
    ("1.2.9", ">1.2", False),
    ("1.2.9", "<=1.2", True),
    ("1.3.0", "<=1.2", False),
    ("1.5.0", "1.2 - 1.5", True),
    ("1.6.0", "1.2 - 1.5", False),
    ("1.5.1", "1.2.0 - 1.5.0", False),
    ("3.0.0", "1.x || >=2.5.0 || 5.0.0 - 7.2.3", True),
    ("2.0.0", "1.x || >=2.5.0", False),
    ("0.0.0", ">*", False),
    # prereleases match only if the range names a prerelease of the same version
    ("1.2.3-beta.1", "*", False),
    ("1.2.3-beta.1", "^1.2.0", False),
    ("1.2.3-beta.2", "^1.2.3-beta.1", True),
    ("1.2.3-beta.2", ">=1.2.3-beta.10", False),
    ("1.2.4-beta.2", "^1.2.3-beta.1", False),
    ("1.2.3", "^1.2.3-beta.1", True),
    ("2.0.0-alpha", "<2.0.0", False),
    ("2.0.0-alpha", "^1.0.0", False),
    ("1.0.0-beta", "1.0.0-beta", True),
    ("1.0.0-beta", "1.0.0-beta+build", True),
    ("1.0.0-beta", ">=1.0.0-1", True),
    ("1.0.0-beta", ">=1.0.0-beta.1", False),
    # texts that are not accepted as ranges
    ("1.2.3", "latest", False),
    ("1.2.3", "x.2", False),
    ("1.2.3", "1.2-beta", False),
    ("1.2.3", "01.2.3", False),
    ("1.2.3", "1.2.3-01", False),
    ("1.2.3", ">=1 &&", False),
    ("1.2.3", "1.2.3.4", False),
    ("1.2.3", "* || " * 60 + "*", False),
]


@pytest.mark.requirement("npx-versions")
@pytest.mark.parametrize(("version", "text", "expected"), RANGES)
def test_ranges_mean_what_they_mean_to_npm(version: str, text: str, expected: bool) -> None:
    read = read_version(version)
    assert read is not None
    assert satisfies(read, text) is expected


numbers = st.integers(0, 3)
triples = st.tuples(numbers, numbers, numbers)
partials = st.one_of(triples, st.tuples(numbers, numbers), st.tuples(numbers), st.just(()))
operators = st.sampled_from(["", "=", "^", "~", "~>", ">", "<", ">=", "<="])


def obvious(operator: str, given_numbers: tuple[int, ...], version: tuple[int, int, int]) -> bool:
    """True if the version satisfies the range, found by comparing numbers without computing upper bounds."""
    start = version[: len(given_numbers)]
    if operator in (">", "<", ">=", "<="):
        return {
            ">": start > given_numbers,
            "<": start < given_numbers,
            ">=": start >= given_numbers,
            "<=": start <= given_numbers,
        }[operator]
    if operator in ("", "="):
        return start == given_numbers
    fixed = 2 if operator.startswith("~") else next((i + 1 for i, n in enumerate(given_numbers) if n), 3)
    return start[:fixed] == given_numbers[:fixed] and start >= given_numbers


def spelled(operator: str, given_numbers: tuple[int, ...], star: str) -> str:
    parts = [str(number) for number in given_numbers]
    return operator + ".".join(parts + [star] * (3 - len(parts)) if star else parts or ["*"])


comparators = st.tuples(operators, partials, st.sampled_from(["", "x", "*", "X"]))


@given(triples, st.lists(st.lists(comparators, min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_range_without_prereleases_holds_what_an_obvious_reading_holds(
    version: tuple[int, int, int], alternatives: list[list[tuple[str, tuple[int, ...], str]]]
) -> None:
    text = " || ".join(" ".join(spelled(*comparator) for comparator in part) for part in alternatives)
    expected = any(all(obvious(op, numbers, version) for op, numbers, _ in part) for part in alternatives)
    assert is_range(text)
    assert satisfies(Version(*version), text) is expected


@given(triples, partials, partials)
def test_a_hyphen_range_is_from_the_first_to_what_begins_with_the_second(
    version: tuple[int, int, int], low: tuple[int, ...], high: tuple[int, ...]
) -> None:
    text = f"{spelled('', low, '')} - {spelled('', high, '')}"
    assert satisfies(Version(*version), text) is (version[: len(low)] >= low and version[: len(high)] <= high)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_ranges(text: str) -> None:
    assert satisfies(Version(1, 2, 3), text) in (True, False)
    assert read_version(text) is None or is_range(text)
