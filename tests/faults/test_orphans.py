"""However the gateway ends, its servers' processes end within 10 s, and no other process is harmed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import (
    GONE_S,
    Counting,
    gateway_pid,
    kill_gateway,
    nothing_left,
    processes_of,
    servers_of,
    shim_client,
    wait_until,
)
from tests.fixtures.odd import alive
from tests.patience import stretched
from tests.tools import require
from trayapp.backends.stdio.guardian import start_time

pytestmark = [
    pytest.mark.requirement("proc-no-orphans"),
    pytest.mark.usefixtures("forked"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show whose processes these are"),
]
LADDER_S = 2.0  # until a leftover server that does not exit is killed
SLEEPS = [sys.executable, "-I", "-S", "-c", "import time\nwhile True: time.sleep(60)"]


@contextmanager
def foreigner() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that is not a server of any gateway. Fails if it is killed."""
    with subprocess.Popen(SLEEPS, env={}) as process:
        try:
            yield process
            assert process.poll() is None, "killed, and not ours"
        finally:
            process.kill()


def guardian_of(gateway: Gateway) -> int:
    gateway.children()  # returns once the guardian has forked and its first process is gone
    (pid,) = [pid for pid, words in processes_of(gateway.home).items() if "guardian.py" in words]
    return pid


def serving(gateway: Gateway, *servers: Counting) -> list[int]:
    """Start the gateway and wait until these servers are connected. Return the ids of all processes below it."""
    gateway.write({server.name: server.entry(lifecycle="eager") for server in servers})
    gateway.start()
    for server in servers:
        connected(gateway, server.name)
    return gateway.children()


def connected(gateway: Gateway, name: str) -> None:
    wait_until(lambda: any(s["name"] == name and s["state"] == "connected" for s in gateway.snapshot()["servers"]))


def test_no_descendant_outlives_a_killed_gateway_and_nobody_else_is_harmed(gateway: Gateway, tmp_path: Path) -> None:
    """The servers are polite, deaf, behind a shell, or have processes in other sessions and process groups."""
    family = tmp_path / "family"
    behind = Counting(tmp_path, "behind", ("--deaf",))
    shell = [require("bash"), "-c", f"{' '.join(behind.argv)}; true"]
    servers = [
        Counting(tmp_path, "polite"),
        Counting(tmp_path, "deaf", ("--deaf",)),
        Counting(tmp_path, "parent", ("--family", str(family))),
    ]
    entries = {server.name: server.entry(lifecycle="eager") for server in servers}
    gateway.write({**entries, "behind": {"command": shell, "lifecycle": "eager"}})
    gateway.start()
    for name in (*entries, "behind"):
        connected(gateway, name)
    below = gateway.children()
    grandchildren = [int(pid) for pid in family.read_text().split()]
    assert len(below) == 4 + 1 + 2
    assert set(grandchildren) < set(below)
    with foreigner() as other:
        registry = next((gateway.home / "run").glob("backends-*.tsv"))
        with registry.open("a") as file:  # process ids that now belong to other processes
            file.write(f"{other.pid}\t{int(start_time(other.pid).partition('.')[0]) - 1}\t\n{os.getpid()}\t1\t\n")
        kill_gateway(gateway)
        wait_until(lambda: not any(alive(pid) for pid in below), GONE_S)
        nothing_left(gateway)
        assert list((gateway.home / "run").glob("backends-*")) == []


