"""Patterns that are compiled on their first use."""

from __future__ import annotations

import re

import pytest

from trayapp.model.late import late


def test_a_late_pattern_finds_what_a_compiled_one_finds() -> None:
    text, given = "Zoë wrote A1 and b22", (r"([a-z])(\d+)", re.IGNORECASE)
    for _ in range(2):  # compiled first, then reused
        mine, plain = late(*given), re.compile(*given)
        assert mine.findall(text) == plain.findall(text)
        assert mine.sub(r"\2\1", text) == plain.sub(r"\2\1", text)
        assert [found.span() for found in mine.finditer(text)] == [found.span() for found in plain.finditer(text)]
        assert (mine.search(text), mine.fullmatch("x"), mine.pattern) is not None
        assert mine.fullmatch("c3") is not None


def test_bytes_are_looked_through_with_a_pattern_of_bytes() -> None:
    assert late(rb"[0-9]+").findall(b"1 and 22") == [b"1", b"22"]


def test_a_pattern_that_is_none_is_told_of_when_it_is_used() -> None:
    wrong = late("(")
    with pytest.raises(re.error):
        wrong.search("")
