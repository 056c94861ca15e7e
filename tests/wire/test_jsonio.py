"""Tests that JSON passes through without loss, and that invalid JSON raises one kind of error."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pydantic_core
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.wire.jsonio import LEVELS_MOST, MAX_DEPTH, JsonError, dumps, loads, salvaged, well_formed

# Includes lone surrogates. JSON turns a pair of surrogates into one character, so pairs are joined here.
any_text = st.text(st.characters(codec=None, exclude_categories=())).map(lambda text: json.loads(json.dumps(text)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=20)


GOOD = {"name": "good", "description": 'a "quoted" } text ] \\'}
DEEP = '{"name":"deep","inputSchema":' + '{"properties":' * 5_000 + "{}" + "}" * 5_000 + "}"
ODD = [DEEP, '{"name":"nan","maximum":NaN}', '{"name":"huge","maximum":1e999}', '{"name":"half,}']


def nested(depth: int, innermost: str = "") -> bytes:
    return ("[" * depth + innermost + "]" * depth).encode()


@given(values)
def test_what_was_written_is_read_again_with_types_and_key_order(value: Any) -> None:
    again = loads(dumps(value))
    assert repr(again) == repr(value)


@given(values)
def test_both_directions_agree_with_the_standard_library(value: Any) -> None:
    assert repr(json.loads(dumps(value))) == repr(value)
    assert repr(loads(json.dumps(value).encode())) == repr(value)
    assert repr(loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))) == repr(value)


@pytest.mark.requirement("call-no-field-lost")
@pytest.mark.parametrize(
    "number",
    [
        2**53 + 1,
        10**18 - 1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64,
        -(2**63),
        -(2**63) - 1,
        -(10**19) + 1,
        10**400,
    ],
)
def test_an_integer_of_any_size_stays_exact(number: int) -> None:
    text = json.dumps({"n": [number]}, separators=(",", ":")).encode()
    assert loads(text) == {"n": [number]}
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("number", [10**18 + 1, 10**19 - 1, 2**64 + 1, -(10**18) - 1, -(2**63) - 1])
def test_a_large_integer_is_found_wherever_it_stands(number: int) -> None:
    for padding in range(40):
        for around in ('{{"k":"{0}","n":{1}}}', '[{1},"{0}"]', '{{"n":[{1}],"1234567890123456789":"{0}"}}'):
            text = around.format("x" * padding, number).encode()
            assert repr(loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'{"\\udfff":"a\\ud83dz"}', b'["\\ud800\\ud800"]', b'"\xed\xa0\x80"', b'{"\xed\xbf\xbf":1}']
)
def test_lone_surrogates_survive(text: bytes) -> None:
    assert loads(text) == json.loads(text)
    assert json.loads(dumps(loads(text))) == json.loads(text)


def test_keys_keep_their_order() -> None:
    text = b'{"z":1,"a":{"y":2,"b":18446744073709551616},"m":3}'
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b'{"a":1,}',
        b"[1 2]",
        b"{'a':1}",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b'{"a":NaN,"b":18446744073709551616}',
        b'"\xff"',
        b"\x00",
        b"[1]\x00",
        b'"\n"',
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-32-le"),
        b"[" + b"9" * 5000 + b"]",  # more digits than Python converts to an integer
        b"nul",
        b"1 2",
        b"01",
    ],
)
def test_what_is_no_json_is_one_kind_of_error(text: bytes) -> None:
    with pytest.raises(JsonError):
        loads(text)


@given(st.binary(max_size=40))
def test_random_bytes_are_a_value_or_that_error(data: bytes) -> None:
    try:
        value = loads(data)
    except JsonError:
        return
    assert repr(loads(dumps(value))) == repr(value)


@pytest.mark.parametrize(
    "text", [b"1e400", b"[-1E400]", b'{"n":1.5e309}', b'[1e400,"\\ud800"]', b"[12345678901234567890e400]"]
)
def test_a_number_beyond_a_double_is_refused_and_never_becomes_null(text: bytes) -> None:
    with pytest.raises(JsonError):
        loads(text)


@pytest.mark.parametrize("text", [b"1e308", b"-1.7976931348623157e308", b"5e-324", b"1e-400", b"0.1", b"-0.0"])
def test_a_number_within_a_double_is_the_nearest_double(text: bytes) -> None:
    number = loads(text)
    assert number == float(text)
    assert math.copysign(1, number) == math.copysign(1, float(text))
    assert loads(dumps(number)) == number


def test_a_byte_order_mark_at_the_start_is_ignored() -> None:
    assert loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind: Any) -> None:
    assert loads(kind(b"[1]")) == [1]


@pytest.mark.requirement("wire-too-large")
@pytest.mark.parametrize("innermost", ["", "18446744073709551616", '"\\ud800"'])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 1_000_000])
def test_what_is_nested_past_the_parser_is_refused(depth: int, innermost: str) -> None:
    with pytest.raises(JsonError):
        loads(nested(depth, innermost))


@pytest.mark.parametrize("innermost", ["", "null", '{"a":[]}'])
@pytest.mark.parametrize("depth", [100, 254, 255, 600, 990, MAX_DEPTH - 2])
def test_whatever_depth_can_be_read_can_be_written(depth: int, innermost: str) -> None:
    text = nested(depth, innermost)
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("innermost", ["18446744073709551616", '"\\ud800"', '"\\ud800",2.5,true,null,{}'])
def test_deep_and_odd_at_once_is_written_too(innermost: str) -> None:
    value: Any = json.loads(f"[{innermost}]")
    for turn in range(1_000):
        value = [value] if turn % 2 else {"a\ud800": value, "b": 1, "c": (1, 2)}
    text = dumps(value)
    assert text.count(b"[") == 500 + 1 + 500  # the lists, the innermost list, the tuples
    assert text.replace(b" ", b"") == text
    assert innermost.replace(" ", "").encode() in text


def test_depth_is_refused_alike_from_a_deep_stack() -> None:
    def deeper(left: int) -> bytes:
        return dumps(loads(nested(MAX_DEPTH))) if not left else deeper(left - 1)

    assert deeper(sys.getrecursionlimit() - 300) == nested(MAX_DEPTH)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", [object()], {"a": 2**70, "b": object()}])
def test_what_json_cannot_hold_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps(value)


@pytest.mark.parametrize("odd", ODD[:3], ids=["deep", "nan", "huge"])
def test_the_other_entries_are_kept(odd: str) -> None:
    frame = f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{json.dumps(GOOD)},{odd},{json.dumps(GOOD)}]}}}}'
    assert salvaged(frame.encode()) == {"jsonrpc": "2.0", "id": 1, "result": {"tools": [GOOD, None, GOOD]}}


@pytest.mark.parametrize("frame", ["", "{", "[]", '{"result":{"tools":[{"a":1}]', ODD[3]])
def test_what_is_no_list_with_a_bad_entry_is_nothing(frame: str) -> None:
    assert salvaged(frame.encode()) is None


def nested_objects(levels: int) -> Any:
    value: Any = {"end": 1}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value", [nested_objects(LEVELS_MOST), ["\U0001f600", 2**70, None, True, 1.5, "名前"], {}, "x", 7]
)
def test_what_every_parser_takes_is_left_as_it_is(value: Any) -> None:
    assert well_formed(value) is value


@pytest.mark.parametrize(
    "value",
    [
        "half \ud83d",
        {"\udc00": ["\ud800"]},
        nested_objects(LEVELS_MOST + 1),
        nested_objects(900),
        [{"a": [nested_objects(300)]}],
    ],
)
def test_what_a_strict_parser_refuses_is_mended(value: Any) -> None:
    mended = well_formed(value)
    assert mended != value
    pydantic_core.from_json(dumps(mended))
    assert well_formed(mended) is mended
