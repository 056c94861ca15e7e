"""Sessions of older clients over HTTP before the SDK has them: handshake, first lists, what is told of their changes.

The SDK takes 0.3 s to load, which a client's first list does not wait for. With the first request that needs
it, or after a while, it hears the handshake once more and goes on with the session, under an id of its own.
Only what it would certainly take is taken here. Never here: sessions' behaviour, clients of 2026-07-28.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import uuid4

import anyio
import anyio.abc
import orjson

from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import (
    STREAM,
    Asgi,
    Headers,
    event,
    open_stream,
    options_of,
    replayed,
    respond,
    until_gone,
    whole,
)
from trayapp.gateway.http.peers import HttpPeer, Outbound
from trayapp.gateway.http.presence import SESSION_HEADER, Presence
from trayapp.gateway.http.quick import VERSION_HEADER, VERSIONS, takes_both
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import CONNECTION_CLOSED, Params, RequestId, RpcError, is_request_id
from trayapp.wire.revisions import HANDSHAKE_VERSIONS

log = logging.getLogger(__name__)

OPENED = "multi_mcp.opened"  # in the ASGI scope of a handshake that only the SDK has not heard yet: the Opened
GIVEN_ID = "multi_mcp.given_id"  # in the scope of a request of a session that was opened here: the client's id of it
HANDED_ON_S = 60.0  # after which the SDK has a session that did not need it: it ends those that nobody uses
HEARD_S = 10.0  # the SDK has heard a handshake in milliseconds; the gateway's end does not wait for longer
HANDSHAKE = {"protocolVersion", "capabilities", "clientInfo"}
FORGOTTEN_S = 1800.0  # after which one whose client seems gone cannot be taken up again, as by the SDK
INITIALIZED = "notifications/initialized"
OF_OBJECTS = {"elicitation", "sampling", "experimental", "extensions"}  # capabilities whose members are objects


class Opened:
    """One session. `scope` and `body`: of its handshake; `outbound`: the SDK's way for what belongs to no request."""

    def __init__(self, peer: HttpPeer, scope: Any, body: bytes, result: dict[str, Any]) -> None:
        self.id = uuid4().hex
        self.peer = peer
        self.result = result
        self.outbound: Outbound | None = None
        self.initialized = False
        self.sdk_id: str | None = None
        self.streams = False  # the stream for what belongs to no request was opened here
        self.lock = anyio.Lock()
        self.moved = anyio.Event()  # the SDK has it, or it is over
        self.stood = anyio.Event()  # what belongs to no request goes by the SDK
        self.waiting = anyio.CancelScope()  # the task that hands it on late
        self.forget: Callable[[], object] = lambda: None
        self._scope, self._body = scope, body

    async def introduce(self, app: Asgi) -> None:
        """Tell the SDK, which gives it an id, unless it does not take the session."""
        status, session_id = await self._post(app, self._body, None)
        if status != 200 or session_id is None:
            log.warning("A session over HTTP could not be handed on: status %d", status)
            return
        if self.initialized:
            await self._post(app, dumps({"jsonrpc": "2.0", "method": INITIALIZED}), session_id)
        self._scope, self._body = None, b""
        self.sdk_id = session_id
        self.moved.set()

    async def _post(self, app: Asgi, body: bytes, session_id: str | None) -> tuple[int, str | None]:
        heard: dict[str, Any] = {}

        async def receive() -> Any:
            await anyio.sleep_forever()  # nobody goes

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                heard.update(event)

        scope = under_id({**self._scope, OPENED: self, GIVEN_ID: self.id}, session_id)
        lines = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        lines.append((b"content-length", str(len(body)).encode()))
        await app({**scope, "headers": lines}, replayed(body, receive), send)
        return heard.get("status", 0), Headers(heard).get(SESSION_HEADER) if heard else None


class Standing:
    """The stream for what belongs to no request; see peers.Outbound. A question is the SDK's, which hears answers."""

    def __init__(self, send: Any, hand_on: Callable[[], Awaitable[Outbound | None]]) -> None:
        self._send = send
        self._hand_on = hand_on

    async def notify(self, method: str, params: Params) -> None:
        """See Outbound."""
        said = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        await self._send({"type": "http.response.body", "body": event(dumps(said)), "more_body": True})

    async def send_raw_request(self, method: str, params: Params) -> dict[str, Any]:
        """See Outbound."""
        if (outbound := await self._hand_on()) is None:
            raise RpcError(CONNECTION_CLOSED, "The client cannot be asked now")
        return await outbound.send_raw_request(method, params)


