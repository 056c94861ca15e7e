"""Exchange names, versions and capabilities with a client, in both protocol eras."""

from __future__ import annotations

from typing import Any

from trayapp import __version__
from trayapp.gateway.calls.errors import unknown_method
from trayapp.gateway.calls.notifications import LEVELS
from trayapp.gateway.client import ClientInfo
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.exposure.instructions import instructions
from trayapp.gateway.extensions.routing import announced_capabilities
from trayapp.wire.capabilities import unite_members
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS, read_envelope, unsupported_version_error

SERVER_INFO = {"name": "multi-mcp", "title": "multi-mcp", "version": __version__}
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
NAME_MOST = 80  # characters of a client's name that are kept

Params = dict[str, Any]


def take_handshake(client: ClientInfo, params: Params) -> None:
    """Store in `client` what an older client's `initialize` contains. If its revision is unknown, store the newest one
    with a handshake.
    """
    wanted = params.get("protocolVersion")
    client.protocol = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    info, able = params.get("clientInfo"), params.get("capabilities")
    if isinstance(info, dict) and isinstance(info.get("name"), str):
        client.name = info["name"][:NAME_MOST]
    client.capabilities = able if isinstance(able, dict) else {}


def initialize(client: ClientInfo, seen: Exposure) -> dict[str, Any]:
    """Return the answer to an older client's handshake. Raises RpcError if the session's options cannot be applied.

    The answer may lack the instructions and capabilities of servers whose lists are being read. To wait for them would
    delay every first handshake, by up to a second if an address does not answer.
    """
    return _introduce(seen, {"protocolVersion": client.protocol, "serverInfo": SERVER_INFO}, modern=False)


def discover(seen: Exposure) -> dict[str, Any]:
    """Return the answer to server/discover, the handshake of 2026-07-28. Raises RpcError as `initialize` does."""
    return _introduce(seen, {"supportedVersions": list(MODERN_VERSIONS)}, modern=True)


def set_level(client: ClientInfo, params: Params) -> dict[str, Any]:
    """Set the log level of an older client, and return the empty result. Raises RpcError for an unknown level."""
    level = params.get("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Unknown log level: {level!r}"[:200])
    client.log_level = level
    return {}


def take_envelope(client: ClientInfo, method: str, params: Any, *, lasting: bool) -> bool:
    """Store in `client` what a request's envelope contains. Return True if it is the session's first envelope, which
    decides the session's era.

    Ignore the envelope of an older client's `initialize`, and return False. Raises RpcError for a request of the other
    era, and for an invalid envelope. `lasting`: False if the session is a single request.
    """
    if method == "initialize":
        if not lasting:
            raise unknown_method(method)  # its transport has announced 2026-07-28, which has no initialize
        if not client.modern:
            return False  # the method does not exist in 2026-07-28, whatever envelope it carries
        raise unsupported_version_error(params.get("protocolVersion") if isinstance(params, dict) else None)
    if client.protocol and not client.modern:
        raise RpcError(INVALID_REQUEST, "This session was initialized. Send requests of 2026-07-28 in another session")
    envelope = read_envelope(params)
    client.capabilities = envelope.capabilities
    if client.modern:
        return False
    client.modern = client.ready = True
    client.protocol, client.name = envelope.protocol, envelope.client[:NAME_MOST]
    return True


def _introduce(seen: Exposure, result: dict[str, Any], *, modern: bool) -> dict[str, Any]:
    """Return `result` with the instructions and the capabilities, including servers' extensions. Raises RpcError."""
    if seen.choice.wrong:
        raise RpcError(INVALID_PARAMS, seen.choice.wrong)
    result = {**result, "capabilities": unite_members([CAPABILITIES, announced_capabilities(seen, modern=modern)])}
    text = instructions(seen)
    return {**result, "instructions": text} if text else result
