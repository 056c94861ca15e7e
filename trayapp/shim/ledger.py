"""The state that the shim keeps to survive a lost gateway: the client's handshake and the open requests.

This module is loaded after the first answers, or as soon as no gateway can be reached.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs 5 ms and 0.6 MiB
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# --- JSON, with the interpreter's own scanner and encoder. The package `json` around them has regular expressions that
# cost 1 MiB of memory in each shim


class _Rules:
    """The scanner's settings, the same as those of json.JSONDecoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def loads(data: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError, RecursionError."""
    text = data.decode("utf-8", "surrogatepass").strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # SystemError: the scanner's own error class is in a module that is not loaded
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def dumps(value: Any) -> bytes:
    """Return compact JSON in UTF-8, as the gateway writes it."""
    return "".join(_chunks(value, 0)).encode("utf-8", "surrogatepass")


def _refuse(value: object) -> object:
    raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}")


_scan: Callable[[str, int], tuple[Any, int]]
_chunks: Callable[[Any, Any], Iterable[str]]
try:
    from _json import encode_basestring, make_encoder, make_scanner

    _scan = make_scanner(_Rules)  # type: ignore[arg-type]  # it only reads these attributes
    _chunks = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
except (ImportError, TypeError):  # another Python implementation, or a later version
    from json import JSONDecoder, JSONEncoder

    _scan = JSONDecoder().raw_decode
    _chunks = JSONEncoder(separators=(",", ":"), ensure_ascii=False).iterencode


HEAD = b'{"jsonrpc":"2.0","id":'
ID_DIGITS = 18  # the most digits of an id that is read without parsing
ID_AT, ID_MOST = len(HEAD), len(HEAD) + ID_DIGITS + 1
ZERO = ord("0")
PING_ID = b'"multi-mcp-ping"'
PARSED_MOST = 1 << 16  # bytes; a longer message is searched for its id first, and parsed only if that fails
LOST = -32000  # the error code of a closed connection
GATEWAY_LOST = (
    "The gateway ended during this call. The call was not repeated and may have had effects. The session continues"
)
REFUSED = "The gateway could not be started. To see why, run: multi-mcp start"
NOT_REPEATED = "The call was not repeated and may have had effects"
UNRESPONSIVE = "The gateway does not answer. Restart it in the tray menu, or with: multi-mcp stop"
PAUSED = "The user paused multi-mcp. Ask them to choose Resume in its tray menu"


class Ledger:
    """The handshake, open requests and state of one session. Ids are kept as their JSON text."""

    def __init__(self) -> None:
        self.open: dict[bytes, bytes | None] = {}  # open request -> its line if it is a subscription (MCP 2026-07-28)
        self.refusal = REFUSED  # why no gateway could be reached the last time, and what to do
        self.own_ids: set[bytes] = set()  # ids of replayed requests and the ping; their answers are not for the client
        self._initialize: tuple[bytes, bytes] | None = None  # id, line
        self._initialized: bytes | None = None
        self._state: dict[str, bytes] = {}  # state that a request sets (method and uri) -> the request's line

    def record_client_lines(self, lines: bytes) -> None:
        """Record whole lines that went to the gateway."""
        for line in lines_of(lines):
            id_json = quick_id(line, b'"method":"tools/call"', b'{"method":"tools/call"')
            if id_json is not None:
                self.open[id_json] = None
            else:
                for message, alone in messages_of(line):
                    self._client_message(message, alone)

    def _client_message(self, message: dict[str, Any], line: bytes) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if is_id(message.get("id")):
            id_json = dumps(message["id"])
            self.open[id_json] = line if method == "subscriptions/listen" else None
            if method == "initialize":
                self._initialize = (id_json, line)
            elif method in ("logging/setLevel", "resources/subscribe"):
                self._state[method + str(params.get("uri", ""))] = line
            elif method == "resources/unsubscribe":
                self._state.pop("resources/subscribe" + str(params.get("uri", "")), None)
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled":
            self.open.pop(dumps(params.get("requestId")), None)

    def record_gateway_lines(self, lines: bytes) -> None:
        """Record whole lines that went to the client. Each answer in them closes its request."""
        for line in lines_of(lines):
            if (id_json := answer_id(line)) is not None:
                self.open.pop(id_json, None)

    def begins_answer(self, head: bytes) -> bool:
        """Close the request that a line answers. Return False without closing it if `head` shows no id.

        Also return False while the shim awaits an answer to a request of its own.
        """
        id_json = None if self.own_ids else quick_id(head, (b'"result":', b'"error":'), ())
        if id_json is None:
            return False
        self.open.pop(id_json, None)
        return True

    def drop_own_answers(self, lines: bytes) -> bytes:
        """Return `lines` without the answers to the shim's own requests."""
        kept = []
        for line in lines_of(lines):
            id_json = answer_id(line)
            if id_json in self.own_ids:
                self.own_ids.discard(id_json)
            else:
                kept.append(line)
        return b"".join(kept)

    def ping(self) -> bytes:
        """Return the line of a ping. MCP 2026-07-28 has no ping, but the gateway's error shows that it is alive."""
        self.own_ids.add(PING_ID)
        return b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % PING_ID

    @property
    def has_open_calls(self) -> bool:
        """True if a request other than the handshake is open."""
        return bool(self.open.keys() - {self._initialize[0] if self._initialize else None})

    @property
    def has_open_handshake(self) -> bool:
        """True if the client's `initialize` is open."""
        return self._initialize is not None and self._initialize[0] in self.open

    def fail_unanswered_calls(self) -> bytes:
        """Fail the open calls as `fail_open_calls` does, with the reason that the connected gateway does not answer."""
        self.refusal = UNRESPONSIVE
        return self.fail_open_calls(f"{UNRESPONSIVE}. {NOT_REPEATED}")

    def fail_open_calls(self, why: str = GATEWAY_LOST) -> bytes:
        """Close the open calls and return an error for each. An open `initialize` or subscription stays open."""
        first = self._initialize[0] if self._initialize else None
        calls = [id_json for id_json, line in self.open.items() if line is None and id_json != first]
        self.open = {id_json: line for id_json, line in self.open.items() if line is not None or id_json == first}
        self.own_ids.clear()
        return b"".join(error_line(id_json, why) for id_json in calls)

    def replay(self) -> bytes:
        """Return the lines that restore this client's session state in a new gateway."""
        self.own_ids.clear()
        lines: list[bytes] = []
        if self._initialize is not None:
            id_json, line = self._initialize
            if id_json not in self.open:
                self.own_ids.add(id_json)
            lines.append(line)
            if self._initialized is not None:
                lines.append(self._initialized)
            for number, request in enumerate(self._state.values()):
                message = {**parsed(request), "id": f"multi-mcp-replay-{number}"}
                self.own_ids.add(dumps(message["id"]))
                lines.append(dumps(message) + b"\n")
        return b"".join((*lines, *filter(None, self.open.values())))

    def fail_initialize(self) -> bytes:
        """Close an open `initialize`. Return an error that explains why no gateway answers, or b"" if none is open."""
        if self._initialize is None or not self.has_open_handshake:
            return b""
        id_json, self._initialize = self._initialize[0], None
        del self.open[id_json]
        return error_line(id_json, self.refusal)

    def note_failed_start(self, is_paused: bool) -> None:
        self.refusal = PAUSED if is_paused else REFUSED

    def has_request(self, lines: bytes) -> bool:
        """Return True if `lines` contain a request. Only a request starts a gateway."""
        return any(is_id(message.get("id")) for line in lines_of(lines) for message, _ in messages_of(line))

    def refuse_requests(self, lines: bytes) -> bytes:
        """Return an error for each request in `lines`, because no gateway could be reached.

        Notifications that the next gateway must get are recorded.
        """
        errors = []
        for line in lines_of(lines):
            for message, alone in messages_of(line):
                if is_id(message.get("id")):
                    errors.append(error_line(dumps(message["id"]), self.refusal))
                else:
                    self._client_message(message, alone)
        return b"".join(errors)


