"""The envelope that each request of MCP 2026-07-28 carries in `_meta`: its names, adding it, removing it.

Never here: who may send what, handshakes of other revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.wire.messages import Params

META = "io.modelcontextprotocol/"
PROTOCOL_VERSION = META + "protocolVersion"
CLIENT_INFO = META + "clientInfo"
CLIENT_CAPABILITIES = META + "clientCapabilities"
LOG_LEVEL = META + "logLevel"
SERVER_INFO = META + "serverInfo"
SUBSCRIPTION_ID = META + "subscriptionId"

_OF_ENVELOPE = frozenset({PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL})
_OF_RETRY = frozenset({"inputResponses", "requestState"})


def has_envelope(params: Any) -> bool:
    """Return True if a request is one of 2026-07-28, or claims to be."""
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
    """Return the params of a 2026-07-28 request as an older server may see them, other params unchanged."""
    if params is None or not has_envelope(params):
        return params
    kept = {key: value for key, value in params.items() if key != "_meta" and key not in _OF_RETRY}
    left = {key: value for key, value in params["_meta"].items() if key not in _OF_ENVELOPE}
    return {**kept, "_meta": left} if left else kept
