"""JSON-RPC vocabulary that all channels share: error codes, an answer, the receiver of an answer, a channel.

Never here: sockets, processes, MCP methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

from trayapp.wire.jsonio import JsonError, dumps, loads

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000  # the SDK's code for a peer that went away
REQUEST_TIMEOUT = -32001  # the SDK's code for a request that ran out of time
HEADER_MISMATCH = -32020  # MCP 2026-07-28, Streamable HTTP: also for initialize, which comes without the headers
UNSUPPORTED_PROTOCOL_VERSION = -32022  # MCP 2026-07-28, basic/versioning

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"

Params = Mapping[str, Any] | None
RequestId = int | str
_HEAD = b'{"jsonrpc":"2.0","id":'
OWN_ID_DIGITS = 15  # a longer number is none that we gave


class Request(NamedTuple):
    """One request of a peer's, on its way. `params` as it came, which may be anything."""

    id: RequestId
    method: str
    params: Any

    def with_params(self, params: Any) -> Request:
        """Return the same request with other params."""
        return Request(self.id, self.method, params)


def is_request_id(value: Any) -> TypeGuard[RequestId]:
    """Whether a JSON value may be an id: text or a whole number (JSON-RPC 2.0, MCP basic)."""
    return type(value) is int or type(value) is str  # what a JSON parser makes; `bool` is neither


def own_id(value: Any) -> int | None:
    """An id as we gave it: a number, or its text, which is what some servers return. None for what is none of ours."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) <= OWN_ID_DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    return None


def progress_token(params: Any) -> RequestId | None:
    """`params._meta.progressToken`, when it is one."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_request_id(token) else None


