"""Streamable HTTP of MCP 2026-07-28: each POST is its own session. The client cancels it by closing the response.

Headers repeat parts of the message for intermediaries. A message that differs from its headers is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio

from trayapp.gateway.http.asgi import Headers, HttpRequest, until_gone
from trayapp.gateway.http.peer import HttpPeer
from trayapp.gateway.http.sessions import ServeClient
from trayapp.gateway.http.streams import EventStream
from trayapp.wire.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
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
    value_at,
)
from trayapp.wire.revisions import (
    CLIENT_CAPABILITIES,
    MODERN_VERSIONS,
    PROTOCOL_VERSION,
    has_envelope,
    read_envelope,
    unsupported_version_error,
)

MISSING_CAPABILITY = -32021  # MCP 2026-07-28: the client lacks a capability that the request needs
# HTTP status by error code; 200 for any other
STATUS = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, MISSING_CAPABILITY), 400),
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
DEFERRED_S = 15.0  # an answer that takes longer is sent as an event: a silent response looks dead
NO_MESSAGE = RpcError(INVALID_REQUEST, "The body must be one request or notification of JSON-RPC 2.0")
_DECIMAL = re.compile(r"-?[0-9]+(?:\.0+)?")

SchemaOf = Callable[[str], Any]  # the input schema of a listed tool; None for any other


class StatelessHttp:
    """The MCP endpoint for requests of that revision, and of unknown ones."""

    def __init__(self, serve: ServeClient, schema_of: SchemaOf) -> None:
        self._serve = serve
        self._schema_of = schema_of

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        request = HttpRequest(scope, receive, send)
        if request.method != "POST":
            await request.refuse_method("POST")
        elif (message := await request.message()) is None:
            return  # already refused
        elif not is_message(message):
            await request.refuse(400, NO_MESSAGE)
        elif "id" in message:
            error = self._fault(request.headers, message)
            if error is not None:
                await request.refuse(STATUS[error.code], error, message["id"])
            else:
                await self._answer(message, request)
        elif (version := request.headers.get(VERSION_HEADER)) in MODERN_VERSIONS:
            # The revision has no notification over HTTP, but extensions may.
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
        """Return the error of a request whose envelope or headers are not valid."""
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


def is_message(message: Any) -> bool:
    """True if the value is a request, or a notification: one without an id member."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return False
    return is_request_id(message.get("id", 0)) and isinstance(message.get("params"), dict | None)


def status_of(reply: Reply) -> int:
    """Return the HTTP status of an answer."""
    error = None if reply.is_large else reply.message.get("error")
    return STATUS.get(error["code"], 200) if error is not None else 200


# -- headers that mirror the message ---------------------------------------------------------------------------------


def compare_headers(headers: Headers, message: dict[str, Any]) -> None:
    """Raise RpcError if a request with a complete envelope differs from its headers."""
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(headers.all(name)) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} appears more than once")
    params, method = message.get("params") or {}, message["method"]
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not meta.keys() >= {PROTOCOL_VERSION, CLIENT_CAPABILITIES}:
        return  # read_envelope reports it
    if headers.get(VERSION_HEADER) != meta[PROTOCOL_VERSION]:
        raise RpcError(HEADER_MISMATCH, f"The header {VERSION_HEADER} is not the envelope's protocol version")
    if headers.get(METHOD_HEADER) != method:
        raise RpcError(HEADER_MISMATCH, f"The header {METHOD_HEADER} is not the request's method")
    named = params.get(NAMED_BY.get(method, ""))
    if named is not None and decoded(headers.get(NAME_HEADER)) != named:
        raise RpcError(HEADER_MISMATCH, f"The header {NAME_HEADER} is not the request's {NAMED_BY[method]}")


def compare_arguments(headers: Headers, arguments: dict[str, Any], schema: Any) -> None:
    """Raise RpcError if a call's arguments differ from the headers that repeat them for its tool."""
    for path, token, kind in header_params(schema):
        name = PARAM_HEADER + token
        told, value = headers.all(name.lower()), value_at(arguments, path)
        text = text_of(value)
        if len(told) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} appears more than once")
        if text is None and told:
            raise RpcError(HEADER_MISMATCH, f"The header {name} repeats an argument that is missing")
        if text is not None and not told:
            raise RpcError(HEADER_MISMATCH, f"The header {name} is missing: it repeats the argument {'.'.join(path)}")
        if text is not None and not _is_same(decoded(told[0]), text, value, kind):
            raise RpcError(HEADER_MISMATCH, f"The header {name} is not the argument {'.'.join(path)}")


def _is_same(told: str | None, text: str, value: Any, kind: Any) -> bool:
    """True if a header equals an argument's text, or is the same whole number in another form (42 and 42.0)."""
    if told == text or told is None or kind != "integer" or isinstance(value, bool | str):
        return told == text
    if not (isinstance(value, int) or value.is_integer()) or _DECIMAL.fullmatch(told) is None:
        return False
    try:
        return int(told.partition(".")[0]) == int(value)
    except ValueError:
        return False
