"""A server's process as a Transport: frames over its pipes, and the reason of its end.

The process itself is in `processes`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from trayapp.backends.launch import StdioLaunch
from trayapp.backends.stdio.orphans import ProcessTracker
from trayapp.backends.stdio.processes import StderrTail, run_process
from trayapp.backends.transport import Inbound, Transport
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.handling import RequestContext
from trayapp.wire.messages import CONNECTION_CLOSED, Params, RpcError

if TYPE_CHECKING:
    from trayapp.confinement.record import RefusalRecord


@asynccontextmanager
async def open_stdio(
    launch: StdioLaunch, inbound: Inbound, stderr: Callable[[bytes], None], tracker: ProcessTracker
) -> AsyncIterator[Transport]:
    """Start the server's process and carry frames over its pipes. The process ends with the context."""

    async def on_request(context: RequestContext, method: str, params: Params) -> dict[str, Any]:
        return await inbound.on_request(method, params)

    async def on_notify(context: RequestContext, method: str, params: Params) -> None:
        """Do nothing: the intercept below takes every notification."""

    def on_notification(method: str, params: Params) -> bool:
        inbound.on_notification(method, params)
        return True

    printed: list[bool] = []

    def keep(data: bytes) -> None:
        printed[:] = printed or [True] * bool(data.strip())
        stderr(data)
        if confinement is not None:
            confinement.record.read(data)

    confinement = launch.confinement
    tail = StderrTail(keep)
    dispatcher: FrameDispatcher = FrameDispatcher(
        lambda data: process.write(data), on_junk=_junk_to_stderr(keep), peer=launch.server
    )
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        start = None
        if confinement is not None:
            from trayapp.confinement.start import confining  # imported when a server is confined

            confined = confining(confinement, launch.argv, launch.cwd or "/", launch.env)
            start = await stack.enter_async_context(confined)
        feed = (
            dispatcher.feed if confinement is None else partial(_feed_and_record, dispatcher.feed, confinement.record)
        )
        process = await stack.enter_async_context(run_process(launch, feed, tail, tracker, start))
        dispatcher.write_to(process.write)
        await tasks.start(dispatcher.run, on_request, on_notify, on_notification)
        tasks.start_soon(_close_with_reason, process, dispatcher)
        try:
            yield Transport(
                "stdio",
                dispatcher,
                process.gone,
                process.end_reason,
                process.pid,
                lambda: process.exit_code,
                has_printed=lambda: bool(printed),
            )
        finally:
            dispatcher.close(RpcError(CONNECTION_CLOSED, "The server was stopped"))
            tasks.cancel_scope.cancel()


def _feed_and_record(feed: Callable[[bytes], None], record: RefusalRecord, data: bytes) -> None:
    record.read_answer(data)
    feed(data)


async def _close_with_reason(process: Any, dispatcher: FrameDispatcher) -> None:
    await process.gone.wait()
    dispatcher.close(RpcError(CONNECTION_CLOSED, f"The server {await process.end_reason()}"))


def _junk_to_stderr(stderr: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a sink that logs non-frame stdout output with the server's stderr, shortened."""
    return lambda junk: stderr(b"[stdout] " + junk[:400] + b"\n")
