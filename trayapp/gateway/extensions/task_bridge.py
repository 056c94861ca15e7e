"""Run a task for a call that did not request one: wait for the task, and answer the call with its result.

The client sees a plain call, with progress while the task works and questions while it waits for input. Cancelling the
call cancels the task.
"""

from __future__ import annotations

import asyncio
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.gateway.calls.consent import AskingSession
from trayapp.gateway.calls.routed_call import Finishing, IgnoredCall, RoutedCall
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.extensions.results import ENDED, tag_of, task_of
from trayapp.wire.capabilities import TASKS, announces, declares, unite_members
from trayapp.wire.frames import PendingCall
from trayapp.wire.messages import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    Reply,
    Request,
    RpcError,
    progress_token,
)

POLL_MS, POLL_LEAST_MS, POLL_MOST_MS = 1_000, 20, 60_000  # time between polls: default, and limits of a server's choice

WITH_TASKS: dict[str, Any] = {"extensions": {TASKS: {}}}
NEEDS_TASKS: dict[str, Any] = {"requiredCapabilities": WITH_TASKS}


def needs_bridge(session: AskingSession, request: Request) -> bool:
    """Return True if a call must be answered without a task, because its client does not support or request one."""
    if session.client.modern:
        return not declares(session.client.capabilities, TASKS)
    return "task" not in (request.params or {})  # MCP 2025-11-25: the client states this in each call


def as_task(seen: Exposure, server: str, request: Request, connection: Connection) -> Request:
    """Return the call, changed to run as a task if an older server's tool requires that (`taskSupport: required`).

    Any other call is returned unchanged.
    """
    params, live = request.params or {}, connection.live
    tool = seen.catalog.offers[server].tools.get(str(params.get("name")))
    execution = tool.item.get("execution") if tool is not None else None
    required = isinstance(execution, dict) and execution.get("taskSupport") == "required"
    if not required or live is None or live.peer.modern or "task" in params:
        return request
    return request.with_params({**params, "task": {}})


class TaskBridge:
    """The finish of one call that its server may answer with a task.

    `finish`: builds the client's answer from the result. `always`: if the server demands tasks, use them also for a
    client of 2026-07-28 that has not declared support for them.
    """

    def __init__(
        self, session: AskingSession, request: Request, connection: Connection, finish: Finishing, *, always: bool
    ) -> None:
        self._session, self._request, self._connection = session, request, connection
        self._finish = finish
        self._may_have_tasks = always or not session.client.modern
        self._asked: set[str] = set()  # keys of the questions that the client got

    def __call__(self, reply: Reply) -> Reply | None:
        """Return the client's answer. Return None if it is sent later, after a task ends or the call is repeated."""
        if reply.is_large:
            return self._finish(reply)
        result, error = reply.message.get("result"), reply.message.get("error")
        if isinstance(result, dict) and (task := task_of(result)) is not None:
            self._session.start(self._request.id, lambda: self._carry(task, older=task is not result))
        elif isinstance(error, dict) and self._may_have_tasks and demands_tasks(error):
            self._may_have_tasks = False
            self._session.start(self._request.id, self._call_again)
        else:
            return self._finish(reply)
        return None

    async def _call_again(self) -> None:
        """Repeat the call as a client that supports tasks. The server refused the first attempt without running it."""
        if (answer := self(await self._ask(self._request.method, dict(self._request.params or {})))) is not None:
            self._session.peer.respond(self._request.id, answer)

    # -- the task ------------------------------------------------------------------------------------------------

    async def _carry(self, task: dict[str, Any], *, older: bool) -> None:
        """Wait until a task ends, and answer the call with its result. Cancel the task if the call is cancelled."""
        name, tag, step, token = task["taskId"], tag_of(task), 0, progress_token(self._request.params)
        with self._connection.held():
            try:
                while True:
                    step += 1
                    if token is not None:
                        said = {"message": task["statusMessage"]} if isinstance(task.get("statusMessage"), str) else {}
                        progress = {"progressToken": token, "progress": step, **said}
                        self._session.peer.send_notification("notifications/progress", progress, self._request.id)
                    if older and task.get("status") in ENDED | {"input_required"}:
                        # Questions arrive while the task's result is requested (MCP 2025-11-25, tasks). The request has
                        # the call's own id, so they belong to the call.
                        request = Request(self._request.id, "tasks/result", {"taskId": name})
                        _TaskResultCall(self._session, request.id, request, self._connection, self._finish).send(0)
                        return
                    if task.get("status") in ENDED and step > 1:  # the first reply creates the task and has no result
                        more = {"resultType": "complete"} if self._session.client.modern else {}
                        reply = self._finish(Reply.of_result({**more, **_task_result(self._connection, task)}))
                        if reply is not None:
                            self._session.peer.respond(self._request.id, reply)
                        return
                    if isinstance(questions := task.get("inputRequests"), dict):
                        await self._answer_questions(name, questions)
                    await asyncio.sleep(pause_s(task) if task.get("status") not in ENDED else 0)
                    task = (await self._ask("tasks/get", {"taskId": name})).result()
                    if tag_of(task) != tag:  # the server has restarted, and has another task with that id
                        raise RpcError(INTERNAL_ERROR, f"{self._connection.name} has lost the task of the call")
            except asyncio.CancelledError:
                _cancel_task(self._connection.live, name)
                raise

    async def _answer_questions(self, name: str, questions: dict[str, Any]) -> None:
        session, left = self._session, {key: asked for key, asked in questions.items() if key not in self._asked}
        if not left:
            return
        self._asked |= left.keys()
        if session.client.modern:
            what = "The tool asks for input, which only a client with tasks can give"
            raise RpcError(MISSING_CAPABILITY, what, NEEDS_TASKS)
        question, key = {"inputRequests": left}, self._connection.key
        again = await session.questioner.answers(session, self._request.id, question, key)
        (await self._ask("tasks/update", {"taskId": name, **again})).result()

    async def _ask(self, method: str, params: dict[str, Any]) -> Reply:
        """Send the server a request as a client that supports tasks, and return the answer."""
        live, call = await self._connection.ensure(), PendingCall()
        capabilities = unite_members((self._session.client.capabilities, WITH_TASKS))
        number = live.channel.relay(method, live.peer.stamped(params, capabilities), call)
        try:
            return await call.future
        except asyncio.CancelledError:
            live.channel.cancel(number, "The task's client is gone")
            raise


