"""Make the addresses and handles in a server's results lead back to that server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.catalog.links import linked_result
from trayapp.catalog.resources import prefixed
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.wire.capabilities import RELATED_TASK, TASKS, announces
from trayapp.wire.messages import Reply

ENDED = frozenset({"completed", "failed", "cancelled"})  # states of tasks
TASK_MOST_S = 24 * 3600.0  # of which nothing is heard
HANDLES_MOST = 10_000  # tasks of one session that notifications report on


class ServerResult:
    """Results of one server in the form that its clients can use. Most pass unread: few servers need changes."""

    __slots__ = ("_note", "_renames", "_seen", "_server", "tasks")

    def __init__(
        self,
        seen: Exposure,
        server: str,
        *,
        renames: bool,
        tasks: bool,
        note: Callable[[dict[str, Any]], None] = lambda task: None,
    ) -> None:
        self._seen = seen
        self._server = server
        self._renames = renames
        self.tasks = tasks
        self._note = note

    def noting(self, handles: dict[str, Connection], connection: Connection) -> ServerResult:
        """Return the same for one session. `handles` records the connection of each task that the session has seen."""
        if not self.tasks:
            return self

        def note(task: dict[str, Any]) -> None:
            connection.note_task(task["taskId"], left_s(task))
            while len(handles) >= HANDLES_MOST:
                del handles[next(iter(handles))]
            handles[prefixed(self._server, task["taskId"])] = connection

        return ServerResult(self._seen, self._server, renames=self._renames, tasks=True, note=note)

    def __call__(self, reply: Reply) -> Reply:
        """Return the answer with addresses and task ids that lead back to the server. Raises JsonError if it cannot be
        read.
        """
        if reply.frame and not self._renames and b'"taskId"' not in reply.frame:
            return reply
        result = reply.message.get("result")
        if not isinstance(result, dict):
            return reply
        changed = self.changed(result)
        return reply if changed is result else Reply.of_result(changed)

    def changed(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result in the form that clients can use; the same object if nothing has to change."""
        uris = self._seen.catalog.uris
        found = linked_result(result, partial(uris.exposed_link, self._server)) if self._renames else result
        if self.tasks:
            found = self.task(found)
            if isinstance(task := found.get("task"), dict) and (own := self.task(task)) is not task:
                found = {**found, "task": own}
            meta = found.get("_meta")
            related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
            if isinstance(related, dict) and isinstance(own_id := related.get("taskId"), str):
                self._note({"taskId": own_id, "status": "completed"})  # only an ended task has a result
                related = {**related, "taskId": prefixed(self._server, own_id)}
                found = {**found, "_meta": {**found["_meta"], RELATED_TASK: related}}
        inside = found.get("result")  # the result of a completed task
        if isinstance(inside, dict) and "taskId" in found and (own := self.changed(inside)) is not inside:
            found = {**found, "result": own}
        return found

    def task(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return a task with the handle that leads back to its server; any other object as it is."""
        own = task.get("taskId") if "status" in task else None
        if not isinstance(own, str):
            return task
        self._note(task)
        return {**task, "taskId": prefixed(self._server, own)}


def left_s(task: dict[str, Any]) -> float:
    """Return the seconds for which a task may still be in progress, 0 if it has ended."""
    if task.get("status") in ENDED:
        return 0
    ttl = task.get("ttlMs", task.get("ttl"))
    if not isinstance(ttl, int | float) or isinstance(ttl, bool):
        return TASK_MOST_S
    return min(ttl / 1000, TASK_MOST_S)


def finish_of(seen: Exposure, server: str) -> ServerResult | None:
    """Return the finish that adapts a server's results for clients; None if they pass unchanged."""
    renames = seen.catalog.uris.renames(server)
    tasks = announces(seen.capabilities.get(server), TASKS)
    return ServerResult(seen, server, renames=renames, tasks=tasks) if renames or tasks else None


def chained(first: Finishing | None, second: Finishing | None) -> Finishing | None:
    """Return a finish that applies both, in this order."""
    if first is None or second is None:
        return first or second

    def finish(reply: Reply) -> Reply | None:
        between = first(reply)
        return second(between) if between is not None else None

    return finish
