"""Jumps of the wall clock, 8 h forward or 1 h back: a running gateway and its sessions lose nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest

from tests.contract.http_servers import HttpServer
from tests.e2e.gateway import Gateway
from tests.faults.trial import trial
from tests.fixtures.odd import Odd, until
from tests.tools import require, require_file

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="sets the clock of single processes by the loader"),
    pytest.mark.requirement("fault-table"),
]
TICKS_S = 6.0  # the gateway compares its clocks every 5 s
JUMPS = ("+8h", "-1h")  # most tests make both jumps in succession
FORWARD = JUMPS[0]


@pytest.fixture
def wall(gateway: Gateway, tmp_path: Path) -> Path:
    """Let a file set the wall clock of the gateway's processes, and return the file. Monotonic clocks stay correct."""
    program = Path(require("faketime")).resolve()
    found = sorted(program.parent.parent.glob("lib/**/faketime/libfaketime.so.1"))
    library = found[0] if found else require_file(Path("libfaketime.so.1"), "install libfaketime")
    file = tmp_path / "wall"
    file.write_text("+0\n")
    gateway.env |= {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # 1 would end every timed wait of a thread immediately, even the GIL's
    }
    return file


def set_to(wall: Path, offset: str) -> None:
    """Set the clock atomically, so that a reader finds the old file or the new one."""
    fresh = wall.with_suffix(".new")
    fresh.write_text(f"{offset}\n")
    fresh.replace(wall)


async def test_calls_sessions_and_processes_outlive_a_jump(gateway: Gateway, wall: Path, tmp_path: Path) -> None:
    bad = Odd(tmp_path, "bad")
    entry = {"command": bad.argv, "lifecycle": "keep-alive"}
    async with trial(gateway, tmp_path, entry, health_interval=1) as made:
        for offset in JUMPS:
            made.begin_call("bad_hold", key=offset)
            await until(lambda: len(bad.events("held")) == len(made.open))
            set_to(wall, offset)
            with anyio.move_on_after(TICKS_S):
                await anyio.sleep_forever()  # the gateway has noticed the jump by then
            assert await made.tries("bad_echo", text="after the jump") == "answer"
            await made.client.call("bad_release", key=offset)
            assert set(await made.ended()) == {"answer"}
            assert len(bad.pids) == 1
            row = gateway.server("bad")
            assert (row["state"], row["error"]) == ("connected", None)
            assert 0 <= row["last_used_s_ago"] < 60
            set_to(wall, "+0")
            assert await made.tries("bad_echo", text="and back") == "answer"


async def test_a_remote_server_that_is_well_stays_connected_over_a_jump(
    gateway: Gateway, wall: Path, tmp_path: Path
) -> None:
    server = HttpServer()
    async with server.running(), trial(gateway, tmp_path, {"url": server.url()}) as made:
        for number, offset in enumerate(JUMPS, 1):
            made.begin_call("bad_hold", key=offset)
            await server.heard_of("held", number)
            starts = server.methods().count("initialize")
            set_to(wall, offset)
            if offset == FORWARD:
                await server.heard_of("ping")  # a jump forward looks like a suspend, so the gateway pings the server
            await made.client.call("bad_release", key=offset)
            assert set(await made.ended()) == {"answer"}
            assert await made.tries("bad_echo") == "answer"
            assert server.methods().count("initialize") == starts
            set_to(wall, "+0")


@pytest.mark.parametrize("offset", JUMPS)
async def test_a_failed_server_is_let_in_again_when_its_backoff_is_over_whatever_the_wall_clock_says(
    gateway: Gateway, wall: Path, tmp_path: Path, offset: str
) -> None:
    mood = tmp_path / "mood"
    mood.touch()
    bad = Odd(tmp_path, "bad")
    script = tmp_path / "bad.sh"
    script.write_text(f"#!/bin/sh\n[ -e {mood} ] && exit 3\nexec " + " ".join(bad.argv) + "\n")
    script.chmod(0o755)
    async with trial(gateway, tmp_path, {"command": [str(script)]}) as made:
        assert await made.tries("bad_echo") == "error"
        set_to(wall, offset)
        assert await made.tries("bad_echo") == "error"
        mood.unlink()
        await made.recovers("bad_echo")


async def test_a_gateway_that_is_started_after_a_jump_lists_from_its_cache(
    gateway: Gateway, wall: Path, tmp_path: Path
) -> None:
    odd = Odd(tmp_path)
    gateway.write({"odd": {"command": odd.argv}})
    gateway.start()
    await gateway.known()
    assert gateway.stop() == 0
    for offset in JUMPS:
        starts = len(odd.pids)
        set_to(wall, offset)
        gateway.start()
        async with gateway.client() as client:
            assert "odd_echo" in await client.tools()
            if offset == FORWARD:
                # A cached list is valid for seven days. A list dated in the future is fetched again.
                assert len(odd.pids) == starts
            assert await client.call("odd_echo", text="x")
        await gateway.known()
        assert gateway.stop() == 0
        (file,) = (gateway.home / "cache").glob("odd*.json")
        assert json.loads(file.read_text())["server"] == "odd"
