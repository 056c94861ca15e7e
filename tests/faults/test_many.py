"""Thirty servers that all fail or hang: lists come from the cache, starts time out, and the gateway then idles."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import anyio
import pytest

from tests.benchmarks.idle import Meter
from tests.e2e.gateway import Gateway
from tests.faults.servers import TOOLS
from tests.faults.world import LONG, Counting, calls, outcome, servers_of
from tests.patience import stretched

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked"),
    pytest.mark.skipif(sys.platform == "win32", reason="reads /proc"),
]
MANY = 30
LIMIT_S = 1.0  # timeout of each handshake
LIST_S = 0.1  # for a list from the cache
QUIET_S = 20.0 if LONG else 2.0  # how long processor time is measured
QUIET_WINDOWS = 10  # enough for the gateway to handle the last failures, even on a busy machine
QUIET_PERCENT = 3.0  # of one core, including noise of the machine


class Crowd:
    """Servers that work until they are made to hang or exit whenever they start."""

    def __init__(self, folder: Path) -> None:
        self.hang, self.mood = folder / "hang", folder / "mood"
        hangs, dies = ("--hang", str(self.hang)), ("--mood", str(self.mood))
        self.servers = [Counting(folder, f"s{n}", hangs if n % 2 else dies) for n in range(MANY)]

    def spoil(self) -> None:
        """Make every server hang or exit when it is started from now on."""
        self.hang.write_text("")
        self.mood.write_text("dies_at_start")

    def configure(self, gateway: Gateway) -> None:
        """Configure all servers, with short timeouts."""
        limit_s = stretched(LIMIT_S)
        entries = {server.name: server.entry(connect_timeout=limit_s) for server in self.servers}
        gateway.write(entries, failure_backoff=600)

    @property
    def tools(self) -> set[str]:
        return {f"{server.name}_{tool}" for server in self.servers for tool in TOOLS}


async def is_quiet(gateway: Gateway) -> None:
    """Wait for a window in which the gateway uses almost no processor time. Fails if there is none."""
    shares: list[float] = []
    while not shares or (min(shares) >= QUIET_PERCENT and len(shares) < QUIET_WINDOWS):
        meter = Meter(gateway.pid)
        await anyio.sleep(QUIET_S)
        shares.append(meter.percent())
    print(f"processor: {', '.join(f'{share:.2f}' for share in shares)} % of a core, in windows of {QUIET_S:g} s")
    assert min(shares) < QUIET_PERCENT


@pytest.mark.requirement("cat-cache-first", "fault-table")
async def test_the_list_of_thirty_dead_servers_comes_from_the_cache_and_starts_nothing(
    gateway: Gateway, tmp_path: Path
) -> None:
    crowd = Crowd(tmp_path)
    crowd.configure(gateway)
    gateway.start()
    await gateway.known()
    assert gateway.stop() == 0
    crowd.spoil()
    gateway.start()
    async with gateway.client() as client:
        began = time.monotonic()
        listed = await client.tools()
        took_s = time.monotonic() - began
        print(f"list of {len(listed)} tools: {took_s * 1000:.1f} ms")
        assert took_s < stretched(LIST_S)
        assert servers_of(gateway) == []
        assert {row["state"] for row in gateway.snapshot()["servers"]} == {"idle"}
        assert set(listed) == crowd.tools
        waiting = [client.ask("tools/call", calls(f"{server.name}_count", n=1)) for server in crowd.servers]
        for server, answer in zip(crowd.servers, waiting, strict=True):
            assert server.name in (await outcome(answer))["error"]["message"]
        assert set(await client.tools()) == crowd.tools
        await is_quiet(gateway)
        assert servers_of(gateway) == []


@pytest.mark.requirement("life-hang-in-box", "fault-table")
async def test_without_a_cache_thirty_dead_servers_hold_up_no_handshake_and_end_within_their_limits(
    gateway: Gateway, tmp_path: Path
) -> None:
    crowd = Crowd(tmp_path)
    crowd.spoil()
    crowd.configure(gateway)
    gateway.start()
    began = time.monotonic()
    async with gateway.client() as client:
        print(f"initialize through a new shim: {(time.monotonic() - began) * 1000:.1f} ms")
        busy = [row["name"] for row in gateway.snapshot()["servers"] if row["state"] in ("idle", "connecting")]
        assert busy != []  # `initialize` was answered before all servers had failed
        with anyio.fail_after(stretched(MANY * LIMIT_S)):  # ten servers start at a time, which takes a tenth of this
            await gateway.known()
        assert {row["state"] for row in gateway.snapshot()["servers"]} == {"failed"}
        assert await client.tools() == []
        error = (await outcome(client.ask("tools/call", calls("s1_count"))))["error"]
        assert error["message"]
        await is_quiet(gateway)
        assert servers_of(gateway) == []
