"""Calls through a whole gateway, and their rows in its history."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.fixtures.odd import Odd, alive, until

pytestmark = [pytest.mark.anyio]


async def rows_of(gateway: Gateway, number: int, **asked: Any) -> list[dict[str, Any]]:
    """Wait until the history has `number` calls, and return their rows."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        found[:] = gateway.control("history", **asked)["rows"]
        return len(found) >= number

    await gateway.settled(enough)
    return found


async def started(home: Path, gateway: Gateway, **settings: Any) -> None:
    gateway.write({"odd": entry(Odd(home, "odd")), "dies": entry(Odd(home, "dies", ("--die", "start")))}, **settings)
    await anyio.to_thread.run_sync(gateway.start)
    await gateway.known()


@pytest.mark.requirement("history-kept", "history-counted")
async def test_every_way_of_a_call_is_kept_and_counted(home: Path) -> None:
    with gateway_in(home, forked=True) as gateway:
        await started(home, gateway)
        async with gateway.client() as client:
            for name in ("odd_echo", "dies_echo", "nowhere"):
                with suppress(RpcFailure):
                    await client.request("tools/call", {"name": name, "arguments": {"text": "plum"}})
            one = {"tool": "odd_echo", "args": {"text": "pear"}}
            await client.request("tools/call", {"name": "mcp", "arguments": one})
            await client.request("tools/call", {"name": "mcp", "arguments": {"tool": "nothing", "args": {}}})
            await client.request("tools/call", {"name": "mcp", "arguments": {}})  # a status is not a tool call
        await gateway.ask("call", tool="odd_echo", args={"text": "fig"})
        rows = await rows_of(gateway, 6)
        ended = sorted((row["server"], row["tool"], row["outcome"] == "ok") for row in rows)
        assert ended[-3:] == [("odd", "echo", True)] * 3
        assert {tool for _, tool, good in ended if not good} == {"nothing", "nowhere", "dies_echo"}
        assert {row["client"] for row in rows} >= {"multi-mcp call"}
        (pear,) = await rows_of(gateway, 1, words="pear")
        whole = await gateway.ask("history_show", id=pear["id"])
        assert "pear" in whole["arguments"]
        assert "pear" in whole["result"]
        assert (pear["kind"], pear["server"], pear["client"] != "multi-mcp call") == ("read", "odd", True)
        today = gateway.snapshot()["gateway"]["today"]
        assert today["calls"] == 6
        assert today["failed"] >= 2


@pytest.mark.requirement("history-harmless")
async def test_a_killed_gateway_loses_a_second_at_most_and_never_the_file(home: Path) -> None:
    with gateway_in(home, forked=True) as gateway:
        await started(home, gateway)
        async with gateway.client() as client:
            for number in range(50):
                await client.request("tools/call", {"name": "odd_echo", "arguments": {"text": f"n{number}"}})
        await anyio.sleep(1.0)  # a kill may lose the last second of calls
        below = gateway.children()
        assert gateway.process is not None
        gateway.process.kill()
        gateway.process.wait()
        await until(lambda: not any(alive(pid) for pid in below))
        await anyio.to_thread.run_sync(gateway.start)
        assert len(await rows_of(gateway, 50, limit=500)) == 50
        assert gateway.snapshot()["gateway"]["today"]["calls"] == 50
        assert not any("history" in problem["message"] for problem in gateway.snapshot()["problems"])


@pytest.mark.requirement("history-harmless")
@pytest.mark.parametrize("hindrance", ["a folder in its place", "a corrupt file", "no place"])
async def test_whatever_is_wrong_with_the_file_calls_go_on_and_status_says_so(home: Path, hindrance: str) -> None:
    state = home / "state"
    if hindrance == "no place":
        state.write_text("in the way")
    else:
        state.mkdir(mode=0o700)
        file = state / "history.db"
        if hindrance == "a corrupt file":
            file.write_bytes(b"garbage " * 1000)
        else:
            file.mkdir()
    with gateway_in(home, forked=True) as gateway:
        await started(home, gateway)
        async with gateway.client() as client:
            for _ in range(3):
                answer = await client.request("tools/call", {"name": "odd_echo", "arguments": {"text": "x"}})
                assert answer["content"]
        await gateway.settled(lambda: [p for p in gateway.snapshot()["problems"] if "history" in p["message"]])


@pytest.mark.requirement("history-kept")
async def test_a_history_that_is_switched_off_is_no_file(home: Path) -> None:
    with gateway_in(home, forked=True) as gateway:
        await started(home, gateway, history=False)
        async with gateway.client() as client:
            await client.request("tools/call", {"name": "odd_echo", "arguments": {"text": "x"}})
        assert (await gateway.ask("history")) == {"rows": [], "enabled": False, "problem": None}
        assert not (home / "state" / "history.db").exists()
