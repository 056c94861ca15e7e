"""Tests of invalid, broken and huge frames: each gets an error or is dropped, and the session goes on."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.wire.pair import Peer, Waiting, alone, turns
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import MAX_FRAME_BYTES, SMALL_FRAME_BYTES
from trayapp.wire.messages import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

pytestmark = pytest.mark.anyio

MIB = 1 << 20


async def is_alive(peer: Peer) -> bool:
    before = len(peer.messages)
    peer.feed({"id": "alive?", "method": "echo"})
    await turns()
    return [message["id"] for message in peer.messages[before:]] == ["alive?"]


def ask(peer: Peer) -> Waiting:
    call = Waiting()
    peer.dispatcher.relay("x", None, call)
    peer.writes.clear()
    return call


# -- not JSON-RPC ------------------------------------------------------------------------------------------------

JUNK: list[bytes] = [
    b"Server listening on port 3000",
    b"\x1b[32mok\x1b[0m",
    b"null",
    b"true",
    b"5",
    b'"text"',
    b"[]",
    b"{}",
    b"{",
    b"}",
    b'{"method":5}',
    b'{"method":null}',
    b'{"jsonrpc":"2.0","id":null,"method":5}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"echo"}',
    b'{"jsonrpc":"2.0","id":true,"method":"echo"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"echo"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"result":{}}',
    b'{"jsonrpc":"2.0","id":"\xff","method":"echo"}',
    b"\x00\x01\x02\xff\xfe",
    b"[" * 5000,
    b'{"method":"notifications/message","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
]


@pytest.mark.requirement("wire-junk-frame")
@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_junk_is_dropped_and_noted_and_the_session_lives(junk: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed(junk)
        await turns()
        assert peer.junk == [junk]
        assert (peer.writes, call.replies, peer.notified) == ([], [], [])
        assert await is_alive(peer)


@pytest.mark.requirement("wire-junk-frame")
async def test_junk_between_good_frames_of_one_read_costs_only_itself() -> None:
    async with alone() as peer:
        call = ask(peer)
        good = {"id": 1, "method": "echo"}
        peer.feed(*JUNK, good, *JUNK, {"jsonrpc": "2.0", "id": 1, "result": {"n": 1}}, *JUNK)
        await turns()
        assert peer.junk == JUNK * 3
        assert [message["id"] for message in peer.messages] == [1]
        assert call.replies[0].result() == {"n": 1}


async def test_junk_that_nobody_takes_is_logged_without_its_content(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = FrameDispatcher(lambda data: None)
    peer = Peer()
    peer.dispatcher = dispatcher
    with caplog.at_level(logging.WARNING):
        dispatcher.feed(b"token=hunter2\n")
        task = peer.run()
        dispatcher.close()
        await task
    assert "13 bytes" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.requirement("wire-junk-frame")
@pytest.mark.parametrize("frame", [{"id": 7}, {"id": 7, "method": 5}, {"id": 7, "method": None, "params": {}}])
async def test_what_is_neither_request_nor_answer_but_has_an_id_gets_an_error(frame: dict[str, Any]) -> None:
    async with alone() as peer:
        peer.feed({"jsonrpc": "2.0", **frame})
        assert [(m["id"], m["error"]["code"]) for m in peer.messages] == [(7, INVALID_REQUEST)]
        assert await is_alive(peer)


async def test_null_as_id_makes_a_notification() -> None:
    async with alone() as peer:
        peer.feed({"id": None, "method": "note", "params": None})
        await turns()
        assert peer.notified == [("note", None)]


# -- batches -----------------------------------------------------------------------------------------------------


async def test_the_parts_of_a_batch_are_handled_like_single_frames() -> None:
    async with alone() as peer:
        call = ask(peer)
        batch = [
            {"jsonrpc": "2.0", "id": "r", "method": "echo", "params": {"x": 1}},
            {"jsonrpc": "2.0", "method": "note"},
            {"jsonrpc": "2.0", "id": 1, "result": {"n": 1, "odd": 2**70}},
            "junk",
            [],
            {"jsonrpc": "2.0", "id": "bad"},
        ]
        peer.feed(batch)
        await turns()
        assert peer.notified == [("note", None)]
        assert (
            call.replies[0].with_id(b'"mine"') == b'{"jsonrpc":"2.0","id":"mine","result":{"n":1,"odd":%d}}\n' % 2**70
        )
        assert peer.junk == [b'"junk"', b"[]"]
        assert sorted(message["id"] for message in peer.messages) == ["bad", "r"]


# -- unchanged answers -------------------------------------------------------------------------------------------


def filled(size: int) -> str:
    return ('a "quoted" {"id":5} ünï\U0001f600 ' * (size // 20 + 1))[:size]


ANSWERS = [
    '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":TEXT}],"unknown":{"id":9}}}',
    '{"result":{"id":4,"text":TEXT},"jsonrpc":"2.0","id":ID}',
    '{"id":ID,"jsonrpc":"2.0","error":{"code":-1,"message":TEXT,"x":[1.50,1e3]}}',
    '  { "jsonrpc" : "2.0" ,  "id" : ID , "result" : { "text" : TEXT , "n" : 12345678901234567890123 } }  ',
    '{"jsonrpc":"2.0","id":ID,"result":{"text":TEXT}}\r',
]


@pytest.mark.requirement("wire-large-result", "wire-id-kept", "call-no-field-lost")
@pytest.mark.parametrize("mine", [b"7", b'"seven"', b'"\\u00e9"'])
@pytest.mark.parametrize("theirs", ["1", '"1"'])
@pytest.mark.parametrize("size", [0, 10, SMALL_FRAME_BYTES, MIB])
@pytest.mark.parametrize("answer", ANSWERS)
async def test_nothing_but_the_id_of_an_answer_is_changed(answer: str, size: int, theirs: str, mine: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)
        text = json.dumps(filled(size), ensure_ascii=False)
        peer.feed(answer.replace("ID", theirs).replace("TEXT", text).encode())
        (reply,) = call.replies
        assert reply.with_id(mine) == answer.replace("ID", mine.decode()).replace("TEXT", text).encode() + b"\n"


@pytest.mark.requirement("wire-id-kept")
@pytest.mark.parametrize(
    "frame",
    [
        b'{"result":{"x":1},"more":2,"id":1,"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","\\u0069d":1,"result":{"x":1}}',
        b'{"jsonrpc":"2.0","id":99,"result":{"x":1},"id":1}',
        b'{"jsonrpc":"2.0","id":"\\u0031","result":{"x":1}}',
    ],
)
async def test_an_answer_in_an_odd_spelling_gets_the_right_id_once(frame: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed(frame)
        (reply,) = call.replies
        names = [name for name, _ in json.loads(reply.with_id(b'"mine"'), object_pairs_hook=list)]
        assert names.count("id") == 1
        message = json.loads(reply.with_id(b'"mine"'))
        assert (message["id"], message["result"]) == ("mine", {"x": 1})


async def test_a_large_answer_can_be_read_too() -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed({"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * MIB}})
        assert call.replies[0].result() == {"text": "x" * MIB}


# -- too large, or broken ----------------------------------------------------------------------------------------


def feed_large(peer: Peer, start: bytes, end: bytes, filler: bytes = b"x") -> None:
    """Feed a frame just over the limit, in pieces."""
    peer.dispatcher.feed(start)
    for _ in range(MAX_FRAME_BYTES // MIB):
        peer.dispatcher.feed(filler * MIB)
    peer.dispatcher.feed(end + b"\n")


@pytest.mark.requirement("wire-too-large")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":"', b'"}}'),
        (b'{"jsonrpc":"2.0","id":"1","result":{"text":"', b'"}}'),
        (b'{"result":{"text":"', b'"},"jsonrpc":"2.0","id":1}'),
    ],
)
async def test_an_answer_over_64_mib_is_an_error_for_who_waits_for_it(start: bytes, end: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)
        feed_large(peer, start, end)
        assert call.error["code"] == INTERNAL_ERROR
        assert "64 MiB" in call.error["message"]
        assert peer.writes == []
        assert await is_alive(peer)


@pytest.mark.requirement("wire-too-large")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":"', b'"}}'),
        (b'{"method":"tools/call","params":{"error":"', b'"},"jsonrpc":"2.0","id":1}'),
    ],
)
async def test_a_request_over_64_mib_is_refused_by_its_id(start: bytes, end: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)  # our own request has the same number as the peer's, but must not be affected
        feed_large(peer, start, end)
        assert [(m["id"], m["error"]["code"]) for m in peer.messages] == [(1, INVALID_REQUEST)]
        assert call.replies == []
        assert await is_alive(peer)


@pytest.mark.requirement("wire-too-large")
async def test_what_is_too_large_and_nobodys_is_dropped() -> None:
    async with alone() as peer:
        call = ask(peer)
        feed_large(peer, b"", b"")
        feed_large(peer, b'{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"', b'"}}')
        feed_large(peer, b'{"jsonrpc":"2.0","id":55,"result":{"x":"', b'"}}')
        assert (len(peer.junk), peer.writes, call.replies) == (3, [], [])
        assert await is_alive(peer)


@pytest.mark.requirement("wire-junk-frame")
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"text":"cut o',
        b'{"jsonrpc":"2.0","id":1,"result":{"n":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"n":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call","n":NaN}}',
        b'{"result":{"method":"tools/call","n":NaN},"id":1}',
        b'{"jsonrpc":"2.0","id":"1","result":{"text":"\xff"}}',
        b'{"result":{"text":"\xff"},"jsonrpc":"2.0","id":1}',
        b'{"id":1,"result":{}}trailing',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"deep":' + b"[" * 5000 + b"]" * 5000 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"result":{"text":"' + b"x" * MIB,  # large, and cut off
    ],
)
async def test_a_broken_answer_is_an_error_for_who_waits_for_it(frame: bytes) -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed(frame)
        assert call.error["code"] == INTERNAL_ERROR
        assert "not valid JSON" in call.error["message"]
        assert (peer.junk, peer.writes) == ([], [])
        assert await is_alive(peer)


@pytest.mark.requirement("wire-junk-frame")
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"x":',
        b'{"id":"q","method":"tools/call"}}',
        b'{"method":"tools/call","params":{"x":\'1\'},"jsonrpc":"2.0","id":"q"}',
        b'{"jsonrpc":"2.0","id":"q","method":"x","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
    ],
)
async def test_a_broken_request_gets_a_parse_error_under_its_id(frame: bytes) -> None:
    async with alone() as peer:
        peer.feed(frame)
        assert [(m["id"], m["error"]["code"]) for m in peer.messages] == [("q", PARSE_ERROR)]
        assert await is_alive(peer)


async def test_a_deep_message_that_can_be_read_is_passed_on() -> None:
    async with alone() as peer:
        deep = "[" * 900 + "]" * 900
        peer.feed(f'{{"id":1,"method":"echo","params":{{"deep":{deep}}}}}'.encode())
        await turns()
        assert peer.writes == [f'{{"jsonrpc":"2.0","id":1,"result":{{"echo":{{"deep":{deep}}}}}}}\n'.encode()]


DEEP = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (1, b"[" * 50_000 + b"]" * 50_000)


async def test_a_large_answer_nested_past_any_parser_is_not_passed_on() -> None:
    async with alone() as peer:
        call = ask(peer)
        assert len(DEEP) > SMALL_FRAME_BYTES
        peer.feed(DEEP)
        (reply,) = call.replies
        assert reply.message["error"]["code"] == INTERNAL_ERROR
        assert await is_alive(peer)


async def test_a_large_answer_with_many_brackets_is_passed_on_as_it_came() -> None:
    async with alone() as peer:
        call = ask(peer)
        rows = json.dumps([[number] for number in range(20_000)])
        frame = f'{{"jsonrpc":"2.0","id":1,"result":{{"rows": {rows}, "n": 12345678901234567890123}}}}'.encode()
        peer.feed(frame)
        (reply,) = call.replies
        assert reply.with_id(b'"mine"') == frame.replace(b'"id":1', b'"id":"mine"') + b"\n"


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ('"result":{"a":1},"error":null', None),
        ('"result":null,"error":{"code":-5,"message":"x","data":[1],"more":2}', (-5, "x")),
        ('"error":"no object"', (INTERNAL_ERROR, 'The server sent an error that is not an object: "no object"')),
        ('"error":null', (INTERNAL_ERROR, "The server sent an error that is not an object: null")),
        ('"error":{"message":"x"}', (INTERNAL_ERROR, "x")),
        ('"error":{"code":"7","message":"x"}', (INTERNAL_ERROR, "x")),
        ('"error":{"code":7}', (7, "")),
        ('"error":{"code":7,"message":{"a":1}}', (7, "{'a': 1}")),
        ('"result":null', (INTERNAL_ERROR, "The answer has no result object")),
        ('"result":[{"a":1}]', (INTERNAL_ERROR, "The answer has no result object")),
        ('"result":"done","error":null', (INTERNAL_ERROR, "The answer has no result object")),
    ],
)
async def test_an_answer_is_mended_so_that_any_client_can_read_it(members: str, error: tuple[int, str] | None) -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed(f'{{"jsonrpc":"2.0","id":1,{members}}}'.encode())
        (reply,) = call.replies
        sent = json.loads(reply.with_id(b"9"))
        assert sent["id"] == 9
        assert ("result" in sent) != ("error" in sent)
        if error is None:
            assert sent["result"] == {"a": 1}
        else:
            assert (sent["error"]["code"], sent["error"]["message"]) == error
        if "more" in members:
            assert sent["error"]["data"] == [1]
            assert sent["error"]["more"] == 2


async def test_an_answer_with_neither_result_nor_error_is_an_error_of_its_call() -> None:
    async with alone() as peer:
        call = ask(peer)
        peer.feed({"id": 1})
        (reply,) = call.replies
        assert "neither a result nor an error" in reply.message["error"]["message"]
        assert peer.writes == []
