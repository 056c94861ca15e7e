"""Event streams with newlines as the only line ends.

After a lone carriage return, the event reader would wait for the next byte and delay the event that the line ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

MARK = b"\xef\xbb\xbf"


class EventLines(httpx2.AsyncByteStream):
    """A byte stream with newlines as line ends and without a leading byte order mark (WHATWG HTML, 9.2.5)."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = returned = False
        async for came in self._stream:
            part = came if begun else came.removeprefix(MARK)
            begun = begun or bool(came)
            if returned:
                part = part.removeprefix(b"\n")
            returned = came.endswith(b"\r") or (returned and not came)
            if part:
                yield part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in part else part

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
