"""Client side of legacy HTTP+SSE (MCP 2024-11-05): messages are posted, all answers are events of one stream."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.backends.http.channel import EVENTS, HttpChannel, origin, response_to
from trayapp.model.reasons import reason_of
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, loads
from trayapp.wire.messages import CONNECTION_CLOSED, Reply, RpcError

log = logging.getLogger(__name__)


class SseChannel(HttpChannel):
    """A channel over HTTP+SSE. It ends with its event stream. A message that cannot be posted fails alone."""

    _endpoint: httpx2.URL  # where to post

    async def open(self) -> None:
        """Open the event stream and learn where to post. Raises httpx2.HTTPError, ValueError."""
        self._endpoint = await self._tasks.start(self._read)

    async def _read(self, *, task_status: anyio.abc.TaskStatus[httpx2.URL]) -> None:
        known, request = False, self._client.build_request("GET", self._url, headers=EVENTS)
        try:
            async with response_to(self._client, request) as response:
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
            log.info("An event stream broke off: %s", error)
        finally:
            self.close(self.unanswered_error)
        if not known:
            raise httpx2.RemoteProtocolError("The server named no address for messages")

    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        if error := await self._posted(frame):
            self.answer(request_id, Reply.of_error(error))

    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        await self._posted(frame)

    async def _posted(self, frame: bytes) -> RpcError | None:
        """Post a message. Return an error if the server did not accept it; None otherwise."""
        headers = {"content-type": "application/json"}
        request = self._client.build_request("POST", self._endpoint, content=frame, headers=headers)
        try:
            async with response_to(self._client, request) as response:
                await response.aread()
                return None if response.is_success else self._refusal_in(response)
        except httpx2.HTTPError as error:
            why = f"Cannot send the message to {self.server}: {reason_of(error, self._endpoint.host)}"
            return RpcError(CONNECTION_CLOSED, why)

    def _refusal_in(self, response: httpx2.Response) -> RpcError:
        """Return the error of a refused POST: the one in its body, from `transport` or the server, or a general one."""
        try:
            error = loads(response.content)["error"]
            message, data = error["message"], error.get("data")
        except (JsonError, KeyError, TypeError, AttributeError):
            message, data = None, None
        if not isinstance(message, str):
            message, data = f"{self.server} answered HTTP {response.status_code}", None
        return RpcError(CONNECTION_CLOSED, message, data)


def _endpoint(response: httpx2.Response, text: str) -> httpx2.URL:
    url = response.request.url.join(text)
    if origin(url) != origin(response.request.url):
        raise ValueError("The server wants messages posted to another host")
    return url
