"""Lists for clients of 2026-07-28, each request a session of its own: one JSON body, without the SDK.

Which takes 0.3 s to load, and a client's first list does not wait for it. Only what it would certainly take is
taken here; what lasts, tells or asks is its own. Never here: what is listed, clients of older revisions.
"""

from __future__ import annotations

from typing import Any

import anyio
import orjson

from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import JSON, STREAM, Asgi, Headers, options_of, replayed, respond, until_gone, whole
from trayapp.gateway.http.opening import is_able, is_info
from trayapp.gateway.http.peers import HttpPeer
from trayapp.gateway.http.presence import SESSION_HEADER
from trayapp.gateway.http.quick import SHORT, VERSION_HEADER
from trayapp.gateway.sessions.lists import LISTS
from trayapp.wire.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    Reply,
    RequestId,
    is_request_id,
)
from trayapp.wire.revisions import MODERN_VERSIONS

METHODS = frozenset({"server/discover", *LISTS})
ENVELOPE = {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO}
# MCP 2026-07-28, transports: the status that goes with an error; 200 with any other
STATUS = {INVALID_REQUEST: 400, INVALID_PARAMS: 400, UNSUPPORTED_PROTOCOL_VERSION: 400, METHOD_NOT_FOUND: 404}
LONGEST = 8 * SHORT  # bytes of a request's body: it holds what the client can do


class Single:
    """Around the SDK's application, which has all other requests."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def around(self, app: Asgi) -> Asgi:
        """The application, asked only for what is no list."""

        async def answered(scope: Any, receive: Any, send: Any) -> None:
            headers = Headers(scope)
            if scope["method"] != "POST" or not is_list(headers):
                await app(scope, receive, send)
            elif (body := await whole(receive)) is not None:
                if (request := request_in(body, headers)) is not None:
                    await self._answer(*request, scope, receive, send)
                else:
                    await app(scope, replayed(body, receive), send)

        return answered

    async def _answer(
        self, request_id: RequestId, method: str, params: dict[str, Any], scope: Any, receive: Any, send: Any
    ) -> None:
        peer = HttpPeer(None)
        self._arrivals.begin(peer, options_of(scope), lasting=False)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(until_gone, receive, tasks.cancel_scope)
                await peer.ready()
                exchange = peer.begin(request_id, method, params)
                assert exchange is not None
                with exchange.held():
                    reply = await exchange.reply()
                    await respond(send, reply.with_id(dumps(request_id)), status_of(reply))
                tasks.cancel_scope.cancel()
        finally:
            peer.close()


def status_of(reply: Reply) -> int:
    """What HTTP says of it."""
    error = None if reply.is_large else reply.message.get("error")
    return STATUS.get(error["code"], 200) if error is not None else 200


def is_list(headers: Headers) -> bool:
    """Whether the headers are those of a list, each but once, and of nothing else."""
    versions, methods, length = headers.all(VERSION_HEADER), headers.all("mcp-method"), headers.get("content-length")
    return (
        len(versions) == len(methods) == 1
        and versions[0] in MODERN_VERSIONS
        and methods[0] in METHODS
        and headers.get("mcp-name") is None
        and headers.get(SESSION_HEADER) is None
        and headers.accepts(JSON, STREAM)
        and headers.content == JSON
        and headers.get("transfer-encoding") is None  # by which a body may be longer
        and length is not None
        and length.isdigit()
        and int(length) <= LONGEST
    )


def request_in(body: bytes, headers: Headers) -> tuple[RequestId, str, dict[str, Any]] | None:
    """Id, method and params of a request about which there is no doubt."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict) or message.keys() != {"jsonrpc", "id", "method", "params"}:
        return None
    request_id, method, params = message["id"], message["method"], message["params"]
    if message["jsonrpc"] != "2.0" or not is_request_id(request_id) or [method] != headers.all("mcp-method"):
        return None
    if not isinstance(params, dict) or params.keys() != {"_meta"}:
        return None
    return (request_id, method, params) if is_envelope(params["_meta"], headers) else None


def is_envelope(meta: Any, headers: Headers) -> bool:
    """Whether the client says of itself what the headers say, and nothing that could be wrong."""
    if not isinstance(meta, dict) or not meta.keys() <= ENVELOPE or CLIENT_CAPABILITIES not in meta:
        return False
    same = [meta.get(PROTOCOL_VERSION)] == headers.all(VERSION_HEADER)
    return same and is_able(meta[CLIENT_CAPABILITIES]) and (CLIENT_INFO not in meta or is_info(meta[CLIENT_INFO]))
