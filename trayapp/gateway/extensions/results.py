"""Make the addresses and handles in a server's results identify that server.

A server that keeps its tasks in memory may count them from 1 in each of its processes. So the server's own id alone
does not identify a task. A session may use several processes of one server, and a later process may use the id again.

A handle has the form multi-mcp://NAME%00CHECKSUM/ID: the server's name, a checksum of the task's creation time (if the
server reports it), and the server's id. A number follows the checksum if another task would have the same handle.
"""

from __future__ import annotations

import re
from binascii import crc32
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.catalog.resources import SCHEME, linked_result, prefixed, split_prefixed
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.wire.capabilities import RELATED_TASK, TASKS, announces
from trayapp.wire.messages import Reply

ENDED = frozenset({"completed", "failed", "cancelled"})  # states of a task that has ended
TASK_MOST_S = 24 * 3600.0  # a task counts as in progress for at most this long after its last report
HANDLES_MOST = 10_000  # tasks of one session
_HANDLE = re.compile(rf"({SCHEME}[^/]*?)%00([0-9a-f]*)(?:-[0-9]+)?(/.+)", re.DOTALL)  # no name contains NUL


class KnownTask(NamedTuple):
    """A task of a session: the connection on which it was last reported, and its id at the server.

    `live`: the connection's live state at that time.
    """

    connection: Connection
    live: Live | None
    own: str


class TaskHandles:
    """Tasks of one session by their handles, oldest first."""

    def __init__(self) -> None:
        self._known: dict[str, KnownTask] = {}
        self._handles: dict[tuple[Any, str], str] = {}  # (channel to the task's process, its id there) -> handle

    def get(self, handle: str) -> KnownTask | None:
        """Return the task with that handle, or None if this gateway has not yet reported it to the session."""
        return self._known.get(handle)

    def note(self, handle: str, connection: Connection, own: str) -> None:
        """Record the connection of a task, and its id at the server."""
        if handle not in self._known and len(self._known) >= HANDLES_MOST:
            oldest = self._known.pop(next(iter(self._known)))
            self._handles.pop((oldest.live and oldest.live.channel, oldest.own), None)
        self._known[handle] = KnownTask(connection, connection.live, own)
        self._handles[connection.live and connection.live.channel, own] = handle

    def give(self, server: str, connection: Connection, task: dict[str, Any]) -> str:
        """Return the handle of a task that a server has reported to the session, and record the task."""
        handle = self.find(server, connection, task)
        if handle is None:
            handle = next(found for n in count(1) if (found := handle_of(server, task, n)) not in self._known)
        self.note(handle, connection, task["taskId"])
        connection.note_task(handle, left_s(task))
        return handle

    def find(self, server: str, connection: Connection, task: dict[str, Any]) -> str | None:
        """Return the handle of a task that a server reports, or None if the session does not have that task."""
        handle = self._handles.get((connection.live and connection.live.channel, task["taskId"]))
        if handle is None and tag_of(task):
            known = self._known.get(handle_of(server, task))
            if known is not None and known.connection is connection:  # the server kept the task through its restart
                return handle_of(server, task)
        return handle

    def of_server(self, server: str) -> dict[str, KnownTask]:
        """Return the tasks of one server by their handles."""
        return {handle: known for handle, known in self._known.items() if is_of(handle, server)}


