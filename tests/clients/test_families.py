"""The four families on generated files: only our entry changes, byte for byte."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.clients import strategies as files
from trayapp.clients import jsonc, toml_file
from trayapp.clients.family import Family, lookup, with_value, without
from trayapp.clients.yaml_file import LISTED, MAPPED
from trayapp.config.problems import UnparsableError
from trayapp.config.yaml.splices import EditRefusedError

PATH = (files.HOLDER, "multi-mcp")
FAMILIES: dict[str, tuple[Family, Any]] = {
    "json": (jsonc, files.jsonc),
    "toml": (toml_file, files.toml),
    "yaml": (MAPPED, files.yaml),
    "yaml list": (LISTED, partial(files.yaml, listed=True)),
}
EACH_FAMILY = pytest.mark.parametrize(
    ("family", "texts"), [(family, texts()) for family, texts in FAMILIES.values()], ids=FAMILIES
)
EACH_FAMILY_WITH_SERVERS = pytest.mark.parametrize(
    ("family", "texts"), [(family, texts(filled=True)) for family, texts in FAMILIES.values()], ids=FAMILIES
)
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much]
MANY = settings(max_examples=30, deadline=None, suppress_health_check=QUIET)


def read(family: Family, text: str) -> dict[str, Any]:
    """Return the parsed text. Skip the example if the text is not valid after all."""
    try:
        return family.read(text, "f")
    except UnparsableError:
        assume(False)
        raise


def put(family: Family, text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with the value put in. Skip the example if the edit is refused."""
    try:
        return family.put(text, path, value, "f")
    except EditRefusedError:
        assume(False)
        raise


def is_inserted(old: str, new: str) -> bool:
    """True if `new` is `old` plus one run of characters and, if needed, a comma before it."""
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    candidates = {start, *(at for at in range(max(0, start - 400), start + 1) if old[at:] and new.endswith(old[at:]))}
    if any(new.endswith(old[at:]) for at in candidates):
        return True
    return new[start] == "," and is_run_inserted(old[start:], new[start + 1 :])


def is_run_inserted(old: str, new: str) -> bool:
    """True if `new` is `old` plus one run of characters."""
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return any(new.endswith(old[at:]) for at in range(start + 1))


def is_left(old: str, new: str) -> bool:
    """True if `new` is `old` with some characters removed."""
    letters = iter(old)
    return all(letter in letters for letter in new)


@pytest.mark.requirement("client-formats")
@EACH_FAMILY
def test_a_put_adds_our_entry_and_changes_no_other_byte(family: Family, texts: st.SearchStrategy[str]) -> None:
    @MANY
    @given(texts, files.entries)
    def check(text: str, entry: dict[str, Any]) -> None:
        before = read(family, text)
        assume(lookup(before, PATH) is None)
        new = put(family, text, PATH, entry)
        after = family.read(new, "f")
        added = lookup(after, PATH)
        assert {key: value for key, value in added.items() if key != "name"} == entry
        assert without(after, PATH) == without(with_value(before, PATH, 0), PATH)
        blank = not before or (files.HOLDER in before and not lookup(before, PATH[:1]))
        assert is_inserted(text, new) or blank  # lines may replace `{ }` or an empty list

    check()


@pytest.mark.requirement("client-formats")
@EACH_FAMILY_WITH_SERVERS
def test_a_drop_after_a_put_gives_the_bytes_back_where_there_were_servers(
    family: Family, texts: st.SearchStrategy[str]
) -> None:
    @MANY
    @given(texts, files.entries)
    def check(text: str, entry: dict[str, Any]) -> None:
        before = read(family, text)
        assume(lookup(before, PATH) is None and lookup(before, PATH[:1]))
        new = put(family, text, PATH, entry)
        ended = (
            text if text.endswith("\n") or family is not toml_file else None
        )  # drop keeps the line break that put needed before a TOML table
        dropped = family.drop(new, PATH, "f")
        assert family.read(dropped, "f") == before
        assert ended is None or dropped == ended

    check()


@pytest.mark.requirement("client-formats")
@EACH_FAMILY_WITH_SERVERS
def test_a_drop_takes_that_server_and_adds_nothing(family: Family, texts: st.SearchStrategy[str]) -> None:
    @MANY
    @given(texts, st.data())
    def check(text: str, data: st.DataObject) -> None:
        before = read(family, text)
        names = list(lookup(before, PATH[:1]) or {})
        assume(names)
        path = (files.HOLDER, data.draw(st.sampled_from(names)))
        try:
            new = family.drop(text, path, "f")
        except EditRefusedError:
            assume(False)
            raise
        after = family.read(new, "f")
        expected = without(before, path)
        assert after in (expected, without(expected, PATH[:1]))
        assert is_left(text, new) or new.count("{}") > text.count("{}") or new.count("[]") > text.count("[]")

    check()


@EACH_FAMILY
def test_a_changed_value_changes_that_value_alone(family: Family, texts: st.SearchStrategy[str]) -> None:
    @MANY
    @given(texts, files.entries, st.text("abc/", min_size=1, max_size=5))
    def check(text: str, entry: dict[str, Any], program: str) -> None:
        before = read(family, text)
        assume(lookup(before, PATH) is None)
        with_entry = put(family, text, PATH, entry)
        new = put(family, with_entry, (*PATH, "command"), program)
        after = family.read(new, "f")
        assert lookup(after, (*PATH, "command")) == program
        assert without(after, (*PATH, "command")) == without(family.read(with_entry, "f"), (*PATH, "command"))
        more = put(family, new, (*PATH, "more"), True)
        assert lookup(family.read(more, "f"), (*PATH, "more")) is True
        assert family.read(family.drop(more, (*PATH, "more"), "f"), "f") == after

    check()


@EACH_FAMILY
def test_the_lines_of_all_entries_are_told(family: Family, texts: st.SearchStrategy[str]) -> None:
    @MANY
    @given(texts, files.entries)
    def check(text: str, entry: dict[str, Any]) -> None:
        assume(lookup(read(family, text), PATH) is None)
        new = put(family, text, PATH, entry)
        lines = family.lines(new, PATH[:1])
        assert "multi-mcp" in new.split("\n")[lines["multi-mcp"] - 1]
        assert set(lines) == set(lookup(family.read(new, "f"), PATH[:1]))
        assert PATH[1] not in family.lines(text, PATH[:1])

    check()
