"""Protocol revisions that are spoken with clients and servers, and what an answer of one era lacks for the other.

Up to 2025-11-25 a session is initialized once; from 2026-07-28 each request carries its own envelope in `_meta` (MCP
basic, versioning). Never here: sessions, connections, who asks whom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trayapp.wire.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_PROTOCOL_VERSION,
    Reply,
    RpcError,
)

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # one `initialize` for a session
MODERN_VERSIONS = ("2026-07-28",)  # an envelope with each request
INPUT_REQUIRED = "input_required"
RESOURCE_NOT_FOUND = -32002  # MCP up to 2025-11-25, resources, error handling; from 2026-07-28 on INVALID_PARAMS
ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})  # whose results may be `input_required`
LIST_TTL_MS = 5_000  # as long as a user who switched a tool on is ready to wait, where a client does not listen
READ_TTL_MS = 0  # nobody but its server knows how long a resource stays as it is

# Which parts each revision of MCP knows (its schema, ContentBlock). A revision that is not listed is newer than we are.
_FIRST = frozenset({"text", "image", "resource"})
_AUDIO = _FIRST | {"audio"}
_ALL = _AUDIO | {"resource_link"}
KNOWN_PARTS: dict[str, frozenset[str]] = {
    "2024-11-05": _FIRST,
    "2025-03-26": _AUDIO,
    "2025-06-18": _ALL,
    "2025-11-25": _ALL,
    "2026-07-28": _ALL,
}

# An answer whose result is a plain object with at least one member, from its first byte.
_RESULT_OPENS = re.compile(rb'\{"jsonrpc":"2\.0","id":[0-9]{1,18},"result":\{(?=")')


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request of 2026-07-28 says of its client."""

    protocol: str
    capabilities: dict[str, Any]
    client: str
    log_level: str | None = None


def read_envelope(params: Any) -> Envelope:
    """The envelope of a request. Raises RpcError with the codes of MCP 2026-07-28, basic/versioning."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    known = meta if isinstance(meta, dict) else {}
    missing = [key for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if key not in known]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")
    protocol, capabilities, info = known[PROTOCOL_VERSION], known[CLIENT_CAPABILITIES], known.get(CLIENT_INFO)
    if not isinstance(protocol, str) or not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"{PROTOCOL_VERSION} must be text and {CLIENT_CAPABILITIES} an object")
    if protocol not in MODERN_VERSIONS:
        raise unsupported(protocol)
    name = info.get("name") if isinstance(info, dict) else None
    level = known.get(LOG_LEVEL)
    return Envelope(
        protocol, capabilities, name if isinstance(name, str) else "unknown", level if isinstance(level, str) else None
    )


def unsupported(protocol: Any) -> RpcError:
    """The error for a revision that is not served this way."""
    data = {"supported": list(MODERN_VERSIONS), "requested": protocol if isinstance(protocol, str) else None}
    return RpcError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def mixed() -> RpcError:
    """The error for a request with an envelope in a session that was initialized."""
    return RpcError(INVALID_REQUEST, "This session was initialized; requests of 2026-07-28 need one of their own")


def hinted(
    listing: bytes, server_info: Mapping[str, Any], ttl_ms: int = LIST_TTL_MS, meta: Mapping[str, Any] | None = None
) -> bytes:
    """A result's JSON, a non-empty object, with the members that 2026-07-28 requires of what may be cached.

    `meta`: further members of its `_meta`.
    """
    more = {
        "resultType": "complete",
        "ttlMs": ttl_ms,
        "cacheScope": "private",  # what is listed depends on the session's options
        "_meta": {**(meta or {}), SERVER_INFO: dict(server_info)},
    }
    return with_members(listing, more)


def with_members(result: bytes, more: Mapping[str, Any]) -> bytes:
    """A result's JSON, a non-empty object, with these members, which it does not have yet."""
    return b"%b,%b" % (result[:-1], dumps(more)[1:])


def completed(result: Mapping[str, Any], method: str) -> dict[str, Any]:
    """An older server's result as 2026-07-28 wants it."""
    hints = {"ttlMs": READ_TTL_MS, "cacheScope": "private"} if method == "resources/read" else {}
    return {"resultType": "complete", **hints, **result}


def as_modern(reply: Reply, method: str) -> Reply:
    """An older server's answer for a client of 2026-07-28. A large one stays unparsed where it can."""
    frame = reply.frame
    opening = _RESULT_OPENS.match(frame) if reply.end and method != "resources/read" else None
    if opening is not None and opening.end() > reply.end:
        whole = b'%b"resultType":"complete",%b' % (frame[: opening.end()], frame[opening.end() :])
        return Reply(whole, reply.start, reply.end)
    result = reply.message.get("result")
    if not isinstance(result, dict) or "resultType" in result:
        return error_as_modern(reply) if method == "resources/read" else reply
    return Reply.of_result(completed(result, method))


def error_as_modern(reply: Reply) -> Reply:
    """An error with the code that 2026-07-28 has for it: an unknown resource has none of its own there any more."""
    error = reply.message.get("error")
    if not isinstance(error, dict) or error.get("code") != RESOURCE_NOT_FOUND:
        return reply
    return Reply(b"", message={**reply.message, "error": {**error, "code": INVALID_PARAMS}})


def with_result_type(reply: Reply, method: str) -> Reply:
    """A 2026-07-28 server's answer for a client of the same era. Some servers leave out `resultType`, clients do not
    take that.
    """
    if reply.frame:
        return reply if b'"resultType"' in reply.frame or b'"result"' not in reply.frame else as_modern(reply, method)
    result = reply.message.get("result")
    return as_modern(reply, method) if isinstance(result, dict) and "resultType" not in result else reply


def as_older(reply: Reply) -> Reply:
    """A 2026-07-28 server's answer for an older client: without what only the newer envelope holds.

    A large one passes as it is: unknown members of a result mean nothing to older clients (MCP 2025-11-25, schema).
    """
    if reply.is_large:
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
    return reply if kept == result else Reply.of_result(kept)


def error_as_older(reply: Reply) -> Reply:
    """A newer server's refusal of resources/read, with the code of older revisions: the resource is all it asks for."""
    if reply.is_large:
        return reply
    error = reply.message.get("error")
    if not isinstance(error, dict) or error.get("code") != INVALID_PARAMS:
        return reply
    return Reply(b"", message={**reply.message, "error": {**error, "code": RESOURCE_NOT_FOUND}})


def asks_for_input(reply: Reply) -> bool:
    """Whether an answer of a 2026-07-28 server is a question; looks before it parses."""
    if reply.frame and b'"input_required"' not in reply.frame:
        return False
    result = reply.message.get("result")
    return isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
