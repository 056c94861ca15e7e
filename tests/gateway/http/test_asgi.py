"""Large answers are sent in parts."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.gateway.http.asgi import PART_BYTES, HttpRequest
from trayapp.wire.framing import find_answer_id
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import Reply

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("characters", [0, PART_BYTES, 5 * PART_BYTES // 2])
async def test_a_large_answer_goes_out_in_parts_and_arrives_whole(characters: int) -> None:
    frame = dumps({"jsonrpc": "2.0", "id": 7, "result": {"text": "ü" * characters}})
    place = find_answer_id(frame)
    assert place is not None
    reply, sent = Reply(frame, *place), list[Any]()

    async def send(event: Any) -> None:
        sent.append(event)

    request = HttpRequest({"headers": [], "method": "POST"}, None, send)
    request.more.append((b"x", b"y"))
    await request.answer("mine", reply)
    head, *rest = sent
    bodies = [bytes(event.get("body", b"")) for event in rest]
    assert b"".join(bodies) == reply.with_id(b'"mine"')
    assert max(map(len, bodies)) <= PART_BYTES
    assert dict(head["headers"])[b"content-length"] == b"%d" % sum(map(len, bodies))
    assert [bool(event.get("more_body")) for event in rest] == [True] * (len(rest) - 1) + [False]
