"""Announce servers' capabilities if requests for them can be routed. Route requests outside the core protocol.

A request outside the core protocol belongs to an extension, or has an unknown method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from trayapp.catalog.resources import split_prefixed
from trayapp.gateway.calls.errors import unknown_method
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.client import text_of
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.extensions.results import finish_of, split_handle
from trayapp.gateway.scopes.session_view import SessionView
from trayapp.model.errors import MultiMcpError
from trayapp.wire.capabilities import APPS, EVENTS, SKILLS, TASK_METHODS, TASKS, announces, unite_members
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Reply, Request, RpcError
from trayapp.wire.revisions import RESOURCE_NOT_FOUND

ROUTED = frozenset({TASKS, SKILLS, EVENTS, APPS})  # extensions that are routed even if several servers have them
OURS = frozenset({"tools", "prompts", "resources", "completions", "logging"})  # capabilities of the gateway itself
CORE = OURS | {"extensions", "experimental"}  # members that the core protocol defines
OLDER_TASKS = "tasks"  # a capability of MCP 2025-11-25. In later revisions, tasks are an extension
ROUTED_MEMBERS = frozenset({OLDER_TASKS, "events"})
NONE: frozenset[str] = frozenset()
OF_OURS = frozenset({"listChanged", "subscribe"})  # members of OURS that only the gateway sets

Capabilities = Mapping[str, Any]


def announced_capabilities(seen: Exposure, *, modern: bool) -> dict[str, Any]:
    """Return the servers' capabilities beyond the gateway's own.

    An extension unknown to the gateway is announced only if exactly one server has it: otherwise its requests
    could not be routed. `modern`: for a client of 2026-07-28.
    """
    every = seen.capabilities.values()
    apart = {*CORE, *((OLDER_TASKS,) if modern else ())}
    found = _routable(
        [{key: value for key, value in known.items() if key not in apart} for known in every], ROUTED_MEMBERS
    )
    for member in ("extensions", "experimental", *sorted(OURS)):
        parts = [known[member] for known in every if isinstance(known.get(member), dict)]
        if member in OURS:
            parts = [{key: value for key, value in part.items() if key not in OF_OURS} for part in parts]
        if union := _routable(parts, ROUTED if member == "extensions" else NONE):
            found[member] = union
    return found


def servers_with(seen: Exposure, extension: str) -> list[str]:
    """Return the enabled servers that announce an extension."""
    return [name for name, known in seen.capabilities.items() if announces(known, extension)]


def _routable(every: Sequence[Capabilities], routed: frozenset[str]) -> dict[str, Any]:
    """Return the union of the servers' capabilities, limited to `routed` members and those that only one server has."""
    count = Counter(key for known in every for key in known)
    return unite_members({key: known[key] for key in known if key in routed or count[key] == 1} for known in every)


OLDER_TASK_METHODS = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})  # MCP 2025-11-25
TASKS_LIST = "tasks/list"  # this method exists only in MCP 2025-11-25, as does tasks/result
SKILL_METHODS = frozenset({"skills/get", "resources/directory/read"})
EVENT_METHODS = frozenset({"events/poll", "events/stream", "events/subscribe", "events/unsubscribe"})
LISTED = {"skills/list": SKILLS, "events/list": EVENTS}  # cached lists, like those of tools

NO_TASK = "Task not found: its handle names no server that this session has"
NOBODY = "Method not found: {}. {}"
NO_SERVER = "No enabled server announces support for it"
SEVERAL = "{} servers are enabled, and the request does not say which one is meant"


class Destination(NamedTuple):
    """The server for a request, the params that the server gets, and the finish that makes the client's answer."""

    server: str
    params: dict[str, Any]
    finish: Finishing | None = None


def destination(seen: SessionView, request: Request, *, modern: bool) -> Destination:
    """Return the destination of a request. Raises MultiMcpError, RpcError. `modern`: from a client of 2026-07-28."""
    method, params = request.method, request.params or {}
    if method in (TASK_METHODS if modern else OLDER_TASK_METHODS):
        require(seen, TASKS, method)
        server, own = task_place(seen, text_of(params, "taskId", method))
        return Destination(server, {**params, "taskId": own}, finish_of(seen.exposure, server))
    if method in SKILL_METHODS:
        require(seen, SKILLS, method)
        server, uri = _skill_place(seen, text_of(params, "uri", method))
        return Destination(server, {**params, "uri": uri}, finish_of(seen.exposure, server))
    if method in EVENT_METHODS:
        return _of_event(seen, method, params)
    if method.startswith("tasks/"):
        raise unknown_method(method)  # the method is not in the client's revision
    server = _of_unknown(seen, method, params)
    handles = {key: _handle(value) for key, value in params.items()}
    own_params = {key: found[1] for key, found in handles.items() if found is not None and found[0] == server}
    return Destination(server, {**params, **own_params}, finish_of(seen.exposure, server))


def unmet_server(seen: SessionView, request: Request) -> str | None:
    """Return the first server that a handle in the params names and whose tools have not been read yet, or None."""
    values = (request.params or {}).values()
    named = [found[0] for value in values if (found := _handle(value)) is not None]
    return next((name for name in named if name in seen.missing()), None)


