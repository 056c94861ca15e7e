"""Streamable HTTP, for revisions with a handshake and for stateless ones (MCP, transports).

Revisions with a handshake have sessions, with POST, GET and DELETE. The early ones also have batches. A quick answer
is sent as one JSON body if no message precedes it. Any other answer is the last event of a stream. MCP leaves this
choice to the server.

From 2026-07-28 on, each POST is its own session, and the client cancels its request by closing the response stream.
Headers repeat parts of the message for intermediaries. A message that differs from its headers is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio

from trayapp.gateway.http.asgi import STREAM, Headers, HttpRequest, Line, id_of, until_gone
from trayapp.gateway.http.peer import HttpPeer
from trayapp.gateway.http.sessions import HttpSession, HttpSessions, ServeClient
from trayapp.gateway.http.streams import EventStream
from trayapp.gateway.sessions.session import LISTS
from trayapp.wire.jsonio import member_at
from trayapp.wire.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    Reply,
    RpcError,
    is_request_id,
)
from trayapp.wire.mirror_headers import (
    METHOD_HEADER,
    NAME_HEADER,
    NAMED_BY,
    PARAM_HEADER,
    VERSION_HEADER,
    decoded,
    header_params,
    text_of,
)
from trayapp.wire.revisions import (
    CLIENT_CAPABILITIES,
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    PROTOCOL_VERSION,
    WITH_BATCHES,
    WITH_EMPTY_EVENTS,
    has_envelope,
    read_envelope,
    unsupported_version_error,
)

SESSION_HEADER = "mcp-session-id"
AT_ONCE_S = 0.1  # a slower answer should be resumable, and only events can be resumed
# Replaces AT_ONCE_S for lists: no message precedes them, and the first ones wait for servers that are being read.
LISTED_S = 1.0
MOST = 1_000  # messages in a batch. Each takes some 12 KB while it waits, and half a million would fit into one body

NO_SESSION = RpcError(INVALID_REQUEST, "Missing session ID: send initialize first, then Mcp-Session-Id")
NO_MESSAGE = RpcError(INVALID_REQUEST, "The body is neither a request nor a notification nor an answer of JSON-RPC 2.0")


class StreamableHttp:
    """The MCP endpoint for revisions with a handshake. `stateless`: answers the requests of all other revisions."""

    def __init__(self, sessions: HttpSessions, stateless: StatelessHttp) -> None:
        self._sessions = sessions
        self._stateless = stateless

    async def take(self, request: HttpRequest) -> None:
        """Answer a request."""
        if (version := request.headers.get(VERSION_HEADER)) is not None and version not in HANDSHAKE_VERSIONS:
            await self._stateless.take(request)
            return
        session_id = request.headers.get(SESSION_HEADER)
        session = self._sessions.find(session_id)
        if request.method not in ("GET", "POST", "DELETE"):
            await request.refuse_method("GET, POST, DELETE")
        elif session_id is not None and session is None:
            await request.refuse(404, "Session not found: it has ended. Send initialize again")
        elif session is None and request.method == "POST":
            await self._open(request)
        elif session is None:
            await request.refuse(400, NO_SESSION)
        else:
            request.more.append(session_line(session.id))
            if request.method == "DELETE":
                self._sessions.end(session)
                await request.respond(b"")
                return
            with self._sessions.request(session):
                await (self._post if request.method == "POST" else self._get)(session, request)

    async def _open(self, request: HttpRequest) -> None:
        """Answer initialize, and begin a session. Refuse all other messages, which need a session."""
        message = await request.message()
        if message is None:
            return
        error = fault_in(message) if isinstance(message, dict) else NO_SESSION
        if error is None and not (is_request(message) and message["method"] == "initialize"):
            error = NO_SESSION
        if error is not None:
            await request.refuse(400, error, message)
            return
        session = self._sessions.begin(request.options)
        await session.peer.ready()
        stream, params = EventStream(), message.get("params") or {}
        session.peer.request(message["id"], "initialize", params, stream)
        reply = await stream.answered()
        assert reply is not None  # no message or question precedes a handshake's answer
        if "error" in reply.message:
            session.peer.close()
        else:
            self._sessions.add(session, params, str(reply.message["result"]["protocolVersion"]))
            request.more.append(session_line(session.id))
        await request.answer(message["id"], reply)

    async def _post(self, session: HttpSession, request: HttpRequest) -> None:
        message = await request.message()
        if isinstance(message, list):
            await self._post_batch(session, message, request)
        elif message is not None and (error := fault_in(message)) is not None:
            await request.refuse(400, error, message)
        elif message is not None:
            peer = await self._sessions.peer(session, request)
            if not is_request(message):
                take(peer, message)
                await request.respond(b"", 202)
                return
            stream = session.stream()
            take(peer, message, stream)
            reply = await stream.answered(LISTED_S if message["method"] in LISTS else AT_ONCE_S)
            if reply is not None:
                await request.answer(message["id"], reply)
            else:
                await stream.carry(request, priming(stream, session, resumed=False))

    async def _post_batch(self, session: HttpSession, messages: list[Any], request: HttpRequest) -> None:
        """Process the messages of a batch in order. All answers go out on one stream, each when it is ready. If no
        message needs an answer, respond with 202.

        Refuse a batch that is empty or too long, and any batch in a revision without batches.
        """
        version = request.headers.get(VERSION_HEADER) or session.protocol
        if not messages or not WITH_BATCHES.issuperset((session.protocol, version)):
            await request.refuse(400, "The batch is empty, or this revision of MCP has no batches")
            return
        if len(messages) > MOST:
            await request.refuse(400, f"A batch may contain at most {MOST} messages: send the others in another batch")
            return
        peer = await self._sessions.peer(session, request)
        faults = [fault_in(message) for message in messages]
        answers = [fault is not None or is_request(message) for message, fault in zip(messages, faults, strict=True)]
        stream = session.stream(expects=sum(answers))
        stream.be_events()
        for message, fault in zip(messages, faults, strict=True):
            if fault is None:
                take(peer, message, stream)
            else:
                stream.answer(id_of(message), Reply.of_error(fault))
        if any(answers):
            await stream.carry(request)
        else:
            await request.respond(b"", 202)

    async def _get(self, session: HttpSession, request: HttpRequest) -> None:
        """Answer with the standing stream or, given a Last-Event-ID, with the rest of a broken stream."""
        if not request.headers.accepts(STREAM):
            await request.refuse(406, f"The client must accept {STREAM}")
            return
        peer = await self._sessions.peer(session, request)
        if (last := request.headers.get("last-event-id")) is None:
            if session.standing.is_carried:
                await request.refuse(409, "This session already has a stream. Close it before opening another")
                return
            session.has_listened = True
            await session.standing.carry(request)
            return
        stream, number = event_in(last)
        if (going_on := peer.stream(stream)) is not None:
            session.has_listened = session.has_listened or going_on is session.standing
            await going_on.carry(request, priming(going_on, session, resumed=True), number)
        elif events := session.store.after(session.id, stream, number):
            await request.respond(b"".join(events), kind=STREAM)
        else:
            await request.refuse(400, "No events are stored after this Last-Event-ID")


def fault_in(message: Any) -> RpcError | None:
    """Return the error of a value that is not a valid JSON-RPC message, or None if it is a valid one."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return NO_MESSAGE
    request_id = message.get("id")
    if "method" not in message:
        is_answer = is_request_id(request_id) and not message.keys().isdisjoint(("result", "error"))
        return None if is_answer else NO_MESSAGE
    if not isinstance(message["method"], str) or ("id" in message and not is_request_id(request_id)):
        return NO_MESSAGE
    is_object = isinstance(message.get("params"), dict | None)
    return None if is_object else RpcError(INVALID_PARAMS, "params must be an object")