def task_of(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the task in an answer to tools/call, or None if it contains none.

    In SEP-2663, the task is the answer itself. In MCP 2025-11-25, it is a member of the answer.
    """
    for found in (result, result.get("task")):
        if isinstance(found, dict) and isinstance(found.get("taskId"), str) and isinstance(found.get("status"), str):
            return found if "content" not in found else None
    return None


def tag_of(task: dict[str, Any]) -> str:
    """Return the checksum of a task's creation time, for its handle, or "" if its server does not report the time."""
    created = task.get("createdAt")
    return f"{crc32(created.encode('utf-8', 'surrogatepass')):08x}" if isinstance(created, str) else ""


def handle_of(server: str, task: dict[str, Any], number: int = 1) -> str:
    """Return the handle of a task. `number`: above 1 if earlier tasks have the same id and creation time."""
    tag = tag_of(task) + (f"-{number}" if number > 1 else "")
    return prefixed(f"{server}\0{tag}" if tag else server, task["taskId"])


def split_handle(handle: str) -> tuple[tuple[str, str] | None, str]:
    """Return ((server, task id at the server), checksum). The pair is None if the gateway did not make the handle."""
    found = _HANDLE.fullmatch(handle)
    return (split_prefixed(found[1] + found[3]), found[2]) if found is not None else (split_prefixed(handle), "")


def is_of(handle: str, server: str) -> bool:
    """Return True if the handle belongs to a task of the server."""
    place = split_handle(handle)[0]
    return place is not None and place[0] == server


class ServerResult:
    """A finish that makes the addresses and task ids in one server's results usable for clients.

    Most results are not parsed.
    """

    __slots__ = ("_handles", "_renames", "_seen", "_server", "tasks")

    def __init__(
        self, seen: Exposure, server: str, renames: bool, tasks: bool, handles: tuple[TaskHandles, Connection] | None
    ) -> None:
        self._seen, self._server = seen, server
        self._renames, self.tasks = renames, tasks
        self._handles = handles

    def noting(self, handles: TaskHandles, connection: Connection) -> ServerResult:
        """Return this finish for one session and connection. `handles` records each task in the results."""
        if not self.tasks:
            return self
        return ServerResult(self._seen, self._server, self._renames, True, (handles, connection))

    def __call__(self, reply: Reply) -> Reply:
        """Return the answer with addresses and task ids that identify the server. Raises JsonError."""
        if reply.frame and not self._renames and b'"taskId"' not in reply.frame:
            return reply
        result = reply.message.get("result")
        if not isinstance(result, dict):
            return reply
        changed = self.changed(result)
        return reply if changed is result else Reply.of_result(changed)

    def changed(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with addresses and task ids that identify the server, or the same object without any."""
        uris = self._seen.catalog.uris
        found = linked_result(result, partial(uris.exposed_link, self._server)) if self._renames else result
        if self.tasks:
            found = self.task(found)
            if isinstance(task := found.get("task"), dict) and (named := self.task(task)) is not task:
                found = {**found, "task": named}
            meta = found.get("_meta")
            related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
            if isinstance(related, dict) and isinstance(own := related.get("taskId"), str):
                handle = self._handle({"taskId": own, "status": "completed"})  # only an ended task has a result
                found = {**found, "_meta": {**found["_meta"], RELATED_TASK: {**related, "taskId": handle}}}
        inside = found.get("result")  # the result of a completed task
        if isinstance(inside, dict) and "taskId" in found and (changed := self.changed(inside)) is not inside:
            found = {**found, "result": changed}
        return found

    def task(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return a task with a handle that identifies its server. Return any other object unchanged."""
        if "status" not in task or not isinstance(task.get("taskId"), str):
            return task
        return {**task, "taskId": self._handle(task)}

    def _handle(self, task: dict[str, Any]) -> str:
        if self._handles is None:
            return handle_of(self._server, task)
        handles, connection = self._handles
        return handles.give(self._server, connection, task)


def left_s(task: dict[str, Any]) -> float:
    """Return for how many seconds a task may still be in progress, at most TASK_MOST_S, or 0 if it has ended."""
    if task.get("status") in ENDED:
        return 0
    ttl = task.get("ttlMs", task.get("ttl"))
    if not isinstance(ttl, int | float) or isinstance(ttl, bool):
        return TASK_MOST_S
    return min(ttl / 1000, TASK_MOST_S)


def finish_of(seen: Exposure, server: str) -> ServerResult | None:
    """Return the finish that adapts a server's results for clients, or None if they pass unchanged."""
    renames = server in seen.catalog.uris.renamed
    tasks = announces(seen.capabilities.get(server), TASKS)
    return ServerResult(seen, server, renames, tasks, None) if renames or tasks else None


def chained(first: Finishing | None, second: Finishing | None) -> Finishing | None:
    """Return a finish that applies both in order, or None if both are None."""
    if first is None or second is None:
        return first or second

    def finish(reply: Reply) -> Reply | None:
        between = first(reply)
        return second(between) if between is not None else None

    return finish
