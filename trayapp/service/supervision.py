"""Types of the supervisor: its timing, its access to gateway processes, its observations and its commands.

model/child decides; service/supervisor and service/gateway_process act.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from trayapp.model.child import ChildState


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
    """A gateway's snapshots and signs of life (implemented by wire/watch.Watch)."""

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

    def owner(self, process: RunningGateway) -> bool:
        """Return True if the answering gateway is this process or its child."""

    def adopted(self) -> RunningGateway | None:
        """Return the answering gateway if a shim or an earlier tray started it; None if the user did."""

    def ask_to_stop(self) -> None:
        """Tell the answering gateway to end. Raises NoGatewayError."""

    def last_words(self) -> str:
        """Return the reason of its end from its log, one line; "" if there is none."""

    def how_to_kill(self) -> str:
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