def task_place(seen: SessionView, handle: str) -> tuple[str, str]:
    """Return the server of a task, and the task's id at the server. Raises RpcError if the session has no such server.

    A handle that names no server may be older than the gateway. It counts as a task of the only server with tasks, if
    there is just one.
    """
    able = servers_with(seen.exposure, TASKS)
    found = split_handle(handle)[0]
    if found is not None:
        if found[0] in able:
            return found
    elif len(able) == 1:
        return able[0], handle
    raise RpcError(INVALID_PARAMS, NO_TASK)


def _skill_place(seen: SessionView, uri: str) -> tuple[str, str]:
    """Return the server that has a skill's file or folder, and its URI on that server.

    Raises MultiMcpError, RpcError.
    """
    try:
        return seen.resource(uri)
    except RpcError as error:
        able = servers_with(seen.exposure, SKILLS)
        if len(able) == 1 and split_prefixed(uri) is None and error.code == RESOURCE_NOT_FOUND:
            return able[0], uri  # a server need not list all of its skills
        raise RpcError(INVALID_PARAMS, error.message, error.data) from None


def _of_event(seen: SessionView, method: str, params: dict[str, Any]) -> Destination:
    require(seen, EVENTS, method)
    asked = text_of(params, "name", method)
    names, able = seen.exposure.catalog.event_names, servers_with(seen.exposure, EVENTS)
    key = names.find(asked, able.__contains__) or ((able[0], asked) if len(able) == 1 else None)
    if key is None:
        raise RpcError(INVALID_PARAMS, f"No server has an event named {asked}"[:200])
    server, own = key
    exposed = names.exposed(server, own)
    finish = partial(_with_event_names, own, exposed) if exposed != own else None
    return Destination(server, {**params, "name": own}, finish)


def _with_event_names(own: str, exposed: str, reply: Reply) -> Reply:
    """Return the answer to events/poll, with the name that clients use in each event."""
    result = reply.message.get("result")
    if not isinstance(result, dict) or not isinstance(events := result.get("events"), list):
        return reply
    return Reply.of_result({**result, "events": [named_event(event, own, exposed) for event in events]})


def named_event(event: Any, own: str, exposed: str) -> Any:
    """Return an occurrence of the event `own` with the name that clients use. Return any other value unchanged."""
    return {**event, "name": exposed} if isinstance(event, dict) and event.get("name") == own else event


def _of_unknown(seen: SessionView, method: str, params: dict[str, Any]) -> str:
    """Return the server for an unknown method. Raises RpcError if there is none, or more than one.

    The server is the one that the params name, the only enabled one, or the only one that announces the method.
    """
    if (named := _named(seen, params)) is not None:
        return named
    enabled = [name for name, entry in seen.exposure.servers.items() if not entry.disabled]
    prefix = method.partition("/")[0]
    announcing = [name for name, known in seen.exposure.capabilities.items() if _is_announced(known, prefix)]
    for names in (enabled, announcing):
        if len(names) == 1:
            return names[0]
    if not enabled:
        raise unknown_method(method)
    raise RpcError(METHOD_NOT_FOUND, NOBODY.format(method[:100], SEVERAL.format(len(enabled))), method)


def _is_announced(capabilities: Any, prefix: str) -> bool:
    """Return True if `prefix`, the first part of a method, names a capability beyond the core protocol.

    `acme/run` may be a method of the extension `acme` or `com.example/acme`, or of the capability `x-acme`.
    """
    beyond = [key for key in capabilities if key not in CORE]
    for member in ("extensions", "experimental"):
        part = capabilities.get(member)
        beyond += list(part) if isinstance(part, dict) else []
    return any(prefix in (key, key.rpartition("/")[2], key.removeprefix("x-")) for key in beyond)


def _named(seen: SessionView, params: dict[str, Any]) -> str | None:
    """Return the server that the params name by a handle, a resource or a tool, or None if they name none."""
    for value in params.values():
        if (found := _handle(value)) is not None and seen.has(found[0]):
            return found[0]
    try:
        if isinstance(params.get("uri"), str):
            return seen.resource(params["uri"])[0]
        if isinstance(params.get("name"), str):
            return seen.exposure.find(params["name"])[0]
    except (MultiMcpError, RpcError):
        pass
    return None


def _handle(value: Any) -> tuple[str, str] | None:
    return split_handle(value)[0] if isinstance(value, str) else None


def require(seen: SessionView, extension: str, method: str) -> None:
    """Raise RpcError if no server of the session announces the extension."""
    if not servers_with(seen.exposure, extension):
        raise RpcError(METHOD_NOT_FOUND, NOBODY.format(method, NO_SERVER), method)


def task_ids(params: dict[str, Any]) -> list[str]:
    """Return the task ids in the params of a subscriptions/listen."""
    wanted = params.get("notifications")
    found = wanted.get("taskIds") if isinstance(wanted, dict) else None
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
