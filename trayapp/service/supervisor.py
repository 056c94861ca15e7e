"""The tray's supervisor, which starts, watches, restarts and stops the gateway. Its rules are in model/child.

It runs in one thread, which sleeps until the gateway, a command or a deadline wakes it.
"""

from __future__ import annotations

import logging
import select
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from trayapp.model.child import ChildEvent, ChildState, exit_event, next_child_state, recent_crashes, restart_wait_s
from trayapp.model.errors import ExitCode, MultiMcpError, NoGatewayError

log = logging.getLogger(__name__)

RESTING = frozenset({ChildState.RESTARTING, ChildState.CRASH_LOOP, ChildState.PAUSED})  # no gateway to stop
HANGS = "The gateway does not answer"


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds. Tests use shorter ones."""

    beat: float = 1.0  # interval of the gateway's heartbeats; each wakes the gateway and us once
    silent: float = 2.0  # longest time without a heartbeat; a busy machine may miss one
    first_sign: float = 4.0  # like `silent`, for a new connection, whose first snapshot may be large
    hung_grace: float = 10.0  # time that our own hung gateway has to recover before we kill it
    late: float = 1.0  # if a wait takes this much longer than planned, the machine was asleep
    ready: float = 20.0  # limit for the start of a gateway: usually 0.3 s, more with a cold disk or a busy machine
    launch_again: float = 0.5  # wait before the next launch if ours ended because another gateway runs (exit code 7)
    gone: float = 15.0  # limit for the end of a gateway: stopping an unresponsive server takes 4 s
    last_gasp: float = 2.0  # limit from the end of the stream to the end of the gateway's process
    look: float = 1.5  # interval of checks for a gateway started elsewhere, to show it within 2 s


class RunningGateway(Protocol):
    """A gateway process that we own, with the methods of subprocess.Popen that we use.

    If an earlier tray or a shim started it, `wait` returns None, because only a parent can read an exit code.
    """

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Stream(Protocol):
    """A gateway's snapshots and heartbeats (implemented by wire/control.SnapshotStream)."""

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
        """Connect to the answering gateway. It sends a heartbeat every `beat_s` seconds. Raises NoGatewayError."""

    def owns(self, process: RunningGateway) -> bool:
        """Return True if the answering gateway is `process` or a child of it."""

    def adopted(self) -> RunningGateway | None:
        """Return the answering gateway if a shim or an earlier tray started it, or None if the user did."""

    def request_stop(self) -> None:
        """Send the answering gateway a request to end. Raises MultiMcpError if it does not accept the request."""

    def end_reason(self) -> str:
        """Return in one line why the gateway ended, or "" if unknown."""

    def kill_hint(self) -> str:
        """Return a hint that explains how to kill the answering gateway."""

    def pause(self) -> None:
        """Keep shims from starting a gateway."""

    def resume(self) -> None:
        """Allow shims to start a gateway."""

    def claim_start(self) -> None:
        """Make shims wait for the next gateway instead of starting one."""

    def release_start(self) -> None:
        """End the claim of `claim_start`. Shims may then start a gateway again."""


@dataclass(frozen=True, slots=True)
class SupervisorView:
    """The supervisor's view of the gateway process."""

    state: ChildState
    snapshot: dict[str, Any] | None = None  # the newest from the gateway, as received
    error: str | None = None  # why there is no gateway, in one line
    hangs: bool = False  # the gateway runs but does not answer


class CommandKind(StrEnum):
    PAUSE = "pause"
    START = "start"  # Resume and Retry in the menu
    RESTART = "restart"
    QUIT = "quit"


