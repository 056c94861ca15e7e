"""Whether there is a route into the network, and who needs one."""

from __future__ import annotations

import anyio
import pytest

from tests.fixtures.clock import FakeClock, settle
from trayapp.backends.route import ROUTE_LOOK_S, ROUTE_WAIT_S, await_route, has_route, is_remote
from trayapp.model.config import ServerConfig


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://mcp.example.test/mcp", True),
        ("https://${HOST}/mcp", True),
        ("http://[::bad", True),
        ("http://192.168.1.5:80/mcp", True),
        ("http://localhost:8000/mcp", False),
        ("http://LOCALHOST/mcp", False),
        ("http://tool.localhost/mcp", False),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://[::1]:8000/mcp", False),
    ],
)
def test_only_servers_on_other_machines_need_a_route(url: str, remote: bool) -> None:
    assert is_remote(ServerConfig("x", url=url)) is remote


def test_a_process_needs_no_route() -> None:
    assert not is_remote(ServerConfig("x", command="python3"))


def test_asking_for_a_route_sends_nothing_and_does_not_fail() -> None:
    assert has_route() in (True, False)


@pytest.mark.anyio
async def test_with_a_route_nobody_waits() -> None:
    clock = FakeClock()
    await await_route(clock, lambda: True)
    assert clock.slept == []


@pytest.mark.anyio
@pytest.mark.parametrize(("comes_after", "waited"), [(3.0, 3.0), (1000.0, ROUTE_WAIT_S)])
async def test_a_route_is_awaited_for_ten_seconds_at_most(comes_after: float, waited: float) -> None:
    clock = FakeClock()
    start = clock.now()
    ended: list[float] = []

    async def wait() -> None:
        await await_route(clock, lambda: clock.now() - start >= comes_after)
        ended.append(clock.now() - start)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await settle()
        await clock.pass_(60)
    assert ended == [pytest.approx(waited, abs=ROUTE_LOOK_S)]