def is_request(message: dict[str, Any]) -> bool:
    """Return True if a valid JSON-RPC message is a request, with a method and an id."""
    return "method" in message and message.get("id") is not None


def take(peer: HttpPeer, message: dict[str, Any], stream: EventStream | None = None) -> None:
    """Pass a valid message on to the peer. `stream`: where the answer to a request goes; other messages need none."""
    if "method" not in message:
        peer.answered(message)
    elif stream is not None and message.get("id") is not None:
        peer.request(message["id"], message["method"], message.get("params"), stream)
    else:
        peer.notification(message["method"], message.get("params"))


def event_in(event_id: str) -> tuple[int, int]:
    """Return the numbers of stream and event in an event id, or (0, 0), which no event has, if the id is malformed."""
    stream, _, number = event_id.partition("-")
    known = len(event_id) <= 40 and all(part.isascii() and part.isdecimal() for part in (stream, number))
    return (int(stream), int(number)) if known else (0, 0)


def priming(stream: EventStream, session: HttpSession, *, resumed: bool) -> bytes:
    """Return the stream's priming event, or b"" if the session's revision has none."""
    return stream.priming(resumed=resumed) if session.protocol in WITH_EMPTY_EVENTS else b""


def session_line(session_id: str) -> Line:
    """Return the Mcp-Session-Id header."""
    return SESSION_HEADER.encode(), session_id.encode()


# HTTP status by error code, 200 by default
STATUS = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, MISSING_CAPABILITY), 400),
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
DEFERRED_S = 15.0  # a slower answer is sent as an event, because a client may take a silent response for broken
_DECIMAL = re.compile(r"-?[0-9]+(?:\.0+)?")

SchemaOf = Callable[[str], Any]  # returns a listed tool's input schema, or None for an unlisted name


