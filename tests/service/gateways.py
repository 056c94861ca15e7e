"""Fake gateway processes and streams that tests control."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.service.supervisor import CommandKind, Supervisor, SupervisorView, Timing

PATIENCE_S = 20.0
LONG_S = 60.0  # on a busy machine, a test may stall for seconds between two lines
QUICK = Timing(
    beat=0.02,
    silent=LONG_S,
    first_sign=LONG_S,
    hung_grace=LONG_S,
    ready=LONG_S,
    launch_again=0.02,
    gone=0.3,
    last_gasp=0.2,
    look=0.05,
)
HANGING = replace(QUICK, silent=0.2, first_sign=0.2)  # the fakes send no heartbeats by themselves, so they seem to hang
KILLED = -9


class FakeProcess:
    """A fake supervisor.RunningGateway."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.signals: list[str] = []
        self.heeds_terminate = True
        self.is_child = True
        self._gone = threading.Event()

    def end(self, code: int) -> None:
        self.returncode = code
        self._gone.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        if not self._gone.wait(timeout):
            raise subprocess.TimeoutExpired("gateway", timeout or 0.0)
        return self.returncode if self.is_child else None

    def terminate(self) -> None:
        self.signals.append("terminate")
        if self.heeds_terminate:
            self.end(0)

    def kill(self) -> None:
        self.signals.append("kill")
        self.end(KILLED)


class FakeStream:
    """A fake supervisor.Stream. With `say` and `hang_up`, a test plays the gateway."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._said: list[dict[str, Any] | None] = []
        self.beats = True
        self.stopping = False
        self.closed = False

    def fileno(self) -> int:
        return self._ours.fileno()

    def read(self) -> dict[str, Any] | None:
        if not self._ours.recv(1):
            raise NoGatewayError
        return self._said.pop(0)

    def close(self) -> None:
        self.closed = True
        self._ours.close()
        self._theirs.close()

    def say(self, snapshot: dict[str, Any] | None = None) -> None:
        """Send a snapshot, or a heartbeat if it is None."""
        self._said.append(snapshot)
        self._theirs.send(b"!")

    def hang_up(self, stopping: bool = False) -> None:
        """End the stream. `stopping`: whether the gateway stops on request."""
        self.stopping = stopping
        self._theirs.shutdown(socket.SHUT_WR)


class FakePlace:
    """A fake supervisor.GatewayControl. `answering`: whether a gateway runs. `ours`: whether the tray launched it."""

    def __init__(self) -> None:
        self.processes: list[FakeProcess] = []
        self.streams: list[FakeStream] = []
        self.answering = False
        self.ours = True
        self.launch_answers = True  # a launched gateway answers immediately
        self.launch_exits: list[int] = []  # exit codes with which the next launched gateways end immediately
        self.launch_error: MultiMcpError | None = None
        self.stop_refused = False
        self.mistakes: list[Exception] = []  # `watch` raises each of these once
        self.beats = True
        self.paused: list[bool] = []
        self.turns: list[bool] = []
        self.left: FakeProcess | None = None  # started by a shim or an earlier tray

    @property
    def process(self) -> FakeProcess:
        return self.processes[-1]

    @property
    def stream(self) -> FakeStream:
        return self.streams[-1]

    def launch(self) -> FakeProcess:
        if self.launch_error is not None:
            raise self.launch_error
        process = FakeProcess(1000 + len(self.processes))
        self.processes.append(process)
        if self.launch_exits:
            process.end(self.launch_exits.pop(0))
        elif self.launch_answers:
            self.answering = self.ours = True
            self.left = None
        return process

    def watch(self, beat_s: float) -> FakeStream:
        if self.mistakes:
            raise self.mistakes.pop()
        if not self.answering:
            raise NoGatewayError
        stream = FakeStream()
        stream.beats = self.beats
        stream.say({"revision": len(self.streams)})
        self.streams.append(stream)
        return stream

    def owns(self, process: object) -> bool:
        return self.ours

    def adopted(self) -> FakeProcess | None:
        return self.left

    def claim_start(self) -> None:
        self.turns.append(True)

    def release_start(self) -> None:
        self.turns.append(False)

    def request_stop(self) -> None:
        if not self.answering:
            raise NoGatewayError
        if not self.stop_refused:
            self.stop(0)

    def end_reason(self) -> str:
        return "its last words"

    def kill_hint(self) -> str:
        return "End it with: kill -9 77"

    def pause(self) -> None:
        self.paused.append(True)

    def resume(self) -> None:
        self.paused.append(False)

    # -- control by tests ----------------------------------------------------------------------------------------

    def leave(self) -> FakeProcess:
        """Start a gateway that the tray did not launch, as a shim or an earlier tray does. Return its process."""
        self.left, self.answering, self.ours = FakeProcess(77), True, False
        self.left.is_child = False
        return self.left

    def die(self, code: int = KILLED) -> None:
        """End the running gateway unexpectedly."""
        self._end_left(code)
        self.answering = False
        if self.ours and self.processes:
            self.process.end(code)
        self.stream.hang_up()

    def stop(self, code: int = 0) -> None:
        """End the running gateway as if the user had stopped it."""
        self._end_left(code)
        self.answering = False
        if self.ours and self.processes:
            self.process.end(code)
        self.stream.hang_up(stopping=True)

    def _end_left(self, code: int) -> None:
        if self.left is not None:
            self.left.end(code)
            self.left = None


class Watched:
    """A running supervisor of fake gateways, and the views that it has published."""

    def __init__(self, place: FakePlace, timing: Timing = QUICK) -> None:
        self.place = place
        self.seen: list[SupervisorView] = []
        self._news = threading.Condition()
        self._waited_for = 0
        self.supervisor = Supervisor(place, self._take, timing)

    def __enter__(self) -> Watched:
        self.supervisor.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.supervisor.join(0):
            self.supervisor.command(CommandKind.QUIT)
        assert self.supervisor.join(PATIENCE_S)
        for stream in self.place.streams:
            stream.close()

    def _take(self, seen: SupervisorView) -> None:
        with self._news:
            self.seen.append(seen)
            self._news.notify_all()

    @property
    def states(self) -> list[ChildState]:
        """The published states in order, without adjacent duplicates."""
        told = [seen.state for seen in self.seen]
        return [state for at, state in enumerate(told) if at == 0 or told[at - 1] is not state]

    def until(self, condition: Callable[[SupervisorView], bool]) -> SupervisorView:
        """Wait for a view that fulfills the condition, and return it.

        Only views published after the last returned one count. If there are none, the latest view counts.
        """

        def told() -> SupervisorView | None:
            fresh = range(self._waited_for, len(self.seen)) or range(len(self.seen))[-1:]
            found = next((at for at in fresh if condition(self.seen[at])), None)
            self._waited_for = self._waited_for if found is None else found + 1
            return None if found is None else self.seen[found]

        with self._news:
            seen = self._news.wait_for(told, PATIENCE_S)
            assert seen is not None, self.seen[-5:]
            return seen

    def state(self, state: ChildState) -> SupervisorView:
        """Wait for a view with this state, and with a snapshot if a gateway runs in this state. Return the view."""
        serves = state in (ChildState.RUNNING, ChildState.ATTACHED)
        return self.until(lambda seen: seen.state is state and (seen.snapshot is not None or not serves))
