"""The gateway dies under its clients and servers: sessions go on, calls get one error each, no process is left."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests.e2e.client import RawClient
from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.fixtures.odd import Odd, alive, until
from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import STOP

pytestmark = pytest.mark.anyio

RECOVERY_S = 5.0  # the promise: all works again that long after the last fault
GONE_S = 10.0  # the promise: no descendant is left after that
KILLS = 200 if os.environ.get("MULTI_MCP_LONG_TESTS") else 12
ESCAPED = "import os, sys, time; os.setsid(); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
HOLDER = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.fixture
async def gateway(home: Path) -> AsyncIterator[Gateway]:
    with gateway_in(home) as made:
        yield made
        end(made)


def end(gateway: Gateway) -> None:
    """Stop whatever gateway runs in that home, also one that a shim started."""
    try:
        pid = gateway.snapshot()["gateway"]["pid"]
        gateway.control(STOP)
    except NoGatewayError:
        return
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], 10)


def kill(gateway: Gateway) -> None:
    """SIGKILL to the gateway of that home, whoever started it."""
    pid = gateway.snapshot()["gateway"]["pid"]
    os.kill(pid, signal.SIGKILL)
    if gateway.process is not None and gateway.process.pid == pid:
        gateway.process.wait(10)


async def killed(gateway: Gateway) -> None:
    """As `kill`, in a thread, and tried again while another gateway is just coming up."""

    def attempt() -> bool:
        try:
            kill(gateway)
        except (NoGatewayError, ProcessLookupError):
            return False
        return True

    await until(attempt)


def calls_of(odd: Odd) -> list[dict[str, Any]]:
    return odd.received("tools/call")


# -- the session -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("shim-replays-handshake")
async def test_the_next_request_after_a_killed_gateway_is_answered(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    gateway.write({"odd": entry(odd)})
    gateway.start()
    async with gateway.client() as client:
        await client.call("odd_echo", text="before")
        await killed(gateway)
        assert (await client.call("odd_echo", text="after"))["content"]
        assert await client.tools()
        assert client.stray == []
        session = (await gateway.ask("snapshot"))["gateway"]["sessions"][0]
        assert (session["client"], session["protocol"]) == ("test client", "2025-11-25")


@pytest.mark.requirement("shim-never-calls-twice", "shim-stdout-clean")
async def test_calls_under_way_get_one_error_each_and_are_not_sent_again(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    gateway.write({"odd": entry(odd)})
    gateway.start()
    async with gateway.client() as client:
        waiting = [client.ask("tools/call", {"name": "odd_hold", "arguments": {"key": str(n)}}) for n in range(5)]
        await until(lambda: len(calls_of(odd)) == 5)
        await killed(gateway)
        with anyio.fail_after(20):
            answers = [await one for one in waiting]
        assert [answer["error"]["data"]["code"] for answer in answers] == ["gateway_lost"] * 5
        assert (await client.call("odd_echo"))["content"]
        assert client.stray == []
    holds = [event for event in calls_of(odd) if event["params"]["name"] == "hold"]
    assert len(holds) == 5


async def test_a_gateway_that_was_stopped_is_started_again_only_when_the_client_wants_something(
    gateway: Gateway, tmp_path: Path
) -> None:
    gateway.write({"odd": entry(Odd(tmp_path))})
    gateway.start()
    async with gateway.client() as client:
        await client.tools()
        assert gateway.stop() == 0
        with pytest.raises(NoGatewayError):
            gateway.snapshot()
        assert "odd_echo" in await client.tools()
        assert gateway.snapshot()["gateway"]["state"] == "running"


async def test_half_a_request_written_before_the_death_is_whole_after_it(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write({"odd": entry(Odd(tmp_path))})
    gateway.start()
    async with gateway.client() as client:
        await client.tools()
        assert client.process.stdin is not None
        client.process.stdin.write(b'{"jsonrpc":"2.0","id":"half",')
        await client.process.stdin.drain()
        await killed(gateway)
        client.process.stdin.write(b'"method":"ping"}\n')
        await until(lambda: client.stray)  # nobody asked by way of the client
        assert client.stray == [{"jsonrpc": "2.0", "id": "half", "result": {}}]
        assert await client.tools()


@pytest.mark.requirement("shim-never-calls-twice")
async def test_random_kills_lose_no_session_and_double_no_call(gateway: Gateway, tmp_path: Path) -> None:
    """Backend and gateway in turn, at random moments of calls that are counted by the server."""
    chance = random.Random(20261121)
    odd = Odd(tmp_path)
    gateway.write({"odd": entry(odd)})
    gateway.start()
    async with gateway.client() as client:
        await client.tools()
        outcomes: dict[str, bool] = {}
        for number in range(KILLS):
            waiting = {f"{number}.{n}": ask_echo(client, f"{number}.{n}") for n in range(3)}
            await anyio.sleep(chance.random() * 0.02)
            victim = odd.pids[-1] if odd.pids and chance.random() < 0.5 else 0
            if victim and alive(victim):
                os.kill(victim, signal.SIGKILL)
            else:
                with suppress(NoGatewayError, ProcessLookupError):  # just coming up
                    kill(gateway)
            for text, answer in waiting.items():
                with anyio.fail_after(30):
                    outcomes[text] = "result" in await answer
        with anyio.fail_after(RECOVERY_S):
            while "error" in await ask_echo(client, f"last {chance.random()}"):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        assert client.stray == []
    seen = [event["params"]["arguments"].get("text") for event in calls_of(odd)]
    assert len(seen) == len(set(seen))
    assert {text for text, done in outcomes.items() if done} <= set(seen)
    assert len(outcomes) == 3 * KILLS


def ask_echo(client: RawClient, text: str) -> Any:
    return client.ask("tools/call", {"name": "odd_echo", "arguments": {"text": text}})


# -- the processes ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("proc-no-orphans")
@pytest.mark.parametrize("switches", [(), ("--ignore-eof",), ("--ignore-eof", "--ignore-term")])
async def test_no_server_outlives_a_killed_gateway(gateway: Gateway, tmp_path: Path, switches: tuple[str, ...]) -> None:
    odd = Odd(tmp_path, switches=switches)
    gateway.write({"odd": entry(odd, lifecycle="eager")})
    gateway.start()
    await gateway.state("odd", "connected")
    await killed(gateway)
    await until(lambda: not any(alive(pid) for pid in odd.pids), GONE_S)


@pytest.mark.requirement("proc-no-orphans")
async def test_no_descendant_that_left_its_session_outlives_a_killed_gateway(gateway: Gateway, tmp_path: Path) -> None:
    odd, note = Odd(tmp_path), tmp_path / "escaped"
    shell = f'{sys.executable} -c "{ESCAPED}" {note} & {" ".join(odd.argv)}; true'
    gateway.write({"odd": {"command": ["bash", "-c", shell], "lifecycle": "eager"}})
    gateway.start()
    await gateway.state("odd", "connected")
    escaped = int(await until(lambda: note.exists() and note.read_text()))
    await killed(gateway)
    await until(lambda: not alive(escaped) and not any(alive(pid) for pid in odd.pids), GONE_S)


@pytest.mark.requirement("proc-no-orphans")
async def test_a_stop_in_order_ends_every_descendant_and_leaves_neither_guardian_nor_registry(
    gateway: Gateway, tmp_path: Path
) -> None:
    odd, note = Odd(tmp_path), tmp_path / "escaped"
    shell = f'{sys.executable} -c "{ESCAPED}" {note} & {" ".join(odd.argv)}; true'
    gateway.write({"odd": {"command": ["bash", "-c", shell], "lifecycle": "eager"}})
    gateway.start()
    await gateway.state("odd", "connected")
    escaped = int(await until(lambda: note.exists() and note.read_text()))
    guards = guardians(gateway)
    assert len(guards) == 1
    assert guards[0].ppid() != gateway.pid
    assert guards[0].memory_info().rss < 16 << 20
    gateway.stop()
    assert not alive(escaped)
    await until(lambda: guardians(gateway) == [])
    assert list(Path(gateway.run).glob("backends-*")) == []


@pytest.mark.requirement("proc-no-orphans")
async def test_what_gateway_and_guardian_left_is_ended_by_the_next_start(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--ignore-eof", "--ignore-term"))
    gateway.write({"odd": entry(odd, lifecycle="eager")})
    gateway.start()
    await gateway.state("odd", "connected")
    left = odd.pids[0]
    for guard in guardians(gateway):
        guard.kill()
    await killed(gateway)
    assert alive(left)
    gateway.write({})
    gateway.start()
    await until(lambda: not alive(left), GONE_S)


def guardians(gateway: Gateway) -> list[psutil.Process]:
    """The guardians of that home."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word.endswith("guardian.py") for word in words) and any(gateway.run in word for word in words):
            found.append(process)
    return found


# -- starting and ending by itself -----------------------------------------------------------------------------------


@pytest.mark.requirement("proc-linger")
async def test_a_gateway_that_a_shim_started_ends_some_time_after_its_last_session(
    gateway: Gateway, tmp_path: Path
) -> None:
    gateway.write({"odd": entry(Odd(tmp_path))}, linger=0.01)
    async with gateway.client() as client:
        await client.tools()
        pid = gateway.snapshot()["gateway"]["pid"]
    await until(lambda: not alive(pid), 30)


@pytest.mark.requirement("proc-linger")
async def test_a_gateway_that_was_started_by_hand_stays(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write({"odd": entry(Odd(tmp_path))}, linger=0.01)
    gateway.start()
    async with gateway.client() as client:
        await client.tools()
    assert "--linger" not in psutil.Process(gateway.pid).cmdline()
    assert gateway.snapshot()["gateway"]["sessions"] == []
    assert alive(gateway.pid)
