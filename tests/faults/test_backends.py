"""A fault of one server costs each of its calls one error and affects no other server."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, entry
from tests.faults.world import RECOVERY_S, Counting, ShimClient, calls, outcome, recovers, undisturbed
from tests.fixtures.odd import Odd, until
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked")]
SEED = 20261121
MB = 1 << 20


@pytest.mark.requirement("life-crash-in-box", "shim-never-calls-twice")
async def test_a_server_killed_at_random_moments_costs_each_call_under_way_one_error(
    gateway: Gateway, tmp_path: Path
) -> None:
    bad, good = Counting(tmp_path, "bad"), Counting(tmp_path, "good")
    gateway.write({server.name: server.entry() for server in (bad, good)})
    gateway.start()
    await gateway.known()
    chance = random.Random(SEED)
    done: set[str] = set()
    async with gateway.client() as client, undisturbed(gateway, "good_count", pause_s=0.01) as others:
        for turn in range(10):
            pid = int((await client.call("bad_count", n=f"{turn}"))["content"][0]["text"].split()[1])
            waiting = {f"{turn}.{k}": client.ask("tools/call", calls("bad_count", n=f"{turn}.{k}")) for k in range(20)}
            await anyio.sleep(chance.random() * 0.01)
            os.kill(pid, signal.SIGKILL)
            for n, answer in waiting.items():
                reply = await outcome(answer)
                if "result" in reply:
                    done.add(n)
                else:
                    assert "bad" in reply["error"]["message"], reply
            await recovers(client, "bad_count", n=f"{turn}-again")
        assert client.stray == []
        assert len(others) > 10
    executed = bad.executed()
    assert all(executed[n] == 1 for n in done)
    assert max(count for n, count in executed.items() if "." in n) == 1
    assert set(good.executed().values()) == {1}


@pytest.mark.requirement("life-hang-in-box")
@pytest.mark.parametrize("point", ["spawn", "initialize", "list", "call"])
async def test_a_server_that_hangs_at_any_point_holds_up_nobody_else(
    gateway: Gateway, tmp_path: Path, point: str
) -> None:
    bad, good = Odd(tmp_path, "bad", ("--hang", point)), Counting(tmp_path, "good")
    limits = dict.fromkeys(("connect_timeout", "request_timeout"), stretched(1))
    gateway.write({"bad": entry(bad, **limits), "good": good.entry()}, failure_backoff=1)
    gateway.start()
    async with gateway.client() as client, undisturbed(gateway, "good_count", slowest_s=2.0):
        call = client.ask("tools/call", calls("bad_echo"))
        # a list request may take a minute
        if point != "list":
            assert "bad" in (await outcome(call))["error"]["message"]
        gateway.write({"bad": entry(Odd(tmp_path, "bad")), "good": good.entry()})
        await recovers(client, "bad_echo")
        with anyio.fail_after(stretched(RECOVERY_S)):
            assert ("result" in await call) != ("error" in await call)
        assert client.stray == []


@pytest.mark.requirement("life-junk-tolerated", "wire-junk-frame")
async def test_junk_and_half_answers_cost_one_error_and_nobody_else_anything(gateway: Gateway, tmp_path: Path) -> None:
    junk, half, good = Odd(tmp_path, "junk", ("--junk",)), Counting(tmp_path, "half"), Counting(tmp_path, "good")
    gateway.write({"junk": entry(junk), "half": half.entry(), "good": good.entry()})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, undisturbed(gateway, "good_count", slowest_s=2.0):
        for n in range(5):
            assert (await client.call("junk_echo"))["structuredContent"]["name"] == "junk"
            with pytest.raises(RpcFailure) as caught:
                await client.call("half_half", n=f"half {n}")
            assert "half" in caught.value.error["message"]
            await recovers(client, "half_count", n=n)
        assert client.stray == []


@pytest.mark.requirement("wire-too-large")
async def test_an_answer_over_64_mb_is_that_call_s_error_and_is_not_kept(gateway: Gateway, tmp_path: Path) -> None:
    bad, good = Counting(tmp_path, "bad"), Counting(tmp_path, "good")
    gateway.write({server.name: server.entry() for server in (bad, good)})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, undisturbed(gateway, "good_count"):
        pid = gateway.server("bad")["pid"]
        with pytest.raises(RpcFailure, match="64 MiB"):
            await client.call("bad_huge", n=1, mb=200)
        assert gateway.server("bad")["pid"] == pid or pid is None  # an oversized answer is no reason to kill the server
        await client.call("bad_count", n=2)
        assert psutil.Process(gateway.pid).memory_info().rss < 250 * MB
        assert client.stray == []


@pytest.mark.requirement("wire-too-large")
async def test_a_request_over_64_mb_is_refused_and_the_session_goes_on(gateway: Gateway, tmp_path: Path) -> None:
    good = Counting(tmp_path, "good")
    gateway.write({"good": good.entry()})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, undisturbed(gateway, "good_count"):
        with pytest.raises(RpcFailure, match="64 MiB"):
            await client.call("good_count", n="huge", text="x" * (66 * MB))
        await client.call("good_count", n="after")
        assert client.stray == []
    assert "huge" not in good.executed()


@pytest.mark.requirement("life-junk-tolerated", "life-stderr-log")
async def test_100_mb_on_stderr_cost_no_other_call_and_no_disk(gateway: Gateway, tmp_path: Path) -> None:
    bad, good = Counting(tmp_path, "bad"), Counting(tmp_path, "good")
    gateway.write({server.name: server.entry() for server in (bad, good)})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, undisturbed(gateway, "good_count", slowest_s=2.0) as others:
        began = time.monotonic()
        await client.call("bad_flood", n=1, mb=100)
        print(f"100 MB of stderr: {time.monotonic() - began:.1f} s, slowest other call {max(others):.3f} s")
        logs = list((gateway.home / "logs" / "servers").glob("bad.log*"))
        assert sum(log.stat().st_size for log in logs) < 10 * MB
        assert psutil.Process(gateway.pid).memory_info().rss < 250 * MB


@pytest.mark.requirement("wire-large-result")
@pytest.mark.skipif(sys.platform == "win32", reason="reads pipes without threads")
async def test_a_client_that_does_not_read_costs_bounded_memory_and_nobody_else_anything(
    gateway: Gateway, tmp_path: Path
) -> None:
    """A client that falls too far behind loses its connection, but keeps its session."""
    good = Counting(tmp_path, "good")
    gateway.write({"good": good.entry()})
    gateway.start()
    await gateway.known()
    slow = await anyio.to_thread.run_sync(ShimClient, gateway)
    try:
        await anyio.to_thread.run_sync(slow.initialize)
        async with undisturbed(gateway, "good_count"):
            sent = [slow.call("good_count", n=f"slow-{n}", size=8 * MB) for n in range(40)]
            await until(lambda: len([n for n in good.executed() if n.startswith("slow-")]) == 40)
            assert psutil.Process(gateway.pid).memory_info().rss < 600 * MB
        answers = [await anyio.to_thread.run_sync(slow.answer, request_id) for request_id in sent]
        assert any("result" in answer for answer in answers)
        assert all("result" in answer or "error" in answer for answer in answers)
        after = await anyio.to_thread.run_sync(slow.ask, "ping")
        assert after["result"] == {}
        assert await anyio.to_thread.run_sync(slow.close) == 0
    finally:
        slow.process.kill()
        slow._out.close()
    assert max(good.executed().values()) == 1
