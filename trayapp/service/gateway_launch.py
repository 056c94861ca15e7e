"""Functions that start a gateway which outlives the calling process, wait for it, and connect to it.

The shim uses fork and exec, because its client waits and `subprocess` takes 9 ms to load. Keep the imports few.
"""

# No pathlib: its import would take longer than this whole module
# ruff: noqa: PTH100, PTH111, PTH208

from __future__ import annotations

import os
import sys
import time

from trayapp.service.command_line import gateway_command, is_frozen

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes too long here
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from subprocess import Popen
    from typing import NoReturn

    from trayapp.wire.control import ControlClient


OPEN_MOST = 1024  # the usual limit of open descriptors, used if they cannot be listed
FROM_ANYWHERE = "/" if os.name == "posix" else None  # a working folder that nobody needs to remove or unmount
CANNOT_RUN = 127  # exit code if the program cannot be executed, as in shells
READY_TIMEOUT_S = 20.0  # enough for a cold disk and a busy machine; usually it takes 0.3 s
GONE_TIMEOUT_S = 15.0  # stopping a server that ignores signals takes 4 s, and many may stop together
LOG_LINES_SHOWN = 3
LOG_TAIL_BYTES = 4096
ROOM_FOR_A_LINE = 4096  # free bytes: one block of most file systems
RUNS_ALREADY = 7  # exit code of a gateway that found another one running, which will answer instead


def start_detached(environ: Mapping[str, str], *, linger: bool) -> Popen[bytes]:
    """Start a gateway that outlives this process and its terminal, with this environment. Raises OSError."""
    import subprocess  # imported late: takes 9 ms, and a shim on POSIX does not need it

    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | subprocess.DETACHED_PROCESS
    null = subprocess.DEVNULL
    return subprocess.Popen(
        gateway_command(linger=linger),
        env=gateway_environment(environ),
        cwd=FROM_ANYWHERE,
        stdin=null,
        stdout=null,
        stderr=null,
        start_new_session=True,
        creationflags=flags,
    )


def start_fast(environ: Mapping[str, str]) -> Popen[bytes] | ForkedChild:
    """Start a gateway that ends some time after its last session, without `subprocess` on POSIX. Raises OSError."""
    if sys.platform == "win32":
        return start_detached(environ, linger=True)
    return fork_detached(gateway_command(linger=True), gateway_environment(environ))


def reap_automatically(wanted: bool) -> None:
    """Ignore SIGCHLD, so that the system reaps our child processes and none remains a zombie. False undoes this."""
    if sys.platform != "win32":
        import _signal  # type: ignore[import-not-found]  # takes a tenth of the time of `signal`

        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN if wanted else _signal.SIG_DFL)


def connect_gateway(run: str, timeout: float | None) -> ControlClient:
    """Connect to the gateway in the runtime folder `run` without starting one. `timeout`: seconds for each answer.

    Raises NoGatewayError, or its subclass PausedError while multi-mcp is paused.
    """
    from trayapp.model.errors import NoGatewayError
    from trayapp.service.pause import refuse_while_paused
    from trayapp.wire.control import ControlClient

    try:
        return ControlClient(run, timeout)
    except NoGatewayError:
        refuse_while_paused(run)
        raise


def await_ready(
    run: str, timeout_s: float = READY_TIMEOUT_S, process: Popen[bytes] | None = None, log_file: Path | None = None
) -> None:
    """Wait until a gateway answers in the runtime folder `run`.

    Raises NoGatewayError after `timeout_s` seconds, or as soon as `process` has died, unless it found another gateway
    running. If `process` has died, the error quotes the end of `log_file`.
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
                reason = " | ".join(last_lines(log_file)[-LOG_LINES_SHOWN:]) if log_file is not None else ""
                if not reason and log_file is not None and (is_full(run) or is_full(log_file.parent)):
                    raise NoGatewayError("The gateway cannot start: the disk is full", "Free some space") from None
                title = f"The gateway ended while starting (exit code {code})"
                if reason:
                    raise NoGatewayError(f"{title}: {reason}") from None
                raise NoGatewayError(title, "To see why, run: multi-mcp start") from None  # prints the reason
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


def gateway_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a gateway. MULTI_MCP_HOME becomes absolute, because the gateway's folder differs."""
    env = dict(environ)
    env.pop("MULTI_MCP_BACKEND", None)  # marks descendants of server processes
    if env.get("MULTI_MCP_HOME"):
        env["MULTI_MCP_HOME"] = os.path.abspath(os.path.expanduser(env["MULTI_MCP_HOME"]))
    if is_frozen():  # otherwise, servers would inherit the packaged program's variables
        from trayapp.config.programs import own_environment

        env = own_environment(env)
    return env


def is_alive(process: object) -> bool:
    """Return True if a psutil.Process still runs. A zombie does not."""
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pauses(timeout_s: float) -> Iterator[None]:
    """Yield immediately, then after growing pauses, until `timeout_s` seconds have passed."""
    end, pause = time.monotonic() + timeout_s, 0.005
    yield
    while time.monotonic() < end:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
        yield


def is_full(folder: str | Path) -> bool:
    """Return True if this folder's disk has no room for another log line. Return False if the free space is unknown."""
    import shutil

    try:
        return shutil.disk_usage(folder).free < ROOM_FOR_A_LINE
    except OSError:
        return False


def last_lines(path: Path, tail_bytes: int = LOG_TAIL_BYTES) -> list[str]:
    """Return the lines in the last `tail_bytes` of a log, or [] if unreadable. The first line may be incomplete."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - tail_bytes))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


class ForkedChild:
    """A forked child process: its process id and exit code."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs. A negative code is a signal; 0 may mean unknown."""
        if self._code is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the system reaped it (reap_automatically in shim)
                ended, status = self.pid, 0
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


def fork_detached(argv: list[str], env: dict[str, str]) -> ForkedChild:
    """Start a program that outlives this process and its terminal. Raises OSError if the fork fails.

    It works only on POSIX, and this process must have no other threads. If the program cannot be executed, the child
    exits with CANNOT_RUN.
    """
    pid = os.fork()
    if pid == 0:
        _become(argv, env)
    return ForkedChild(pid)


def _become(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Detach the child, close its descriptors (a client may wait for this), and execute the program."""
    try:
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.set_inheritable(null, True)  # needed if `null` is itself 0, 1 or 2, because that descriptor was closed
        try:
            highest = max(map(int, os.listdir("/dev/fd")))
        except OSError:  # no /dev/fd, for example in a chroot
            highest = OPEN_MOST
        os.closerange(3, highest + 1)
        os.execve(argv[0], argv, env)
    finally:
        os._exit(CANNOT_RUN)
