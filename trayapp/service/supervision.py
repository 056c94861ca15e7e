"""What the supervisor works with: its deadlines, the place where gateways run, what it sees, what may be wished.

Never here: deciding (model/child), doing (service/supervisor, service/gateway_process).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from trayapp.model.child import ChildState


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; tests have shorter ones."""

    beat: float = 1.0  # how often the gateway is to give a sign of life; one wake-up a second of it and of us
    silent: float = 2.0  # this long without one: it hangs. A busy machine may be late by one beat
    first_sign: float = 4.0  # the same for a new connection, whose first snapshot may be large
    hung_grace: float = 10.0  # from then on, until one of ours is ended: a laptop that swaps may come back
    late: float = 1.0  # a wait that took so much longer than it should: the machine slept, silence means nothing
    ready: float = 20.0  # a cold disk and a busy machine; usually it takes 0.3 s
    launch_again: float = 0.5  # after one of ours found that another one runs (exit code 7), which does not answer
    gone: float = 15.0  # the stop ladder of a stubborn server takes 4 s, and many stop at once
    last_gasp: float = 2.0  # from the end of the stream to the end of its process
    look: float = 1.5  # without a gateway: how often one is looked for that somebody else started; shown within 2 s


class Process(Protocol):
    """A gateway that is ours: of subprocess.Popen. `wait` returns None for one that an earlier tray or a shim started:
    nobody but its parent learns its exit code."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Stream(Protocol):
    """A gateway's snapshots and signs of life: of wire/watch.Watch."""

    @property
    def beats(self) -> bool: ...
    @property
    def stopping(self) -> bool: ...
    def fileno(self) -> int: ...
    def read(self) -> dict[str, Any] | None: ...
    def close(self) -> None: ...


class Place(Protocol):
    """Where gateways run (service/gateway_process has the real one)."""

    def launch(self) -> Process:
        """Start one, detached. Raises MultiMcpError."""

    def watch(self, beat_s: float) -> Stream:
        """Connect to the one that answers. Raises NoGatewayError."""

    def owner(self, process: Process) -> bool:
        """Whether the one that answers is this process, or below it."""

    def adopted(self) -> Process | None:
        """Return the one that answers if a shim or an earlier tray started it; None if the user did."""

    def ask_to_stop(self) -> None:
        """Tell the one that answers to end. Raises NoGatewayError."""

    def last_words(self) -> str:
        """What its log ends with, one line."""

    def how_to_kill(self) -> str:
        """What a person does with the one that answers, and does not end."""

    def pause(self) -> None:
        """Keep shims from starting one."""

    def resume(self) -> None:
        """Let them."""

    def claim_start(self) -> None:
        """Have shims wait for the next gateway instead of starting one."""

    def release_start(self) -> None:
        """Let them start one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to see of the gateway's process. `snapshot`: its newest, as it came.

    `error`: why there is none, one line. `hangs`: it is there and does not answer.
    """

    state: ChildState
    snapshot: dict[str, Any] | None = None
    error: str | None = None
    hangs: bool = False


class CommandKind(StrEnum):
    """What the user may want of the gateway."""

    PAUSE = "pause"
    START = "start"  # Resume, Retry
    RESTART = "restart"
    QUIT = "quit"
