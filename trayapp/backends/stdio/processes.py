"""A server process: spawned in its own process group, watched, and stopped with all of its descendants.

`open_stdio` turns it into a Transport, with frames over its pipes.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import subprocess
import sys
import types
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from trayapp.backends.context import Inbound, Transport
from trayapp.backends.launch import StdioLaunch
from trayapp.backends.stdio.guardian import signal_group
from trayapp.backends.stdio.orphans import ProcessTracker
from trayapp.model.errors import ConnectFailedError
from trayapp.model.redact import redacted
from trayapp.model.text import StderrDecoder
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.memory import widen
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

if TYPE_CHECKING:
    from trayapp.confinement.start import ConfinedStart

STOP_GRACE_S = 2.0  # a server gets this long after its stdin closed, and again after SIGTERM (MCP lifecycle, shutdown)
EXIT_CODE_WAIT_S = 0.3  # stdout closes a moment before the exit code is known
TAIL_LINES = 64  # more lines than a private key has: redaction recognizes the key only with its first line
TAIL_LINE_CHARS = 400
TAIL_LINE_KEPT = 10 * TAIL_LINE_CHARS  # more than is shown, because redaction would not recognize half a secret


class StderrTail:
    """The last lines of a server's stderr, kept for error texts. All bytes go to `sink`."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._open = ""
        self._decoder = StderrDecoder()

    def feed(self, data: bytes) -> None:
        self._sink(data)
        *whole, self._open = (self._open + self._decoder.decode(data)).split("\n")
        self._open = self._open[:TAIL_LINE_KEPT]  # drop the rest of an overlong line
        self._lines.extend(line[:TAIL_LINE_KEPT].rstrip() for line in whole if line.strip())

    def end(self) -> None:
        """Mark the end of stderr, so that the sink can write an unfinished last line."""
        self._sink(b"")

    def last(self, count: int = 3) -> str:
        """Return the last lines, redacted and joined for one line of error text."""
        lines = [*self._lines, self._open] if self._open.strip() else list(self._lines)
        shown = [line for line in redacted("\n".join(lines)).split("\n") if line.strip()]
        return " | ".join(line[:TAIL_LINE_CHARS] for line in shown[-count:])


