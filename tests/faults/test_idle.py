"""A gateway that nobody asks anything: no network, no processes that come and go, hardly a wake-up.

Never here: what it costs in memory (tests/benchmarks).
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from tests.benchmarks.idle import tasks
from tests.e2e.gateway import Gateway
from tests.faults.world import LONG, Counting, shim_client, takes_long
from tests.tools import missing, require

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.timeout(3000 if LONG else 90),
]
SERVERS = 10
LASTS_S = 2400.0 if LONG else 8.0
WAKE_UPS_MOST = 2.0  # a second
NETWORK = "trace=connect,sendto,sendmsg,sendmmsg,bind"
LOCAL = ("AF_UNIX", "AF_NETLINK")


def wake_ups(pid: int) -> dict[str, int]:
    """Of each thread so far: voluntary context switches. A thread that ends takes its number with it."""
    counts = {}
    for task in tasks(pid):
        lines = (task / "status").read_text().splitlines()
        counts[task.name] = sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))
    return counts


def write(gateway: Gateway, folder: Path, lifecycle: str) -> list[Counting]:
    servers = [Counting(folder, f"s{n}") for n in range(SERVERS)]
    gateway.write({server.name: server.entry(lifecycle=lifecycle) for server in servers}, http={"enabled": True})
    return servers


@pytest.mark.requirement("fault-idle")
@pytest.mark.parametrize("lifecycle", ["lazy", "keep-alive"])
async def test_an_idle_gateway_wakes_less_than_twice_a_second(gateway: Gateway, tmp_path: Path, lifecycle: str) -> None:
    """Ten servers, none or all of them connected, and one session that asks nothing."""
    takes_long()
    write(gateway, tmp_path, lifecycle)
    gateway.start()
    await gateway.known()
    with shim_client(gateway) as client:
        assert client.ask("tools/list")["result"]["tools"]
        await anyio.sleep(2)  # what the discovery set off is over
        began, before = time.monotonic(), wake_ups(gateway.pid)
        below = sorted(process.pid for process in psutil.Process(gateway.pid).children(recursive=True))
        await anyio.sleep(LASTS_S)
        passed = time.monotonic() - began
        woken = sum(count - before.get(thread, 0) for thread, count in wake_ups(gateway.pid).items())
        print(f"{woken / passed:.2f} wake-ups a second over {passed:.0f} s")
        assert woken / passed < WAKE_UPS_MOST
        assert sorted(p.pid for p in psutil.Process(gateway.pid).children(recursive=True)) == below


@pytest.mark.requirement("fault-idle")
async def test_an_idle_gateway_sends_nothing_into_any_network(gateway: Gateway, tmp_path: Path) -> None:
    """Its servers and sessions are reached by pipes and a local socket: no other address is ever named."""
    takes_long()
    strace = require("strace")
    write(gateway, tmp_path, "lazy")
    gateway.start()
    await gateway.known()
    trace = tmp_path / "trace"
    words = [strace, "-f", "-qq", "-p", str(gateway.pid), "-e", NETWORK, "-o", str(trace)]
    async with await anyio.open_process(words, stdin=None, stdout=None, stderr=None) as watching:
        await anyio.sleep(LASTS_S)
        if watching.returncode is not None:
            missing("may not look into another process (ptrace)")
        watching.send_signal(signal.SIGINT)
    lines = trace.read_text().splitlines()
    print(f"{len(lines)} calls that could reach a network")
    assert [line for line in lines if "AF_INET" in line] == []
    assert [line for line in lines if "connect(" in line and not any(kind in line for kind in LOCAL)] == []
