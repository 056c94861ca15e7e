"""Make a call of the command line, which cannot have tasks: a tool that runs as a task alone is waited for."""

from __future__ import annotations

import asyncio
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.gateway.calls.routed_call import IgnoredCall
from trayapp.gateway.extensions.bridge import ENDED, MISSING_CAPABILITY, demands_tasks, pause_s, task_of
from trayapp.wire.capabilities import TASKS, announces
from trayapp.wire.messages import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError

ABLE: dict[str, Any] = {"extensions": {TASKS: {}}}


async def completed_request(connection: Connection, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, of its task where the server demands one. Raises ServerError, RpcError."""
    try:
        return await connection.request(method, params)
    except RpcError as error:
        if method != "tools/call" or not _demands_task(connection, error):
            raise
    live = await connection.ensure()
    connection.in_flight += 1  # nobody may close it as idle
    name: Any = None
    try:
        wanted = params if live.peer.modern else {**params, "task": {}}
        result = await live.channel.send_raw_request(method, live.peer.stamped(wanted, ABLE))
        task = task_of(result)
        if task is None:
            return result
        name = task["taskId"]
        about = live.peer.stamped({"taskId": name}, ABLE)
        if not live.peer.modern:
            return await live.channel.send_raw_request("tasks/result", about)
        while True:
            await asyncio.sleep(pause_s(task))
            task = await live.channel.send_raw_request("tasks/get", about)
            if task.get("status") in ENDED or "inputRequests" in task:
                return _result(connection, task)
    except asyncio.CancelledError:
        if name is not None:
            live.transport.channel.relay("tasks/cancel", live.peer.stamped({"taskId": name}, ABLE), IgnoredCall())
        raise
    finally:
        connection.in_flight -= 1


def _demands_task(connection: Connection, error: RpcError) -> bool:
    """True if the server refused a call, unexecuted, since it came without a task."""
    live = connection.live
    if live is None or live.peer.modern:
        return demands_tasks({"code": error.code, "data": error.data})
    return error.code == METHOD_NOT_FOUND and announces(live.peer.capabilities, TASKS)


def _result(connection: Connection, task: dict[str, Any]) -> dict[str, Any]:
    result, error = task.get("result"), task.get("error")
    if isinstance(result, dict):
        return result
    if isinstance(error, dict):
        raise RpcError(error.get("code", INTERNAL_ERROR), str(error.get("message", "")), error.get("data"))
    if task.get("status") == "cancelled":
        raise RpcError(INTERNAL_ERROR, f"{connection.name} cancelled the call")
    raise RpcError(MISSING_CAPABILITY, "The tool asks for input, which a command cannot give")
