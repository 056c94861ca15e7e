"""Long use in which clients and servers come and go: the gateway's memory and descriptors do not grow."""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from tests.e2e.client import RawClient, task_group
from tests.e2e.gateway import Gateway
from tests.faults.world import LONG, Counting, calls, outcome, takes_long

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="descriptors are counted"),
    pytest.mark.timeout(900 if LONG else 60),
]
CLIENTS, SERVERS = 5, 10
LASTS_S = 600.0 if LONG else 6.0
# Allowed relative growth from the third quarter to the last. Short runs may grow more, because memory still grows in
# the first seconds after a start.
GROWS = 0.05 if LONG else 0.15
SAMPLE_S = 0.25
SEED = 20261121


class Soak:
    """The load on the gateway, and the memory and descriptors that it uses."""

    def __init__(self, gateway: Gateway, servers: list[Counting]) -> None:
        self.gateway = gateway
        self.servers = servers
        self.chance = random.Random(SEED)
        self.ends = time.monotonic() + LASTS_S
        self.asked = self.failed = self.sessions = 0
        self.memory: list[int] = []
        self.descriptors: list[int] = []

    def goes_on(self) -> bool:
        return time.monotonic() < self.ends

    async def be_clients(self) -> None:
        """Run sessions one after another. Each makes calls of random sizes to random servers."""
        while self.goes_on():
            self.sessions += 1
            async with self.gateway.client() as client:
                await client.tools()
                for _ in range(self.chance.randrange(5, 60)):
                    if not self.goes_on():
                        break
                    await self.call(client)

    async def call(self, client: RawClient) -> None:
        server = self.chance.choice(self.servers)
        self.asked += 1
        size = self.chance.choice((0, 0, 1000, 300_000))
        answer = await outcome(client.ask("tools/call", calls(f"{server.name}_count", n=self.asked, size=size)))
        self.failed += "error" in answer
        await anyio.sleep(self.chance.random() * 0.02)

    async def disturb(self) -> None:
        """Kill or reconnect random servers until the soak ends."""
        while self.goes_on():
            await anyio.sleep(self.chance.random() * 0.6)
            server = self.chance.choice(self.servers).name
            if self.chance.random() < 0.5:
                await self.gateway.ask("reconnect", server=server)
                continue
            pid = (await anyio.to_thread.run_sync(self.gateway.server, server))["pid"]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL) if pid else None

    async def measure(self) -> None:
        process = psutil.Process(self.gateway.pid)
        while self.goes_on():
            self.memory.append(process.memory_info().rss)
            self.descriptors.append(process.num_fds())
            await anyio.sleep(SAMPLE_S)


def growth(samples: list[int]) -> float:
    """Return how far the last quarter's median exceeds the third quarter's, as a fraction."""
    quarter = len(samples) // 4
    third, last = statistics.median(samples[2 * quarter : 3 * quarter]), statistics.median(samples[3 * quarter :])
    return last / third - 1


async def test_in_long_use_memory_and_descriptors_of_the_gateway_stay(gateway: Gateway, tmp_path: Path) -> None:
    takes_long()
    servers = [Counting(tmp_path, f"server{n}") for n in range(SERVERS)]
    gateway.write({server.name: server.entry(idle_timeout=0.01) for server in servers}, failure_backoff=0)
    gateway.start()
    await gateway.known()
    async with gateway.client() as client:  # the first call opens the history, which stays open
        await outcome(client.ask("tools/call", calls("server0_count", n=0)))
    await gateway.settled(lambda: not any(row["pid"] for row in gateway.snapshot()["servers"]))
    before = psutil.Process(gateway.pid).num_fds()
    soak = Soak(gateway, servers)
    async with task_group() as tasks:
        for _ in range(CLIENTS):
            tasks.start_soon(soak.be_clients)
        tasks.start_soon(soak.disturb)
        tasks.start_soon(soak.measure)
    print(f"{soak.asked} calls, {soak.failed} failed, {soak.sessions} sessions")
    print(f"memory {soak.memory[-1] / 2**20:.1f} MiB, {growth(soak.memory):+.1%} over the last half")
    print(f"descriptors {statistics.median(soak.descriptors):.0f}, {growth(soak.descriptors):+.1%} over the last half")
    assert soak.failed < soak.asked // 10
    assert growth(soak.memory) < GROWS
    assert growth(soak.descriptors) < GROWS
    await gateway.settled(lambda: not any(row["pid"] for row in gateway.snapshot()["servers"]))
    await gateway.settled(lambda: psutil.Process(gateway.pid).num_fds() <= before)
    assert max(count for server in servers for count in server.executed().values()) == 1