class _TaskResultCall(RoutedCall):
    """A request for the result of an older server's task. It replaces the call that created the task."""

    def cancel(self, reason: str) -> None:
        """Cancel the request and its task."""
        super().cancel(reason)
        _cancel_task(self.connection.live, self.request.params["taskId"])


def _cancel_task(live: Live | None, task_id: str) -> None:
    if live is not None:
        live.channel.relay("tasks/cancel", live.peer.stamped({"taskId": task_id}, WITH_TASKS), IgnoredCall())


def demands_tasks(error: dict[str, Any]) -> bool:
    """Return True if this error of a server of 2026-07-28 refuses a call because its client does not support tasks."""
    data = error.get("data")
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return error.get("code") == MISSING_CAPABILITY and isinstance(required, dict) and declares(required, TASKS)


def pause_s(task: dict[str, Any]) -> float:
    """Return the seconds until a task's next poll: the interval that the server proposes, within limits, or POLL_MS."""
    wanted = task.get("pollIntervalMs", task.get("pollInterval"))
    known = wanted if isinstance(wanted, int | float) and not isinstance(wanted, bool) else POLL_MS
    return min(max(known, POLL_LEAST_MS), POLL_MOST_MS) / 1000


async def completed_request(connection: Connection, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request and return its result. If the server demands that a call runs as a task, return the task's result.

    Raises ServerError, RpcError.
    """
    try:
        return await connection.request(method, params)
    except RpcError as error:
        live = connection.live
        if live is None or live.peer.modern:
            demanded = demands_tasks({"code": error.code, "data": error.data})
        else:
            demanded = error.code == METHOD_NOT_FOUND and announces(live.peer.capabilities, TASKS)
        if method != "tools/call" or not demanded:
            raise
    live = await connection.ensure()
    with connection.held():
        name: Any = None
        try:
            wanted = params if live.peer.modern else {**params, "task": {}}
            result = await live.channel.send_raw_request(method, live.peer.stamped(wanted, WITH_TASKS))
            if (task := task_of(result)) is None:
                return result
            name = task["taskId"]
            about = live.peer.stamped({"taskId": name}, WITH_TASKS)
            if not live.peer.modern:
                return await live.channel.send_raw_request("tasks/result", about)
            while True:
                await asyncio.sleep(pause_s(task))
                task = await live.channel.send_raw_request("tasks/get", about)
                if task.get("status") in ENDED or "inputRequests" in task:
                    return _task_result(connection, task)
        except asyncio.CancelledError:
            if name is not None:
                _cancel_task(live, name)
            raise


def _task_result(connection: Connection, task: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a task. Raises RpcError if the task failed, was cancelled, or asks for input."""
    result, error = task.get("result"), task.get("error")
    if isinstance(result, dict):
        return result
    if isinstance(error, dict):
        raise RpcError.received(error)
    if task.get("status") in ENDED:
        ended = "cancelled the call" if task["status"] == "cancelled" else "ended the task without a result"
        raise RpcError(INTERNAL_ERROR, f"{connection.name} {ended}")
    raise RpcError(MISSING_CAPABILITY, "The tool asks for input, which a command cannot give")