@pytest.mark.parametrize("how", ["server", "gateway", "kill", "kill both"])
def test_who_left_its_session_its_parent_and_its_environment_is_ended_with_its_server_alone(
    gateway: Gateway, tmp_path: Path, how: str
) -> None:
    runaways = [tmp_path / "one.pid", tmp_path / "two.pid"]
    one, two = (Counting(tmp_path, path.stem, ("--runaway", str(path))) for path in runaways)
    serving(gateway, one, two)
    wait_until(lambda: all(path.exists() and path.read_text() for path in runaways))
    first, second = (int(path.read_text()) for path in runaways)
    with foreigner() as other:
        assert not {first, second, other.pid} & set(gateway.children())
        if how == "server":
            gateway.write({two.name: two.entry(lifecycle="eager")})
            wait_until(lambda: not alive(first), GONE_S)
            assert alive(second)
        if how in ("server", "gateway"):
            assert gateway.stop() == 0
        elif how == "kill":
            kill_gateway(gateway)
        else:
            os.kill(guardian_of(gateway), signal.SIGKILL)
            kill_gateway(gateway)
            gateway.write({})
            gateway.start()
        wait_until(lambda: not alive(first) and not alive(second), GONE_S)


def test_a_gateway_that_stops_in_order_leaves_neither_guardian_nor_registry(gateway: Gateway, tmp_path: Path) -> None:
    family = tmp_path / "family"
    below = serving(gateway, Counting(tmp_path), Counting(tmp_path, "parent", ("--family", str(family))))
    guardian = guardian_of(gateway)
    assert guardian not in below
    assert gateway.stop() == 0
    assert [pid for pid in below if alive(pid)] == []
    wait_until(lambda: not alive(guardian))
    assert list((gateway.home / "run").glob("backends-*")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_gateway_told_by_a_signal_stops_in_order(gateway: Gateway, tmp_path: Path, number: int) -> None:
    below = serving(gateway, Counting(tmp_path))
    assert gateway.process is not None
    gateway.process.send_signal(number)
    assert gateway.process.wait(stretched(20.0)) == 0
    assert [pid for pid in below if alive(pid)] == []
    nothing_left(gateway)


def test_what_a_gateway_and_its_guardian_left_the_next_gateway_ends(gateway: Gateway, tmp_path: Path) -> None:
    deaf = Counting(tmp_path, "deaf", ("--stays",))
    below = serving(gateway, deaf)
    os.kill(guardian_of(gateway), signal.SIGKILL)
    kill_gateway(gateway)
    assert [pid for pid in below if alive(pid)] == below
    gateway.write({"polite": Counting(tmp_path, "polite").entry()})
    gateway.start()
    with shim_client(gateway) as client:  # served without waiting for the end of those processes
        began = time.monotonic()
        client.text("polite_count", n=1)
        # After LADDER_S, they may already be gone.
        assert any(alive(pid) for pid in below) or time.monotonic() - began > LADDER_S
        wait_until(lambda: not any(alive(pid) for pid in below), GONE_S)
        client.text("polite_count", n=2)


def test_a_registry_that_cannot_be_written_hides_no_server(gateway: Gateway, tmp_path: Path) -> None:
    """A folder takes the place of the registry file."""
    deaf, more = Counting(tmp_path, "deaf", ("--stays",)), Counting(tmp_path, "more", ("--stays",))
    serving(gateway, deaf)
    registry = next((gateway.home / "run").glob("backends-*.tsv"))
    registry.unlink()
    registry.mkdir()
    gateway.write({server.name: server.entry(lifecycle="eager") for server in (deaf, more)})
    connected(gateway, "more")
    below = gateway.children()
    assert len(below) == 2
    kill_gateway(gateway)
    wait_until(lambda: not any(alive(pid) for pid in below), GONE_S)
    nothing_left(gateway)


def test_a_kill_while_servers_are_being_started_leaves_none(gateway: Gateway, tmp_path: Path) -> None:
    servers = [Counting(tmp_path, f"deaf{n}", ("--stays",)) for n in range(4)]
    gateway.write({server.name: server.entry(lifecycle="eager") for server in servers})
    gateway.start()
    wait_until(lambda: servers_of(gateway))  # wait for a server, because the guardian and a login shell start earlier
    os.kill(gateway_pid(gateway), signal.SIGKILL)
    assert gateway.process is not None
    gateway.process.wait()
    nothing_left(gateway)
