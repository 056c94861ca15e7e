"""Decoding bytes to text, and removing comments from JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.config.problems import UnparsableError
from trayapp.config.read.text import MAX_BYTES, decode, without_comments

READ: list[tuple[str, Any]] = [
    ('// c\n{"mcpServers":{"a":{"command":"x"},},}', {"mcpServers": {"a": {"command": "x"}}}),
    ('{"a": [1, 2, /* three */ 3 , ] , }', {"a": [1, 2, 3]}),
    ('{"a": 1, // why\n}', {"a": 1}),
    ('{"a": 1 /* x */ , /* y */ // z\n }', {"a": 1}),
    ('{"url": "https://x//y", "b": "/* no */", "c": ",}", "d": "\\", // no"}',
     {"url": "https://x//y", "b": "/* no */", "c": ",}", "d": '", // no'}),
    ("\ufeff{}", {}),
    ("", None),
    ("  // nothing\n", None),
    ("/* open", None),
    ("null", None),
]  # fmt: skip


def value_of(text: str) -> Any:
    """Parse a JSON text with comments. Return None for an empty text."""
    plain = without_comments(text.removeprefix("\ufeff"))
    return json.loads(plain) if plain.strip() else None


@pytest.mark.parametrize(("text", "value"), READ)
def test_comments_and_trailing_commas_are_removed_outside_strings(text: str, value: Any) -> None:
    assert value_of(text) == value


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(values, st.booleans())
def test_plain_json_is_read_as_json(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    assert value_of(text) == value
    assert value_of(f"// c\n/* , */ {text} // }}") == value


@given(st.one_of(st.text(), st.text(alphabet='{}[],:"\\/* \n1a')))
def test_lines_and_columns_stay_where_they_are(text: str) -> None:
    plain = without_comments(text)
    assert [len(line) for line in plain.split("\n")] == [len(line) for line in text.split("\n")]


def test_bytes_that_are_no_text_say_where() -> None:
    with pytest.raises(UnparsableError) as caught:
        decode(b"a: 1\nb: \xff\n", "f")
    assert caught.value.problem.line == 2
    with pytest.raises(UnparsableError, match="UTF-8"):
        decode("servers:\n".encode("utf-16"), "f")
    with pytest.raises(UnparsableError, match="10 MB"):
        decode(b"x" * (MAX_BYTES + 1), "f")
    assert decode(b"\xef\xbb\xbfa: \xc3\xa9\r\n", "f") == "\ufeffa: é\r\n"


def test_a_file_that_is_too_large_names_the_limit_that_it_exceeds() -> None:
    with pytest.raises(UnparsableError, match="larger than 2 MB"):
        decode(bytes(2_000_001), "f", 2_000_000)
