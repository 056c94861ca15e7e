"""Line ends of event streams, whatever way the bytes are cut."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from trayapp.backends.http.event_lines import EventLines

pytestmark = pytest.mark.anyio


class Parts(httpx2.AsyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


async def read(*parts: bytes) -> list[bytes]:
    return [part async for part in EventLines(Parts(*parts))]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
async def test_lines_end_alike_however_they_are_cut(end: bytes) -> None:
    said = b"\xef\xbb\xbf: hello" + end + b"data: a" + end + b"data: b" + end + end
    for at in range(3, len(said)):
        for then in range(at, len(said)):
            given = b"".join(await read(said[:at], said[at:then], said[then:]))
            assert given == b": hello\ndata: a\ndata: b\n\n"


async def test_an_event_that_ends_with_a_return_is_given_at_once() -> None:
    assert await read(b"data: a\r\r", b"\ndata: b\r\n", b"\r", b"\n") == [b"data: a\n\n", b"data: b\n", b"\n"]
