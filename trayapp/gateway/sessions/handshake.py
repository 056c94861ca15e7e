"""What client and gateway tell each other of themselves, in both eras, and what is kept of it.

Never here: lists, calls, how messages travel.
"""

from __future__ import annotations

from typing import Any

from trayapp import __version__
from trayapp.gateway.calls.errors import unknown_method
from trayapp.gateway.calls.notifications import LEVELS
from trayapp.gateway.client import Client
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.exposure.instructions import instructions
from trayapp.wire.messages import INVALID_PARAMS, RpcError
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS, mixed, read_envelope, unsupported

SERVER_INFO = {"name": "multi-mcp", "title": "multi-mcp", "version": __version__}
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
NAME_MOST = 80  # characters of a client's name that are shown

Params = dict[str, Any]


def initialize(client: Client, seen: Exposure, params: Params) -> dict[str, Any]:
    """Answer the handshake of older clients. Raises RpcError: the session's options cannot be followed."""
    wanted = params.get("protocolVersion")
    client.protocol = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    info, able = params.get("clientInfo"), params.get("capabilities")
    if isinstance(info, dict) and isinstance(info.get("name"), str):
        client.name = info["name"][:NAME_MOST]
    client.capabilities = able if isinstance(able, dict) else {}
    return _introduced(seen, {"protocolVersion": client.protocol, "serverInfo": SERVER_INFO})


def discover(seen: Exposure) -> dict[str, Any]:
    """Answer what 2026-07-28 has instead of a handshake. Raises RpcError, as `initialize`."""
    return _introduced(seen, {"supportedVersions": list(MODERN_VERSIONS)})


def set_level(client: Client, params: Params) -> dict[str, Any]:
    """Note from which level on an older client wants logs. Raises RpcError for one that does not exist."""
    level = params.get("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Unknown log level: {level!r}"[:200])
    client.log_level = level
    return {}


def take_envelope(client: Client, method: str, params: Any, *, lasting: bool) -> bool:
    """Take what a request says of its client; return True if the first one did.

    Which era a session is of is settled by its first request. `lasting`: see Session. Raises RpcError for a request of
    the other era.
    """
    if method == "initialize":
        if not lasting:
            raise unknown_method(method)  # its transport said that it is of 2026-07-28
        if not client.modern:
            return False  # which does not exist in 2026-07-28, whatever envelope it carries
        raise unsupported(params.get("protocolVersion") if isinstance(params, dict) else None)
    if client.protocol and not client.modern:
        raise mixed()
    envelope = read_envelope(params)
    client.capabilities = envelope.capabilities
    if client.modern:
        return False
    client.modern = client.ready = True
    client.protocol, client.name = envelope.protocol, envelope.client[:NAME_MOST]
    return True


def _introduced(seen: Exposure, result: dict[str, Any]) -> dict[str, Any]:
    """Return `result` with what we can do, extensions of servers included, and how to use it."""
    if seen.choice.wrong:
        raise RpcError(INVALID_PARAMS, seen.choice.wrong)
    result = {**result, "capabilities": {**CAPABILITIES, **seen.extensions}}
    text = instructions(seen)
    return {**result, "instructions": text} if text else result
