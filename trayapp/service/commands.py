"""What the user wants of the gateway, from any thread; and the supervisor's sleep, which a command ends.

Never here: whether a command can come true, what is done for it (service/supervisor).
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from contextlib import suppress

from trayapp.model.errors import MultiMcpError
from trayapp.service.supervision import CommandKind, Stream


class Command:
    """One click: waited for in its own thread, fulfilled in the supervisor's."""

    def __init__(self, kind: CommandKind) -> None:
        self.kind = kind
        self.error: MultiMcpError | None = None
        self._done = threading.Event()

    def done(self, error: MultiMcpError | None = None) -> None:
        """It has come true, or cannot."""
        self.error = self.error or error
        self._done.set()

    def wait(self, timeout_s: float) -> None:
        """Raises MultiMcpError when it did not come true."""
        if not self._done.wait(timeout_s):
            raise MultiMcpError("The gateway is still busy with that", "See what it does with: multi-mcp logs")
        if self.error is not None:
            raise self.error


class Commands:
    """All commands of one supervisor: `add` is for other threads, everything else for its own."""

    def __init__(self) -> None:
        self._new: deque[Command] = deque()
        self._taken: list[Command] = []  # and not yet fulfilled
        self._closed = False
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)

    def add(self, kind: CommandKind) -> Command:
        """Note the command, and wake the supervisor."""
        command = Command(kind)
        self._new.append(command)
        if self._closed:
            command.done()
        with suppress(OSError):  # full: it rings already; closed: nobody listens any more
            self._bell.send(b"!")
        return command

    def take(self) -> CommandKind | None:
        """The oldest new command, which is open from now on."""
        if not self._new:
            return None
        self._taken.append(self._new.popleft())
        return self._taken[-1].kind

    def taken(self) -> set[CommandKind]:
        """What is open."""
        return {command.kind for command in self._taken}

    def fulfil(self, error: MultiMcpError | None = None) -> None:
        """Answer all that is open: it has come true, or cannot."""
        for command in self._taken:
            command.done(error)
        self._taken.clear()

    def wait(self, timeout_s: float | None, stream: Stream | None = None) -> bool:
        """Sleep that long (None: without end); True when a command is new or the stream has something."""
        sources: list[socket.socket | Stream] = [self._ear] if stream is None else [self._ear, stream]
        # Those that could not be taken when they came have rung already.
        ready = select.select(sources, [], [], 0.0 if self._new else timeout_s)[0]
        if self._ear in ready:
            self._drain()
        return bool(ready or self._new)

    def close(self) -> None:
        """Nobody looks any more: whoever still waits need not."""
        self._closed = True
        for command in (*self._taken, *self._new):
            command.done()
        self._bell.close()
        self._ear.close()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while self._ear.recv(64):
                pass