class RpcError(Exception):
    """A JSON-RPC error object, received or to be sent. Unknown fields of a received one are kept in `raw`."""

    def __init__(self, code: int, message: str, data: Any = None, raw: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.raw = raw
        self.unread = b""  # the frame that could not be read

    @classmethod
    def received(cls, error: Any) -> RpcError:
        """From the `error` member of an answer, however odd."""
        if not isinstance(error, dict):
            return cls(
                INTERNAL_ERROR,
                f"The server sent an error without a code: {dumps(error)[:150].decode(errors='replace')}",
            )
        code = error.get("code")
        if not isinstance(code, int):
            code = INTERNAL_ERROR
        return cls(code, str(error.get("message", "")), error.get("data"), error)

    def body(self) -> dict[str, Any]:
        """The `error` member to send."""
        if self.raw is not None:
            return self.raw
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class Reply:
    """One answer: either the frame as it came, with the place of its id, or the parsed message.

    `frame[start:end]` is the id's JSON text. A frame without a place (`end == 0`) is sent from `message`.
    """

    __slots__ = ("_message", "end", "frame", "start")

    def __init__(self, frame: bytes, start: int = 0, end: int = 0, message: dict[str, Any] | None = None) -> None:
        self.frame = frame
        self.start = start
        self.end = end
        self._message = message

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> Reply:
        """An answer made here."""
        return cls(b"", message={"jsonrpc": "2.0", "id": None, "result": result})

    @staticmethod
    def of_result_json(result: bytes) -> Reply:
        """An answer made here whose result is JSON text already."""
        return _OwnReply(result)

    @classmethod
    def of_error(cls, error: RpcError) -> Reply:
        """An error answer made here, or one that came by a channel without frames."""
        return cls(b"", message={"jsonrpc": "2.0", "id": None, "error": error.body()})

    @property
    def is_large(self) -> bool:
        """Whether reading `message` would cost a parse."""
        return self._message is None

    @property
    def size(self) -> int:
        """Bytes of the frame as it came; 0 where there is none."""
        return len(self.frame)

    def pieces(self, id_json: bytes) -> tuple[bytes | memoryview, ...]:
        """The whole frame, newline included, under another id. Nothing but the id differs from what came."""
        if self.end:
            view = memoryview(self.frame)
            return view[: self.start], id_json, view[self.end :], b"\n"
        return dumps({**self.message, "id": loads(id_json)}), b"\n"

    def with_id(self, id_json: bytes) -> bytes:
        """The same in one."""
        if not self.end:
            return dumps({**self.message, "id": loads(id_json)}) + b"\n"
        frame = self.frame
        return b"".join((frame[: self.start], id_json, frame[self.end :], b"\n"))

    @property
    def message(self) -> dict[str, Any]:
        """The parsed answer; parsed at first use when it came as a large frame. Raises JsonError."""
        if self._message is None:
            self._message = loads(self.frame)
        return self._message

    def result(self) -> dict[str, Any]:
        """The `result` member; raises RpcError for an error answer or a result that is not an object."""
        try:
            message = self.message
        except JsonError:
            unread = RpcError(INTERNAL_ERROR, "The server's answer is not valid JSON")
            unread.unread = self.frame
            raise unread from None
        if "error" in message:
            raise RpcError.received(message["error"])
        result = message.get("result")
        if not isinstance(result, dict):
            raise RpcError(INTERNAL_ERROR, "The server's answer holds no result object")
        return result


class UnreadReply(Reply):
    """The error in the place of an answer that could not be read; `unread` is its frame."""

    __slots__ = ("unread",)
    unread: bytes

    def result(self) -> dict[str, Any]:
        """See Reply; the error has the frame."""
        try:
            return super().result()
        except RpcError as error:
            error.unread = self.unread
            raise


class _OwnReply(Reply):
    """A result in JSON that many clients get: no frame is made of it before somebody wants one."""

    __slots__ = ("_result",)

    def __init__(self, result: bytes) -> None:
        self._result = result
        self._message = None
        self.start, self.end = len(_HEAD), len(_HEAD) + 1

    @property
    def frame(self) -> bytes:  # type: ignore[override]
        """With 0 for its id."""
        return b'%b0,"result":%b}' % (_HEAD, self._result)

    @property
    def size(self) -> int:
        """See Reply."""
        return len(self._result)

    def pieces(self, id_json: bytes) -> tuple[bytes | memoryview, ...]:
        """See Reply."""
        return _HEAD, id_json, b',"result":', self._result, b"}\n"

    def with_id(self, id_json: bytes) -> bytes:
        """See Reply."""
        return b"".join(self.pieces(id_json))


def is_answer(message: dict[str, Any]) -> bool:
    """Whether a message with a result or an error holds exactly one, and that is one: an error as JSON-RPC 2.0 has it
    (section 5), a result that is an object (MCP basic, responses)."""
    if "error" not in message:
        return isinstance(message["result"], dict)
    error = message["error"]
    if "result" in message or not isinstance(error, dict):
        return False
    code = error.get("code")
    return isinstance(code, int) and not isinstance(code, bool) and isinstance(error.get("message"), str)


def mended(message: dict[str, Any], words: str = "The answer") -> dict[str, Any]:
    """The same answer as any client can read it: servers send `"error": null` beside a result, text as an error, or
    null as a result, over which some clients wait for ever. `words`: what an error over it calls it."""
    if "result" in message and message.get("error") is None:
        if isinstance(message["result"], dict):
            return {name: value for name, value in message.items() if name != "error"}
        body: dict[str, Any] = {"code": INTERNAL_ERROR, "message": f"{words} holds no result object"}
    else:
        error = RpcError.received(message["error"])
        body = {**(error.raw or {}), "code": error.code, "message": error.message}
    return {**{name: value for name, value in message.items() if name != "result"}, "error": body}


class Call(Protocol):
    """Whoever waits for one answer. Both methods are called on the event loop and must not block."""

    def answered(self, reply: Reply) -> None:
        """The one answer; nothing comes after it."""

    def progress(self, params: dict[str, Any]) -> None:
        """A progress notification for this call, its `progressToken` already the caller's own."""


class Channel(Protocol):
    """What a connection to a backend can do, whatever carries it: the SDK's `Outbound` and a way to relay unparsed."""

    async def send_raw_request(self, method: str, params: Params, opts: Any = None) -> dict[str, Any]:
        """Send and await the result. `opts` as the SDK's CallOptions (timeout). Raises RpcError."""

    async def notify(self, method: str, params: Params, opts: Any = None) -> None:
        """Send a notification; dropped in silence when the channel is closed."""

    def relay(self, method: str, params: Params, call: Call) -> int:
        """Send a request whose answer goes to `call` as it comes; returns an id for `cancel`.

        A `progressToken` in `params._meta` is replaced on the way and restored in what `call.progress` gets.
        On a closed channel `call` is answered with CONNECTION_CLOSED at once.
        """

    def cancel(self, request_id: int, reason: str) -> None:
        """Give up a relayed request: the peer is told, its answer is dropped, `call` hears nothing more."""

    def adopt(self, protocol: str) -> None:
        """Requests from here on are of that protocol revision ("" = not agreed yet); HTTP says it in a header."""
