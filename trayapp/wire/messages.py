"""JSON-RPC vocabulary that all channels share: error codes, answers, the receiver of an answer, the channel itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

from trayapp.wire.jsonio import JsonError, dumps, loads, member_at

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000  # the SDK's code for a closed connection
REQUEST_TIMEOUT = -32001  # the SDK's code for a request that timed out
HEADER_MISMATCH = -32020  # MCP 2026-07-28, Streamable HTTP; may also answer initialize, which lacks the headers
MISSING_CAPABILITY = -32021  # MCP 2026-07-28: the client lacks a capability that the request needs
UNSUPPORTED_PROTOCOL_VERSION = -32022  # MCP 2026-07-28, basic/versioning

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"

Params = Mapping[str, Any] | None
RequestId = int | str
_HEAD = b'{"jsonrpc":"2.0","id":'
OWN_ID_DIGITS = 15  # our own ids are never longer


class Request(NamedTuple):
    """One request of a peer. `params` is as received and may be any JSON value."""

    id: RequestId
    method: str
    params: Any

    def with_params(self, params: Any) -> Request:
        return self._replace(params=params)


def is_request_id(value: Any) -> TypeGuard[RequestId]:
    """Return True if a JSON value may be an id: a string or an integer (JSON-RPC 2.0, MCP basic)."""
    return type(value) is int or type(value) is str  # exact types from the parser; a `bool` is neither


def own_id(value: Any) -> int | None:
    """Return the id of an answer to our request as a number, even if sent as a string; None for other values."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) <= OWN_ID_DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    return None


def progress_token(params: Any) -> RequestId | None:
    """Return `params._meta.progressToken`; None if it is missing or not a valid token."""
    token = member_at(params, "_meta", "progressToken")
    return token if is_request_id(token) else None


