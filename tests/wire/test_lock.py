"""Tests of the gateway's lock: only one of many processes holds it, and it is released however that process ends."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

from tests.wire.processes import end, line_of, start
from trayapp.model.errors import AlreadyRunningError, StorageError
from trayapp.wire.lock import GatewayLock, private_folder

# Prints "ready", tries to take the lock when it reads a line, prints the outcome and runs until its stdin ends.
TRY = """
import sys
from trayapp.model.errors import AlreadyRunningError
from trayapp.wire.lock import GatewayLock
lock = GatewayLock(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    lock.acquire()
except AlreadyRunningError as error:
    print("refused", error.pid, flush=True)
else:
    print("held", flush=True)
sys.stdin.read()
"""

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes and owners are POSIX's")


def go(process: object) -> None:
    stdin = process.stdin  # type: ignore[attr-defined]
    stdin.write("\n")
    stdin.flush()


@pytest.mark.requirement("proc-one-gateway")
def test_a_second_process_is_refused_with_the_holders_process_id(home: Path) -> None:
    run = str(home / "run")
    first, second = start(TRY, run), start(TRY, run)
    go(first)
    assert [line_of(first), line_of(first)] == ["ready", "held"]
    go(second)
    assert [line_of(second), line_of(second)] == ["ready", f"refused {first.pid}"]
    with pytest.raises(AlreadyRunningError) as caught:
        GatewayLock(run).acquire()
    assert caught.value.pid == first.pid
    end(first)
    end(second)


@pytest.mark.requirement("proc-one-gateway")
def test_of_twenty_that_start_at_once_exactly_one_holds_the_lock(home: Path) -> None:
    processes = [start(TRY, str(home / "run")) for _ in range(20)]
    assert {line_of(process) for process in processes} == {"ready"}
    for process in processes:
        go(process)
    outcomes = [line_of(process).split()[0] for process in processes]
    assert sorted(outcomes) == ["held"] + ["refused"] * 19
    for process in processes:
        end(process)


@pytest.mark.requirement("proc-one-gateway")
def test_a_holder_that_has_not_written_its_process_id_yet_is_named_once_it_has(home: Path) -> None:
    first, file = GatewayLock(str(home / "run")), home / "run" / "gateway.lock"
    first.acquire()
    file.write_text("")  # as if a busy machine had paused the holder between taking the lock and writing
    writing = threading.Timer(0.05, file.write_text, ["4711"])
    writing.start()
    with pytest.raises(AlreadyRunningError) as caught:
        GatewayLock(str(home / "run")).acquire()
    writing.join()
    assert caught.value.pid == 4711
    first.release()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_holder_that_is_killed_leaves_the_lock_free(home: Path) -> None:
    holder = start(TRY, str(home / "run"))
    go(holder)
    assert [line_of(holder), line_of(holder)] == ["ready", "held"]
    holder.send_signal(signal.SIGKILL)
    end(holder)
    lock = GatewayLock(str(home / "run"))
    lock.acquire()
    assert (home / "run" / "gateway.lock").read_text() == str(os.getpid())
    lock.release()


def test_a_released_lock_can_be_taken_again_and_its_file_stays(home: Path) -> None:
    first, second = GatewayLock(str(home / "run")), GatewayLock(str(home / "run"))
    first.acquire()
    with pytest.raises(AlreadyRunningError):
        second.acquire()
    first.release()
    first.release()
    assert (home / "run" / "gateway.lock").read_text() == ""
    second.acquire()
    second.release()


@pytest.mark.parametrize("text", ["", "x", "999999999999999999999999", "12 34", "-5"])
def test_whatever_a_lock_file_holds_it_can_be_taken(home: Path, text: str) -> None:
    private_folder(home / "run")
    (home / "run" / "gateway.lock").write_text(text)
    lock, other = GatewayLock(str(home / "run")), GatewayLock(str(home / "run"))
    lock.acquire()
    with pytest.raises(AlreadyRunningError) as caught:
        other.acquire()
    assert caught.value.pid == os.getpid()
    lock.release()


# -- the folder --------------------------------------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@posix_only
@pytest.mark.requirement("path-modes")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folder_and_lock_are_private_whatever_the_umask(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        lock = GatewayLock(str(home / "deep" / "run"))
        lock.acquire()
    finally:
        os.umask(before)
    assert mode_of(home / "deep" / "run") == 0o700
    assert mode_of(home / "deep" / "run" / "gateway.lock") == 0o600
    lock.release()


@posix_only
@pytest.mark.requirement("path-modes")
def test_modes_that_are_too_wide_are_mended(home: Path) -> None:
    run = home / "run"
    run.mkdir()
    run.chmod(0o777)
    (run / "gateway.lock").touch(mode=0o644)
    lock = GatewayLock(str(run))
    lock.acquire()
    assert (mode_of(run), mode_of(run / "gateway.lock")) == (0o700, 0o600)
    lock.release()


@posix_only
def test_a_folder_that_is_a_link_is_refused(home: Path) -> None:
    (home / "real").mkdir()
    (home / "run").symlink_to("real")
    with pytest.raises(StorageError, match="link"):
        private_folder(home / "run")


@posix_only
def test_a_folder_of_another_user_is_refused(home: Path) -> None:
    path = Path("/usr")  # owned by root. If we are root, a folder of another user is created instead
    if os.getuid() == 0:
        path = home / "theirs"
        path.mkdir()
        os.chown(path, 65534, 65534)
    with pytest.raises(StorageError, match="another user"):
        private_folder(path)


def test_a_file_in_the_folders_place_is_a_clear_error(home: Path) -> None:
    (home / "run").touch()
    with pytest.raises(StorageError, match="Cannot use the folder"):
        GatewayLock(str(home / "run")).acquire()
    (home / "other" / "gateway.lock").mkdir(parents=True)
    with pytest.raises(StorageError, match="Cannot open"):
        GatewayLock(str(home / "other")).acquire()