class Opening:
    """All sessions that were opened here. `sdk`: its application, once it is loaded."""

    def __init__(
        self,
        arrivals: Arrivals,
        presence: Presence,
        sdk: Callable[[], Awaitable[Asgi]],
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._arrivals = arrivals
        self._presence = presence
        self._sdk = sdk
        self._tasks = tasks
        self._opened: dict[str, Opened] = {}

    def around(self, app: Asgi) -> Asgi:
        """The SDK's application, asked for what is not done here."""

        async def opened(scope: Any, receive: Any, send: Any) -> None:
            session_id = Headers(scope).get(SESSION_HEADER)
            one = self._opened.get(session_id) if session_id is not None else None
            if one is not None:
                await self._go_on(one, scope, receive, send)
            elif session_id is not None or scope["method"] != "POST" or not takes_both(Headers(scope)):
                await app(scope, receive, send)
            elif (body := await whole(receive)) is not None:
                if (handshake := handshake_in(body)) is not None:
                    await self._open(*handshake, scope, body, send)
                else:
                    await app(scope, replayed(body, receive), send)

        return opened

    async def _open(self, request_id: RequestId, params: dict[str, Any], scope: Any, body: bytes, send: Any) -> None:
        peer = HttpPeer(None, later=True)
        self._arrivals.begin(peer, options_of(scope))
        await peer.ready()
        exchange = peer.begin(request_id, "initialize", params)
        assert exchange is not None
        with exchange.held():
            reply = await exchange.reply()
        if "error" in reply.message:
            peer.close()
            await respond(send, reply.with_id(dumps(request_id)))
            return
        one = Opened(peer, scope, body, reply.result())
        self._opened[one.id] = one
        one.forget = partial(self._opened.pop, one.id, None)
        self._presence.note(one.id, peer)
        self._tasks.start_soon(self._hand_on_late, one)
        await respond(send, reply.with_id(dumps(request_id)), more=[session_line(one.id)])

    async def _go_on(self, one: Opened, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers(scope)
        if one.sdk_id is None and headers.get(VERSION_HEADER) in VERSIONS and not one.lock.locked():
            if scope["method"] == "DELETE":
                one.forget()
                one.peer.close()
                one.moved.set()
                one.waiting.cancel()
                await respond(send, b"", more=[session_line(one.id)])
                return
            if scope["method"] == "GET" and not one.streams and may_stream(headers):
                await self._stream(one, scope, receive, send)
                return
            if scope["method"] == "POST" and takes_both(headers):
                body = await whole(receive)
                if body is None:
                    return
                if one.sdk_id is None and not one.lock.locked() and is_initialized(body):
                    one.initialized = True
                    one.peer.notification(INITIALIZED, None)
                    await respond(send, b"", 202, more=[session_line(one.id)])
                    return
                receive = replayed(body, receive)
        if scope["method"] == "GET" and one.streams:
            await self._hand_on(one)  # the stream that there is comes first: it is another one that the SDK refuses
        await self._by_sdk(one, scope, receive, send)

    async def _stream(self, one: Opened, scope: Any, receive: Any, send: Any) -> None:
        """The stream for what belongs to no request, here as long as nothing else needs the SDK, which goes on."""
        one.streams = True
        await open_stream(send, [session_line(one.id)])
        one.peer.stand(Standing(send, partial(self._hand_on, one)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_gone, receive, tasks.cancel_scope)
            await one.moved.wait()
            tasks.cancel_scope.cancel()
        if one.sdk_id is None:
            one.streams = False
            await send({"type": "http.response.body", "body": b""})
            return
        began = False

        async def go_on(event: Any) -> None:
            nonlocal began
            if event["type"] == "http.response.start":
                began = event["status"] == 200
                self._stand(one)
            elif began:
                await send(event)

        await self._by_sdk(one, scope, replayed(b"", receive), go_on)  # its body, though empty, has been read here
        if not began:
            await send({"type": "http.response.body", "body": b""})

    async def _by_sdk(self, one: Opened, scope: Any, receive: Any, send: Any) -> None:
        app = await self._sdk()
        sdk_id = await self._introduced(one, app)

        async def answer(event: Any) -> None:
            if event["type"] == "http.response.start":
                if event["status"] == 404 and Headers(scope).get(VERSION_HEADER) in VERSIONS:  # else it is a method
                    one.forget()
                event = {**event, "headers": [given_line(line, one.id) for line in event["headers"]]}
            await send(event)

        await app({**under_id(scope, sdk_id), GIVEN_ID: one.id}, receive, answer)

    async def _introduced(self, one: Opened, app: Asgi) -> str:
        """The SDK's id of a session, which it hears of now at the latest."""
        async with one.lock:
            if not one.moved.is_set():
                with anyio.move_on_after(HEARD_S, shield=True):  # what it was told once it must not be told again
                    await one.introduce(app)
        if not one.streams:
            self._stand(one)
        return one.sdk_id or one.id  # which it does not know

    def _stand(self, one: Opened) -> None:
        if one.outbound is not None:
            one.peer.stand(one.outbound)
            one.stood.set()

    async def _hand_on_late(self, one: Opened) -> None:
        clock = self._arrivals.gateway.services.clock
        with one.waiting:
            await clock.sleep(HANDED_ON_S)
            if one.peer.closed:
                await clock.sleep(FORGOTTEN_S)
                if not one.moved.is_set():
                    one.forget()
        if not one.peer.closed:
            await self._hand_on(one)

    async def _hand_on(self, one: Opened) -> Outbound | None:
        await self._introduced(one, await self._sdk())
        if one.outbound is not None:
            await one.stood.wait()  # before its stream is there, the SDK's words for it are lost
        return one.outbound


def session_line(session_id: str) -> tuple[bytes, bytes]:
    """The header that says which session an answer is of."""
    return SESSION_HEADER.encode(), session_id.encode()


def given_line(line: tuple[bytes, bytes], session_id: str) -> tuple[bytes, bytes]:
    """A header of the SDK's as the client gets it: with its own id of the session, where there is one."""
    return session_line(session_id) if line[0].lower() == SESSION_HEADER.encode() else line


def under_id(scope: Any, session_id: str | None) -> Any:
    """The scope of a request as one of that session, or of none."""
    lines = [line for line in scope["headers"] if line[0] != SESSION_HEADER.encode()]
    return {**scope, "headers": lines if session_id is None else [*lines, session_line(session_id)]}


def may_stream(headers: Headers) -> bool:
    """Whether it is the request for a new stream; one that goes on with an old one says so."""
    return headers.accepts(STREAM) and headers.get("last-event-id") is None


def is_initialized(body: bytes) -> bool:
    """Whether it is that notification."""
    message = _object_in(body)
    if message is None or "id" in message or message.get("method") != INITIALIZED:
        return False
    return isinstance(message.get("params", {}), dict)


def handshake_in(body: bytes) -> tuple[RequestId, dict[str, Any]] | None:
    """Id and params of a handshake about which there is no doubt; others are the SDK's to judge."""
    message = _object_in(body)
    if message is None or message.get("method") != "initialize" or not is_request_id(message.get("id")):
        return None
    params = message.get("params")
    if not isinstance(params, dict) or set(params) != HANDSHAKE or params["protocolVersion"] not in HANDSHAKE_VERSIONS:
        return None
    return (message["id"], params) if is_info(params["clientInfo"]) and is_able(params["capabilities"]) else None


def _object_in(body: bytes) -> dict[str, Any] | None:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def is_info(info: Any) -> bool:
    """Whether a client's name and version are given, and nothing that could be wrong."""
    if not isinstance(info, dict) or not info.keys() <= {"name", "version", "title"}:
        return False
    return {"name", "version"} <= info.keys() and all(isinstance(text, str) for text in info.values())


def is_able(capabilities: Any) -> bool:
    """Whether capabilities are of the form that every revision of the protocol gives them."""
    return isinstance(capabilities, dict) and all(_is_ability(*item) for item in capabilities.items())


def _is_ability(name: str, members: Any) -> bool:
    if not isinstance(members, dict):
        return False
    if name == "roots":
        return members.keys() <= {"listChanged"} and all(isinstance(value, bool) for value in members.values())
    return name in OF_OBJECTS and all(isinstance(value, dict) for value in members.values())
