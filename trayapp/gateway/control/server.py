"""Answer the control requests of tray, panel and command line (wire/control)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.abc

from trayapp.backends.connection import Connection
from trayapp.backends.pool import AT_ONCE
from trayapp.catalog.filters import ToolsChange
from trayapp.gateway.calls.errors import error_json, explained, to_rpc
from trayapp.gateway.client import text_of
from trayapp.gateway.control.approvals import ApprovalRequests
from trayapp.gateway.control.catalog import CatalogRequests
from trayapp.gateway.control.history import HistoryRequests
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.control.trials import TrialRequests
from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import MultiMcpError, ServerError, problem_json
from trayapp.model.lifecycle import State
from trayapp.model.redact import redacted
from trayapp.wire import control
from trayapp.wire.endpoint import Link
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

log = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
Reload = Callable[[], Awaitable[None]]

BEAT_SHORTEST_S = 0.05  # with a shorter interval, the gateway would have no time for anything else


def beat_of(params: dict[str, Any]) -> float | None:
    """Return the seconds between a watcher's heartbeats, at least BEAT_SHORTEST_S, or None for no heartbeats.

    Raises RpcError if `beat_s` is not a positive number.
    """
    beat_s = params.get("beat_s")
    if beat_s is None:
        return None
    if isinstance(beat_s, bool) or not isinstance(beat_s, int | float) or not beat_s > 0:
        raise RpcError(INVALID_PARAMS, "beat_s must be a number of seconds above 0")
    return max(float(beat_s), BEAT_SHORTEST_S)


def sleeps(connection: Connection) -> bool:
    """Return True if the connection is closed or closing, and only the next call of its server opens it again."""
    return connection.state in (State.IDLE, State.STOPPING) and connection.server.lifecycle != "keep-alive"


class Control:
    """A control connection of a tray or a command, or the panel's access without a connection.

    `others`: handlers of requests that need more than the gateway.
    """

    def __init__(self, gateway: Gateway, others: Mapping[str, Handler], link: Link, reload: Reload) -> None:
        self._gateway = gateway
        self._link = link
        self._reload = reload
        self.dispatcher = FrameDispatcher(link.write)

        def note(line: str) -> None:
            self.dispatcher.send_notification(control.NOTE, {"text": line})

        self._handlers: dict[str, Handler] = {
            control.SNAPSHOT: self._snapshot,
            control.WATCH: self._watch,
            control.REFRESH: self._refresh,
            control.RECONNECT: self._reconnect,
            control.RELOAD: self._reload_file,
            control.SETTLE: self._settle,
            control.STOP: self._stop,
            **CatalogRequests(gateway, note).handlers,
            **ApprovalRequests(gateway).handlers,
            **HistoryRequests(gateway).handlers,
            **TrialRequests(gateway).handlers,
            **others,
        }
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self) -> None:
        """Serve until the other end disconnects."""
        async with anyio.create_task_group() as self._tasks:
            await self.dispatcher.run(
                lambda method, params: self.answer(method, dict(params or {})), lambda method, params: None
            )
            self._tasks.cancel_scope.cancel()

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Carry out a request and return its result. Raises RpcError if the method is unknown or the request fails."""
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"No control request is named {method}")
        try:
            result: dict[str, Any] = await handler(params)
            return result
        except MultiMcpError as error:
            rpc = to_rpc(explained(error, self._gateway.problems), error.hint)
            raise RpcError(rpc.code, redacted(error.title), rpc.data) from None

    async def _snapshot(self, params: dict[str, Any]) -> Any:
        return snapshot_of(self._gateway).to_json()

    async def _watch(self, params: dict[str, Any]) -> Any:
        assert self._tasks is not None
        beat_s = beat_of(params)
        self._tasks.start_soon(self._send_snapshots, params.get("asks") is not False)
        if beat_s is None:
            return {}
        self._tasks.start_soon(self._send_heartbeats, beat_s)
        return {control.BEAT: beat_s}

    async def _send_snapshots(self, asks: bool) -> None:
        """Send a whole snapshot now and after each change. A slow reader may miss some, but never the newest one.

        `asks`: a person sees the snapshots and can answer asks.
        """
        news = anyio.Event()
        end = self._gateway.services.changes.listen(lambda: news.set())
        try:
            with self._gateway.asks.watched() if asks else nullcontext():
                while True:
                    news = anyio.Event()
                    await self._link.room.wait()  # a stopped `status --watch` would let snapshots pile up
                    self.dispatcher.send_notification(control.SNAPSHOT, snapshot_of(self._gateway).to_json())
                    await news.wait()
        finally:
            end()

    async def _send_heartbeats(self, beat_s: float) -> None:
        """Send heartbeats, so that a watcher can distinguish a hung gateway from an idle one."""
        while True:
            await self._gateway.services.clock.beat(beat_s)
            await self._link.room.wait()
            self.dispatcher.send_notification(control.BEAT, {})

    async def _refresh(self, params: dict[str, Any]) -> Any:
        services, servers = self._gateway.services, self._gateway.servers

        async def one(connection: Connection) -> dict[str, Any]:
            services.listings.changes.pop(connection.key, None)
            await services.pool.refresh(connection)
            change, held = services.listings.changes.get(connection.key, ToolsChange()), services.approvals.held
            catalog, name = servers.view_with(connection.key).catalog, servers.plain_name(connection.key)
            told = {"added": list(change.added), "gone": list(change.gone), "back": list(change.back)}
            return {**told, "waiting": list(catalog.switched_on(name, held(connection.key)))}

        with services.writer.one_write():
            outcome = await self._run_for_each(params, one, {"added": [], "gone": [], "back": [], "waiting": []})
        await self._gateway.intake.read_words_now()
        await services.writer.written()
        return outcome

    async def _reconnect(self, params: dict[str, Any]) -> Any:
        """Reconnect the named server, or all except idle ones, which connect with their next call.

        Also close all further connections of these servers. Return what `_run_for_each` does.
        """
        pool, shared_key = self._gateway.services.pool, self._gateway.services.shared_key

        async def one(connection: Connection) -> dict[str, Any]:
            for further in [c for c in pool if c is not connection and shared_key(c.key) == connection.key]:
                await further.close()  # the next call of its session starts it again
            await pool.reconnect(connection)
            return {"state": connection.state.value}

        return await self._run_for_each(params, one, {}, asleep=False)

    async def _run_for_each(
        self,
        params: dict[str, Any],
        work: Callable[[Connection], Awaitable[dict[str, Any]]],
        nothing: dict[str, Any],
        *,
        asleep: bool = True,
    ) -> dict[str, Any]:
        """Run `work` for the named server, or for all enabled ones, AT_ONCE at a time.

        Return `{"servers": {NAME: {"state", "error", ...}}}`. `nothing`: the other members of a server's row if `work`
        failed. `asleep`: include those for which `sleeps` is True. Raises ServerNotFoundError, RpcError.
        """
        pool, results, at_once = self._gateway.services.pool, dict[str, Any](), anyio.CapacityLimiter(AT_ONCE)

        async def one(connection: Connection) -> None:
            try:
                async with at_once:
                    outcome = {**await work(connection), "error": None}
            except MultiMcpError as error:
                outcome = {**nothing, "error": error_json(error)}
            except Exception as error:  # the boundary: one server's failure must not affect the others
                log.exception("Unexpected error in %s", connection.name)
                unknown = ServerError(connection.name, f"Cannot use {connection.name}: {type(error).__name__}")
                outcome = {**nothing, "error": error_json(unknown)}
            results[connection.key] = {"state": connection.state.value, **outcome}

        if params.get("server") is not None:
            chosen = [pool.find(text_of(params, "server"))]
        else:
            shared = [c for c in pool if not self._gateway.servers.own.is_own(c.key)]
            chosen = [c for c in shared if c.state is not State.DISABLED and (asleep or not sleeps(c))]
        async with anyio.create_task_group() as tasks:
            for connection in chosen:
                tasks.start_soon(one, connection)
        return {"servers": {c.key: results[c.key] for c in chosen}}

    async def _reload_file(self, params: dict[str, Any]) -> Any:
        await self._reload()
        return {"problems": [problem_json(problem) for problem in self._gateway.problems]}

    async def _settle(self, params: dict[str, Any]) -> Any:
        await self._gateway.services.pool.settled()
        await self._gateway.intake.read_words_now()
        await self._gateway.services.writer.written()
        return {}

    async def _stop(self, params: dict[str, Any]) -> Any:
        asyncio.get_running_loop().call_soon(self._gateway.stop_wanted.set)  # once the answer is sent
        return {}