class StatelessHttp:
    """The MCP endpoint for requests without a session: those of 2026-07-28. Refuses those of unknown revisions."""

    def __init__(self, serve: ServeClient, schema_of: SchemaOf) -> None:
        self._serve = serve
        self._schema_of = schema_of

    async def take(self, request: HttpRequest) -> None:
        """Answer a request."""
        if request.method != "POST":
            await request.refuse_method("POST")
        elif (message := await request.message()) is None:
            return  # already refused
        elif fault_in(message) is not None or "method" not in message:
            await request.refuse(400, "The body must be one request or notification of JSON-RPC 2.0")
        elif "id" in message:
            error = self._fault(request.headers, message)
            if error is not None:
                await request.refuse(STATUS[error.code], error, message)
            else:
                await self._answer(message, request)
        elif (version := request.headers.get(VERSION_HEADER)) in MODERN_VERSIONS:
            # The revision itself has no notifications from clients over HTTP, but extensions may have some.
            peer = HttpPeer()
            self._serve(peer, request.options, lasting=False)
            try:
                await peer.ready()
                peer.notification(message["method"], message.get("params"))
            finally:
                peer.close()
            await request.respond(b"", 202)
        else:
            await request.refuse(400, unsupported_version_error(version))

    def _fault(self, headers: Headers, message: dict[str, Any]) -> RpcError | None:
        """Return the error of a request whose envelope or headers are invalid, or None if both are valid."""
        params, version = message.get("params"), headers.get(VERSION_HEADER)
        if version not in MODERN_VERSIONS and not has_envelope(params):
            return unsupported_version_error(version)
        try:
            compare_headers(headers, message)
            read_envelope(params)
            if message["method"] == "tools/call" and isinstance(params, dict):
                name, arguments = params.get("name"), params.get("arguments") or {}
                told = any(line[0].startswith(PARAM_HEADER.encode()) for line in headers.lines)
                if isinstance(name, str) and isinstance(arguments, dict) and (arguments or told):
                    compare_arguments(headers, arguments, self._schema_of(name))
        except RpcError as error:
            return error
        return None

    async def _answer(self, message: dict[str, Any], request: HttpRequest) -> None:
        peer, stream, reply = HttpPeer(), EventStream(), None
        self._serve(peer, request.options, lasting=False)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(until_gone, request.receive, tasks.cancel_scope)
                await peer.ready()
                peer.request(message["id"], message["method"], message.get("params"), stream)
                reply = await stream.answered(DEFERRED_S)
                if reply is not None:
                    await request.answer(message["id"], reply, status_of(reply))
                else:
                    await stream.pour(request, tasks.cancel_scope)
                tasks.cancel_scope.cancel()
        finally:
            peer.close()
        if reply is None:
            await stream.finish(request)


def status_of(reply: Reply) -> int:
    """Return the HTTP status of an answer. A large answer counts as a result without being parsed."""
    error = None if reply.is_large else reply.message.get("error")
    return STATUS.get(error["code"], 200) if error is not None else 200


# -- headers that mirror the message ---------------------------------------------------------------------------------


def compare_headers(headers: Headers, message: dict[str, Any]) -> None:
    """Raise RpcError if a header appears twice, or if a request with a complete envelope differs from its headers."""
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(headers.all(name)) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} appears more than once")
    params, method = message.get("params") or {}, message["method"]
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not meta.keys() >= {PROTOCOL_VERSION, CLIENT_CAPABILITIES}:
        return  # read_envelope reports it
    if headers.get(VERSION_HEADER) != meta[PROTOCOL_VERSION]:
        raise RpcError(HEADER_MISMATCH, f"The header {VERSION_HEADER} differs from the envelope's protocol version")
    if headers.get(METHOD_HEADER) != method:
        raise RpcError(HEADER_MISMATCH, f"The header {METHOD_HEADER} differs from the request's method")
    named = params.get(NAMED_BY.get(method, ""))
    if named is not None and decoded(headers.get(NAME_HEADER)) != named:
        raise RpcError(HEADER_MISMATCH, f"The header {NAME_HEADER} differs from the request's {NAMED_BY[method]}")


def compare_arguments(headers: Headers, arguments: dict[str, Any], schema: Any) -> None:
    """Raise RpcError if a call's arguments differ from the headers that repeat them according to its tool's schema."""
    for path, token, kind in header_params(schema):
        name = PARAM_HEADER + token
        told, value = headers.all(name.lower()), member_at(arguments, *path)
        text, argument = text_of(value), ".".join(path)
        if len(told) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} appears more than once")
        if text is None and told:
            raise RpcError(HEADER_MISMATCH, f"The header {name} repeats an argument that is missing")
        if text is not None and not told:
            raise RpcError(HEADER_MISMATCH, f"The header {name} is missing: it must repeat the argument {argument}")
        if text is not None and not _is_same(decoded(told[0]), text, value, kind):
            raise RpcError(HEADER_MISMATCH, f"The header {name} differs from the argument {argument}")


def _is_same(told: str | None, text: str, value: Any, kind: Any) -> bool:
    """Return True if a header equals an argument's text, or is the same whole number in another form (42 and 42.0)."""
    if told == text or told is None or kind != "integer" or isinstance(value, bool | str):
        return told == text
    if not (isinstance(value, int) or value.is_integer()) or _DECIMAL.fullmatch(told) is None:
        return False
    try:
        return int(told.partition(".")[0]) == int(value)
    except ValueError:
        return False