def lines_of(data: bytes) -> list[bytes]:
    """Return whole lines, each with its newline. `splitlines` would also split at a carriage return within JSON."""
    if data.find(b"\n") == len(data) - 1:  # counting the newlines would take 25 times as long
        return [data] if data else []
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def messages_of(line: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """Return the requests and notifications in a line or batch (MCP 2025-03-26), each with its own line."""
    value = parsed(line)
    if isinstance(value, list):
        return [(part, dumps(part) + b"\n") for part in value if is_message(part)]
    return [(value, line)] if is_message(value) else []


def is_message(value: Any) -> bool:
    """Return True if the value is a request or a notification."""
    return isinstance(value, dict) and isinstance(value.get("method"), str)


def is_id(value: Any) -> bool:
    """Return True if a request with that id gets an answer. Importing wire/messages.is_request_id costs too much."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def quick_id(line: bytes, after_head: bytes | tuple[bytes, ...], start: bytes | tuple[bytes, ...]) -> bytes | None:
    """Return the numeric id of a line whose members are in a usual order, or None for any other line.

    If the id is the first member, `after_head` must follow it. If it is the last, the line must begin with `start`.
    """
    if line.startswith(HEAD):
        end = line.find(b",", ID_AT, ID_MOST)
        if end < 0 or not line.startswith(after_head, end + 1):
            return None
        id_json = line[ID_AT:end]
        return id_json if is_number(id_json) else None
    if line.startswith(start):
        at = line.rfind(b',"id":', len(line) - 40)
        id_json = line[at + 6 :].rstrip()[:-1]
        return id_json if at > 0 and is_number(id_json) else None
    return None


def is_number(id_json: bytes) -> bool:
    """Return True if the id is a JSON integer of at most ID_DIGITS digits, as every JSON encoder would write it."""
    return id_json.isdigit() and (id_json[0] != ZERO or id_json == b"0") and len(id_json) <= ID_DIGITS


def answer_id(line: bytes) -> bytes | None:
    """Return the JSON text of an answer's id, or None if the line is not an answer. Large answers are rarely parsed."""
    id_json = quick_id(line, (b'"result":', b'"error":'), (b'{"result":', b'{"error":'))
    if id_json is not None:
        return id_json
    if len(line) > PARSED_MOST:
        from trayapp.wire.framing import find_answer_id  # 1.6 MiB with its imports

        if (place := find_answer_id(line.rstrip(b"\n"))) is not None:
            return line[place[0] : place[1]]
    message = parsed(line)
    if isinstance(message, dict) and "id" in message and "method" not in message:
        return dumps(message["id"])
    return None


def error_line(id_json: bytes, text: str) -> bytes:
    """Return the line of an error answer, newline included."""
    error = dumps({"code": LOST, "message": text, "data": {"code": "gateway_lost"}})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id_json, error)


def parsed(line: bytes) -> Any:
    """Return the parsed line, or None if it is not JSON."""
    try:
        return loads(line)
    except (ValueError, RecursionError):
        return None
