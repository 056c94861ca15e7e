"""Servers are connected before their first call, a few at a time and each only once. Disabled servers never are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.clock import settle
from tests.gateway.world import house, offer, server
from trayapp.gateway.mcp_tool.tool_dependencies import AT_ONCE
from trayapp.model.lifecycle import State

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("one-tool-warm-up")
async def test_only_so_many_are_warmed_up_at_once_and_each_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        names = [f"s{n}" for n in range(AT_ONCE + 3)]
        gates = [made.net[name].hold_start() for name in names]
        for name in names:
            made.cache(server(name), offer("t"))
        made.apply(*map(server, names))
        made.start()
        for _ in range(2):
            for connection in made.gateway.services.pool:
                made.gateway.session_dependencies.tool.warm_up.warm(connection)
        await settle()
        assert made.net.opening_now == AT_ONCE
        for gate in gates:
            gate.set()
        await settle()
        assert [made.state(name) for name in names].count(State.CONNECTED) == AT_ONCE
        assert sum(made.net[name].opened for name in names) == AT_ONCE
        made.gateway.session_dependencies.tool.warm_up.warm(made.gateway.services.pool.find(names[-1]))
        await settle()
        assert made.state(names[-1]) is State.CONNECTED


async def test_a_disabled_server_is_never_warmed_up(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(server("a", disabled=True))
        made.start()
        made.gateway.session_dependencies.tool.warm_up.warm(made.gateway.services.pool.find("a"))
        await settle()
        assert made.net["a"].opened == 0
