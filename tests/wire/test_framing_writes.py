"""Tests that each read sends its output to each peer in a single write."""

from __future__ import annotations

import json

import pytest

from tests.wire.pair import Waiting, alone
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import BATCH, SMALL_FRAME_BYTES, Outbox
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    Reply,
    Request,
)

pytestmark = pytest.mark.anyio


class Secret(Exception):
    """An exception whose text must not leave the process."""


async def test_all_that_one_read_caused_for_one_peer_is_one_write_in_order() -> None:
    async with alone() as peer:

        def intercept(request: Request) -> bool:
            peer.dispatcher.respond(request.id, Reply.of_result({}))
            return True

        peer.dispatcher.request_intercept = intercept
        peer.feed(*({"id": number, "method": "x"} for number in range(50)))
        assert len(peer.writes) == 1
        assert [message["id"] for message in peer.messages] == list(range(50))
        peer.feed({"id": "single", "method": "x"})
        assert len(peer.writes) == 2


async def test_answers_of_one_read_for_several_peers_are_one_write_each() -> None:
    async with alone() as backend:
        clients: dict[str, list[bytes]] = {"a": [], "b": []}

        class Relayed(Waiting):
            def __init__(self, out: Outbox) -> None:
                super().__init__()
                self.out = out

            def answered(self, reply: Reply) -> None:
                self.out.write(reply.with_id(b'"mine"'))

        outs = {name: Outbox(writes.append) for name, writes in clients.items()}
        for number in range(10):
            backend.dispatcher.relay("x", None, Relayed(outs["ab"[number % 2]]))
        backend.feed(*({"jsonrpc": "2.0", "id": n + 1, "result": {"n": n}} for n in range(10)))
        for start, writes in enumerate(clients.values()):
            (data,) = writes
            assert [json.loads(line)["result"]["n"] for line in data.splitlines()] == list(range(start, 10, 2))


def test_a_batch_within_a_batch_ends_with_the_outer_one() -> None:
    writes: list[bytes] = []
    out = Outbox(writes.append)
    out.write(b"0")
    with BATCH:
        out.write(b"1")
        with BATCH:
            out.write(b"2")
        assert writes == [b"0"]
        out.write(b"3")
    out.write(b"4")
    assert writes == [b"0", b"123", b"4"]


def test_what_was_held_back_is_sent_although_the_read_failed() -> None:
    writes: list[bytes] = []
    out = Outbox(writes.append)

    def read() -> None:
        with BATCH:
            out.write(b"1")
            raise Secret

    with pytest.raises(Secret):
        read()
    assert writes == [b"1"]


@pytest.mark.parametrize("text", ["short", "x" * SMALL_FRAME_BYTES])
async def test_a_large_answer_goes_out_in_pieces_and_no_other(text: str) -> None:
    """Joining the pieces would copy them, and a list of 10,000 tools takes 5 MB."""
    writes: list[bytes] = []
    pours: list[list[bytes | memoryview]] = []
    dispatcher = FrameDispatcher(writes.append, pour=lambda pieces: pours.append(list(pieces)))
    body = dumps({"text": text})
    whole = b'{"jsonrpc":"2.0","id":"mine","result":%b}\n' % body
    came = Reply(b'{"jsonrpc":"2.0","id":7,"result":%b}' % body, 22, 23)
    for reply in (came, Reply.of_result_json(body)):
        dispatcher.respond("mine", reply)
        with BATCH:
            dispatcher.respond("mine", reply)
        assert reply.message["result"] == {"text": text}
    large = text != "short"
    assert [b"".join(pieces) for pieces in pours] == [whole, whole] * large
    assert writes == [whole] * (2 if large else 4)
    assert all(any(piece is body for piece in pieces) for pieces in pours[1:])
