"""Full disks, read-only folders and truncated or leftover files: errors are clear, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from tests.cli.running import run_cli
from tests.e2e.client import RawClient
from tests.e2e.gateway import Gateway
from tests.faults.world import Counting, kill_gateway, recovers, stop_all, undisturbed
from tests.fixtures.odd import Odd, until
from tests.patience import stretched
from tests.tools import missing
from trayapp.catalog.cache import file_name
from trayapp.model.errors import NoGatewayError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked"),
    pytest.mark.skipif(sys.platform != "linux", reason="mounts a tiny file system"),
]
SMALL = "256k"
SAVES = 100
PER_S = 50


@contextmanager
def tiny_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of 256 KiB at `folder`."""
    folder.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={SMALL},mode=700", "tmpfs", str(folder))
    try:
        yield
    finally:
        unmount(folder)


def mount(*words: str) -> None:
    made = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if made.returncode:
        missing(f"may not mount a file system: {made.stderr.strip()}")


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fill the disk and return the file that takes the space."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            for size in (4096, 1):
                while file.write(b"x" * size) == size:
                    pass
        except OSError:
            pass
    return path


@pytest.fixture
def small(gateway: Gateway) -> Iterator[Gateway]:
    """Yield a gateway whose whole home is on a tiny disk."""
    with tiny_disk(gateway.home), ending(gateway):
        yield gateway


def whole(gateway: Gateway) -> dict[str, Any]:
    """Return the parsed servers.yaml. Fails if it is damaged."""
    read: dict[str, Any] = yaml.safe_load(gateway.file.read_text(encoding="utf-8"))
    return read


# -- full and read-only disks ----------------------------------------------------------------------------------------


@pytest.mark.requirement("fault-disk-full", "file-atomic-write")
async def test_on_a_full_disk_calls_go_on_and_edits_fail_with_words_and_leave_the_file(
    small: Gateway, tmp_path: Path
) -> None:
    counting, late = Counting(tmp_path), Counting(tmp_path, "late")
    small.write({"counting": counting.entry()})
    small.start()
    await small.known()
    async with small.client() as client, undisturbed(small, "counting_count"):
        filler = await anyio.to_thread.run_sync(fill, small.home)
        before = small.file.read_bytes()
        failed = await anyio.to_thread.run_sync(run_cli, small.home, "disable", "counting/flood")
        assert failed.returncode not in (0, 2)
        assert "space" in failed.stderr.lower(), failed.stderr
        assert "Traceback" not in failed.stderr
        assert small.file.read_bytes() == before
        assert [path.name for path in small.home.iterdir() if path.suffix == ".new" or "tmp" in path.name] == []
        await client.call("counting_count", n="on")
        filler.unlink()
        done = await anyio.to_thread.run_sync(run_cli, small.home, "disable", "counting/flood")
        assert done.returncode == 0, done.stderr
        await until(lambda: whole(small)["servers"]["counting"]["tools"]["flood"] == {"enabled": False})
        text = small.file.read_text()
        small.save(text + f"  late: {json.dumps(late.entry())}\n")
        await knows(client, "late_count")
        await client.call("late_count", n=1)


async def knows(client: RawClient, tool: str) -> None:
    with anyio.fail_after(stretched(10)):
        while tool not in await client.tools():  # noqa: ASYNC110 (no notification comes if the tool is already listed)
            await anyio.sleep(0.05)


@pytest.mark.requirement("fault-disk-full", "cat-corrupt")
async def test_what_is_found_on_a_full_disk_is_served_and_written_by_a_later_start(
    small: Gateway, tmp_path: Path
) -> None:
    counting = Counting(tmp_path)
    small.write({"counting": counting.entry()})
    small.start()
    filler = await anyio.to_thread.run_sync(fill, small.home)
    async with small.client() as client:
        await knows(client, "counting_count")
        await client.call("counting_count", n=1)
        assert whole(small)["servers"]["counting"]["command"] == counting.argv
        assert [path for path in (small.home / "cache").glob("*.json") if not is_json(path)] == []
    assert small.stop() == 0
    filler.unlink()
    small.start()
    await small.known()
    assert small.stop() == 0
    assert [json.loads(path.read_text())["server"] for path in (small.home / "cache").glob("*.json")] == ["counting"]


def is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


