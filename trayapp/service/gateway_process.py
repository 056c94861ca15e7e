"""The place where this user's gateway runs: started, connected to and told to end for the supervisor.

Never here: when any of that is done (service/supervisor).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trayapp.model.errors import StorageError
from trayapp.model.logs import GATEWAY_LOG
from trayapp.service.child import last_lines
from trayapp.service.detached import start_detached
from trayapp.service.pause import Pause, StartTurn
from trayapp.service.supervision import Process
from trayapp.wire.control import STOP, ControlClient
from trayapp.wire.greeting import read_endpoint
from trayapp.wire.watch import Watch

log = logging.getLogger(__name__)

RECORD = re.compile(r"\d{4}-\d\d-\d\d \S+ (?P<level>[A-Z]+) \S+ (?P<words>.*)")  # a line of service/logging
ENDS = "The gateway ends: "  # of gateway/main
LAST_WORDS_MOST = 50  # lines: a traceback
ROOM_FOR_A_LINE = 4096  # bytes free, a block of most file systems
ANSWER_S = 5.0  # to "stop"; the gateway answers first and ends then


class GatewayProcess:
    """Implements supervision.Place for a runtime folder and a log folder."""

    def __init__(self, environ: Mapping[str, str], run: str, log_dir: Path) -> None:
        self._environ = environ
        self._run = run
        self._log = log_dir / GATEWAY_LOG
        self._pause, self._turn = Pause(run), StartTurn(run)

    def launch(self) -> subprocess.Popen[bytes]:
        """See Place. It lingers: should we be killed, it ends some time after its last client."""
        try:
            return start_detached(self._environ, linger=True)
        except OSError as error:
            raise StorageError(f"The gateway cannot be started: {error.strerror}", "Install multi-mcp again") from None

    def watch(self, beat_s: float) -> Watch:
        """See Place."""
        return Watch(self._run, beat_s)

    def owner(self, process: Process) -> bool:
        """See Place."""
        pid = self._pid()
        return pid == process.pid or (sys.platform == "win32" and _parent(pid) == process.pid)

    def adopted(self) -> Process | None:
        """See Place."""
        from trayapp.service.adopted import adopt  # with psutil: most trays start their own

        return adopt(self._pid())

    def ask_to_stop(self) -> None:
        """See Place."""
        with ControlClient(self._run, ANSWER_S) as client:
            client.call(STOP)

    def last_words(self) -> str:
        """See Place. Of the log only what tells of an end; on a full disk there is none."""
        said = why_it_ended(last_lines(self._log, LAST_WORDS_MOST))
        return said or ("the disk is full" if _is_full(self._log.parent) else "")

    def how_to_kill(self) -> str:
        """See Place."""
        pid = self._pid()
        return f"End it with: {'taskkill /F /PID' if os.name == 'nt' else 'kill -9'} {pid}"

    def pause(self) -> None:
        """See Place."""
        try:
            self._pause.hold()
        except StorageError as error:
            log.warning("Clients may start a gateway although it is paused: %s", error)

    def resume(self) -> None:
        """See Place."""
        self._pause.end()

    def claim_start(self) -> None:
        """See Place."""
        with suppress(StorageError):
            self._turn.hold()

    def release_start(self) -> None:
        """See Place."""
        self._turn.end()

    def _pid(self) -> int:
        endpoint = read_endpoint(self._run)
        return endpoint.pid if endpoint else 0


def why_it_ended(lines: Sequence[str]) -> str:
    """What the last record of a log says, if it is of an error: its last line, which of a traceback is the error's own.

    What stands there of a gateway that ended in order, or was killed, is no reason for anything.
    """
    starts = [match for line in lines if (match := RECORD.match(line))]
    if not starts or starts[-1]["level"] not in ("ERROR", "CRITICAL"):
        return ""
    rest = lines[-1]
    return starts[-1]["words"].removeprefix(ENDS) if RECORD.match(rest) else rest.strip()


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < ROOM_FOR_A_LINE
    except OSError:
        return False


def _parent(pid: int) -> int | None:
    """Of a venv on Windows a launcher stands between us and the gateway."""
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None
