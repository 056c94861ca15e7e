"""The gateway's snapshots as a stream for a selector, with heartbeats.

Never here: an event loop, waiting, the meaning of silence.
"""

from __future__ import annotations

from typing import Any

from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import BEAT, RECEIVE_BYTES, SNAPSHOT, WATCH, connect
from trayapp.wire.framing import FrameSplitter
from trayapp.wire.greeting import USES_TCP, Hello
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.rundir import STOPPING

_WATCH_ID = 1
_STOPPING = loads(STOPPING)["method"]


class Watch:
    """One connection to the gateway of a runtime folder, for its owner's selector. Raises NoGatewayError.

    `beats`: True if the gateway promised a heartbeat every `beat_s` seconds (older versions do not).
    `stopping`: True if it announced that it ends on purpose.
    """

    def __init__(self, run: str, beat_s: float, tcp: bool = USES_TCP) -> None:
        self.beats = False
        self.stopping = False
        self._socket = connect(run, Hello("control"), tcp)
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
        """Read what has arrived and return the newest snapshot in it, None if there is none.

        Raises NoGatewayError when the stream has ended, once everything before its end was read.
        """
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        if not data:
            raise NoGatewayError("The gateway ended")
        newest = None
        for frame in self._splitter.feed(data):
            if isinstance(frame, bytes):
                newest = self._take(frame) or newest
        return newest

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _take(self, frame: bytes) -> dict[str, Any] | None:
        try:
            message = loads(frame)
        except JsonError:
            return None
        if not isinstance(message, dict):
            return None
        method, result, params = message.get("method"), message.get("result"), message.get("params")
        if method == SNAPSHOT and isinstance(params, dict):
            return params
        self.stopping |= method == _STOPPING
        self.beats |= message.get("id") == _WATCH_ID and isinstance(result, dict) and BEAT in result
        return None
