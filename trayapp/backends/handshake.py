"""Negotiation of a protocol revision with a server, in both eras, over any channel.

2026-07-28 uses server/discover; revisions up to 2025-11-25 use initialize.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trayapp import __version__
from trayapp.wire.jsonio import member_at
from trayapp.wire.messages import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    Channel,
    Params,
    RpcError,
)
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS, SERVER_INFO, enveloped, without_envelope

# A server that is still being downloaded, or that ignores unknown methods, does not answer the probe. After this long
# it is sent `initialize` as well, and the first good answer counts.
PROBE_PATIENCE_S = 2.0
# Over Streamable HTTP each request gets an HTTP response, so silence means that the server is slow, for example because
# its host is starting it. A second request could open a session there that nobody ends.
HTTP_PROBE_PATIENCE_S = 10.0

CLIENT_INFO = {"name": "multi-mcp", "title": "multi-mcp", "version": __version__}


@dataclass(frozen=True, slots=True)
class Peer:
    """A server's description of itself, from the handshake."""

    protocol: str
    capabilities: dict[str, Any]
    server_info: dict[str, Any] | None = None
    instructions: str | None = None
    modern: bool = field(init=False)  # each request carries its own envelope (2026-07-28 and later)

    def __post_init__(self) -> None:
        object.__setattr__(self, "modern", self.protocol in MODERN_VERSIONS)

    @property
    def changing_lists(self) -> list[str]:
        """Return the lists (tools, prompts, resources) whose changes the server announces (`listChanged`)."""
        told = ((kind, self.capabilities.get(kind)) for kind in ("tools", "prompts", "resources"))
        return [kind for kind, able in told if isinstance(able, dict) and able.get("listChanged")]

    def stamped(self, params: Params, capabilities: Mapping[str, Any]) -> Params:
        """Return `params` in the form of this server's era: with the gateway's envelope in `_meta`, or without one."""
        if not self.modern:
            return without_envelope(params) if params is not None and "_meta" in params else params
        return enveloped(params, self.protocol, CLIENT_INFO, capabilities)


async def shake_hands(
    channel: Channel, capabilities: Mapping[str, Any], hint: str = "", patience_s: float = PROBE_PATIENCE_S
) -> Peer:
    """Negotiate a revision and return the peer. `hint` is the revision to begin with, or "".

    Begin with server/discover, and send initialize if that fails or has no answer within `patience_s` seconds. With a
    hint of the older era, begin with initialize, and try the newer era only if the server names it or does not support
    initialize. Raises RpcError if the server refuses both eras or closes the channel. The caller limits the time.
    """
    if hint in HANDSHAKE_VERSIONS:
        try:
            return await _initialize(channel, capabilities)
        except RpcError as error:
            if error.code not in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND, HEADER_MISMATCH):
                raise
    peer = await _negotiate(channel, capabilities, patience_s)
    channel.adopt(peer.protocol)
    return peer


async def _negotiate(channel: Channel, capabilities: Mapping[str, Any], patience_s: float) -> Peer:
    probe = asyncio.ensure_future(_discover(channel, capabilities))
    older: asyncio.Future[Peer] | None = None
    try:
        done, _ = await asyncio.wait({probe}, timeout=patience_s)
        if probe in done and (peer := _peer_of(probe)) is not None:
            return peer
        older = asyncio.ensure_future(_initialize(channel, capabilities))
        await asyncio.wait({probe, older} if probe not in done else {older}, return_when=asyncio.FIRST_COMPLETED)
        if probe.done() and probe not in done and (peer := _peer_of(probe)) is not None:
            return peer
        try:
            return await older
        except RpcError as error:
            if _offered_modern(error) is None:
                raise
            found = await probe if probe not in done else await _discover(channel, capabilities)
            if found is None:
                why = "The server offers no protocol revision that multi-mcp supports"
                raise RpcError(INTERNAL_ERROR, why) from None
            return found
    finally:
        for task in (probe, older):
            if task is not None:
                # Retrieve the unused error, or asyncio would log it.
                task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                task.cancel()


def _peer_of(probe: asyncio.Future[Peer | None]) -> Peer | None:
    """Return the probe's result, or None if it failed with an RpcError: the server then counts as older-era."""
    error = probe.exception()
    if error is None:
        return probe.result()
    if not isinstance(error, RpcError):
        raise error
    return None


async def _discover(channel: Channel, capabilities: Mapping[str, Any]) -> Peer | None:
    """Send server/discover and return the peer that it describes, or None if we share no modern revision with it.

    An error that names a revision we share leads to a second try. Raises RpcError for any other error.
    """
    protocol = MODERN_VERSIONS[-1]
    for _ in range(2):
        channel.adopt(protocol)
        try:
            result = await channel.send_raw_request(
                "server/discover", enveloped(None, protocol, CLIENT_INFO, capabilities), cancel_on_abandon=False
            )
        except RpcError as error:
            offered = _offered_modern(error)
            if offered is None:
                raise
            protocol = offered  # may be the same revision if the server is being updated: worth one retry
            continue
        versions = result.get("supportedVersions")
        common = [v for v in MODERN_VERSIONS if isinstance(versions, list) and v in versions]
        if not common:
            return None
        return _peer(common[-1], result, member_at(result, "_meta", SERVER_INFO))
    return None


async def _initialize(channel: Channel, capabilities: Mapping[str, Any]) -> Peer:
    params = {"protocolVersion": HANDSHAKE_VERSIONS[-1], "capabilities": dict(capabilities), "clientInfo": CLIENT_INFO}
    channel.adopt("")
    result = await channel.send_raw_request("initialize", params, cancel_on_abandon=False)
    protocol = result.get("protocolVersion")
    if protocol in MODERN_VERSIONS:  # this revision has no initialize: use server/discover instead
        why = f"The server answered initialize with {protocol}"
        raise RpcError(UNSUPPORTED_PROTOCOL_VERSION, why, {"supported": [protocol]})
    if protocol not in HANDSHAKE_VERSIONS:
        why = f"The server uses protocol revision {protocol!r}, which multi-mcp does not support"
        raise RpcError(INTERNAL_ERROR, why[:200])
    channel.adopt(protocol)
    channel.send_notification("notifications/initialized", None)
    return _peer(protocol, result, result.get("serverInfo"))


def _peer(protocol: str, result: dict[str, Any], info: Any) -> Peer:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Peer(
        protocol,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else None,
        instructions if isinstance(instructions, str) else None,
    )


def _offered_modern(error: RpcError) -> str | None:
    """Return the newest modern revision that an "unsupported version" error lists and we support, or None."""
    if error.code != UNSUPPORTED_PROTOCOL_VERSION:
        return None
    supported = member_at(error.data, "supported")
    common = [v for v in MODERN_VERSIONS if isinstance(supported, list) and v in supported]
    return common[-1] if common else None
