"""The start of a confined program from a thread that has confined itself.

There is no launcher process, and nothing runs between fork and exec, so a confined start is hardly slower than an
unconfined one.

Landlock, seccomp and no_new_privs apply to the thread that requests them and to all that it starts. The rest of the
gateway stays unconfined. The thread ends when the program has started. A thread that starts bubblewrap ends with it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import threading
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from trayapp.confinement.landlock import restrict_thread, scope_thread
from trayapp.confinement.policy import Policy
from trayapp.confinement.seccomp import filter_program, install, machine, proxy_program


class ConfinementFailedError(OSError):
    """Raised when the kernel refuses the confinement. The program is not started."""


def spawn_confined(
    policy: Policy, port: int | None, options: dict[str, Any], *, trace: bool = False
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program confined by `policy`. `port`: the proxy's if hosts are listed, None otherwise.

    `trace`: the calls with which the program opens or changes files arrive as requests, too.

    Return the process, and the descriptor on which its requests arrive (seccomp_requests), or -1 if there is none.
    Raises OSError for a program that cannot be started, ConfinementFailedError if it would not be confined.
    """
    program = filter_program(machine(), "all" if policy.network is True else "asked", tell=True, trace=trace)
    needs_answers = trace or isinstance(policy.network, tuple)
    silent = None if needs_answers else filter_program(machine(), "all" if policy.network is True else "none")
    if trace:
        # To close descriptors, Python would open a folder between fork and exec, when nobody can answer the request.
        # All of our descriptors are closed on exec anyway.
        options = {**options, "close_fds": False}

    def confine() -> int:
        ports = None if policy.network is True else [port] if port else []
        restrict_thread(policy.read, policy.write, policy.devices, ports)
        try:
            return install(program, listen=True)
        except OSError as error:  # EBUSY: a parent already has a listener, as in some containers
            if silent is None or error.errno != errno.EBUSY:
                raise
            return install(silent, listen=False)

    return _start(confine, options, stays=False)


def spawn_bubblewrap(*, proxied: bool, options: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    """Start bubblewrap, which confines its program.

    Where Landlock has scopes, neither bubblewrap nor its program can signal other programs or use their abstract
    sockets.

    `proxied`: the program has no network of its own and requests its sockets from us. Returns and raises what
    `spawn_confined` does. Bubblewrap dies with its parent, which for the kernel is the thread, so the thread lives as
    long as bubblewrap.
    """

    def confine() -> int:
        scope_thread()
        return install(proxy_program(machine()), listen=True) if proxied else -1

    return _start(confine, options, stays=True)


def _start(confine: Callable[[], int], options: dict[str, Any], *, stays: bool) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program from a new thread that calls `confine`. Raises what `spawn_confined` does.

    Return the process, and what `confine` returned: the descriptor of the program's requests, or -1. `stays`: the
    thread lives until the program ends.
    """
    outcome = Future[tuple[subprocess.Popen[bytes], int]]()

    def start() -> None:
        listener = -1
        try:
            try:
                listener = confine()
            except OSError as error:
                raise ConfinementFailedError(error.errno, error.strerror) from error
            process = subprocess.Popen(**options)
        except BaseException as error:  # noqa: BLE001 (the boundary of the thread: the caller raises the error)
            if listener >= 0:
                os.close(listener)
            outcome.set_exception(error)
            return
        outcome.set_result((process, listener))
        if stays:
            with suppress(ChildProcessError):  # the event loop has already reaped the process
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    threading.Thread(target=start, name="confined start", daemon=True).start()
    return outcome.result()


class ConfinedTransport(BaseSubprocessTransport):
    """asyncio's transport for a child process that `spawn` starts. A pidfd reports its end."""

    def __init__(self, spawn: Callable[[dict[str, Any]], subprocess.Popen[bytes]], *args: Any, **kwargs: Any) -> None:
        self._spawn = spawn
        self._pidfd = -1
        super().__init__(*args, **kwargs)

    def _start(self, args: Any, shell: bool, stdin: Any, stdout: Any, stderr: Any, bufsize: int, **kwargs: Any) -> None:
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "bufsize": bufsize}
        self._proc = self._spawn({"args": args, "shell": shell, **streams, **kwargs})
        self._pidfd = os.pidfd_open(self._proc.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    def _reap(self) -> None:
        assert self._proc is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        code = self._proc.wait()  # does not block: the process has ended
        self._process_exited(code)


async def open_confined(
    spawn: Callable[[dict[str, Any]], subprocess.Popen[bytes]],
    protocol: asyncio.SubprocessProtocol,
    argv: Sequence[str],
    **options: Any,
) -> None:
    """Start a program like `loop.subprocess_exec`, with pipes for its three streams. Raises what `spawn` raises."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    pipe = subprocess.PIPE
    streams = (pipe, pipe, pipe, 0)
    transport = ConfinedTransport(spawn, loop, protocol, list(argv), False, *streams, waiter=waiter, **options)
    try:
        await waiter
    except BaseException:
        transport.close()
        with suppress(ProcessLookupError):
            await transport._wait()
        raise
