"""Control requests: their names, and the clients that the tray and the command line use to reach a running gateway.

They use JSON-RPC over the local socket, without an event loop. ControlClient blocks and sends one request at a time.
SnapshotStream is for use with a selector.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, Self

from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.wire.framing import FrameSplitter, OversizedFrame
from trayapp.wire.greeting import USES_TCP, Hello, greeting, read_endpoint
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import RpcError
from trayapp.wire.rundir import STOPPING, socket_path

SNAPSHOT = "snapshot"  # -> the object of `status --json`
# {beat_s?, asks?} -> {"beat": seconds?}; then a notification "snapshot" for every revision. `asks: false`: this watcher
# shows no asks to the user, so it does not count when the gateway checks whether anyone can answer one
WATCH = "watch"
BEAT = "beat"  # a notification every `beat_s` seconds, to a watcher that passed `beat_s`
# {server?, project?, classes?, tools?: [[server, name]]} -> [row of `list --json`]; `project`: as a session in that
# folder sees it; `tools`: only these
LIST = "list"
OFFER = "offer"  # {server, project?} -> {"version", "prompts", "resources", "templates"}: what it offers, except tools
NOTE = "note"  # {"text"}: a notification before an answer, with a line for the user about a part that the answer lacks
SEARCH = "search"  # {words | batch: [words], server?, regex?, limit?, project?} -> {"results": [[row]], "text"}
DESCRIBE = "describe"  # {tool, server?, project?} -> {"server", "name", "exposed_name", "tool", "text"}
INDEX = "index"  # {project?} -> {"text"}
COSTS = "costs"  # {project?} -> see gateway/control/catalog; "unused": {"since", "tools", "tokens"} from the history
REFRESH = "refresh"  # {server?} -> {server: {"added", "gone", "back", "waiting", "error"}}; waiting: for approval
RECONNECT = "reconnect"  # {server?} -> {server: {"state", "error"}}; without `server`, idle servers are skipped
RELOAD = "reload"  # -> {"problems": [...]}
# {tool, server?, args, typed?: {name: text}, project?, asks?, allowed?} -> {"server", "tool", "result"}. With `asks`,
# a call that the user must allow first is answered with {"ask": row}; once it is allowed, repeat it with `allowed`, the
# "hash" of that row. Without `asks`, the call waits until the user answers its ask
CALL = "call"
ASKS = "asks"  # -> {"asks": [row of gateway/asks], "always": [{server, tool}]}, oldest first
# {id, answer?: once | session | always, content?: {field: value} of a question, by?} -> {"ask": row}
ALLOW = "allow"
DENY = "deny"  # {id, by?} -> {"ask": row}; {server, tool} -> {}: the tool is no longer always allowed
PROMPT = "prompt"  # {prompt, words: line or [word], project?} -> {"server", "prompt", "result"}
APPROVALS = "approvals"  # {server?, tool?} -> {"rows": [see gateway/control/approvals]}
# {tools: [{server, tool, hash}], keep?: true} -> {"approved": [{server, tool}], "missed": [the same]}; `keep`: the
# definition approved before stays in use until the tool changes again
APPROVE = "approve"
COMMANDS = "commands"  # {server?} -> {"rows": [{server, commands, shown}]}: commands for secrets, waiting for approval
APPROVE_COMMANDS = "approve_commands"  # {server, commands: [command]} -> {"approved", "missed": [command]}
INSPECT = "inspect"  # {server?} -> {"rows": [{server, tool, code, severity, where, evidence, held}], "tools"}
# {words?, server?, tool?, client?, failed?, since_s?, after?, before?, limit?} -> {"rows": [...], "enabled", "problem"}
HISTORY = "history"
HISTORY_SHOW = "history_show"  # {id} -> one row with its arguments and result
HISTORY_CLEAR = "history_clear"  # -> {"cleared"}
PANEL = "panel"  # {what?, page?} -> {"url"}, valid once and for 60 s; `what`: text for the page that adds servers
SETTLE = "settle"  # -> {} once no server is being discovered
# {server} -> {"url", "redirect_uri", "expires_s"}: the requester opens the url in a browser. If the user unlocked the
# keyring and a stored sign-in was found there: {"url": None, "outcome": the answer of LOGIN_WAIT}
LOGIN = "login"
LOGIN_WAIT = "login_wait"  # {server} -> {"auth", "state", "error"} after the sign-in, or an error answer if it failed
LOGIN_ANSWER = "login_answer"  # {server, url} -> {}; `url`: the last address of a browser on another machine
LOGOUT = "logout"  # {server} -> {"signed_out"}
KEYRING = "keyring"  # {unlock?: true} -> {"keyring", "error": {"title", "hint"}?}: the state of the vault
SECRET_SET = "secret_set"  # {name, value} -> {"kept", "keyring"}; the content of a request is never logged
SECRET_LIST = "secret_list"  # -> {"names", "keyring"}
SECRET_DELETE = "secret_delete"  # {name} -> {"deleted"}
# {server} -> {"way", "tools"?, "error"?, "read", "written", "refused", "refused_in_calls", "confine", "line"}: runs the
# server confined, and again with more access while refusals make it fail
CONFINE = "confine"
# -> {"rows": [{server, kind, package, version, newest, pinned, before, error}], "unlocked": [{server, why, hint}]}
OUTDATED = "outdated"
# {server, to?} -> {server, package, "from", "to" (None if nothing is newer), "added", "removed": [tool],
# "changed": {tool: [line]}, "error", "kept"?: true}: starts the server once with the new version, and compares its
# tools. `kept`: that version ran before, so the server is not started
UPDATE_TRY = "update_try"
UPDATE_TAKE = "update_take"  # {server, to} -> {"state", "error"}: locks the version tried, and reconnects the server
STOP = "stop"  # -> {}; the gateway ends after answering

CONNECT_TIMEOUT_S = 2.0  # a gateway that takes longer to accept a connection is considered hung
DEFAULT_TIMEOUT_S = 10.0  # limit for the answer to a request that involves no server
RECEIVE_BYTES = 1 << 18
_WATCH_ID = 1
_STOPPING = loads(STOPPING)["method"]


class ControlError(MultiMcpError):
    """Raised for an error answer from the gateway, with its `code` and `exit_code`."""

    def __init__(self, title: str, hint: str, code: str, exit_code: int) -> None:
        super().__init__(title, hint)
        self.code = code
        self.exit_code = exit_code  # type: ignore[assignment]  # an int from the wire, checked by the CLI


class ControlClient:
    """One connection to the gateway of a runtime folder, as a context manager. Raises NoGatewayError if none runs.

    `timeout`: how many seconds the gateway may stay silent while an answer is due (None: forever).
    """

    def __init__(self, run: str, timeout: float | None = DEFAULT_TIMEOUT_S, tcp: bool = USES_TCP) -> None:
        self._socket = connect(run, Hello("control"), tcp)
        self._socket.settimeout(timeout)
        self._splitter = FrameSplitter()
        self._frames: list[bytes | OversizedFrame] = []
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._socket.close()

    def call(
        self, method: str, params: dict[str, Any] | None = None, heard: Callable[[str], None] | None = None
    ) -> Any:
        """Send a request and return its result. `heard` is called with the text of each NOTE.

        Raises ControlError for an error answer, and NoGatewayError if the gateway ends or stays silent for too long.
        """
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        try:
            self._socket.sendall(dumps(request) + b"\n")
        except OSError as error:
            raise _lost(error) from None
        for message in self._messages():
            if message.get("id") == self._last_id:
                break
            if heard is not None and message.get("method") == NOTE:
                heard(str(message["params"]["text"]))
        else:
            raise NoGatewayError("The gateway ended before it answered")
        if "error" not in message:
            return message.get("result")
        refused = RpcError.received(message["error"])
        data = refused.data if isinstance(refused.data, dict) else {}
        title, exit_code = refused.message or "The gateway reported an error without a message", data.get("exit_code")
        exit_code = exit_code if type(exit_code) is int else 1
        raise ControlError(title, str(data.get("hint", "")), str(data.get("code", "failed")), exit_code)

    def watch(
        self, wait: Callable[[int], None] = lambda source: None, *, asks: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yield snapshots, the current one first, until the gateway ends.

        `wait` is called before each read with the socket's descriptor, and may raise. `asks`: True if a person sees
        the asks in the snapshots.
        """
        self.call(WATCH, {} if asks else {"asks": False})
        self._socket.settimeout(None)  # nothing arrives until the state changes
        for message in self._messages(wait):
            if message.get("method") == SNAPSHOT:
                yield message["params"]

    def _messages(self, wait: Callable[[int], None] = lambda source: None) -> Iterator[dict[str, Any]]:
        while True:
            while self._frames:
                message = _object_in(self._frames.pop(0))
                if message is None:
                    raise NoGatewayError("The program that listens on the gateway's socket is not a gateway")
                yield message
            wait(self._socket.fileno())
            try:
                data = self._socket.recv(RECEIVE_BYTES)
            except OSError as error:
                raise _lost(error) from None
            if not data:
                return
            self._frames += self._splitter.feed(data)