class RpcError(Exception):
    """A JSON-RPC error object, received or to be sent. `raw` keeps unknown fields of a received object."""

    def __init__(self, code: int, message: str, data: Any = None, raw: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.raw = raw
        self.unread = b""  # the received frame, if it could not be read

    @classmethod
    def received(cls, error: Any) -> RpcError:
        """Return the error for the `error` member of an answer, even if malformed."""
        if not isinstance(error, dict):
            shown = dumps(error)[:150].decode(errors="replace")
            return cls(INTERNAL_ERROR, f"The server sent an error that is not an object: {shown}")
        code = error.get("code")
        code = code if isinstance(code, int) else INTERNAL_ERROR
        return cls(code, str(error.get("message", "")), error.get("data"), error)

    def body(self) -> dict[str, Any]:
        if self.raw is not None:
            return self.raw
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class Reply:
    """One answer: the frame as received, the parsed message, or both.

    `frame[start:end]` is the id's JSON text. If the position is unknown (`end == 0`), `message` is sent instead.
    `unread` is the frame of an answer that could not be read, if this is the error that replaces it.
    """

    __slots__ = ("_message", "end", "frame", "start", "unread")

    def __init__(self, frame: bytes, start: int = 0, end: int = 0, message: dict[str, Any] | None = None) -> None:
        self.frame = frame
        self.start = start
        self.end = end
        self.unread = b""
        self._message = message

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> Reply:
        """Return an answer with a result made by the gateway."""
        return cls(b"", message={"jsonrpc": "2.0", "id": None, "result": result})

    @staticmethod
    def of_result_json(result: bytes) -> Reply:
        """Return an answer made by the gateway whose result is already JSON text."""
        return _OwnReply(result)

    @classmethod
    def of_error(cls, error: RpcError) -> Reply:
        """Return an error answer, made by the gateway or received on a channel without frames."""
        return cls(b"", message={"jsonrpc": "2.0", "id": None, "error": error.body()})

    @property
    def is_large(self) -> bool:
        """True if the answer has not been parsed yet, so that reading `message` parses it."""
        return self._message is None

    @property
    def size(self) -> int:
        """Return the size of the received frame in bytes; 0 without one."""
        return len(self.frame)

    def pieces(self, id_json: bytes) -> tuple[bytes | memoryview, ...]:
        """Return the whole frame in pieces, newline included, with another id. Nothing else is changed."""
        if self.end:
            view = memoryview(self.frame)
            return view[: self.start], id_json, view[self.end :], b"\n"
        return dumps({**self.message, "id": loads(id_json)}), b"\n"

    def with_id(self, id_json: bytes) -> bytes:
        """Return the whole frame, newline included, with another id. Using `pieces` would take twice as long."""
        if not self.end:
            return dumps({**self.message, "id": loads(id_json)}) + b"\n"
        frame = self.frame
        return b"".join((frame[: self.start], id_json, frame[self.end :], b"\n"))

    @property
    def message(self) -> dict[str, Any]:
        """Return the parsed answer. A large frame is parsed at first use. Raises JsonError."""
        if self._message is None:
            self._message = loads(self.frame)
        return self._message

    def result(self) -> dict[str, Any]:
        """Return the `result` member. Raises RpcError for an error, invalid JSON, or a result that is not an object."""
        try:
            message = self.message
        except JsonError:
            error = RpcError(INTERNAL_ERROR, "The server's answer is not valid JSON")
            error.unread = self.frame
            raise error from None
        if "error" in message:
            error = RpcError.received(message["error"])
            error.unread = self.unread
            raise error
        result = message.get("result")
        if not isinstance(result, dict):
            raise RpcError(INTERNAL_ERROR, "The server's answer has no result object")
        return result


class _OwnReply(Reply):
    """An answer whose JSON result many clients share. A frame is built only when it is needed."""

    __slots__ = ("_result",)

    def __init__(self, result: bytes) -> None:
        self._result = result
        self._message, self.unread = None, b""
        self.start, self.end = len(_HEAD), len(_HEAD) + 1

    @property
    def frame(self) -> bytes:  # type: ignore[override]
        return b'%b0,"result":%b}' % (_HEAD, self._result)

    @property
    def size(self) -> int:
        return len(self._result)

    def pieces(self, id_json: bytes) -> tuple[bytes | memoryview, ...]:
        return _HEAD, id_json, b',"result":', self._result, b"}\n"

    def with_id(self, id_json: bytes) -> bytes:
        return b"".join(self.pieces(id_json))


def is_answer(message: dict[str, Any]) -> bool:
    """Return True if a message with a result or an error holds exactly one of them, in valid form.

    A valid error follows JSON-RPC 2.0 (section 5). A valid result is an object (MCP basic, responses).
    """
    if "error" not in message:
        return isinstance(message["result"], dict)
    error = message["error"]
    if "result" in message or not isinstance(error, dict):
        return False
    code = error.get("code")
    return isinstance(code, int) and not isinstance(code, bool) and isinstance(error.get("message"), str)


def mended(message: dict[str, Any], words: str = "The answer") -> dict[str, Any]:
    """Return a malformed answer in a form that every client can read.

    Some servers send `"error": null` beside a result, a string as an error, or null as a result, and some clients then
    wait forever. `words` names the answer in an error about it.
    """
    if "result" in message and message.get("error") is None:
        if isinstance(message["result"], dict):
            return {name: value for name, value in message.items() if name != "error"}
        body: dict[str, Any] = {"code": INTERNAL_ERROR, "message": f"{words} has no result object"}
    else:
        error = RpcError.received(message["error"])
        body = {**(error.raw or {}), "code": error.code, "message": error.message}
    return {**{name: value for name, value in message.items() if name != "result"}, "error": body}


class Call(Protocol):
    """The receiver of one answer. Both methods are called on the event loop and must not block."""

    def answered(self, reply: Reply) -> None:
        """Receive the answer. This is called once, and `progress` is not called afterwards."""

    def progress(self, params: dict[str, Any]) -> None:
        """Receive a progress notification for this call. Its `progressToken` is already the caller's own."""


class Channel(Protocol):
    """A connection to a backend over any transport. It sends requests and relays answers unparsed."""

    async def send_raw_request(
        self, method: str, params: Params, *, timeout_s: float | None = None, cancel_on_abandon: bool = True
    ) -> dict[str, Any]:
        """Send a request and return its result. `cancel_on_abandon`: notify the peer once nobody waits for the result.

        Raises RpcError: the peer's error, REQUEST_TIMEOUT after `timeout_s` seconds, or CONNECTION_CLOSED.
        """

    def send_notification(self, method: str, params: Params) -> None:
        """Send a notification, or drop it if the channel is closed."""

    def relay(self, method: str, params: Params, call: Call) -> int:
        """Send a request whose answer goes to `call` as received, and return an id for `cancel`.

        A `progressToken` in `params._meta` is replaced in the request and restored in the notifications.
        On a closed channel, `call` is immediately answered with CONNECTION_CLOSED.
        """

    def cancel(self, request_id: int, reason: str) -> None:
        """Cancel a relayed request: notify the peer, drop its answer, and call no method of `call` again."""

    def adopt(self, protocol: str) -> None:
        """Use that protocol revision for further requests ("" = not agreed yet). HTTP sends it in a header."""
