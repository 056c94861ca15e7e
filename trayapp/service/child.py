"""Wait for a gateway process from outside: until it answers, or until it has ended.

detached starts a gateway, supervisor decides which one the tray supervises.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes too long here
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen

READY_TIMEOUT_S = 20.0  # a cold disk and a busy machine; usually it takes 0.3 s
GONE_TIMEOUT_S = 15.0  # the stop ladder of a stubborn server takes 4 s, and many stop at once
FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.1
LOG_LINES_SHOWN = 3
LOG_TAIL_BYTES = 4096
RUNS_ALREADY = 7  # exit code of a gateway that found another one running; the other one will answer


def await_ready(
    run: str,
    timeout_s: float = READY_TIMEOUT_S,
    process: Popen[bytes] | None = None,
    log_file: Path | None = None,
) -> None:
    """Wait until a gateway answers in the runtime folder `run`.

    Raises NoGatewayError after `timeout_s` seconds, or as soon as `process` has died. The error then quotes the end of
    `log_file`.
    """
    from trayapp.model.errors import NoGatewayError
    from trayapp.wire.control import connect
    from trayapp.wire.greeting import Hello

    for _ in pauses(timeout_s):
        try:
            connect(run, Hello("control")).close()
        except NoGatewayError:
            code = process.poll() if process is not None else None
            if code not in (None, RUNS_ALREADY):
                raise _died(code, log_file) from None
        else:
            return
    raise NoGatewayError(f"The gateway did not answer within {timeout_s:g} s")


def await_gone(pid: int, timeout_s: float = GONE_TIMEOUT_S) -> bool:
    """Wait until a process has ended. Return False if it still runs after `timeout_s` seconds."""
    import psutil

    try:
        process = psutil.Process(pid)
        return any(not is_alive(process) for _ in pauses(timeout_s))
    except psutil.NoSuchProcess:
        return True


def is_alive(process: object) -> bool:
    """Return True if a psutil.Process still runs. A zombie does not."""
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pauses(timeout_s: float) -> Iterator[None]:
    """Yield at once, then after growing pauses, until `timeout_s` seconds have passed."""
    end, pause = time.monotonic() + timeout_s, FIRST_PAUSE_S
    yield
    while time.monotonic() < end:
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)
        yield


def _died(code: int | None, log_file: Path | None) -> Exception:
    from trayapp.model.errors import NoGatewayError

    said = " | ".join(last_lines(log_file)) if log_file is not None else ""
    error = NoGatewayError(f"The gateway ended while starting (exit code {code}){': ' + said if said else ''}")
    if not said:  # without a log, only its stderr has the reason
        error.hint = "To see why, run: multi-mcp start"
    return error


def last_lines(path: Path, most: int = LOG_LINES_SHOWN) -> list[str]:
    """Return the last `most` lines of a log; [] if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    return data.decode(errors="replace").splitlines()[-most:]
