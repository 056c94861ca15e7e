"""The program in a fork of a process that has imported it. Imports take four fifths of a gateway's start-up time.

It suits tests of what a gateway does, but not tests of the process itself, such as its memory, imports, command line or
parent. `python forked.py DESCRIPTOR` runs the process that forks. Linux only.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from trayapp.model.late import _LatePattern

LATER = (  # modules that a gateway imports after its start: for a call, its HTTP port or a server over HTTP
    "anyio._backends._asyncio", "httpcore2", "keyring.backends.SecretService", "re2", "truststore",
    "trayapp.backends.http.streamable", "trayapp.backends.wake.linux",
    "trayapp.config.edits", "trayapp.inspection.encoded", "trayapp.inspection.screening",
    "trayapp.service.login_session", "uvicorn.protocols.http.httptools_impl",
)  # fmt: skip
MOST = 1 << 17  # bytes of a request, which holds an environment


class Forked:
    """A forked process with the interface of subprocess.Popen. `end` is its pidfd, opened before it could be reaped."""

    def __init__(self, parent: Parent, pid: int, end: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._end = end

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None and self._has_ended(0):
            os.close(self._end)
            self.returncode = int(self._parent.ask("code", self.pid)[0])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit code. Raises TimeoutExpired."""
        if self.returncode is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("multi-mcp", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may have just ended, which subprocess.Popen ignores as well
                signal.pidfd_send_signal(self._end, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self._end], [], [], timeout)[0])


class Parent:
    """The process that forks. It ends with this process, whose threads may use it concurrently."""

    def __init__(self) -> None:
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        env = {name: value for name, value in os.environ.items() if not name.startswith("MULTI_MCP_")}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()])

    def ask(self, *request: Any) -> tuple[Any, list[int]]:
        """Send a request. Return the answer, and the file descriptors that came with it."""
        with self._lock:
            self._asking.send(marshal.dumps(request))
            answer, descriptors, _, _ = socket.recv_fds(self._asking, MOST, 1, socket.MSG_CMSG_CLOEXEC)
        return marshal.loads(answer), descriptors


@cache
def the_parent() -> Parent:
    return Parent()


def start_forked(argv: list[str], env: Mapping[str, str], folder: Path, verbs: Sequence[str] = ()) -> Forked:
    """Start `multi-mcp ARGV...` with /dev/null for its standard streams.

    `verbs`: the command with which the panel runs verbs, by default the program itself.
    """
    pid, (end,) = the_parent().ask("start", argv, dict(env), str(folder), list(verbs))
    return Forked(the_parent(), pid, end)


def serve(descriptor: int) -> None:
    """Load everything that a gateway might import, then fork on request until the socket is closed."""
    import trayapp.cli.start  # noqa: F401
    from trayapp.panel.pages import TEMPLATES

    for room in ("gateway", "history", "catalog", "panel"):
        package = importlib.import_module(f"trayapp.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)
    for name in TEMPLATES.list_templates():
        TEMPLATES.get_template(name)
    compile_late()
    ended: dict[int, int] = {}  # exit codes

    def reap(*_: object) -> None:
        """Reap all children that have ended, because tests wait until a process has been reaped."""
        with suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG))[0]:
                ended[child[0]] = os.waitstatus_to_exitcode(child[1])

    gc.freeze()  # otherwise, garbage collections would copy memory that the children share
    signal.signal(signal.SIGCHLD, reap)
    with socket.socket(fileno=descriptor) as asked:
        while request := asked.recv(MOST):
            match marshal.loads(request):
                case ("code", pid):
                    reap()
                    asked.send(marshal.dumps(ended.pop(pid)))
                case (_, argv, env, folder, verbs):
                    # pidfd_open fails once the child has been reaped
                    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
                    child = os.fork()
                    if not child:
                        asked.close()
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
                        run(argv, env, folder, verbs)
                    end = os.pidfd_open(child)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
                    socket.send_fds(asked, [marshal.dumps(child)], [end])
                    os.close(end)


def compile_late() -> None:
    """Compile all patterns that are compiled at their first use, so that no fork has to."""
    for late in [thing for thing in gc.get_objects() if type(thing) is _LatePattern]:
        late.search  # noqa: B018 (looking it up compiles it)


def run(argv: list[str], env: dict[str, str], folder: str, verbs: list[str]) -> None:
    """Run the program and exit with its code."""
    from trayapp import __main__ as program
    from trayapp.service import verb_process

    if verbs:
        verb_process.own_command = lambda: verbs  # type: ignore[attr-defined]  # it is imported there

    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    sys.argv = [program.__file__, *argv]
    try:
        code = program.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    os._exit(code)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