class Command:
    """One command. The issuing thread waits until the supervisor's thread completes it."""

    def __init__(self, kind: CommandKind) -> None:
        self.kind = kind
        self.error: MultiMcpError | None = None
        self._done = threading.Event()

    def done(self, error: MultiMcpError | None = None) -> None:
        """Complete the command, or fail it with `error`, and wake the waiting thread. Only the first error is kept."""
        self.error = self.error or error
        self._done.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until the command is completed. Raises MultiMcpError if it fails or takes longer than `timeout_s`."""
        if not self._done.wait(timeout_s):
            raise MultiMcpError("The gateway is still busy with this request", "To see its log: multi-mcp logs")
        if self.error is not None:
            raise self.error


class Commands:
    """All commands of one supervisor. Other threads may call only `add`."""

    def __init__(self) -> None:
        self._new: deque[Command] = deque()
        self._taken: list[Command] = []  # taken, and not yet completed
        self._closed = False
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)

    def add(self, kind: CommandKind) -> Command:
        """Queue a command and wake the supervisor. After `close`, the command completes immediately."""
        command = Command(kind)
        self._new.append(command)
        if self._closed:
            command.done()
        with suppress(OSError):  # full: a wake-up is already pending; closed: the supervisor has ended
            self._bell.send(b"!")
        return command

    def take(self) -> CommandKind | None:
        """Mark the oldest new command as open and return its kind. Return None if there is no new command."""
        if not self._new:
            return None
        self._taken.append(self._new.popleft())
        return self._taken[-1].kind

    def open_kinds(self) -> set[CommandKind]:
        """Return the kinds of the open commands, which were taken but not completed."""
        return {command.kind for command in self._taken}

    def complete(self, error: MultiMcpError | None = None) -> None:
        """Complete all open commands, or fail them with `error`."""
        for command in self._taken:
            command.done(error)
        self._taken.clear()

    def wait(self, timeout_s: float | None, stream: Stream | None = None) -> bool:
        """Wait for a new command or a readable stream and return True. Return False after `timeout_s` seconds."""
        sources: list[socket.socket | Stream] = [self._ear] if stream is None else [self._ear, stream]
        # Do not sleep if there is an untaken command, because its wake-up may be used up.
        ready = select.select(sources, [], [], 0.0 if self._new else timeout_s)[0]
        if self._ear in ready:
            with suppress(BlockingIOError):
                while self._ear.recv(64):
                    pass
        return bool(ready or self._new)

    def close(self) -> None:
        """Complete all commands, taken or not, and stop listening."""
        self._closed = True
        for command in (*self._taken, *self._new):
            command.done()
        self._bell.close()
        self._ear.close()


class Supervisor:
    """A supervisor of the gateway in its own thread.

    `on_change` is called in that thread with every new state. It must be quick and must not raise.
    The class has many methods because they are the steps of one loop and share its state.
    """

    def __init__(
        self, gateway: GatewayControl, on_change: Callable[[SupervisorView], None], timing: Timing | None = None
    ) -> None:
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._gateway = gateway
        self._on_change = on_change
        self._timing = timing or Timing()
        self._state = ChildState.STARTING
        self._process: RunningGateway | None = None
        self._watch: Stream | None = None
        self._snapshot: dict[str, Any] | None = None
        self._error: str | None = None
        self._hung = False
        self._crashes: tuple[float, ...] = ()
        self._start_at = 0.0
        self._ended = False
        self._commands = Commands()
        self._begun = threading.Event()

    # -- for other threads ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread. Call it once."""
        self._thread.start()
        self._begun.set()

    def join(self, timeout_s: float) -> bool:
        """Wait until the thread has ended after a QUIT command. Return False after `timeout_s`, or if never started."""
        if not self._begun.is_set():
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def command(self, kind: CommandKind, timeout_s: float = 60.0) -> None:
        """Issue a command and wait until it is completed. Raises MultiMcpError if it fails or takes too long."""
        command = self._commands.add(kind)
        if self._thread.is_alive():  # otherwise, it has not started or has ended
            command.wait(timeout_s)

    # -- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Run the steps until the user quits. This is an exception boundary: an error in a step is logged."""
        work = {
            ChildState.STARTING: self._start,
            **dict.fromkeys((ChildState.RUNNING, ChildState.ATTACHED), self._listen),
            **dict.fromkeys(RESTING, self._wait_for_gateway),
            ChildState.STOPPING: self._stop,
        }
        self._gateway.claim_start()
        self._notify()
        self._take_commands()  # the user may have quit before this thread began
        while not self._ended:
            try:
                work[self._state]()
            except Exception:
                log.exception("Unexpected error in the supervision of the gateway. Continuing")
                time.sleep(self._timing.look)
        self._disconnect()
        self._gateway.resume()
        self._gateway.release_start()
        if self._process is not None:
            self._process.returncode = 0  # suppress Popen's ResourceWarning: we leave the gateway running
        self._commands.close()

    def _apply(self, event: ChildEvent, error: str | None = None) -> None:
        """Change the state according to an event. No other method changes it."""
        before, self._state = self._state, next_child_state(self._state, event)
        if before is ChildState.PAUSED:
            self._gateway.resume()
        if self._state in (ChildState.STARTING, ChildState.RESTARTING, ChildState.STOPPING):
            self._gateway.claim_start()  # shims wait for the result
        else:
            self._gateway.release_start()
        if self._state not in (ChildState.RUNNING, ChildState.ATTACHED, ChildState.STOPPING):
            self._snapshot = None
        self._error = error
        self._hung = self._hung and event in (ChildEvent.STOP, ChildEvent.REFUSED)  # the same gateway still runs
        log.info("Gateway %s -> %s (%s)%s", before, self._state, event, f": {error}" if error else "")
        self._notify()

    def _notify(self) -> None:
        self._on_change(SupervisorView(self._state, self._snapshot, self._error, self._hung))

    # -- starting ------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Find an answering gateway, or launch one and wait until it answers."""
        until, launch_at = time.monotonic() + self._timing.ready, 0.0
        for _ in self._pauses(until):
            if self._state is not ChildState.STARTING or self._ended or self._connected():
                return
            if self._process is None and time.monotonic() >= launch_at:
                try:
                    self._process = self._gateway.launch()
                except MultiMcpError as error:
                    self._on_crash(error.title)
                    return
            code = self._process.poll() if self._process else None
            if code == ExitCode.ALREADY_RUNNING:
                self._process, launch_at = None, time.monotonic() + self._timing.launch_again
            elif code is not None:
                self._on_exit(code)
                return
        if self._state is not ChildState.STARTING or self._ended:
            return
        self._kill()
        self._on_crash(f"The gateway did not answer within {self._timing.ready:g} s")

    def _connected(self) -> bool:
        """Connect to the answering gateway. Return False if there is none, or if it is not the one that we launched."""
        try:
            watch = self._gateway.watch(self._timing.beat)
        except NoGatewayError:
            return False
        if self._process is not None and not self._gateway.owns(self._process):
            watch.close()  # our gateway will find the other one and exit
            return False
        self._watch = watch
        self._process = self._process or self._gateway.adopted()
        self._apply(ChildEvent.ANSWERED if self._process else ChildEvent.FOUND)
        return True

    # -- watching ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Read the stream until it ends or the state changes."""
        watch, state = self._watch, self._state
        assert watch is not None
        sign, patience = time.monotonic(), self._timing.first_sign
        while self._state is state and not self._ended:
            until = sign + (self._timing.silent + self._timing.hung_grace if self._hung else patience)
            promised = watch.beats or patience is self._timing.first_sign
            if not self._wait(until if promised else None, watch):
                now = time.monotonic()
                asleep = now - until > self._timing.late
                if not asleep:
                    self._on_silence(now - sign)
                if asleep or (self._hung and self._process is None):
                    sign = now  # ignore silence after sleep, or if the gateway is not ours
                continue
            if not select.select([watch], [], [], 0)[0]:
                continue  # a command
            try:
                newest = watch.read()
            except NoGatewayError:
                self._on_stream_end(watch)
                return
            sign, patience = time.monotonic(), self._timing.silent
            if newest is not None or self._hung:
                if self._hung:
                    log.info("The gateway answers again")
                self._snapshot = newest or self._snapshot
                self._hung = False
                self._notify()

    def _on_silence(self, seconds: float) -> None:
        """Mark the gateway as hung after this many seconds of silence. Kill our own after the grace period."""
        if not self._hung:
            self._hung = True
            log.warning("The gateway has not responded for %.1f s", seconds)
            self._notify()
        elif self._process is not None and seconds >= self._timing.silent + self._timing.hung_grace:
            log.warning("The gateway has not responded for %.0f s. Killing it", seconds)
            self._kill()
            self._disconnect()
            self._on_crash(f"The gateway did not answer for {seconds:.0f} s and was killed")

    def _on_stream_end(self, watch: Stream) -> None:
        """Handle the end of the stream: wait for our gateway to end, and kill it if it does not."""
        stopping = watch.stopping
        self._disconnect()
        if self._process is None:
            if stopping:
                self._apply(ChildEvent.STOPPED)
            else:
                self._on_crash("The gateway ended")
            return
        try:
            code = self._process.wait(self._timing.last_gasp)
        except subprocess.TimeoutExpired:
            if not stopping:
                self._kill()
                self._on_crash("The gateway closed its connections without exiting and was killed")
                return
            code = self._await_end()
        self._on_exit(ExitCode.OK if code is None and stopping else code)

    # -- exits and crashes ---------------------------------------------------------------------------------------------

    def _on_exit(self, code: int | None) -> None:
        self._process = None
        event = ChildEvent.DIED if code is None else exit_event(code)
        error = "The gateway ended"
        if event is ChildEvent.STOPPED:
            self._apply(event)
            return
        if code is not None and code < 0:
            error = f"The gateway was killed (signal {-code})"
        elif code is not None:
            reason = self._gateway.end_reason()
            error = f"The gateway ended (exit code {code}){': ' + reason if reason else ''}"
        self._on_crash(error, give_up=event is ChildEvent.GAVE_UP)

    def _on_crash(self, error: str, give_up: bool = False) -> None:
        now = time.monotonic()
        self._crashes = (*recent_crashes(self._crashes, now), now)
        wait = None if give_up else restart_wait_s(len(self._crashes))
        self._start_at = now + (wait or 0.0)
        self._apply(ChildEvent.GAVE_UP if wait is None else ChildEvent.DIED, error)

    def _wait_for_gateway(self) -> None:
        """Wait until the restart is due, a command changes the state, or a gateway started elsewhere answers."""
        state = self._state
        while self._state is state and not self._ended:
            look_at = time.monotonic() + self._timing.look
            restarting = state is ChildState.RESTARTING
            if self._wait(min(look_at, self._start_at) if restarting else look_at):
                continue  # a command
            if self._connected():
                return
            if restarting and time.monotonic() >= self._start_at:
                self._apply(ChildEvent.START, self._error)

    # -- stopping ------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stop the gateway, then complete the open commands. If it does not end, fail the commands."""
        try:
            if self._process is not None and self._hung:
                self._kill()
            elif self._process is not None:
                try:
                    self._gateway.request_stop()
                except MultiMcpError:
                    self._process.terminate()  # the gateway may not listen yet
                self._await_end()
            elif self._watch is not None:
                self._end_other(self._watch)
        except MultiMcpError as error:
            self._apply(ChildEvent.REFUSED)
            self._commands.complete(error)
            return
        self._process = None
        self._disconnect()
        kinds = self._commands.open_kinds()
        if CommandKind.RESTART in kinds:
            self._apply(ChildEvent.START)
        else:
            if CommandKind.PAUSE in kinds:
                self._gateway.pause()
            self._apply(ChildEvent.STOPPED)
        self._ended = CommandKind.QUIT in kinds
        self._commands.complete()

    def _await_end(self) -> int | None:
        """Wait until our gateway ends, and return its exit code. Kill it if it takes too long."""
        assert self._process is not None
        try:
            return self._process.wait(self._timing.gone)
        except subprocess.TimeoutExpired:
            return self._kill()

    def _end_other(self, watch: Stream) -> None:
        """Stop a gateway that is not ours, and wait for its end. Raises MultiMcpError if it hangs or keeps running."""
        if self._hung:
            raise MultiMcpError(f"{HANGS}, and this app did not start it", self._gateway.kill_hint())
        self._gateway.request_stop()
        until = time.monotonic() + self._timing.gone
        while select.select([watch], [], [], max(0.0, until - time.monotonic()))[0]:
            try:
                watch.read()
            except NoGatewayError:
                return
        raise MultiMcpError("The gateway did not end, and this app did not start it", self._gateway.kill_hint())

    def _kill(self) -> int | None:
        """Kill our gateway. Return its exit code, None if the code is unknown, or 0 if we have no gateway."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        return process.wait()

    # -- commands ------------------------------------------------------------------------------------------------

    def _take_commands(self) -> None:
        while self._state is not ChildState.STOPPING and not self._ended and (kind := self._commands.take()):
            self._begin(kind)

    def _begin(self, kind: CommandKind) -> None:
        """Begin a command. Complete it immediately unless the gateway must stop first."""
        state = self._state
        if kind in (CommandKind.START, CommandKind.RESTART) and state in RESTING:
            self._crashes = ()
            self._apply(ChildEvent.START)
            self._commands.complete()
        elif kind is CommandKind.RESTART or (kind is CommandKind.PAUSE and state not in RESTING):
            self._apply(ChildEvent.STOP)
        elif kind is CommandKind.PAUSE and state is not ChildState.PAUSED:
            self._gateway.pause()
            self._apply(ChildEvent.STOP)
            self._commands.complete()
        elif kind is CommandKind.QUIT and self._process is not None:
            self._apply(ChildEvent.STOP)
        else:
            self._ended = kind is CommandKind.QUIT
            self._commands.complete()

    # -- waiting -------------------------------------------------------------------------------------------------

    def _wait(self, until: float | None, watch: Stream | None = None) -> bool:
        """Sleep until the monotonic time `until` (None: no limit). Return True if the stream or a command came first.

        New commands begin here, so the state may be different afterwards.
        """
        timeout = None if until is None else max(0.0, until - time.monotonic())
        came = self._commands.wait(timeout, watch)
        self._take_commands()
        return came

    def _pauses(self, until: float) -> Iterator[None]:
        """Yield immediately, then after each command or pause, until the monotonic time `until`. The pauses grow."""
        pause = 0.005
        while time.monotonic() < until:
            yield
            self._wait(time.monotonic() + pause)
            pause = min(pause * 1.5, 0.1)

    def _disconnect(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
