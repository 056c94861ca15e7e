"""Tests that chunking does not change frames, and that an id found in a frame is the one that a parser finds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trayapp.wire.framing import TAIL_BYTES, FrameSplitter, OversizedFrame, find_answer_id, find_outer_id

LIMIT = 300  # for the splitters here: slightly above TAIL_BYTES, so that head and tail of an oversized frame differ

line = (
    st.binary(max_size=12)
    | st.sampled_from([b"", b"\r", b"  ", b'{"a":1}', b'{"a":1}\r'])
    | st.builds(lambda filler, size: (filler * size)[:size], st.binary(min_size=1, max_size=9), st.integers(280, 700))
).map(lambda data: data.replace(b"\n", b"."))


def plain(frame: bytes | OversizedFrame) -> bytes | tuple[bytes, bytes]:
    return (frame.head, frame.tail) if isinstance(frame, OversizedFrame) else frame


def expected(lines: list[bytes]) -> list[bytes | tuple[bytes, bytes]]:
    """Return the frames by a simple rule: blank lines are dropped, and long lines are reduced to their two ends."""
    return [
        (line[:TAIL_BYTES], line[-TAIL_BYTES:]) if len(line) > LIMIT else line
        for line in lines
        if len(line) > LIMIT or line.strip(b" \t\r\x0b\x0c")
    ]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


@given(st.lists(line, max_size=8), line, st.lists(st.integers(0), max_size=12))
@example([b"x" * LIMIT, b"x" * (LIMIT + 1), b"a"], b"", [LIMIT + 1, 2 * LIMIT + 1])
@example([b"y" * 900, b"a"], b"", [299, 300, 301, 302, 600])
def test_any_chunking_gives_the_same_frames(lines: list[bytes], rest: bytes, cuts: list[int]) -> None:
    splitter = FrameSplitter(LIMIT)
    data = b"".join(line + b"\n" for line in lines) + rest
    frames = [frame for piece in pieces(data, cuts) for frame in splitter.feed(piece)]
    assert [plain(frame) for frame in frames] == expected(lines)
    assert [plain(frame) for frame in splitter.feed(b"\n")] == expected([rest])
    assert splitter.feed(b"next\n") == [b"next"]


def test_single_bytes_give_the_same_frames() -> None:
    splitter = FrameSplitter(LIMIT)
    lines = [b'{"a":1}\r', b"", b"z" * 1000 + b"end", b"last"]
    frames = [frame for line in lines for byte in line + b"\n" for frame in splitter.feed(bytes([byte]))]
    assert [plain(frame) for frame in frames] == expected(lines)


@pytest.mark.requirement("wire-too-large")
def test_each_frame_over_the_limit_is_one_oversized_and_the_stream_goes_on() -> None:
    splitter = FrameSplitter(LIMIT)
    frames = splitter.feed(b"1" * 301 + b"\nok\n" + b"2" * 5000)
    frames += splitter.feed(b"2" * 5000)
    frames += splitter.feed(b"2\n\nfine\n")
    assert [type(frame) for frame in frames] == [OversizedFrame, bytes, OversizedFrame, bytes]


@pytest.mark.requirement("wire-too-large")
def test_an_endless_frame_is_not_kept_in_memory() -> None:
    splitter = FrameSplitter(LIMIT)
    piece = bytes(1 << 20)
    held = [splitter.feed(piece) for _ in range(200)]
    assert held == [[]] * 200
    (frame,) = splitter.feed(b"end\n")
    assert isinstance(frame, OversizedFrame)
    assert len(frame.head) == len(frame.tail) == TAIL_BYTES
    assert frame.tail.endswith(b"end")


# -- the id of an answer -----------------------------------------------------------------------------------------

texts = st.text(max_size=8) | st.sampled_from(
    ['x,"id":5}', ',"id":5}', '"id":7', '{"id":9}', "id", "result", "\\", '"']
)
inner = st.recursive(
    st.none() | st.integers() | texts,
    lambda value: st.lists(value, max_size=3) | st.dictionaries(texts | st.just("id"), value, max_size=3),
    max_leaves=8,
)
ids = (
    st.integers() | st.text(max_size=6) | st.integers(0, 99) | st.integers(0, 99).map(str) | st.floats(0, 9) | st.none()
)
members = st.fixed_dictionaries(
    {"id": ids},
    optional={"jsonrpc": st.just("2.0"), "result": inner, "error": inner, "method": texts, "more": inner, "x,": inner},
).flatmap(lambda found: st.permutations(list(found.items())))
spaces = st.text(" \t\r", max_size=2)


@st.composite
def spelled(draw: st.DrawFn) -> bytes:
    """Return one JSON-RPC-like object with its members in any order and any white space between the tokens."""
    parts = []
    ascii_only = draw(st.booleans())
    for name, value in draw(members):
        key = '"\\u0069d"' if name == "id" and draw(st.integers(0, 9)) == 0 else json.dumps(name)
        text = json.dumps(value, ensure_ascii=ascii_only, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))
        parts.append(f"{draw(spaces)}{key}{draw(spaces)}:{draw(spaces)}{text}{draw(spaces)}")
    return f"{draw(spaces)}{{{','.join(parts)}}}{draw(spaces)}".encode("utf-8", "surrogatepass")


@pytest.mark.requirement("wire-id-kept")
@settings(max_examples=500)
@given(spelled())
@example(b'{"result":{},"id":"a,\\"id\\":5}"}')
@example(b'{"result":{"id":1},"more":{"x":1,"id":2}}')
@example(b'{"error":"x,","id":"\x7f"}')
@example(b'{"result":1,"id":1.5}')
@example(b'{"result":1,"id":12345678901234567890}')
def test_an_id_that_is_found_is_the_one_that_a_parser_finds(frame: bytes) -> None:
    message = json.loads(frame)
    place = find_answer_id(frame)
    if place is None:
        return
    assert json.loads(frame[slice(*place)]) == message["id"]
    assert "result" in message or "error" in message
    other = frame[: place[0]] + b'"new"' + frame[place[1] :]
    assert json.loads(other) == {**message, "id": "new"}


@settings(max_examples=300)
@given(spelled())
def test_an_id_found_at_the_ends_alone_is_the_same(frame: bytes) -> None:
    found = find_outer_id(frame[:TAIL_BYTES], frame[-TAIL_BYTES:])
    assert found is None or json.loads(found) == json.loads(frame)["id"]


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', b"7"),
        (b'{"id":7,"jsonrpc":"2.0","result":{}}', b"7"),
        (b'{"id":"a-1","error":{"code":1}}', b'"a-1"'),
        (b' { "jsonrpc" : "2.0" , "id" : 0 , "result" : {} } ', b"0"),
        (b'{"result":{"a":[{"id":1}]},"jsonrpc":"2.0","id":7}', b"7"),  # the TypeScript SDK's order
        (b'{"jsonrpc":"2.0","error":{},"id":-3}\r', b"-3"),
    ],
)
def test_the_usual_spellings_are_found(frame: bytes, found: bytes) -> None:
    place = find_answer_id(frame)
    assert place is not None
    assert frame[slice(*place)] == found


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}',
        b'{"method":"x","params":{"a":1},"id":7}',
        b'{"id":7}',
        b'{"jsonrpc":"2.0","id":null,"error":{}}',
        b'{"jsonrpc":"2.0","id":"\\u0061","result":{}}',
        b'{"jsonrpc":"2.0","id":007,"result":{}}',
        '{"jsonrpc":"2.0","id":"é","result":{}}'.encode(),
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
        b'[{"id":1,"result":{}}]',
        b"[]",
        b"",
    ],
)
def test_what_is_no_answer_or_no_plain_id_is_left_to_the_parser(frame: bytes) -> None:
    assert find_answer_id(frame) is None


def answer(size: int, **more: Any) -> bytes:
    return json.dumps({"result": "y" * size, **more}, separators=(",", ":")).encode()


def test_the_id_at_the_end_of_a_large_answer_is_found_whatever_its_length() -> None:
    for length in (0, 1, 199, 200):
        frame = answer(100_000, jsonrpc="2.0", id="i" * length)
        place = find_answer_id(frame)
        assert place is not None
        assert frame[slice(*place)] == b'"' + b"i" * length + b'"'


@pytest.mark.requirement("wire-too-large")
@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":{"conte', b'"}]}}', b"5"),
        (b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"x":"', b'"}}', b'"q"'),
        (b'{"result":{"content":[{"te', b'"}]},"jsonrpc":"2.0","id":5}', b"5"),
        (b'{"method":"tools/call","params":{"a":"', b'"},"jsonrpc":"2.0","id":5}\r', b"5"),
        (b'{"method":"notifications/message","params":{"a":"', b'"}}', None),
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{"a":"', b'","id":5}}', None),
        (b'[{"jsonrpc":"2.0","id":5,"result":{}},', b'"id":5}]', None),
        (b"zzzzzzzzzzzz", b'zzz,"id":5}', None),
    ],
)
def test_whose_a_frame_is_can_be_told_from_its_ends(start: bytes, end: bytes, found: bytes | None) -> None:
    assert find_outer_id(start.ljust(TAIL_BYTES, b"-"), end.rjust(TAIL_BYTES, b"-")) == found
