"""Tests of the registry of server processes and of its guardian, which ends them after the gateway's death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.faults.world import wait_until
from tests.fixtures.odd import alive as runs
from trayapp.backends.stdio.guardian import MARK, line_of, read_registry, start_time
from trayapp.backends.stdio.orphans import SPENT_MOST, PosixTracker, make_tracker, reap_leftovers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has job objects")
LIMIT_S = 20.0
SLEEPS = [sys.executable, "-I", "-S", "-c", "import time\nprint('up', flush=True)\nwhile True: time.sleep(60)"]


@contextmanager
def server(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a server process after its first output.

    Popen returns during the exec, when the process may not have its environment yet.
    """
    env, pipe = {**os.environ, **environment}, subprocess.PIPE
    with subprocess.Popen(SLEEPS, env=env, stdout=pipe, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def registries(run: Path) -> list[Path]:
    return sorted(run.glob("backends-*"))


def guardians(run: Path) -> list[psutil.Process]:
    """Return the running guardians of this runtime folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if words[-1:] and words[-1].startswith(f"{run}/backends-") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_every_server_process_has_a_mark_of_its_own_that_begins_with_the_gateway_s(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    marks = [tracker.environment()[MARK] for _ in range(3)]
    tracker.close()
    assert len(set(marks)) == 3
    assert {mark.rpartition("-")[0] for mark in marks} == {f"{os.getpid()}-{start_time(os.getpid())}"}


@pytest.mark.requirement("proc-no-orphans")
def test_a_guardian_is_there_before_the_first_server_and_none_without_servers(tmp_path: Path) -> None:
    tracker = make_tracker(str(tmp_path))
    assert guardians(tmp_path) == []
    tracker.environment()
    wait_until(lambda: guardians(tmp_path))  # right after the start, the guardian may still be forking or in its exec
    tracker.environment()
    tracker.close()
    wait_until(lambda: not guardians(tmp_path))
    tracker.close()  # a second call is harmless


def test_the_registry_names_what_runs_for_this_user_only(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    marks = [tracker.environment() for _ in range(2)]
    with server(marks[0]) as one, server(marks[1]) as two:
        tracker.adopt(one.pid, marks[0])
        tracker.adopt(two.pid, marks[1])
        (registry,) = registries(tmp_path)
        expected = [((p.pid, start_time(p.pid)), m[MARK]) for p, m in zip((one, two), marks, strict=True)]
        assert read_registry(str(registry)) == expected
        assert registry.stat().st_mode & 0o777 == 0o600
        one.kill()
        one.wait()
        tracker.finish(one.pid)
        assert read_registry(str(registry)) == expected[1:]
        tracker.finish(999_999_999)  # a pid that no process has
        tracker.close()
        assert registries(tmp_path) == []
        assert two.poll() is None  # close() ends no processes, because the gateway stops them earlier


def test_a_server_more_adds_a_line_and_the_registry_stays_small(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    with server({}) as one:
        tracker.adopt(one.pid, {})
        (registry,) = registries(tmp_path)
        before = registry.read_bytes()
        tracker.adopt(os.getpid(), {})
        assert registry.read_bytes().startswith(before)  # a new server appends a line and rewrites nothing
        for pid in range(900_000_000, 900_000_000 + 2 * SPENT_MOST):  # pids that no process has
            tracker.adopt(pid, {})
            tracker.finish(pid)
        assert len(registry.read_bytes().splitlines()) < 3 * SPENT_MOST
        known = [((pid, start_time(pid)), "") for pid in (one.pid, os.getpid())]
        assert read_registry(str(registry)) == known
        assert registry.stat().st_mode & 0o777 == 0o600
    tracker.close()


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    one, two, three = (((number, f"34{number}.aa"), f"7-1.aa-{number}") for number in (1, 2, 3))
    lines = [line_of(one), line_of(two), line_of(three), line_of(one, ended=True)]
    registry = tmp_path / "backends-7-1.aa.tsv"
    for cut in range(len(lines[1])):
        registry.write_text(lines[0] + lines[1][:cut] + lines[2] + lines[3])
        found = read_registry(str(registry))
        assert three in found
        assert one not in found
        assert all(kin in (two, three) or kin[0] != two[0] or two[1].startswith(kin[1]) for kin in found)


def test_a_registry_that_could_not_be_written_is_complete_once_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "gone"
    tracker = PosixTracker(str(run))
    tracker.adopt(1, {})
    run.mkdir()
    tracker.adopt(os.getpid(), {})
    (registry,) = registries(run)
    assert [pid for (pid, _), _ in read_registry(str(registry))] == [1, os.getpid()]
    assert caplog.text.count("Cannot save") == 1
    tracker.close()


def test_finishing_ends_what_the_server_left_behind(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    mark = tracker.environment()
    with server(mark) as leader, server(mark) as left:
        tracker.adopt(leader.pid, mark)
        leader.kill()
        leader.wait()
        tracker.finish(leader.pid)
        if sys.platform == "linux":
            assert left.wait(LIMIT_S) == -signal.SIGTERM
    tracker.close()


def test_a_guardian_that_was_killed_is_replaced_at_the_next_server(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    tracker.environment()
    assert tracker._guard is not None
    tracker._guard.join(LIMIT_S)
    (first,) = guardians(tmp_path)
    first.kill()
    psutil.wait_procs([first], LIMIT_S)
    tracker.environment()
    tracker._guard.join(LIMIT_S)
    (second,) = guardians(tmp_path)
    assert second.pid != first.pid
    tracker.close()
    wait_until(lambda: not guardians(tmp_path))


@pytest.mark.requirement("fault-disk-full")
def test_neither_a_folder_that_is_gone_nor_a_missing_interpreter_is_a_server_s_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = PosixTracker(str(tmp_path / "gone"), python=["/no/such/python"])
    mark = tracker.environment()
    with server(mark) as process:
        tracker.adopt(process.pid, mark)
        process.kill()
        process.wait()
        tracker.finish(process.pid)
    tracker.close()
    assert "Cannot save the list of server processes" in caplog.text
    assert "Cannot start the guardian" in caplog.text


@pytest.mark.requirement("proc-no-orphans")
def test_a_new_gateway_ends_what_earlier_ones_left_whatever_is_in_their_registries(tmp_path: Path) -> None:
    with (
        server({MARK: "777-1.aaaaaaaa-1"}) as named,
        server({MARK: "778-1.aaaaaaaa-4"}) as unnamed,
        server({}) as other,
    ):
        (tmp_path / "backends-777-1.aaaaaaaa.tsv").write_text(
            f"{named.pid}\t{start_time(named.pid)}\t777-1.aaaaaaaa-1\n{other.pid}\t1.00000000\t\n"
        )
        (tmp_path / "backends-778-1.aaaaaaaa.tsv").write_bytes(b"\xff\x00\t\t\n")
        (tmp_path / "backends-778-1.aaaaaaaa.new").write_bytes(b"12")
        (tmp_path / "backends-5.tsv").mkdir()
        assert reap_leftovers(str(tmp_path)) == 3
        assert not runs(named.pid)
        if sys.platform == "linux":
            assert not runs(unnamed.pid)
        assert other.poll() is None
    (tmp_path / "backends-5.tsv").rmdir()
    assert registries(tmp_path) == []
    assert reap_leftovers(str(tmp_path)) == 0
    assert reap_leftovers(str(tmp_path / "none")) == 0


def test_a_gateway_s_own_registry_is_not_a_leftover(tmp_path: Path) -> None:
    tracker = PosixTracker(str(tmp_path))
    mark = tracker.environment()
    with server(mark) as process:
        tracker.adopt(process.pid, mark)
        assert reap_leftovers(str(tmp_path)) == 0
        assert process.poll() is None
    tracker.close()
