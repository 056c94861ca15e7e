"""What the supervisor works with: its timing, its access to gateway processes, its view and the user's commands.

model/child decides; service/supervisor and service/gateway_process act.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; tests use shorter ones."""

    beat: float = 1.0  # interval of the gateway's signs of life: one wake-up a second, of the gateway and of us
    silent: float = 2.0  # without a sign of life for this long, it hangs. A busy machine may be late by one beat
    first_sign: float = 4.0  # the same for a new connection, whose first snapshot may be large
    hung_grace: float = 10.0  # from then until we kill our own gateway: a laptop that swaps may recover
    late: float = 1.0  # if a wait took this much too long, the machine slept, and the silence means nothing
    ready: float = 20.0  # a cold disk and a busy machine; usually it takes 0.3 s
    launch_again: float = 0.5  # after our gateway found another one (exit code 7) that does not answer
    gone: float = 15.0  # the stop ladder of a stubborn server takes 4 s, and many stop at once
    last_gasp: float = 2.0  # from the end of the stream to the end of its process
    look: float = 1.5  # without a gateway: interval of looking for one started elsewhere; shown within 2 s


class RunningGateway(Protocol):
    """A gateway process that we own, with the methods of subprocess.Popen that we use.

    `wait` returns None for one that an earlier tray or a shim started: only its parent can read the exit code.
    """

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Stream(Protocol):
    """A gateway's snapshots and signs of life (implemented by wire/control.SnapshotStream)."""

    @property
    def beats(self) -> bool: ...
    @property
    def stopping(self) -> bool: ...
    def fileno(self) -> int: ...
    def read(self) -> dict[str, Any] | None: ...
    def close(self) -> None: ...


class GatewayControl(Protocol):
    """The supervisor's access to gateway processes (implemented by service/gateway_process).

    "The answering gateway" is the one that listens in the runtime folder, no matter how it was started.
    """

    def launch(self) -> RunningGateway:
        """Start a gateway, detached. Raises MultiMcpError."""

    def watch(self, beat_s: float) -> Stream:
        """Connect to the answering gateway. `beat_s`: seconds between its signs of life. Raises NoGatewayError."""

    def owns(self, process: RunningGateway) -> bool:
        """Return True if the answering gateway is this process or its child."""

    def adopted(self) -> RunningGateway | None:
        """Return the answering gateway if a shim or an earlier tray started it; None if the user did."""

    def request_stop(self) -> None:
        """Tell the answering gateway to end. Raises NoGatewayError."""

    def end_reason(self) -> str:
        """Return the reason of its end from its log, one line; "" if there is none."""

    def kill_hint(self) -> str:
        """Return a hint for the user: how to end the answering gateway if it does not end itself."""

    def pause(self) -> None:
        """Keep shims from starting a gateway."""

    def resume(self) -> None:
        """Allow shims to start a gateway."""

    def claim_start(self) -> None:
        """Let shims wait for the next gateway instead of starting one."""

    def release_start(self) -> None:
        """Release the claim of claim_start."""


@dataclass(frozen=True, slots=True)
class SupervisorView:
    """The supervisor's view of the gateway process. `snapshot`: its newest one, as received.

    `error`: why there is no gateway, one line. `hangs`: it runs and does not answer.
    """

    state: ChildState
    snapshot: dict[str, Any] | None = None
    error: str | None = None
    hangs: bool = False


class CommandKind(StrEnum):
    """The user's commands for the gateway."""

    PAUSE = "pause"
    START = "start"  # Resume and Retry in the menu
    RESTART = "restart"
    QUIT = "quit"


class Command:
    """One command. The thread that issues it waits; the supervisor's thread completes it."""

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

    def open_kinds(self) -> set[CommandKind]:
        """Return the kinds of the open commands: taken and not completed."""
        return {command.kind for command in self._taken}

    def complete(self, error: MultiMcpError | None = None) -> None:
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
            with suppress(BlockingIOError):
                while self._ear.recv(64):
                    pass
        return bool(ready or self._new)

    def close(self) -> None:
        """Complete all commands, also those not taken yet, and stop listening."""
        self._closed = True
        for command in (*self._taken, *self._new):
            command.done()
        self._bell.close()
        self._ear.close()