class ServerProcess(asyncio.SubprocessProtocol):
    """A server process. `gone` is set once it can no longer serve."""

    def __init__(self, stderr: StderrTail) -> None:
        self.on_stdout: Callable[[bytes], None] = lambda data: None  # gets stdout; set before the process is spawned
        self.stderr = stderr
        self.gone = anyio.Event()
        self._exited = anyio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self.pid = 0

    # -- asyncio calls these -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self.pid = transport.get_pid()
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        self._stdin = stdin
        stdout = transport.get_pipe_transport(1)
        assert stdout is not None
        if not stdout.is_closing():  # the process may already have ended
            widen(stdout.get_extra_info("pipe").fileno())
        stdout.set_protocol(_Stdout(stdout.get_protocol(), self.on_stdout))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.on_stdout(data)
        else:
            self.stderr.feed(data)

    def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
        if fd == 1:
            self.gone.set()
        elif fd == 2:
            self.stderr.end()

    def process_exited(self) -> None:
        self._exited.set()
        self.gone.set()

    # -- ours ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Write to the server's stdin without blocking. Data is dropped once the process is gone."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    async def end_reason(self) -> str:
        """Wait briefly for the exit code. Return in words how the process ended, with the last lines of stderr."""
        with anyio.move_on_after(EXIT_CODE_WAIT_S):
            await self._exited.wait()
        code = self._transport.get_returncode() if self._transport else None
        if code is None:
            ended = "closed its output"
        elif code >= 0:
            ended = f"exited with code {code}"
        else:
            ended = f"ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
        words = self.stderr.last()
        return f"{ended}: {words}" if words else ended

    async def stop(self) -> None:
        """Close stdin. If the process still runs after 2 s, send SIGTERM to its group and wait up to 2 s more.

        Then always send SIGKILL to the group. Return when the process has exited, or 2 s after SIGKILL.
        """
        assert self._transport is not None
        if self._stdin is not None:
            self._stdin.close()
        if not await self._exits_within(STOP_GRACE_S):
            signal_group(self.pid, signal.SIGTERM)
            await self._exits_within(STOP_GRACE_S)
        signal_group(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # also ends what a wrapper left behind
        await self._exits_within(STOP_GRACE_S)
        self._transport.close()

    async def _exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()


class _Stdout(asyncio.Protocol):
    """Passes on a server's stdout in the same event loop iteration in which it arrived.

    asyncio's own protocol for a child's pipe needs another iteration each time, which is a tenth of what a call
    costs the gateway.
    """

    def __init__(self, own: asyncio.BaseProtocol, take: Callable[[bytes], None]) -> None:
        self._own: Any = own
        self.data_received = take  # type: ignore[assignment,method-assign]  # saves a call

    def connection_lost(self, error: Exception | None) -> None:
        self._own.connection_lost(error)  # earlier data was already passed on


@asynccontextmanager
async def run_process(
    launch: StdioLaunch, process: ServerProcess, tracker: ProcessTracker, start: ConfinedStart | None
) -> AsyncIterator[None]:
    """Spawn a server as `process`, and always stop it with every descendant. Raises ConnectFailedError.

    `start` starts the server confined. If it is None, the server runs unconfined.
    """
    # Shielded: a cancellation between fork and the `try` below would leave a process that nobody stops.
    with anyio.CancelScope(shield=True):
        marks = tracker.environment()
        await _begin_inside(tracker.spawning(marks), _spawn(launch, process, {**launch.env, **marks}, start))
        tracker.adopt(process.pid, marks)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await process.stop()
            await anyio.to_thread.run_sync(tracker.finish, process.pid)


@types.coroutine
def _begin_inside(context: AbstractContextManager[None], work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
    """Run `work`, inside `context` up to its first wait only."""
    with context:
        waits_for = work.send(None)
    try:
        yield waits_for
    except BaseException as error:
        yield work.throw(error)  # a cancelled `work` may have to wait once more
        yield from work
        raise
    yield from work


async def _spawn(launch: StdioLaunch, process: ServerProcess, env: dict[str, str], start: ConfinedStart | None) -> None:
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": 0x08000000 | 0x00000200}  # CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP
    pipe = subprocess.PIPE
    try:
        if start is not None:
            await start.start(process, env, cwd=launch.cwd, **options)
            return
        await asyncio.get_running_loop().subprocess_exec(
            lambda: process, *launch.argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=launch.cwd, **options
        )
    except (OSError, ValueError) as error:
        reason = str(error)
        if isinstance(error, OSError) and error.errno is not None:
            reason = f"{error.strerror} ({errno.errorcode.get(error.errno, error.errno)})"
        title = f"Cannot start {launch.server}: {launch.argv[0]}: {reason}"
        raise ConnectFailedError(launch.server, title, "Check its command in servers.yaml") from None


@asynccontextmanager
async def open_stdio(
    launch: StdioLaunch, inbound: Inbound, stderr: Callable[[bytes], None], tracker: ProcessTracker
) -> AsyncIterator[Transport]:
    """Start the server's process and carry frames until the context ends. Raises ConnectFailedError."""
    confinement = launch.confinement
    has_printed = False  # anything that is not a frame

    def keep(data: bytes) -> None:
        nonlocal has_printed
        has_printed = has_printed or bool(data.strip())
        stderr(data)
        if confinement is not None:
            confinement.record.read(data)

    def feed_and_record(data: bytes) -> None:
        assert confinement is not None
        confinement.record.read_answer(data)
        dispatcher.feed(data)

    async def close_with_reason() -> None:
        await process.gone.wait()
        dispatcher.close(RpcError(CONNECTION_CLOSED, f"The server {await process.end_reason()}"))

    process = ServerProcess(StderrTail(keep))
    dispatcher = FrameDispatcher(
        process.write, on_junk=lambda junk: keep(b"[stdout] " + junk[:400] + b"\n"), peer=launch.server
    )
    process.on_stdout = dispatcher.feed if confinement is None else feed_and_record
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        start = None
        if confinement is not None:
            from trayapp.confinement.start import confining  # imported when a server is confined

            confined = confining(confinement, launch.argv, launch.cwd or "/", launch.env)
            start = await stack.enter_async_context(confined)
        await stack.enter_async_context(run_process(launch, process, tracker, start))
        await tasks.start(dispatcher.run, inbound.on_request, inbound.on_notification)
        tasks.start_soon(close_with_reason)
        try:
            yield Transport(
                "stdio", dispatcher, process.gone, process.end_reason, process.pid, has_printed=lambda: has_printed
            )
        finally:
            dispatcher.close(RpcError(CONNECTION_CLOSED, "The server was stopped"))
            tasks.cancel_scope.cancel()
