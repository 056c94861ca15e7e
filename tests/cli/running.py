"""Runs of the real program, and a fake gateway.

`FakeGateway` serves wire/control on the real socket with the test's answers.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc

from tests.patience import stretched
from trayapp.gateway.calls.errors import to_rpc
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command
from trayapp.wire import control
from trayapp.wire.endpoint import Link, listen
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Hello
from trayapp.wire.messages import METHOD_NOT_FOUND, Params, RpcError
from trayapp.wire.rundir import run_dir

RUN_TIMEOUT_S = 50.0
PROGRAM = own_command()
FORKS, START = (str(Path(__file__).with_name(name)) for name in ("forks.py", "start.py"))
SCRIPT = {"MULTI_MCP_UNATTENDED": "1"}  # lets the tests approve and trust without a terminal

Launch = Callable[..., "subprocess.Popen[str]"]
Answer = Any  # a JSON value, an error to send, or a function that returns either for the params


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return this process's environment with that home, and without variables that open windows or color texts."""
    dropped = ("DISPLAY", "WAYLAND_DISPLAY", "EDITOR", "VISUAL", "FORCE_COLOR", "NO_COLOR", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    # The gateway gets PATH from the login shell. The developer's own shell would run rc files that could do anything.
    no_session = {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""}  # otherwise, the user's session would be used
    return (
        kept
        | no_session
        | {"MULTI_MCP_HOME": str(home), "PYTHONIOENCODING": "utf-8", "SHELL": "/bin/sh", **SCRIPT}
        | more
    )


@cache
def quick_program(module: str = "trayapp.__main__", python: str = sys.executable) -> list[str]:
    """Return a command that runs the module in a fork of a process that has already imported it.

    Imports take most of a run's time. On systems other than Linux, the command runs the module itself. It is unsuitable
    for tests of imports, of the interpreter's variables, or of signals: the process that it starts only waits for the
    fork.
    """
    if sys.platform != "linux":
        return PROGRAM if module == "trayapp.__main__" else [python, "-m", module]
    name = f"multi-mcp-tests-{os.getpid()}-{module}"
    # With MULTI_MCP_HOME, the parent would count as a process of that home.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MULTI_MCP_")}
    env = kept | ({"PYTHONPATH": os.pathsep.join(sys.path)} if python == sys.executable else {})
    command, pipe = [python, FORKS, name, module], subprocess.PIPE
    parent = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe)
    atexit.register(parent.communicate)  # closes its stdin, which ends it
    assert parent.stdout is not None
    assert parent.stdout.readline()
    return [sys.executable, "-I", "-S", START, name]


def run_cli(
    home: Path, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `multi-mcp ARGV...` to its end, in the home folder."""
    return subprocess.run(
        [*quick_program(), *argv],
        cwd=home,
        env=dict(env or environment(home)),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_TIMEOUT_S,
        check=False,
    )


def launch(home: Path, *argv: str) -> subprocess.Popen[str]:
    """Start `multi-mcp ARGV...` with text pipes for its output."""
    return launch_with(home, environment(home), *argv)


def launch_with(
    home: Path, env: Mapping[str, str], *argv: str, program: Sequence[str] = PROGRAM
) -> subprocess.Popen[str]:
    """Start `program ARGV...` with text pipes for its output, in that environment."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*program, *argv],
        cwd=home,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
    )


class FakeGateway:
    """A control server in a thread, in the gateway's place.

    - `answers`: the answer to each method.
    - `requests`: the received requests, in order.
    - `notes`: texts that it sends before each answer.
    """

    def __init__(
        self,
        home: Path,
        answers: Mapping[str, Answer],
        snapshots: tuple[dict[str, Any], ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        self._notes = notes
        self._run = run_dir({"MULTI_MCP_HOME": str(home)})
        self._answers = dict(answers)
        self._snapshots = snapshots
        self._ready = threading.Event()
        self._end: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=lambda: anyio.run(self._serve), name="fake gateway")
        self._tasks: anyio.abc.TaskGroup
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(stretched(10.0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._thread.join()

    async def _serve(self) -> None:
        listener = await listen(self._run, self._accept, "0.0.0")
        ended, portal = anyio.Event(), anyio.from_thread.BlockingPortal()
        async with portal, anyio.create_task_group() as self._tasks:
            self._end = lambda: portal.call(ended.set)
            self._ready.set()
            await ended.wait()
            listener.close()
            self._tasks.cancel_scope.cancel()

    def _accept(self, hello: Hello, link: Link) -> FrameDispatcher:
        dispatcher = FrameDispatcher(link.write)
        self._tasks.start_soon(self._hold, dispatcher, link)
        return dispatcher

    async def _hold(self, dispatcher: FrameDispatcher, link: Link) -> None:
        try:
            await dispatcher.run(partial(self._on_request, dispatcher), lambda method, params: None)
        finally:
            link.close()

    async def _on_request(self, dispatcher: FrameDispatcher, method: str, params: Params) -> Any:
        self.requests.append((method, dict(params or {})))
        if method == control.WATCH:
            self._tasks.start_soon(self._send_snapshots, dispatcher)
            return {}
        if method not in self._answers:
            raise RpcError(METHOD_NOT_FOUND, f"the test gave no answer to {method}")
        for line in self._notes:
            dispatcher.send_notification(control.NOTE, {"text": line})
        answer = self._answers[method]
        answer = answer(dict(params or {})) if callable(answer) else answer
        if isinstance(answer, MultiMcpError):
            rpc = to_rpc(answer, answer.hint)
            raise RpcError(rpc.code, answer.title, rpc.data)
        return answer

    async def _send_snapshots(self, dispatcher: FrameDispatcher) -> None:
        for snapshot in self._snapshots:
            dispatcher.send_notification(control.SNAPSHOT, snapshot)
