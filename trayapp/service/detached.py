"""How a gateway is started that outlives whoever starts it: its environment, and the start itself.

The shim starts one by fork and exec while its client waits: `subprocess` takes 9 ms to load. Those who have loaded it
anyway use it. Never here: waiting for it. Imports stay few.
"""

# pathlib costs the shim more than all of this
# ruff: noqa: PTH100, PTH111, PTH208

from __future__ import annotations

import os
import sys

from trayapp.service.command_line import gateway_command, is_frozen

TYPE_CHECKING = False  # as in typing, which costs as much
if TYPE_CHECKING:
    from collections.abc import Mapping
    from subprocess import Popen
    from typing import NoReturn

OPEN_MOST = 1024  # descriptors of a process, unless told otherwise; for where the system does not list them
FROM_ANYWHERE = "/" if os.name == "posix" else None  # a working folder that no user wants to remove
CANNOT_RUN = 127  # exit code of a start whose program cannot be executed, as in shells


def gateway_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a gateway started from here gets. A relative MULTI_MCP_HOME is resolved: the gateway's folder is another."""
    env = {name: value for name, value in environ.items() if name != "MULTI_MCP_BACKEND"}  # nobody's descendant
    if env.get("MULTI_MCP_HOME"):
        env["MULTI_MCP_HOME"] = os.path.abspath(os.path.expanduser(env["MULTI_MCP_HOME"]))
    if is_frozen():  # it finds its own libraries; ours would come to its servers as the user's own
        from trayapp.config.environment import own_environment

        env = own_environment(env)
    return env


def start_detached(environ: Mapping[str, str], *, linger: bool) -> Popen[bytes]:
    """Start a gateway that outlives this process and its terminal; `environ` says with which home. Raises OSError."""
    import subprocess  # 9 ms, which a shim on POSIX does not pay

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


def start_quickly(environ: Mapping[str, str]) -> Popen[bytes] | Forked:
    """Start one that ends by itself some time after its last session. Raises OSError."""
    if sys.platform == "win32":
        return start_detached(environ, linger=True)
    return fork_detached(gateway_command(linger=True), gateway_environment(environ))


def reap_by_itself(wanted: bool) -> None:
    """Let no zombie of a gateway hang on us."""
    if sys.platform != "win32":
        import _signal  # type: ignore[import-not-found]  # a tenth of what `signal` costs

        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN if wanted else _signal.SIG_DFL)


class Forked:
    """A child process of ours, as far as anybody wants to know of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code once it has ended; negative: the signal that ended it."""
        if self._code is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the system reaped it (reap_by_itself in shim)
                ended, status = self.pid, 0
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


def fork_detached(argv: list[str], env: dict[str, str]) -> Forked:
    """Start what outlives this process, which has no threads, and its terminal. Not on Windows.

    Raises OSError when there can be no further process; a program that cannot run ends with CANNOT_RUN.
    """
    pid = os.fork()
    if pid == 0:
        _become(argv, env)
    return Forked(pid)


def _become(argv: list[str], env: dict[str, str]) -> NoReturn:
    """In the child: let go of the terminal and of all that is open, which the client may wait to see closed."""
    try:
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.set_inheritable(null, True)  # where it is one of the three itself: somebody had closed that one
        _close_the_rest()
        os.execve(argv[0], argv, env)
    finally:
        os._exit(CANNOT_RUN)


def _close_the_rest() -> None:
    try:
        highest = max(map(int, os.listdir("/dev/fd")))
    except OSError:  # a root without it
        highest = OPEN_MOST
    os.closerange(3, highest + 1)
