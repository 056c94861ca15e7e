"""An idle gateway: no network traffic, no processes that come and go, and hardly any wake-ups."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.benchmarks.idle import Meter
from tests.e2e.gateway import Gateway
from tests.faults.world import LONG, Counting, shim_client, takes_long
from tests.tools import missing, require

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.timeout(3000 if LONG else 180),
]
SERVERS = 10
WINDOW_S = 2400.0 if LONG else 10.0  # whole periods of the regular checks, most of which run every 5 or 10 s
# Only the quietest window counts, because effects of the start or a busy machine may disturb the others.
WINDOWS = 1 if LONG else 12
WAKE_UPS_MOST = 1.0  # per second (0.4 on an otherwise idle machine)
LASTS_S = 2400.0 if LONG else 8.0  # how long network calls are traced
NETWORK = "trace=connect,sendto,sendmsg,sendmmsg,bind"
LOCAL = ("AF_UNIX", "AF_NETLINK")


def write(gateway: Gateway, folder: Path, lifecycle: str) -> list[Counting]:
    servers = [Counting(folder, f"s{n}") for n in range(SERVERS)]
    gateway.write(
        {server.name: server.entry(lifecycle=lifecycle) for server in servers}, http={"enabled": True, "port": 0}
    )
    return servers


@pytest.mark.requirement("idle-quiet")
@pytest.mark.parametrize("lifecycle", ["lazy", "keep-alive"])
async def test_an_idle_gateway_wakes_less_than_once_a_second(gateway: Gateway, tmp_path: Path, lifecycle: str) -> None:
    """The gateway has ten servers, none or all of them connected, and one idle session."""
    takes_long()
    write(gateway, tmp_path, lifecycle)
    gateway.start()
    await gateway.known()
    with shim_client(gateway) as client:
        assert client.ask("tools/list")["result"]["tools"]
        rates: list[float] = []
        while not rates or (min(rates) >= WAKE_UPS_MOST and len(rates) < WINDOWS):
            rates += await quiet(gateway)
        print(f"{', '.join(f'{rate:.2f}' for rate in rates)} wake-ups a second, in windows of {WINDOW_S:g} s")
        assert min(rates) < WAKE_UPS_MOST


async def quiet(gateway: Gateway) -> list[float]:
    """Return the wake-ups per second in a window, or WAKE_UPS_MOST if processes started or ended in it."""
    before, meter = sorted(gateway.children()), Meter(gateway.pid)
    await anyio.sleep(WINDOW_S)
    return [meter.wake_ups() if sorted(gateway.children()) == before else WAKE_UPS_MOST]


@pytest.mark.requirement("idle-quiet")
async def test_an_idle_gateway_sends_nothing_into_any_network(gateway: Gateway, tmp_path: Path) -> None:
    """The gateway reaches its servers and sessions only through pipes and a local socket."""
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
