"""Client side of legacy HTTP+SSE (MCP 2024-11-05): messages are posted, and all answers are events of one stream."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.backends.http.channel import HttpChannel, origin
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

log = logging.getLogger(__name__)


class SseChannel(HttpChannel):
    """A channel over HTTP+SSE. It ends with its event stream. A message that cannot be posted fails alone."""

    _endpoint: httpx2.URL  # where to post

    async def open(self) -> None:
        """Open the event stream and learn where to post. Raises httpx2.HTTPError, ValueError, RpcError."""
        self._endpoint = await self._tasks.start(self._read)

    async def _read(self, *, task_status: anyio.abc.TaskStatus[httpx2.URL]) -> None:
        known = False
        try:
            async with self.stream({}) as response:
                response.raise_for_status()
                async for event in httpx2.EventSource(response, max_event_size=MAX_FRAME_BYTES):
                    if event.event == "endpoint" and not known:
                        known = True
                        task_status.started(_endpoint(response, event.data))
                    elif event.event == "message" and event.data:
                        self.take_text(event.data.encode("utf-8", "surrogatepass"))
        except httpx2.HTTPError as error:
            if not known:
                raise
            log.info("An event stream was interrupted: %s", error)
        finally:
            self.close(self.unanswered_error)
        if not known:
            raise httpx2.RemoteProtocolError("The server sent no address for messages")

    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        try:
            await self._tell(frame, message, protocol)
        except RpcError as error:  # whatever the error, the server did not take the message
            raise RpcError(CONNECTION_CLOSED, error.message, error.data) from None

    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        async with self.post(frame, {}, self._endpoint) as (response, body):
            if body is None:
                await response.aread()


def _endpoint(response: httpx2.Response, text: str) -> httpx2.URL:
    url = response.request.url.join(text)
    if origin(url) != origin(response.request.url):
        raise ValueError("The server wants messages posted to another host")
    return url
