"""Shims that start at the same instant share one gateway. A gateway ends by itself only if a shim started it."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress

import psutil
import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import PATIENCE_S, ShimClient, gateway_pid, processes_of, shim_client, wait_until
from tests.fixtures.odd import alive
from tests.patience import stretched
from trayapp.model.errors import NoGatewayError
from trayapp.service.gateway_launch import RUNS_ALREADY
from trayapp.wire.control import WATCH, ControlClient

AT_ONCE = 20
LINGER_MIN = 0.01
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="the shim of Windows is another one")


def gateways(gateway: Gateway) -> list[int]:
    return [pid for pid, words in processes_of(gateway.home).items() if " start" in words]


@posix_only
@pytest.mark.requirement("proc-one-gateway", "proc-shim-starts-gateway")
def test_twenty_shims_at_the_same_instant_start_one_gateway_and_all_are_served(gateway: Gateway) -> None:
    gateway.write({})
    with ExitStack() as stack:
        clients = [ShimClient(gateway) for _ in range(AT_ONCE)]
        for client in clients:
            stack.callback(client.process.kill)
        for client in clients:
            assert "result" in client.initialize()
            assert client.ask("tools/list")["result"]["tools"] == []
        wait_until(lambda: len(gateways(gateway)) == 1)  # the other gateways exit immediately
        assert len(gateway.snapshot()["gateway"]["sessions"]) == AT_ONCE
        assert gateways(gateway) == [gateway_pid(gateway)]
        children = [psutil.Process(client.process.pid).children() for client in clients]
        assert [c for below in children for c in below if c.status() == psutil.STATUS_ZOMBIE] == []
        assert [client.close() for client in clients] == [0] * AT_ONCE
    assert alive(gateway_pid(gateway))


@pytest.mark.requirement("proc-one-gateway")
@pytest.mark.usefixtures("forked")  # forks start closer together than two interpreters
def test_of_two_gateways_started_at_the_same_instant_one_wins_and_the_other_ends_with_7(gateway: Gateway) -> None:
    gateway.write({})
    for _ in range(AT_ONCE):
        two = [gateway.launch() for _ in range(2)]
        wait_until(lambda pair=two: any(one.poll() is not None for one in pair))  # type: ignore[misc]
        (loser,) = [one for one in two if one.poll() is not None]
        (winner,) = [one for one in two if one is not loser]
        assert loser.returncode == RUNS_ALREADY
        wait_until(lambda pid=winner.pid: answers_as(gateway, pid))  # type: ignore[misc]
        gateway.control("stop")
        assert winner.wait(stretched(PATIENCE_S)) == 0


def answers_as(gateway: Gateway, pid: int) -> bool:
    with suppress(NoGatewayError):  # not listening yet
        return gateway_pid(gateway) == pid
    return False


@posix_only
@pytest.mark.requirement("proc-linger")
def test_a_gateway_that_a_shim_started_ends_after_its_last_session_and_not_before(gateway: Gateway) -> None:
    gateway.write({}, linger=LINGER_MIN)
    with shim_client(gateway) as first:
        pid = gateway_pid(gateway)
        with shim_client(gateway) as second:
            assert gateway_pid(gateway) == pid
            second.ask("ping")
        first.ask("ping")
        assert alive(pid)
    wait_until(lambda: not alive(pid))
    wait_until(lambda: not processes_of(gateway.home))
    with shim_client(gateway) as again:
        assert "result" in again.ask("ping")
        assert gateway_pid(gateway) != pid


@posix_only
@pytest.mark.requirement("proc-linger")
def test_a_gateway_that_a_shim_started_stays_while_somebody_watches_it_as_the_tray_does(gateway: Gateway) -> None:
    gateway.write({}, linger=LINGER_MIN)
    with shim_client(gateway):
        pid = gateway_pid(gateway)
        watcher = ControlClient(gateway.run)
        watcher.call(WATCH)
    with watcher, pytest.raises(psutil.TimeoutExpired):
        psutil.Process(pid).wait(10 * LINGER_MIN * 60)
    wait_until(lambda: not alive(pid))


@pytest.mark.requirement("proc-linger")
def test_a_gateway_that_was_started_by_hand_does_not_linger(gateway: Gateway) -> None:
    """A lingering gateway is the same program, started with `--linger`."""
    gateway.write({}, linger=LINGER_MIN)
    gateway.start()
    with shim_client(gateway) as client:
        client.ask("ping")
    assert gateways(gateway) == [gateway.pid]
    assert "--linger" not in psutil.Process(gateway.pid).cmdline()
    assert gateway.snapshot()["gateway"]["sessions"] == []
