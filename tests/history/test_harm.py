"""Threats to the history file: a full disk, a clock set back, two gateways, and a kill during a write."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio.to_thread
import pytest

from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.faults.test_storage import fill, tiny_disk
from tests.fixtures.odd import Odd
from tests.history.test_store import a_row
from trayapp.history.store import Filter, HistoryFile
from trayapp.model.errors import StorageError

LIMITS = (36_500.0, 50_000_000)
KILLS = 8
BATCH = 5  # rows
WRITER = """
import sys
from pathlib import Path
from tests.history.test_store import a_row
from trayapp.history.store import HistoryFile
file = HistoryFile(Path(sys.argv[1]), lambda: (36_500.0, 50_000_000))
while True:
    file.add([a_row(result="x" * 2000) for _ in range(5)])
    print(flush=True)
"""


def whole(path: Path) -> bool:
    """True if SQLite finds no damage in the file."""
    opened = sqlite3.connect(path)
    try:
        found: list[tuple[str]] = opened.execute("PRAGMA integrity_check").fetchall()
    finally:
        opened.close()
    return found == [("ok",)]


@pytest.mark.requirement("history-harmless")
@pytest.mark.timeout(120)
def test_a_kill_in_the_middle_of_a_write_loses_that_write_at_most_and_never_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    written = 0
    for number in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(3 + number):
                writer.stdout.readline()
            time.sleep(number * 0.0007)  # so that each kill comes at a different point of a write
            writer.send_signal(signal.SIGKILL)
            told = 3 + number + writer.stdout.read().count(b"\n")
        file = HistoryFile(path, lambda: LIMITS)
        kept, _ = file.count_since(0)
        assert kept - written in (told * BATCH, (told + 1) * BATCH)  # the last write is kept whole or not at all
        assert file.set_aside is None
        assert file.find(Filter(words="bug"))
        file.close()
        assert whole(path)
        written = kept


@pytest.mark.requirement("history-harmless")
def test_two_gateways_write_one_file_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    files = [HistoryFile(path, lambda: LIMITS) for _ in range(2)]
    failed: list[StorageError] = []

    def write(file: HistoryFile, server: str) -> None:
        try:
            for _ in range(40):
                file.add([a_row(server=server) for _ in range(5)])
        except StorageError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(file, name)) for file, name in zip(files, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [file.set_aside for file in files] == [None, None]
    for file in files:
        assert file.count_since(0) == (400, 0)
        assert len(file.find(Filter(server="a", limit=500))) == 200
        file.close()
    assert whole(path)


@pytest.mark.requirement("history-harmless", "history-kept")
def test_a_clock_that_is_set_back_loses_no_call_and_the_last_one_stays_first(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.db", lambda: (30.0, 2_000_000))
    now = time.time()
    file.add([a_row(time=now), a_row(time=now + 1)])
    file.add([a_row(time=now - 86_400, server="later")])
    assert [row["server"] for row in file.find(Filter())] == ["later", "github", "github"]
    assert file.find(Filter(after=2))[0]["server"] == "later"
    assert sum(file.per_minute(now - 86_400, 60)) == 1  # calls dated in the future are not counted
    assert file.count_since(now - 90_000) == (3, 0)
    file._pruned_at = now + 10_000_000  # as recorded before the clock was set back
    file.add([a_row(time=now - 86_399)])
    assert len(file.find(Filter())) == 4
    file.close()


@pytest.mark.requirement("history-harmless")
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tiny file system")
async def test_on_a_full_disk_calls_go_on_status_says_so_and_the_history_goes_on_with_room(home: Path) -> None:
    state = home / "state"
    with tiny_disk(state), gateway_in(home) as gateway:
        gateway.write({"odd": entry(Odd(home, "odd"))})
        await anyio.to_thread.run_sync(gateway.start)
        await gateway.known()
        async with gateway.client() as client:
            await client.call("odd_echo", text="before")
            await gateway.settled(lambda: gateway.control("history")["rows"])
            filler = await anyio.to_thread.run_sync(fill, state)
            for number in range(10):
                answer = await client.call("odd_echo", text=f"{number} " + "x" * 2000)
                assert answer["content"]
            await gateway.settled(lambda: told(gateway))
            assert "room" in told(gateway)[0]["hint"] or "full" in told(gateway)[0]["message"]
            filler.unlink()

            async def kept() -> bool:
                await client.call("odd_echo", text="after")
                return bool((await gateway.ask("history", words="after"))["rows"])

            with anyio.fail_after(40):
                while not await kept():  # noqa: ASYNC110 (it tries again after some seconds)
                    await anyio.sleep(0.5)
            await gateway.settled(lambda: not told(gateway))
            assert await gateway.ask("history", words="before")


def told(gateway: Gateway) -> list[dict[str, str]]:
    """Return the problems in the status that concern the history."""
    return [one for one in gateway.snapshot()["problems"] if "history" in one["message"]]
