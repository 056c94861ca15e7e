"""Supported protocol revisions, the envelope of each request, and the conversion of answers between the eras of MCP.

Up to 2025-11-25 a session is initialized once. From 2026-07-28 on each request carries its own envelope in `_meta`
(MCP basic, versioning).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trayapp.wire.jsonio import dumps, member_at
from trayapp.wire.messages import INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION, Params, Reply, RpcError

META = "io.modelcontextprotocol/"
PROTOCOL_VERSION = META + "protocolVersion"
CLIENT_INFO = META + "clientInfo"
CLIENT_CAPABILITIES = META + "clientCapabilities"
LOG_LEVEL = META + "logLevel"
SERVER_INFO = META + "serverInfo"
SUBSCRIPTION_ID = META + "subscriptionId"

_OF_ENVELOPE = frozenset({PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL})
_OF_RETRY = frozenset({"inputResponses", "requestState"})


HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # one `initialize` per session
MODERN_VERSIONS = ("2026-07-28",)  # an envelope in each request
WITH_BATCHES = frozenset({"2024-11-05", "2025-03-26"})  # revisions in which a POST may contain a batch
WITH_EMPTY_EVENTS = frozenset({"2025-11-25"})  # revisions whose clients over HTTP accept an event without data
INPUT_REQUIRED = "input_required"
RESOURCE_NOT_FOUND = -32002  # up to MCP 2025-11-25 (resources, error handling); later, INVALID_PARAMS
ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})  # methods whose results may be `input_required`
LIST_TTL_MS = 5_000  # how late a client that does not listen for changes may see a newly enabled tool
READ_TTL_MS = 0  # the gateway cannot tell how long a resource stays unchanged

# Content types that each revision of MCP defines (schema, ContentBlock). Unlisted revisions are newer than this code.
_FIRST = frozenset({"text", "image", "resource"})
_AUDIO = _FIRST | {"audio"}
ALL_PARTS = _AUDIO | {"resource_link"}
KNOWN_PARTS: dict[str, frozenset[str]] = {
    "2024-11-05": _FIRST,
    "2025-03-26": _AUDIO,
    "2025-06-18": ALL_PARTS,
    "2025-11-25": ALL_PARTS,
    "2026-07-28": ALL_PARTS,
}

# The beginning of an answer whose result is an object with at least one member.
_RESULT_OPENS = re.compile(rb'\{"jsonrpc":"2\.0","id":[0-9]{1,18},"result":\{(?=")')
_OTHER_VALUE = re.compile(rb'"structuredContent"\s*:\s*[^{\s]')


def has_envelope(params: Any) -> bool:
    """Return True if a request has an envelope of 2026-07-28, valid or not."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def enveloped(
    params: Params, protocol: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `params` with our own envelope. Other members of `_meta` stay."""
    known = params or {}
    meta = known.get("_meta")
    stamps = {PROTOCOL_VERSION: protocol, CLIENT_INFO: client_info, CLIENT_CAPABILITIES: dict(capabilities)}
    return {**known, "_meta": {**(meta if isinstance(meta, dict) else {}), **stamps}}


def without_envelope(params: Params) -> Params:
    """Return the params of a 2026-07-28 request as an older server may see them, and any other params unchanged."""
    if params is None or not has_envelope(params):
        return params
    kept = {key: value for key, value in params.items() if key != "_meta" and key not in _OF_RETRY}
    left = {key: value for key, value in params["_meta"].items() if key not in _OF_ENVELOPE}
    return {**kept, "_meta": left} if left else kept


class Envelope(NamedTuple):
    """The envelope of a 2026-07-28 request: its protocol revision, and details of its client."""

    protocol: str
    capabilities: dict[str, Any]
    client: str
    log_level: str | None = None


def read_envelope(params: Any) -> Envelope:
    """Return the envelope of a request. Raises RpcError with the codes of MCP 2026-07-28, basic/versioning."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    known = meta if isinstance(meta, dict) else {}
    if missing := [key for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if key not in known]:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")
    protocol, capabilities, info = known[PROTOCOL_VERSION], known[CLIENT_CAPABILITIES], known.get(CLIENT_INFO)
    if not isinstance(protocol, str) or not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"{PROTOCOL_VERSION} must be a string and {CLIENT_CAPABILITIES} an object")
    if protocol not in MODERN_VERSIONS:
        raise unsupported_version_error(protocol)
    name = info.get("name") if isinstance(info, dict) else None
    level = known.get(LOG_LEVEL)
    return Envelope(
        protocol, capabilities, name if isinstance(name, str) else "unknown", level if isinstance(level, str) else None
    )


