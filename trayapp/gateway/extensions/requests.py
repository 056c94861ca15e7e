"""Answer the requests of one session that belong to extensions or have unknown methods."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.extensions.results import ServerResult, chained, finish_of, split_handle, tag_of
from trayapp.gateway.extensions.routing import (
    LISTED,
    TASKS_LIST,
    Destination,
    destination,
    require,
    servers_with,
    task_place,
    unmet_server,
)
from trayapp.gateway.extensions.streams import ExtensionSession, StreamingCall, Streams, TaskListening
from trayapp.gateway.extensions.task_bridge import NEEDS_TASKS, TaskBridge, as_task, needs_bridge
from trayapp.gateway.tasks import Spawn
from trayapp.inspection.finding import is_held
from trayapp.inspection.inspect import find_concealed
from trayapp.inspection.text import texts_of
from trayapp.model.config import Settings
from trayapp.model.errors import MultiMcpError, ServerError
from trayapp.wire.capabilities import SKILLS, TASKS, declares
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import INVALID_PARAMS, MISSING_CAPABILITY, Reply, Request, RequestId, RpcError

REFRESH_S = 5.0  # a list waits at most this long for a server's answer, and otherwise contains the known items
PAGES_MOST = 100  # pages of tasks/list that are read from one server
CHANGED = "The file differs from the one that its skill lists: it is held back until the user approves it"
GONE = "Task not found: the server process that ran it has ended"
HIDES = "The skill is held back: it contains text that people cannot see. Tell the user"

Listen = Callable[[dict[str, Any]], Awaitable[None]]  # takes the accepted subscriptions that belong to extensions


class ExtensionSender(Protocol):
    """The sender of one session's requests to servers."""

    @property
    def session(self) -> ExtensionSession:
        """Return the session that the requests belong to."""

    def send_on(
        self,
        request: Request,
        connection: Connection,
        finish: Finishing | None = None,
        *,
        through_tool: bool = False,
    ) -> None:
        """Send a request to a connected server. `finish` makes the client's answer from the server's answer.

        `through_tool`: the client sent it through the tool `mcp`.
        """


