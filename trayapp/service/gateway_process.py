"""The supervisor's access to this user's gateway process: start or adopt it, connect to it, and stop it.

service/supervisor decides when. psutil is loaded late, because most trays start their own gateway and do not need it.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trayapp.model.errors import StorageError
from trayapp.model.logs import GATEWAY_LOG
from trayapp.service.command_line import kill_command
from trayapp.service.gateway_launch import is_full, last_lines, start_detached
from trayapp.service.pause import PAUSE_LOCK, START_LOCK, TrayLock
from trayapp.service.supervisor import RunningGateway
from trayapp.wire.control import STOP, ControlClient, SnapshotStream
from trayapp.wire.greeting import read_endpoint

if TYPE_CHECKING:
    import psutil

log = logging.getLogger(__name__)

RECORD = re.compile(r"\d{4}-\d\d-\d\d \S+ (?P<level>[A-Z]+) \S+ (?P<words>.*)")  # a line written by service/logging
ENDS = "The gateway ends: "  # written by gateway/main
LINGERS = "--linger"  # an option from service/command_line; a gateway started with it ends by itself
ANSWER_S = 5.0  # limit for the answer to "stop", which arrives before the gateway ends


class GatewayProcess:
    """The gateway process of a runtime folder and a log folder. Implements supervisor.GatewayControl."""

    def __init__(self, environ: Mapping[str, str], run: str, log_dir: Path) -> None:
        self._environ = environ
        self._run = run
        self._log = log_dir / GATEWAY_LOG
        self._pause, self._turn = TrayLock(run, PAUSE_LOCK), TrayLock(run, START_LOCK)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start a gateway. If we are killed, it ends by itself some time after its last client."""
        try:
            return start_detached(self._environ, linger=True)
        except OSError as error:
            raise StorageError(f"Cannot start the gateway: {error.strerror}", "Install multi-mcp again") from None

    def watch(self, beat_s: float) -> SnapshotStream:
        return SnapshotStream(self._run, beat_s)

    def owns(self, process: RunningGateway) -> bool:
        pid = self._pid()
        return pid == process.pid or (sys.platform == "win32" and _parent(pid) == process.pid)

    def adopted(self) -> RunningGateway | None:
        return adopt(self._pid())

    def request_stop(self) -> None:
        with ControlClient(self._run, ANSWER_S) as client:
            client.call(STOP)

    def end_reason(self) -> str:
        """Return the reason from the log. If it has none, return "the disk is full" if that is true, or else ""."""
        if reason := logged_end_reason(last_lines(self._log)):
            return reason
        return "the disk is full" if is_full(self._log.parent) or is_full(self._run) else ""

    def kill_hint(self) -> str:
        pid = self._pid()
        return f"End it with: {kill_command(pid)}" if pid else "End its process"  # `kill 0` would end the user's shell

    def pause(self) -> None:
        """Keep shims from starting a gateway. A failure is only logged."""
        try:
            self._pause.hold()
        except StorageError as error:
            log.warning("Cannot save the pause, so clients may start a gateway: %s", error)

    def resume(self) -> None:
        self._pause.end()

    def claim_start(self) -> None:
        with suppress(StorageError):
            self._turn.hold()

    def release_start(self) -> None:
        self._turn.end()

    def _pid(self) -> int:
        endpoint = read_endpoint(self._run)
        return endpoint.pid if endpoint else 0


def logged_end_reason(lines: Sequence[str]) -> str:
    """Return the message of the last log record, or the last line of its traceback, or "" if the record is no error."""
    starts = [match for line in lines if (match := RECORD.match(line))]
    if not starts or starts[-1]["level"] not in ("ERROR", "CRITICAL"):
        return ""
    rest = lines[-1]
    return starts[-1]["words"].removeprefix(ENDS) if RECORD.match(rest) else rest.strip()


def _parent(pid: int) -> int | None:
    """Return a process's parent, or None if unknown. On Windows, a venv's launcher is between us and the gateway."""
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None


class AdoptedProcess:
    """A RunningGateway that a shim or an earlier tray started. Its exit code cannot be read."""

    def __init__(self, process: psutil.Process) -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        self._process = process

    def poll(self) -> int | None:
        return None

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the process has ended. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            try:
                self._process.wait(timeout)
            except psutil.TimeoutExpired as error:
                raise subprocess.TimeoutExpired("gateway", error.seconds or 0.0) from None
        return None

    def terminate(self) -> None:
        import psutil

        with suppress(psutil.NoSuchProcess):
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process. psutil never kills a new process that has the same id."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            self._process.kill()


def adopt(pid: int) -> AdoptedProcess | None:
    """Return the gateway with that process id, or None if it has ended or the user started it (without --linger)."""
    import psutil

    try:
        process = psutil.Process(pid)
        return AdoptedProcess(process) if pid and LINGERS in process.cmdline() else None
    except psutil.Error:
        return None