@pytest.mark.requirement("fault-disk-full")
async def test_a_gateway_that_cannot_start_for_want_of_room_says_so(gateway: Gateway, tmp_path: Path) -> None:
    with tiny_disk(gateway.home):
        gateway.write({})
        fill(gateway.home)
        said = await anyio.to_thread.run_sync(run_cli, gateway.home, "start")
        assert said.returncode not in (0, 2)
        assert "space" in said.stderr.lower(), said.stderr
        assert "Traceback" not in said.stderr
        assert len(said.stderr.splitlines()) == 2


@pytest.mark.requirement("fault-disk-full")
async def test_a_read_only_home_is_served_from_and_edits_say_why_they_fail(gateway: Gateway, tmp_path: Path) -> None:
    """Only the runtime folder is writable, because the gateway needs a place for its socket."""
    counting = Counting(tmp_path)
    gateway.write({"counting": counting.entry()})
    run = gateway.home / "run"
    run.mkdir(mode=0o700)
    with read_only(gateway.home), tiny_disk(run), ending(gateway):
        gateway.start()
        async with gateway.client() as client:
            await client.call("counting_count", n=1)
            assert "counting_count" in await client.tools()
            before = gateway.file.read_bytes()
            failed = await anyio.to_thread.run_sync(run_cli, gateway.home, "disable", "counting/flood")
            assert failed.returncode not in (0, 2)
            assert "Cannot write" in failed.stderr, failed.stderr
            assert gateway.file.read_bytes() == before
        assert gateway.stop() == 0