class ExtensionRequests:
    """Answers to one session's requests that belong to an extension or have an unknown method."""

    def __init__(self, sending: ExtensionSender, streams: Streams, spawn: Spawn) -> None:
        self._sending = sending
        self._spawn = spawn
        self._session = sending.session
        self._streams = streams

    async def answer(self, request: Request) -> None:
        """Answer the request, or pass it on to a server. Raises RpcError or MultiMcpError if no server can answer.

        First wait until the server that the request names has listed its tools. If it names none, wait until all
        servers have answered or the delay of first lists is over.
        """
        seen, modern = self._session.seen, self._session.client.modern
        if (unmet := unmet_server(seen, request)) is not None:
            await seen.meet(unmet)
        elif seen.view.first_list_delay.may_grow:
            await seen.view.first_list_delay.settled()
        seen = self._session.seen  # the session may have another view now
        if request.method in LISTED:
            require(seen, LISTED[request.method], request.method)
            await self._list(request)
        elif request.method == TASKS_LIST and not modern:
            require(seen, TASKS, request.method)
            await self._list_tasks(request)
        else:
            await self._send(request, destination(seen, request, modern=modern))

    async def _send(self, request: Request, to: Destination) -> None:
        if "taskId" in to.params:
            await self._send_of_task(request, to)
            return
        connection = await self._session.connected(request.id, to.server)
        if request.method == "events/stream":
            own = request.with_params(to.params)
            StreamingCall(self._session, own, connection, str((request.params or {}).get("name"))).send(0)
            return
        finish = to.finish
        if request.method == "skills/get":
            # The skill may have changed. Read the lists again, so that a changed skill is held back in time.
            await self._refresh(to.server)
            to = destination(self._session.seen, request, modern=self._session.client.modern)
            finish = chained(partial(inspected_skill, self._session.seen.view.config.settings), to.finish)
        self._sending.send_on(request.with_params(to.params), connection, finish)

    async def _send_of_task(self, request: Request, to: Destination) -> None:
        """Send a request to the process that has its task. Raises RpcError if another task now has the same id."""
        session, handles = self._session, self._session.task_handles
        handle = str((request.params or {}).get("taskId"))
        known, tag = handles.get(handle), split_handle(handle)[1]
        own = known.own if known is not None else str(to.params["taskId"])
        if known is not None and known.connection.is_up:
            connection = known.connection  # a task in memory exists only in the process that created it
        else:
            connection = await session.connected(request.id, to.server)
        is_certain = not tag or handle in connection.tasks or (known is not None and known.live is connection.live)
        if not is_certain and request.method != "tasks/get":
            live = await connection.ensure()
            about = live.peer.stamped({"taskId": own}, session.client.capabilities)
            with connection.held():
                found = await live.channel.send_raw_request("tasks/get", about)
            if tag_of(found) != tag:
                raise RpcError(INVALID_PARAMS, GONE)
            is_certain = True
        if is_certain:
            handles.note(handle, connection, own)
        if request.method == "tasks/cancel":
            connection.note_task(handle, 0)

        def same_task(reply: Reply) -> Reply:
            result = reply.message.get("result")
            if isinstance(result, dict) and tag_of(result) != tag:
                return Reply.of_error(RpcError(INVALID_PARAMS, GONE))
            handles.note(handle, connection, own)
            return reply

        finish = to.finish.noting(handles, connection) if isinstance(to.finish, ServerResult) else to.finish
        finish = finish if is_certain else chained(same_task, finish)
        self._sending.send_on(request.with_params({**to.params, "taskId": own}), connection, finish)

    def eyes(self, server: str, request: Request, connection: Connection) -> Finishing | None:
        """Return the finish that inspects a skill's file before the client gets it, or None for other resources."""
        seen = self._session.seen
        files, uri = seen.exposure.catalog.skill_files, str((request.params or {}).get("uri"))
        if (server, uri) not in files:
            return None
        changed = partial(self._spawn, self._fetch, connection)
        return partial(inspected_file, uri, files[server, uri], seen.view.config.settings, changed)

    async def listen(self, request_id: RequestId, handles: list[str], listen: Listen) -> None:
        """Serve a subscriptions/listen that names tasks. `listen` serves its other subscriptions.

        Raises RpcError if the client does not support tasks.
        """
        session = self._session
        if not declares(session.client.capabilities, TASKS):
            raise RpcError(MISSING_CAPABILITY, "Missing required client capability", NEEDS_TASKS)
        places = dict[str, tuple[str, str]]()
        for handle in handles:
            with suppress(RpcError):  # unknown tasks are neither reported on nor acknowledged
                places[handle] = task_place(session.seen, handle)
        async with AsyncExitStack() as stack:
            honored = list[str]()
            for server in dict.fromkeys(server for server, _ in places.values()):
                own = [task for of, task in places.values() if of == server]
                if await self._listen_at(stack, request_id, server, own):
                    honored += [handle for handle, place in places.items() if place[0] == server]
            await listen({"taskIds": honored} if honored else {})

    async def _listen_at(self, stack: AsyncExitStack, request_id: RequestId, server: str, tasks: list[str]) -> bool:
        """Ask a server to report on tasks until the client stops listening. Return False if the server refuses, cannot
        be reached, or is of the older era. No answer within REFRESH_S counts as consent.
        """
        session = self._session
        try:
            connection = await session.connected(request_id, server)
        except ServerError:
            return False
        live, result = connection.live, finish_of(session.seen.exposure, server)
        if live is None or result is None or not live.peer.modern:
            return False
        listening = TaskListening(session, request_id, result.noting(session.task_handles, connection))
        params = live.peer.stamped({"notifications": {"taskIds": tasks}}, session.client.capabilities)
        number = live.channel.relay("subscriptions/listen", params, listening)
        self._streams.add(live, number, listening)
        stack.callback(self._streams.drop, live, number)
        with anyio.move_on_after(REFRESH_S):
            await listening.settled.wait()
        return listening.error is None

    def send(
        self, server: str, request: Request, connection: Connection, result: ServerResult, fit: Finishing | None
    ) -> None:
        """Send a tool call to a connected server that supports tasks.

        `result`: adapts the server's results. `fit`: adapts the answer of a call through the tool `mcp`, or None for
        any other call.
        """
        session = self._session
        finish = chained(result.noting(session.task_handles, connection), fit) or result
        if needs_bridge(session, request):
            request = as_task(session.seen.exposure, server, request, connection)
            finish = TaskBridge(session, request, connection, finish, always=fit is not None)
        self._sending.send_on(request, connection, finish, through_tool=fit is not None)

    # -- lists ---------------------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> None:
        """Answer with the items of all servers. Skills are read again first, because they change without notice."""
        session = self._session
        if LISTED[request.method] == SKILLS:
            async with anyio.create_task_group() as tasks:
                for server in servers_with(session.seen.exposure, SKILLS):
                    tasks.start_soon(self._refresh, server)
        session.send_cacheable(request.id, session.seen.results.result(request.method.partition("/")[0]))

    async def _refresh(self, server: str) -> None:
        with anyio.move_on_after(REFRESH_S):
            await self._fetch(self._session.present(server))

    @staticmethod
    async def _fetch(connection: Connection) -> None:
        with suppress(ServerError):  # if the server fails, its known items are used
            if connection.is_up:
                await connection.fetch(soon=True)

    async def _list_tasks(self, request: Request) -> None:
        """Answer tasks/list of MCP 2025-11-25 with the tasks whose handles the session has received.

        Sessions share a server, and the server cannot distinguish their tasks.
        """
        session, handles, found = self._session, self._session.task_handles, list[dict[str, Any]]()
        for server, capabilities in session.seen.exposure.capabilities.items():
            able = capabilities.get("tasks")
            if isinstance(able, dict) and "list" in able:
                now, known = session.present(server), handles.of_server(server).values()
                for connection in dict.fromkeys(one.connection if one.connection.is_up else now for one in known):
                    with suppress(MultiMcpError, RpcError):  # a failed server must not hide the tasks of the others
                        async for task in _tasks_of(connection):
                            if (handle := handles.find(server, connection, task)) is not None:
                                found.append({**task, "taskId": handle})
        session.send_cacheable(request.id, dumps({"tasks": found}))


