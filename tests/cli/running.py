"""Runs the real program as a person does, and a small real control server in the gateway's place.

Never here: tests. `FakeGateway` speaks wire/control on the real socket; what it answers is up to the test.
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
SCRIPT = {"MULTI_MCP_UNATTENDED": "1"}  # these tests are one: they approve and trust without a terminal

Launch = Callable[..., "subprocess.Popen[str]"]
Answer = Any  # a JSON value, an error to answer with, or a function of the params that gives one of these


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return this process's environment with that home, and nothing that would open windows or color texts."""
    dropped = ("DISPLAY", "WAYLAND_DISPLAY", "EDITOR", "VISUAL", "FORCE_COLOR", "NO_COLOR", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    # The login shell is asked for its PATH: not the one of whoever runs the tests, whose rc files do as they please.
    no_session = {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""}  # else the real one is found
    return (
        kept
        | no_session
        | {"MULTI_MCP_HOME": str(home), "PYTHONIOENCODING": "utf-8", "SHELL": "/bin/sh", **SCRIPT}
        | more
    )


@cache
def quick_program(module: str = "trayapp.__main__") -> list[str]:
    """Return the command of a program that begins and ends as that module does, in a fork of one that has its imports.

    They take most of a run's time. Elsewhere than on Linux it is the program itself. Not for tests of what is imported,
    of the interpreter's own variables, or of signals: whoever is started here only waits for the fork.
    """
    if sys.platform != "linux":
        return PROGRAM if module == "trayapp.__main__" else [sys.executable, "-m", module]
    name = f"multi-mcp-tests-{os.getpid()}-{module}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MULTI_MCP_")}  # no home's process
    env = kept | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command, pipe = [sys.executable, FORKS, name, module], subprocess.PIPE
    parent = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe)
    atexit.register(parent.communicate)  # the end of its stdin is its own
    assert parent.stdout is not None
    assert parent.stdout.readline()
    return [sys.executable, "-I", "-S", START, name]


def run_cli(
    home: Path, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `multi-mcp ARGV...` to its end, in an unrelated working folder."""
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
    """Start `multi-mcp ARGV...`, with pipes in unbuffered text mode."""
    return launch_with(home, environment(home), *argv)


def launch_with(
    home: Path, env: Mapping[str, str], *argv: str, program: Sequence[str] = PROGRAM
) -> subprocess.Popen[str]:
    """Return the same in that environment."""
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
    """A control server in a thread. `answers` by method; `requests` is what was asked, in order.

    `notes` go ahead of each answer.
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