class SnapshotStream:
    """The snapshots and heartbeats of a gateway, over one connection that its owner watches with a selector.

    The constructor raises NoGatewayError if no gateway runs.

    `beats`: True if the gateway promised a heartbeat every `beat_s` seconds (older versions do not).
    `stopping`: True if the gateway announced that it is being stopped on purpose.
    """

    def __init__(self, run: str, beat_s: float) -> None:
        self.beats = False
        self.stopping = False
        self._socket = connect(run, Hello("control"))
        self._splitter = FrameSplitter()
        request = {"jsonrpc": "2.0", "id": _WATCH_ID, "method": WATCH, "params": {"beat_s": beat_s}}
        try:
            self._socket.sendall(dumps(request) + b"\n")
        except OSError:
            self.close()
            raise NoGatewayError from None

    def fileno(self) -> int:
        """Return the descriptor for a selector. It is readable when there is something to `read`."""
        return self._socket.fileno()

    def read(self) -> dict[str, Any] | None:
        """Read the received data and return the newest snapshot in it, or None if it has none.

        Raises NoGatewayError once the stream has ended and everything before its end has been read.
        """
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        if not data:
            raise NoGatewayError("The gateway ended")
        newest = None
        for frame in self._splitter.feed(data):
            message = _object_in(frame) or {}
            method, result, params = message.get("method"), message.get("result"), message.get("params")
            if method == SNAPSHOT and isinstance(params, dict):
                newest = params
            self.stopping |= method == _STOPPING
            self.beats |= message.get("id") == _WATCH_ID and isinstance(result, dict) and BEAT in result
        return newest

    def close(self) -> None:
        self._socket.close()


def _object_in(frame: bytes | OversizedFrame) -> dict[str, Any] | None:
    try:
        message = loads(frame) if isinstance(frame, bytes) else None
    except JsonError:
        return None
    return message if isinstance(message, dict) else None


def _lost(error: OSError) -> NoGatewayError:
    if isinstance(error, TimeoutError):
        return NoGatewayError("The gateway does not answer", "It is busy or hangs. Check with: multi-mcp doctor")
    return NoGatewayError(f"Lost the connection to the gateway: {error.strerror}")


def connect(run: str, hello: Hello, tcp: bool = USES_TCP) -> socket.socket:
    """Connect to the gateway, send the first line and return the socket. Raises NoGatewayError."""
    endpoint = read_endpoint(run) if tcp else None
    if tcp and endpoint is None:
        raise NoGatewayError
    sock = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(CONNECT_TIMEOUT_S)
    try:
        sock.connect(("127.0.0.1", endpoint.port) if endpoint else socket_path(run))
        sock.sendall(greeting(hello, endpoint.token if endpoint else ""))
    except (OSError, OverflowError):  # OverflowError: the port number is out of range
        sock.close()
        raise NoGatewayError from None
    return sock
