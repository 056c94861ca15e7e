"""Classification of HTTP responses (an MCP server, a busy one, or something else).

Malformed answers and the line ends of event streams are repaired.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any

import httpx2

from trayapp.wire.jsonio import JsonError, loads
from trayapp.wire.messages import INTERNAL_ERROR, RequestId, is_answer, is_request_id, mended, own_id

UNAVAILABLE = frozenset({429, 502, 503, 504})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEARER = re.compile(r"(?:^|,)\s*bearer(?=\s|,|$)", re.IGNORECASE)
LONGEST_WORD = 60  # characters of a content type in error texts
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ResponseKind(StrEnum):
    """The kind of server that answers. The values go into error texts, after the server's name."""

    MCP = "answered"
    BUSY = "is temporarily unavailable"
    SIGN_IN = "wants a sign-in"
    MAYBE_SIGN_IN = "may want a sign-in, but does not say which kind"
    OTHER = "does not answer as an MCP server does"


def kind_of(status: int, content_type: str = "", body: bytes = b"", challenge: str | None = None) -> ResponseKind:
    """Classify a response to a JSON-RPC request; `challenge` is its WWW-Authenticate header.

    An event stream counts as MCP before its first event: nothing else streams in answer to a JSON-RPC message.
    """
    if status == 401:  # RFC 9110 11.6.1: there may be several challenges
        is_bearer = challenge is not None and _BEARER.search(_QUOTED.sub("", challenge)) is not None
        return ResponseKind.SIGN_IN if is_bearer else ResponseKind.MAYBE_SIGN_IN
    if is_json_rpc(body):
        return ResponseKind.MCP
    if status in UNAVAILABLE:
        return ResponseKind.BUSY
    if status == 200 and content_type.lower().startswith("text/event-stream"):
        return ResponseKind.MCP
    return ResponseKind.OTHER


def is_json_rpc(body: bytes) -> bool:
    """Return True if the body is a JSON-RPC message or a batch of messages."""
    try:
        message = loads(body)
    except JsonError:
        return False
    parts = message if isinstance(message, list) and message else [message]
    return all(isinstance(part, dict) and part.get("jsonrpc") == "2.0" for part in parts)


def words(server: str, kind: ResponseKind, status: int, content_type: str = "") -> str:
    """Return one line for people: the server, its kind, and the status and content type that show it."""
    said = content_type.partition(";")[0].strip()[:LONGEST_WORD]
    told = f"HTTP {status}, {said}" if said and kind is ResponseKind.OTHER else f"HTTP {status}"
    return f"{server} {kind} ({told})"


def find_answer(body: bytes, request_id: RequestId, words: str) -> dict[str, Any] | None:
    """Return the answer in a JSON response to a request, or None if the response is a valid answer as it stands.

    A single answer without an id counts as the request's: the server could not read the id. A batch is searched. A
    response without an answer becomes an error; otherwise it would be dropped and the request would never end.
    """
    try:
        said = loads(body)
    except JsonError:
        return _error(request_id, f"{words} is not valid JSON, or nested too deep")
    parts = [part for part in (said if isinstance(said, list) else [said]) if isinstance(part, dict)]
    number = own_id(request_id)
    for part in parts:
        given = part.get("id")
        is_ours = given is None or given == request_id or (number is not None and own_id(given) == number)
        if "method" not in part and is_ours:
            plain = part is said and given is not None and ("result" in part or "error" in part)
            return None if plain and is_answer(part) else {**_readable(part, words), "id": request_id}
    return _error(request_id, f"{words} does not answer the request")


def _readable(part: dict[str, Any], words: str) -> dict[str, Any]:
    if "method" in part or not is_request_id(part.get("id", 0)):
        return part
    if "result" in part or "error" in part:
        return part if is_answer(part) else mended(part, words)
    return _error(part.get("id"), f"{words} holds neither a result nor an error")


def _error(request_id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": INTERNAL_ERROR, "message": text}}


class EventLines(httpx2.AsyncByteStream):
    """A byte stream with newlines as line ends and without a leading byte order mark (WHATWG HTML, 9.2.5).

    After a lone carriage return, the event reader would wait for the next byte and delay the event that the line ends.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = returned = False
        async for came in self._stream:
            part = came if begun else came.removeprefix(BYTE_ORDER_MARK)
            begun = begun or bool(came)
            if returned:
                part = part.removeprefix(b"\n")
            returned = came.endswith(b"\r") or (returned and not came)
            if part:
                yield part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in part else part

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