async def _tasks_of(connection: Connection) -> AsyncIterator[dict[str, Any]]:
    """Yield a server's tasks, page by page, or none if the connection is down. Raises MultiMcpError, RpcError."""
    params: dict[str, Any] = {}
    for _ in range(PAGES_MOST if connection.is_up else 0):
        page = await connection.request("tasks/list", params)
        tasks = page.get("tasks")
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict) and isinstance(task.get("taskId"), str):
                yield task
        if not isinstance(cursor := page.get("nextCursor"), str):
            break
        params = {"cursor": cursor}


def inspected_file(
    uri: str, digest: str | None, settings: Settings, changed: Callable[[], None], reply: Reply
) -> Reply:
    """Return a server's answer to a request for a skill's file, or an error if the file is held back.

    A skill's files are not read in advance (SEP-2640, lazy retrieval), so each is inspected when a client reads it.
    `digest`: the file's digest in the skill's entry, or None. If the file differs, call `changed`, which reads the
    entry again.
    """
    result = reply.message.get("result")
    contents = result.get("contents") if isinstance(result, dict) else None
    for content in contents if isinstance(contents, list) else ():
        if not isinstance(content, dict) or content.get("uri") != uri:
            continue
        text, data = content.get("text"), b""
        if isinstance(text, str):
            data = text.encode("utf-8", "surrogatepass")
        else:
            with suppress(binascii.Error, ValueError):
                data = base64.b64decode(str(content.get("blob", "")), validate=True)
        judged = digest is not None and settings.approve_changes == "ask"
        if judged and f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            changed()
            return Reply.of_error(RpcError(INVALID_PARAMS, CHANGED, {"uri": uri}))
        if settings.suspicious != "off" and isinstance(text, str) and is_held(find_concealed([(uri, text)])):
            return Reply.of_error(RpcError(INVALID_PARAMS, HIDES, {"uri": uri}))
    return reply


def inspected_skill(settings: Settings, reply: Reply) -> Reply:
    """Return a server's answer to skills/get, or an error if the skill has hidden content.

    Skills in lists are inspected there, too. A skill that is in no list is inspected only here.
    """
    result = reply.message.get("result")
    skill = result.get("skill") if isinstance(result, dict) else None
    if settings.suspicious == "off" or not isinstance(skill, dict):
        return reply
    held = is_held(find_concealed(texts_of({"annotations": skill.get("frontmatter")})))
    return Reply.of_error(RpcError(INVALID_PARAMS, HIDES)) if held else reply