@contextmanager
def ending(gateway: Gateway) -> Iterator[None]:
    """Stop the gateway at the end of the block, before its folders are unmounted."""
    try:
        yield
    finally:
        stop_all(gateway)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Mount `folder` read-only, because permissions would not stop root."""
    mount("--bind", str(folder), str(folder))
    mount("-o", "remount,ro,bind", str(folder))
    try:
        yield
    finally:
        unmount(folder)


# -- leftover files --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("cat-corrupt")
@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"server":"counting"}', b"\xff" * 100, b"[]", b"null", b"[" * 10_000], ids=len
)
async def test_a_cache_file_that_cannot_be_used_is_made_anew(gateway: Gateway, tmp_path: Path, content: bytes) -> None:
    counting = Counting(tmp_path)
    gateway.write({"counting": counting.entry()})
    cache = gateway.home / "cache"
    cache.mkdir()
    (cache / file_name("counting")).write_bytes(content)
    (cache / file_name("foreign")).write_bytes(content)
    gateway.start()
    async with gateway.client() as client:
        await client.call("counting_count", n=1)
        assert "counting_count" in await client.tools()
    await gateway.known()
    assert gateway.stop() == 0
    assert json.loads((cache / file_name("counting")).read_text())["server"] == "counting"


async def test_a_killed_gateway_s_lock_socket_and_endpoint_are_no_hindrance(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write({"counting": Counting(tmp_path).entry()})
    gateway.start()
    kill_gateway(gateway)
    left = {path.name for path in (gateway.home / "run").iterdir()}
    assert left >= {"gateway.lock", "gateway.sock", "endpoint.json"}
    with pytest.raises(NoGatewayError):
        gateway.snapshot()
    gateway.start()
    async with gateway.client() as client:
        await client.call("counting_count", n=1)


async def test_junk_in_the_place_of_lock_socket_and_endpoint_is_no_hindrance(gateway: Gateway, tmp_path: Path) -> None:
    run = gateway.home / "run"
    run.mkdir(mode=0o777)
    run.chmod(0o777)
    for name in ("gateway.lock", "gateway.sock", "endpoint.json"):
        (run / name).write_bytes(b"\xff\0{999999999")
    gateway.write({"counting": Counting(tmp_path).entry()})
    gateway.start()
    async with gateway.client() as client:
        await client.call("counting_count", n=1)
    assert run.stat().st_mode & 0o777 == 0o700
    assert (run / "gateway.lock").stat().st_mode & 0o777 == 0o600


# -- changes of servers.yaml while the gateway runs ------------------------------------------------------------------


@pytest.mark.requirement("file-broken-goes-on", "file-unchanged-run-on")
async def test_a_file_cut_off_anywhere_changes_nothing_that_runs_or_is_what_it_says(
    gateway: Gateway, tmp_path: Path
) -> None:
    """The file is cut at random places, as by a killed editor, and then restored."""
    counting, other = Counting(tmp_path), Counting(tmp_path, "other")
    gateway.write({"counting": counting.entry(), "other": other.entry()})
    text = gateway.file.read_text()
    gateway.start()
    await gateway.known()
    chance = random.Random(7)
    async with gateway.client() as client:
        pid = str(await client.call("counting_count", n="before")).split()[-3]
        for _ in range(12):
            gateway.file.write_text(text[: chance.randrange(len(text) - 20)])
            await gateway.ask("reload")
            gateway.file.write_text(text)
            await gateway.ask("reload")
            assert gateway.snapshot()["problems"] == []
        await knows(client, "counting_count")
        await client.call("counting_count", n="after")
        assert pid
        assert client.stray == []
    assert counting.executed() == {"before": 1, "after": 1}


@pytest.mark.requirement("file-applied-on-save", "file-unchanged-run-on")
async def test_a_file_saved_fifty_times_a_second_disturbs_no_call_and_the_last_one_counts(
    gateway: Gateway, tmp_path: Path
) -> None:
    """The saves alternate between replacing the file, as editors do, and rewriting it in place, as scripts do."""
    steady, moving = Counting(tmp_path, "steady"), Odd(tmp_path, "moving")
    entries = {"steady": steady.entry()}
    gateway.write(entries)
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, undisturbed(gateway, "steady_count", slowest_s=2.0):
        pid = gateway.server("steady")["pid"]
        for n in range(SAVES):
            with_it = {**entries, "moving": {"command": [*moving.argv, "--name", f"moving{n}"]}}
            if n % 2:
                gateway.write(with_it)
            else:
                lines = gateway._lines(entries)
                gateway.file.write_text(f"settings: {{expose: tools, idle_timeout: {n + 1}}}\nservers:\n{lines}")
            await anyio.sleep(1 / PER_S)
        gateway.write({**entries, "moving": {"command": moving.argv}})
        await knows(client, "moving_echo")
        await recovers(client, "moving_echo")
        assert gateway.server("steady")["pid"] == pid
        assert gateway.snapshot()["problems"] == []
        assert client.stray == []
    assert set(steady.executed().values()) == {1}


@pytest.mark.requirement("file-applied-on-save", "file-atomic-write")
async def test_a_file_that_is_a_link_is_followed_and_stays_one(gateway: Gateway, tmp_path: Path) -> None:
    """Changes of the link's target are noticed, and the gateway's edits go to the target."""
    first, second = Counting(tmp_path, "first"), Counting(tmp_path, "second")
    real = Path(tempfile.mkdtemp(dir=tmp_path)) / "dotfiles.yaml"
    gateway.write({"first": first.entry()})
    real.write_text(gateway.file.read_text())
    gateway.file.unlink()
    gateway.file.symlink_to(real)
    gateway.start()
    await gateway.known()
    async with gateway.client() as client:
        await client.call("first_count", n=1)
        await until(lambda: "tools" in yaml.safe_load(real.read_text())["servers"]["first"])
        assert gateway.file.is_symlink()
        lines = gateway._lines({"second": second.entry()})
        fresh = real.with_suffix(".new")
        fresh.write_text(f"settings: {{expose: tools}}\nservers:\n{lines}")
        os.replace(fresh, real)  # noqa: PTH105
        await knows(client, "second_count")
        await client.call("second_count", n=1)
        assert gateway.file.is_symlink()


@pytest.mark.requirement("file-broken-goes-on")
async def test_a_file_that_is_taken_away_leaves_what_runs_and_comes_back(gateway: Gateway, tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    gateway.write({"counting": counting.entry()})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client:
        await client.call("counting_count", n=1)
        pid = gateway.server("counting")["pid"]
        text = gateway.file.read_text()
        gateway.file.unlink()
        await until(lambda: gateway.snapshot()["problems"])
        await client.call("counting_count", n=2)
        gateway.file.mkdir()
        await gateway.ask("reload")
        await client.call("counting_count", n=3)
        gateway.file.rmdir()
        gateway.save(text)
        await until(lambda: not gateway.snapshot()["problems"])
        await client.call("counting_count", n=4)
        assert gateway.server("counting")["pid"] == pid
