"""What the shim must know to survive the gateway: the client's handshake, and which requests are still open.

Loaded after the first answers went out. Never here: reading, writing, waiting.
"""

from __future__ import annotations

import json

from trayapp.wire.framing import find_answer_id

TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from typing import Any

HEAD = b'{"jsonrpc":"2.0","id":'
LOST = -32000  # the code of a closed connection
TOLD = "The gateway ended during this call. It was not repeated, it may have had effects; the session goes on"
REFUSED = "The gateway could not be started. See what it says with: multi-mcp start"


class Ledger:
    """One session's. Ids are kept as their JSON text."""

    def __init__(self) -> None:
        self.open: dict[bytes, None] = {}
        self.swallows: set[bytes] = set()  # answers to what was replayed; the client has had them
        self._initialize: tuple[bytes, bytes] | None = None  # id, line
        self._initialized: bytes | None = None
        self._state: dict[str, tuple[bytes, bytes]] = {}  # requests that set something up, by what they set

    def client_sent(self, lines: bytes) -> None:
        """Whole lines that went to the gateway."""
        for line in lines.splitlines(keepends=True):
            id_json = quick_id(line, b'"method":"tools/call"', b'{"method":"tools/call"')
            if id_json is not None:
                self.open[id_json] = None
            else:
                self._client_message(line)

    def _client_message(self, line: bytes) -> None:
        message = parsed(line)
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict) and isinstance(part.get("method"), str):
                self._request(part, line)

    def _request(self, message: dict[str, Any], line: bytes) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            id_json = dumped(message["id"])
            self.open[id_json] = None
            if method == "initialize":
                self._initialize = (id_json, line)
            elif method in ("logging/setLevel", "resources/subscribe"):
                self._state[method + str(params.get("uri", ""))] = (id_json, line)
            elif method == "resources/unsubscribe":
                self._state.pop("resources/subscribe" + str(params.get("uri", "")), None)
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled":
            self.open.pop(dumped(params.get("requestId")), None)

    def gateway_sent(self, lines: bytes) -> None:
        """Whole lines that went to the client."""
        for line in lines.splitlines(keepends=True) if lines.count(b"\n") > 1 else (lines,):
            id_json = answer_id(line)
            if id_json is not None:
                self.open.pop(id_json, None)

    def without_swallowed(self, lines: bytes) -> bytes:
        """`lines` without the answers that only the replay caused."""
        kept = []
        for line in lines.splitlines(keepends=True):
            id_json = answer_id(line)
            if id_json in self.swallows:
                self.swallows.discard(id_json)
            else:
                kept.append(line)
        return b"".join(kept)

    def lost(self) -> bytes:
        """One error for each open call. An `initialize` without an answer is not one: it is sent again."""
        first = self._initialize[0] if self._initialize else None
        calls = [id_json for id_json in self.open if id_json != first]
        self.open = {first: None} if first in self.open and first is not None else {}
        self.swallows.clear()
        return b"".join(error_line(id_json, TOLD) for id_json in calls)

    def replay(self) -> bytes:
        """What brings a new gateway to where the old one was with this client."""
        self.swallows.clear()
        if self._initialize is None:
            return b""
        id_json, line = self._initialize
        if id_json not in self.open:
            self.swallows.add(id_json)
        lines = [line]
        if self._initialized is not None:
            lines.append(self._initialized)
        for number, (_, request) in enumerate(self._state.values()):
            message = {**parsed(request), "id": f"multi-mcp-replay-{number}"}
            self.swallows.add(dumped(message["id"]))
            lines.append(dumped(message) + b"\n")
        return b"".join(lines)

    def refusals(self, lines: bytes) -> bytes:
        """An error for each request in `lines`, which no gateway could be found for."""
        messages = [parsed(line) for line in lines.splitlines()]
        requests = [m for m in messages if isinstance(m, dict) and "id" in m and "method" in m]
        return b"".join(error_line(dumped(m["id"]), REFUSED) for m in requests)


def quick_id(line: bytes, after_head: bytes, start: bytes) -> bytes | None:
    """The numeric id of a line in one of the two usual orders of members; None for anything else."""
    if line.startswith(HEAD):
        end = line.find(b",", len(HEAD))
        id_json = line[len(HEAD) : end]
        return id_json if id_json.isdigit() and line.startswith(after_head, end + 1) else None
    if line.startswith(start):
        at = line.rfind(b',"id":', len(line) - 40)
        id_json = line[at + 6 :].rstrip()[:-1]
        return id_json if at > 0 and id_json.isdigit() else None
    return None


def answer_id(line: bytes) -> bytes | None:
    """JSON text of the id that an answer is for; None for what is no answer. Large answers are not parsed."""
    place = find_answer_id(line.rstrip(b"\n"))
    if place is not None:
        return line[place[0] : place[1]]
    message = parsed(line)
    if isinstance(message, dict) and "id" in message and "method" not in message:
        return dumped(message["id"])
    return None


def error_line(id_json: bytes, text: str) -> bytes:
    """An error answer, newline included."""
    error = dumped({"code": LOST, "message": text, "data": {"code": "gateway_lost"}})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id_json, error)


def parsed(line: bytes) -> Any:
    """The message, or None for what is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def dumped(value: Any) -> bytes:
    """Compact JSON, as the gateway writes ids."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
