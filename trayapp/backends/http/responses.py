"""HTTP responses of servers: check that an MCP server sent them, and find a request's answer in a JSON body.

Pure, except EventLines and `retry_after_s`, which reads the clock. Sending, and the handling of responses, are in
`channel`.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from trayapp.wire.jsonio import JsonError, loads, member_at
from trayapp.wire.messages import INTERNAL_ERROR, RequestId, is_answer, mended, own_id

UNAVAILABLE = frozenset({429, 502, 503, 504})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEARER = re.compile(r"(?:^|,)\s*bearer(?=\s|,|$)", re.IGNORECASE)
LONGEST_WORD = 60  # the most characters of a content type that error texts show
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_REFUSAL = 1_000  # in bytes; a longer answer is not searched for signs of a lost session
_NO_SESSION = re.compile(
    r"\b(?:no valid|invalid|unknown|expired|missing)\b[\w -]{0,9}\bsession\b"
    r"|\bsession\b.{0,60}\b(?:not found|not exist|expired|unknown|invalid|not initialized|terminated)\b",
    re.IGNORECASE | re.DOTALL,
)
# The TypeScript SDK's transport sends such a text after a restart, without looking at the request.
_NOT_INITIALIZED = re.compile(r"\bnot (?:yet )?(?:been )?initiali[sz]ed\b|\bbefore initiali[sz]ation\b", re.IGNORECASE)


def is_mcp(status: int, content_type: str, body: bytes) -> bool:
    """Return True if a response to a JSON-RPC request comes from an MCP server.

    An event stream counts even before its first event, because nothing else answers JSON-RPC with a stream.
    """
    is_stream = status == 200 and content_type.lower().startswith("text/event-stream")
    return is_stream or json_rpc_in(body) is not None


def json_rpc_in(body: bytes) -> dict[str, Any] | list[dict[str, Any]] | None:
    """Return the JSON-RPC message or the batch of messages in a body; None if it holds neither."""
    try:
        said = loads(body)
    except JsonError:
        return None
    parts = said if isinstance(said, list) and said else [said]
    return said if all(isinstance(part, dict) and part.get("jsonrpc") == "2.0" for part in parts) else None


def words(server: str, status: int, content_type: str = "", challenge: str = "") -> str:
    """Return one line for the user about a response that is not MCP. `challenge` is its WWW-Authenticate header."""
    if status == 401:  # RFC 9110 11.6.1: there may be several challenges
        is_bearer = _BEARER.search(_QUOTED.sub("", challenge)) is not None
        need = "needs a sign-in" if is_bearer else "may need a sign-in, but does not say which kind"
        return f"{server} {need} (HTTP {status})"
    if status in UNAVAILABLE:
        return f"{server} is temporarily unavailable (HTTP {status})"
    told = [f"HTTP {status}", content_type.partition(";")[0].strip()[:LONGEST_WORD]]
    return f"{server} does not answer like an MCP server ({', '.join(filter(None, told))})"


def find_answer(
    said: dict[str, Any] | list[dict[str, Any]], request_id: RequestId, words: str
) -> dict[str, Any] | None:
    """Return the answer in the response to a request (json_rpc_in), or None if the response itself is a valid answer.

    An answer without an id counts as the request's: the server could not read the id. A batch is searched. A
    response without an answer becomes an error; otherwise it would be dropped and the request would never end.
    `words` names the response in such errors.
    """
    number = own_id(request_id)
    for part in said if isinstance(said, list) else [said]:
        given = part.get("id")
        is_ours = given is None or given == request_id or (number is not None and own_id(given) == number)
        if "method" in part or not is_ours:
            continue
        if "result" not in part and "error" not in part:
            return _error(request_id, f"{words} has neither a result nor an error")
        if not is_answer(part):
            return {**mended(part, words), "id": request_id}
        return None if part is said and given is not None else {**part, "id": request_id}
    return _error(request_id, f"{words} does not answer the request")


def _error(request_id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": INTERNAL_ERROR, "message": text}}


class EventLines(httpx2.AsyncByteStream):
    """A byte stream with all line endings as newlines, and without a leading byte order mark (WHATWG HTML, 9.2.5).

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
        await self._stream.aclose()


def session_is_lost(status: int, body: bytes | None) -> bool:
    """Return True if the response to a request with a session id says that the server has forgotten the session.

    `body` is the body of a JSON response. The sign is a 404 (MCP transports, session management), or a 400 or 200 whose
    error message says so. Servers that follow the first examples of the TypeScript SDK send a 400. With 200, only an
    error without a request id counts: a call's own error means that the call was made. A 400 that says "not
    initialized" means that the server restarted: it cannot have executed anything.
    """
    if status == 404:
        return True
    if status not in (200, 400) or body is None or len(body) > LONGEST_REFUSAL:
        return False
    message = json_rpc_in(body)
    if not isinstance(message, dict) or (status == 200 and message.get("id") is not None):
        return False
    told = member_at(message, "error", "message")
    if not isinstance(told, str):
        return False
    return _NO_SESSION.search(told) is not None or (status == 400 and _NOT_INITIALIZED.search(told) is not None)


def is_json(response: httpx2.Response) -> bool:
    return bool(response.headers.get("content-type", "").lower().startswith("application/json"))


def is_event_stream(response: httpx2.Response) -> bool:
    """Return True if the body is an event stream without a content encoding."""
    kind = response.headers.get("content-type", "").lower()
    return kind.startswith("text/event-stream") and "content-encoding" not in response.headers


def retry_after_s(header: str | None) -> float | None:
    """Return `Retry-After` in seconds (RFC 9110, 10.2.3), or None if absent or unreadable."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
