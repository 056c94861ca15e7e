"""Repeated random kills: no session is lost, no process is left, and no call is executed twice."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import (
    GONE_S,
    LONG,
    RECOVERY_S,
    Counting,
    ShimClient,
    gateway_pid,
    processes_of,
    shim_client,
    takes_long,
    wait_until,
)
from tests.patience import stretched
from trayapp.model.errors import MultiMcpError

KILLS = 200 if LONG else 30
KINDS = ("gateway", "server", "server", "shim", "client")
CALLS = 4  # in flight for each client at each kill
SEED = 20261121


class Storm:
    """Two lasting clients, three servers, and kills in random order.

    A third client, the guest, is replaced whenever it or its shim is killed.
    """

    def __init__(self, gateway: Gateway, servers: list[Counting], clients: list[ShimClient]) -> None:
        self.gateway = gateway
        self.servers = servers
        self.clients = clients
        self.chance = random.Random(SEED)
        self.sent: dict[str, tuple[ShimClient, int]] = {}  # n -> client and request id of the call
        self.slowest_s = 0.0
        self.killed = {"gateway": 0, "server": 0, "shim": 0, "client": 0}
        self.deck: list[str] = []
        self.guest = self.next_guest()

    def next_kind(self) -> str:
        """Return the next of the shuffled KINDS. All of them are used before they are shuffled again."""
        if not self.deck:
            self.deck = self.chance.sample(KINDS, len(KINDS))
        return self.deck.pop()

    def turn(self, number: int) -> None:
        """Start calls, kill something amid them, and check that calls succeed again within RECOVERY_S."""
        victims = self.pids()
        for k in range(CALLS):
            for client in self.clients:
                self.call(client, f"{number}.{k}.{self.clients.index(client)}")
        kind = self.next_kind() if victims["server"] else "gateway"
        for k in range(CALLS):
            self.guest.call(f"{self.chance.choice(self.servers).name}_count", n=f"guest.{number}.{k}")
        time.sleep(self.chance.random() * 0.01)  # so that the kill comes at a random moment
        if kind == "server" and not self.kill_one(victims[kind]):
            kind = "gateway"
        self.killed[kind] += 1
        if kind == "gateway":
            assert self.kill_one(victims[kind])
        elif kind != "server":
            self.guest.kill() if kind == "client" else self.kill_guest()
            self.guest = self.next_guest()
        began = time.monotonic()
        for n in self.sent:
            if n.startswith(f"{number}."):
                client, request_id = self.sent[n]
                client.answer(request_id)
        for client in self.clients:
            self.recovers(client, number)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def kill_one(self, pids: list[int]) -> bool:
        """Kill a random one of these processes. Return False if all of them have ended since they were listed."""
        for pid in self.chance.sample(pids, len(pids)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def next_guest(self) -> ShimClient:
        guest = ShimClient(self.gateway)
        assert "result" in guest.initialize()
        return guest

    def kill_guest(self) -> None:
        """Kill the guest's shim and close the guest's pipes."""
        self.guest.process.kill()
        self.guest.kill()

    def call(self, client: ShimClient, n: str) -> int:
        server = self.chance.choice(self.servers)
        request_id = client.call(f"{server.name}_count", n=n, size=self.chance.choice((0, 100, 200_000)))
        self.sent[n] = client, request_id
        return request_id

    def recovers(self, client: ShimClient, number: int) -> None:
        end = time.monotonic() + stretched(RECOVERY_S)
        for attempt in range(1000):
            answer = client.answer(self.call(client, f"after.{number}.{attempt}.{self.clients.index(client)}"))
            if "result" in answer:
                return
            assert time.monotonic() < end, answer
            time.sleep(0.02)

    def pids(self) -> dict[str, list[int]]:
        rows = self.gateway.snapshot()["servers"]
        return {"gateway": [gateway_pid(self.gateway)], "server": [row["pid"] for row in rows if row["pid"]]}

    def check(self) -> None:
        """Check that each call had one answer and was executed at most once, and exactly once if it succeeded."""
        executed: Counter[str] = Counter()
        for server in self.servers:
            executed += server.executed()
        assert max(executed.values()) == 1
        for n, (client, request_id) in self.sent.items():
            if "result" in client.answers[request_id]:
                assert executed[n] == 1


@pytest.mark.requirement("shim-never-calls-twice", "shim-replays-handshake", "proc-no-orphans", "life-crash-in-box")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show whose processes these are")
@pytest.mark.timeout(1200 if LONG else 300)
def test_random_kills_lose_no_session_leave_no_process_and_double_no_call(gateway: Gateway, tmp_path: Path) -> None:
    takes_long()
    servers = [Counting(tmp_path, "one"), Counting(tmp_path, "two"), Counting(tmp_path, "stays", ("--stays",))]
    gateway.write({server.name: server.entry() for server in servers}, failure_backoff=0)
    gateway.start()
    with shim_client(gateway) as first, shim_client(gateway) as second:
        storm = Storm(gateway, servers, [first, second])
        for server in servers:
            first.text(f"{server.name}_count", n=f"start-{server.name}")
        for number in range(KILLS):
            storm.turn(number)
        storm.guest.kill()
        storm.check()
        assert min(storm.killed.values()) > KILLS // 20
        print(f"{storm.killed}, slowest recovery {storm.slowest_s:.2f} s, {len(storm.sent)} calls")
        wait_until(lambda: only_the_living(gateway, [first, second]), GONE_S)


def only_the_living(gateway: Gateway, clients: list[ShimClient]) -> bool:
    """True if the home's only processes are one gateway, its servers, its guardian and the two shims."""
    try:
        rows = gateway.snapshot()["servers"]
        known = {gateway_pid(gateway), *(row["pid"] for row in rows), *(client.process.pid for client in clients)}
    except MultiMcpError:
        return False
    others = {pid: words for pid, words in processes_of(gateway.home).items() if pid not in known}
    return len(others) == 1 and "guardian.py" in str(others)
