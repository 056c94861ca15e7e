"""The user's commands to the supervisor, from any thread, and the supervisor's sleep, which a command interrupts.

service/supervisor carries them out.
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
    """One command: the thread that gives it waits, the supervisor's thread completes it."""

    def __init__(self, kind: CommandKind) -> None:
        self.kind = kind
        self.error: MultiMcpError | None = None
        self._done = threading.Event()

    def done(self, error: MultiMcpError | None = None) -> None:
        """Complete the command, or fail it with `error`. The first error stays. Wakes the waiting thread."""
        self.error = self.error or error
        self._done.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until the command is completed. Raises MultiMcpError if it fails or takes longer than `timeout_s`."""
        if not self._done.wait(timeout_s):
            raise MultiMcpError("The gateway is still busy with this request", "To see what it does: multi-mcp logs")
        if self.error is not None:
            raise self.error


class Commands:
    """All commands of one supervisor. Other threads may call `add` only; the rest is for the supervisor's thread."""

    def __init__(self) -> None:
        self._new: deque[Command] = deque()
        self._taken: list[Command] = []  # and not completed yet
        self._closed = False
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)

    def add(self, kind: CommandKind) -> Command:
        """Queue a command and wake the supervisor. After `close` the command is complete at once."""
        command = Command(kind)
        self._new.append(command)
        if self._closed:
            command.done()
        with suppress(OSError):  # full: a wake-up is already pending; closed: the supervisor has ended
            self._bell.send(b"!")
        return command

    def take(self) -> CommandKind | None:
        """Return the kind of the oldest new command, which is open from now on; None if there is none."""
        if not self._new:
            return None
        self._taken.append(self._new.popleft())
        return self._taken[-1].kind

    def taken(self) -> set[CommandKind]:
        """Return the kinds of the open commands: taken and not completed."""
        return {command.kind for command in self._taken}

    def fulfil(self, error: MultiMcpError | None = None) -> None:
        """Complete all open commands, or fail them with `error`."""
        for command in self._taken:
            command.done(error)
        self._taken.clear()

    def wait(self, timeout_s: float | None, stream: Stream | None = None) -> bool:
        """Sleep up to `timeout_s` seconds (None: no limit). Return True for a new command or a readable stream."""
        sources: list[socket.socket | Stream] = [self._ear] if stream is None else [self._ear, stream]
        # Commands that could not be taken on arrival have used up their wake-up.
        ready = select.select(sources, [], [], 0.0 if self._new else timeout_s)[0]
        if self._ear in ready:
            self._drain()
        return bool(ready or self._new)

    def close(self) -> None:
        """Complete all commands, also those not taken yet, and stop listening."""
        self._closed = True
        for command in (*self._taken, *self._new):
            command.done()
        self._bell.close()
        self._ear.close()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while self._ear.recv(64):
                pass
