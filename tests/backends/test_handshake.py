"""Tests of the handshake with servers that refuse the preferred revision, over a scripted channel."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.backends.handshake import shake_hands
from trayapp.wire.messages import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, Call, Params, RpcError

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {}}


def unsupported(*versions: str) -> RpcError:
    """Return the error of a server that supports only these revisions."""
    data = {"supported": list(versions), "requested": MODERN}
    return RpcError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


class Script:
    """A Channel (wire.messages) that answers each method with the next scripted result or error."""

    def __init__(self, **lines: list[Any]) -> None:
        self.lines = lines
        self.heard: list[str] = []

    async def send_raw_request(
        self, method: str, params: Params, *, timeout_s: float | None = None, cancel_on_abandon: bool = True
    ) -> dict[str, Any]:
        self.heard.append(method)
        line = self.lines[method.rpartition("/")[2]].pop(0)
        if isinstance(line, RpcError):
            raise line
        result: dict[str, Any] = line
        return result

    def send_notification(self, method: str, params: Params) -> None:
        self.heard.append(method)

    def relay(self, method: str, params: Params, call: Call) -> int:
        raise AssertionError("a handshake relays nothing")

    def cancel(self, request_id: int, reason: str) -> None:
        raise AssertionError("a handshake relays nothing")

    def adopt(self, protocol: str) -> None:
        """Do nothing: only HTTP needs the agreed revision."""


async def test_a_server_that_refuses_once_what_it_names_itself_is_asked_once_more() -> None:
    channel = Script(discover=[unsupported(MODERN), DISCOVERED])
    assert (await shake_hands(channel, {})).protocol == MODERN
    assert channel.heard == ["server/discover"] * 2


async def test_one_that_refuses_for_good_is_asked_the_older_way() -> None:
    initialized = {"protocolVersion": "2025-06-18", "capabilities": {}}
    channel = Script(discover=[unsupported(MODERN), unsupported(MODERN)], initialize=[initialized])
    assert (await shake_hands(channel, {})).protocol == "2025-06-18"
    assert channel.heard == ["server/discover"] * 2 + ["initialize", "notifications/initialized"]


@pytest.mark.parametrize("refusal", [unsupported("2199-01-01"), RpcError(METHOD_NOT_FOUND, "Method not found")])
async def test_one_that_names_nothing_that_we_speak_is_not_asked_twice(refusal: RpcError) -> None:
    initialized = {"protocolVersion": "2025-11-25", "capabilities": {}}
    channel = Script(discover=[refusal], initialize=[initialized])
    assert (await shake_hands(channel, {})).protocol == "2025-11-25"
    assert channel.heard[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("hint", ["", "2025-11-25"])
async def test_one_that_answers_initialize_with_the_newer_revision_is_asked_to_discover(hint: str) -> None:
    newer = {"protocolVersion": MODERN, "capabilities": {}}
    known = RpcError(METHOD_NOT_FOUND, "Not yet")
    channel = Script(discover=[DISCOVERED] if hint else [known, DISCOVERED], initialize=[newer])
    assert (await shake_hands(channel, {}, hint)).protocol == MODERN
    assert channel.heard[-1] == "server/discover"
