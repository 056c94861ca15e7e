"""What client and gateway tell each other of themselves, in both eras, and what a session keeps of it.

Never here: lists, calls, how messages travel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trayapp import __version__
from trayapp.backends.handshake import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from trayapp.gateway.eras import mixed, read_envelope, unsupported
from trayapp.gateway.errors import unknown_method
from trayapp.wire.messages import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.frontend import Session

SERVER_INFO = {"name": "multi-mcp", "title": "multi-mcp", "version": __version__}
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")  # RFC 5424, as MCP logging
NAME_MOST = 80  # characters of a client's name that are shown

Params = dict[str, Any]
Answer = Callable[["Gateway", "Session", Params], dict[str, Any]]


def initialize(gateway: Gateway, session: Session, params: Params) -> dict[str, Any]:
    """The handshake of older clients. Raises RpcError: the session's options cannot be followed."""
    wanted = params.get("protocolVersion")
    session.protocol = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    info, able = params.get("clientInfo"), params.get("capabilities")
    if isinstance(info, dict) and isinstance(info.get("name"), str):
        session.client = info["name"][:NAME_MOST]
    session.capabilities = able if isinstance(able, dict) else {}
    gateway.changed()
    return _introduced(session, {"protocolVersion": session.protocol, "serverInfo": SERVER_INFO})


def discover(gateway: Gateway, session: Session, params: Params) -> dict[str, Any]:
    """What 2026-07-28 has instead of a handshake. Raises RpcError, as `initialize`."""
    return _introduced(session, {"supportedVersions": list(MODERN_VERSIONS)})


def ping(gateway: Gateway, session: Session, params: Params) -> dict[str, Any]:
    """A sign of life."""
    return {}


def set_level(gateway: Gateway, session: Session, params: Params) -> dict[str, Any]:
    """From which level on an older client wants to see logs. Raises RpcError for one that does not exist."""
    level = params.get("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Unknown log level: {level!r}"[:200])
    session.log_level = level
    gateway.set_log_levels()
    return {}


def take_envelope(gateway: Gateway, session: Session, method: str, params: Any) -> None:
    """Which era a session is of is settled by its first request. Raises RpcError for one of the other."""
    if method == "initialize":
        if not session.lasting:
            raise unknown_method(method)  # its transport said that it is of 2026-07-28
        if not session.modern:
            return  # which does not exist in 2026-07-28, whatever envelope it carries
        raise unsupported(params.get("protocolVersion") if isinstance(params, dict) else None)
    if session.protocol and not session.modern:
        raise mixed()
    envelope = read_envelope(params)
    session.capabilities = envelope.capabilities
    if not session.modern:
        session.modern = session.ready = True
        session.protocol, session.client = envelope.protocol, envelope.client[:NAME_MOST]
        gateway.changed()


# What each era has besides lists and calls, answered at once.
OLDER: dict[str, Answer] = {"initialize": initialize, "ping": ping, "logging/setLevel": set_level}
MODERN: dict[str, Answer] = {"server/discover": discover}


def at_least(level: Any, wanted: str | None) -> bool:
    """Whether a log message of that level is one that somebody who chose `wanted` (None: nothing) wants to see."""
    if wanted not in LEVELS or level not in LEVELS:
        return True
    return LEVELS.index(level) >= LEVELS.index(wanted)


def _introduced(session: Session, result: dict[str, Any]) -> dict[str, Any]:
    """`result` with what we can do, extensions of servers included, and how to use it."""
    if session.window.wrong:
        raise RpcError(INVALID_PARAMS, session.window.wrong)
    exposure = session.window.exposure
    result = {**result, "capabilities": {**CAPABILITIES, **exposure.extensions}}
    return {**result, "instructions": exposure.instructions} if exposure.instructions else result
