"""Bytes to text, and JSON with comments to values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.config.problems import UnparsableError
from trayapp.config.read.text import MAX_BYTES, decode, read_jsonc

READ: list[tuple[str, Any]] = [
    ('// c\n{"mcpServers":{"a":{"command":"x"},},}', {"mcpServers": {"a": {"command": "x"}}}),  # config-15
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


@pytest.mark.parametrize(("text", "value"), READ)
def test_json_is_read_as_people_write_it(text: str, value: Any) -> None:
    assert read_jsonc(text) == value


WRONG = [
    ('{\n  "a": }\n', 2),
    ('{"a": 1 "b": 2}', 1),
    ('{"a": "open\n}', 1),
    ("// c\n/* two\nlines */ {: 1}", 3),
    ("{'a': 1}", 1),
    ('{"a": 1}}', 1),
]


@pytest.mark.parametrize(("text", "line"), WRONG)
def test_what_is_no_json_says_where(text: str, line: int) -> None:
    with pytest.raises(UnparsableError) as caught:
        read_jsonc(text, ".mcp.json")
    assert (caught.value.problem.line, caught.value.problem.file) == (line, ".mcp.json")
    assert caught.value.problem.column > 0


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, " " * (MAX_BYTES + 1), '"' + '\\"' * 1_000_000])
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(UnparsableError):
        read_jsonc(text)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(values, st.booleans())
def test_plain_json_is_read_as_json(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    assert read_jsonc(text) == value
    assert read_jsonc(f"// c\n/* , */ {text} // }}") == value


@given(st.one_of(st.text(), st.text(alphabet='{}[],:"\\/* \n1a')))
def test_any_text_is_a_value_or_unparsable(text: str) -> None:
    try:
        read_jsonc(text)
    except UnparsableError:
        return


def test_bytes_that_are_no_text_say_where() -> None:
    with pytest.raises(UnparsableError) as caught:
        decode(b"a: 1\nb: \xff\n", "f")
    assert caught.value.problem.line == 2
    with pytest.raises(UnparsableError, match="UTF-8"):
        decode("servers:\n".encode("utf-16"), "f")
    with pytest.raises(UnparsableError, match="10 MB"):
        decode(b"x" * (MAX_BYTES + 1), "f")
    assert decode(b"\xef\xbb\xbfa: \xc3\xa9\r\n", "f") == "\ufeffa: é\r\n"
