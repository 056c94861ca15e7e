"""Half-open connections: the server's machine is cut off and does not even close its connections."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.e2e.gateway import Gateway
from tests.faults.trial import ERROR, Trial, kind_of, trial
from tests.faults.world import LONG, PATIENCE_S
from tests.tools import missing, require

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="makes a network of its own"),
    pytest.mark.timeout(200),
    pytest.mark.requirement("fault-table"),
]
ROOT = Path(__file__).parents[2]
PORT = 8091
NOTICED_S = 90.0  # the kernel's probes take a minute
SHORT_S = 3.0  # the length of an interruption that connections survive


@dataclass
class Cable:
    """A network namespace for a server, joined to this machine by a pair of virtual interfaces."""

    name: str
    ours: str
    theirs: str

    def lay(self) -> None:
        """Set up the network. Raises CalledProcessError without permission."""
        self.ip("netns", "add", self.name)
        self.ip("link", "add", f"{self.name}a", "type", "veth", "peer", "name", f"{self.name}b", "netns", self.name)
        self.ip("addr", "add", f"{self.ours}/30", "dev", f"{self.name}a")
        self.ip("link", "set", f"{self.name}a", "up")
        self.ip("-n", self.name, "addr", "add", f"{self.theirs}/30", "dev", f"{self.name}b")
        self.ip("-n", self.name, "link", "set", f"{self.name}b", "up")

    def cut(self) -> None:
        """Cut the connections at their far end, so that this end is not notified."""
        self.ip("-n", self.name, "addr", "flush", "dev", f"{self.name}b")

    def put_back(self) -> None:
        """Restore the connections."""
        self.ip("-n", self.name, "addr", "add", f"{self.theirs}/30", "dev", f"{self.name}b")

    def move_out(self) -> None:
        """Remove the network and everything in it."""
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", f"{self.name}a"], check=False, capture_output=True)

    @staticmethod
    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    require("ip")
    number = os.getpid() % 200
    made = Cable(f"mm{number}", f"10.213.{number}.1", f"10.213.{number}.2")
    try:
        made.lay()
    except subprocess.CalledProcessError as error:
        made.move_out()
        missing(f"may not make a network: {error.stderr.decode().strip()}")
    words = ["ip", "netns", "exec", made.name, sys.executable, "-m", "tests.faults.site", made.theirs, str(PORT)]
    server = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        assert made.theirs in server.stdout.readline()
        yield made
    finally:
        server.kill()
        server.wait(PATIENCE_S)
        server.stdout.close()
        made.move_out()


def entry(cable: Cable) -> dict[str, str]:
    return {"url": f"http://{cable.theirs}:{PORT}/mcp"}


async def in_flight(made: Trial) -> None:
    """Start a call that the server holds. Calls before and after it are answered."""
    assert await made.tries("bad_echo", text="before") == "answer"
    made.begin_call("bad_hold", key="k")
    assert await made.tries("bad_echo", text="after it") == "answer"


async def test_a_cable_that_is_put_back_costs_no_call(gateway: Gateway, tmp_path: Path, cable: Cable) -> None:
    async with trial(gateway, tmp_path, entry(cable)) as made:
        await in_flight(made)
        await anyio.to_thread.run_sync(cable.cut)
        made.begin_call("bad_echo", text="into the void")
        with anyio.move_on_after(SHORT_S):
            await anyio.sleep_forever()
        assert [answer.done() for answer in made.open] == [False, False]
        await anyio.to_thread.run_sync(cable.put_back)
        print(f"recovery: {await made.recovers('bad_echo', text='again'):.2f} s")
        await made.client.call("bad_release", key="k")
        assert await made.ended() == ["answer", "answer"]


@pytest.mark.skipif(not LONG, reason="the kernel asks for a minute; MULTI_MCP_LONG_TESTS=1")
async def test_calls_to_a_machine_that_is_gone_end_with_one_error_each(
    gateway: Gateway, tmp_path: Path, cable: Cable
) -> None:
    async with trial(gateway, tmp_path, entry(cable)) as made:
        await in_flight(made)
        await anyio.to_thread.run_sync(cable.cut)
        made.begin_call("bad_echo", text="into the void")
        for answer in made.open:
            with anyio.fail_after(NOTICED_S):
                assert kind_of(await answer) == ERROR
        await anyio.to_thread.run_sync(cable.put_back)
        await made.recovers("bad_echo", text="again")