def unsupported_version_error(protocol: Any) -> RpcError:
    """Return the error for a revision that cannot be used with an envelope."""
    data = {"supported": list(MODERN_VERSIONS), "requested": protocol if isinstance(protocol, str) else None}
    return RpcError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def with_cache_members(
    listing: bytes, server_info: Mapping[str, Any], ttl_ms: int = LIST_TTL_MS, meta: Mapping[str, Any] | None = None
) -> bytes:
    """Return a result with the members that 2026-07-28 requires of cacheable results.

    `listing`: the result's JSON, a non-empty object. `ttl_ms`: how long clients may cache it. `meta`: further members
    of its `_meta`.
    """
    more = {
        "resultType": "complete",
        "ttlMs": ttl_ms,
        "cacheScope": "private",  # the list depends on the session's options
        "_meta": {**(meta or {}), SERVER_INFO: dict(server_info)},
    }
    return with_members(listing, more)


def with_members(result: bytes, more: Mapping[str, Any]) -> bytes:
    """Return a result's JSON with further members. The result must be a non-empty object that has none of them."""
    return b"%b,%b" % (result[:-1], dumps(more)[1:])


def as_modern(reply: Reply, method: str) -> Reply:
    """Return an older server's answer for a client of 2026-07-28. A large answer stays unparsed if possible."""
    frame = reply.frame
    opening = _RESULT_OPENS.match(frame) if reply.end and method != "resources/read" else None
    if opening is not None and opening.end() > reply.end:
        whole = b'%b"resultType":"complete",%b' % (frame[: opening.end()], frame[opening.end() :])
        return Reply(whole, reply.start, reply.end)
    result = reply.message.get("result")
    if not isinstance(result, dict) or "resultType" in result:
        return error_as_modern(reply) if method == "resources/read" else reply
    hints = {"ttlMs": READ_TTL_MS, "cacheScope": "private"} if method == "resources/read" else {}
    return Reply.of_result({"resultType": "complete", **hints, **result})


def error_as_modern(reply: Reply) -> Reply:
    """Return an error answer with the code of 2026-07-28, which has no separate code for an unknown resource."""
    return _recoded(reply, RESOURCE_NOT_FOUND, INVALID_PARAMS)


def _recoded(reply: Reply, code: int, other: int) -> Reply:
    error = reply.message.get("error")
    if not isinstance(error, dict) or error.get("code") != code:
        return reply
    return Reply(b"", message={**reply.message, "error": {**error, "code": other}})


def with_result_type(reply: Reply, method: str) -> Reply:
    """Return a 2026-07-28 server's answer for a client of the same era, with `resultType`.

    Some servers leave `resultType` out, and clients reject such answers. A large answer in which
    `"resultType"` occurs anywhere is returned unchanged.
    """
    if reply.is_large:
        return reply if b'"resultType"' in reply.frame or b'"result"' not in reply.frame else as_modern(reply, method)
    result = reply.message.get("result")
    return as_modern(reply, method) if isinstance(result, dict) and "resultType" not in result else reply


def as_older(reply: Reply) -> Reply:
    """Return a 2026-07-28 server's answer for an older client, without the members that only 2026-07-28 has.

    A large answer passes unchanged if possible: older clients ignore unknown members of a result (MCP 2025-11-25,
    schema). But they reject `structuredContent` that is not an object (SEP-2106): this becomes a text, or is dropped if
    there is other content.
    """
    frame = reply.frame
    if reply.is_large and not (b'"structuredContent"' in frame and _OTHER_VALUE.search(frame)):
        return reply
    result = reply.message.get("result")
    if not isinstance(result, dict):
        return reply
    meta = result.get("_meta")
    kept = {key: value for key, value in result.items() if key != "resultType"}
    if isinstance(meta, dict) and SERVER_INFO in meta:
        left = {key: value for key, value in meta.items() if key != SERVER_INFO}
        kept.pop("_meta")
        kept = {**kept, "_meta": left} if left else kept
    if not isinstance(kept.get("structuredContent", {}), dict):
        value = kept.pop("structuredContent")
        kept["content"] = kept.get("content") or [{"type": "text", "text": dumps(value).decode()}]
    return reply if kept == result else Reply.of_result(kept)


def error_as_older(reply: Reply) -> Reply:
    """Return a newer server's error for resources/read with the code of older revisions.

    INVALID_PARAMS becomes RESOURCE_NOT_FOUND, as the resource is the request's only parameter. A large answer passes
    unchanged.
    """
    return reply if reply.is_large else _recoded(reply, INVALID_PARAMS, RESOURCE_NOT_FOUND)


def asks_for_input(reply: Reply) -> bool:
    """Return True if a 2026-07-28 server's answer is `input_required`. It is parsed only if that text occurs."""
    if reply.frame and b'"input_required"' not in reply.frame:
        return False
    return bool(member_at(reply.message, "result", "resultType") == INPUT_REQUIRED)
