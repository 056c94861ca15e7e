"""Files that other programs also save: their saves are waited for and never lost."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.faults.world import wait_until
from tests.wire.processes import end, line_of, start
from trayapp.config import files
from trayapp.config.files import (
    QUIET_LOOKS,
    FolderWatch,
    exchange,
    locked,
    replace_file,
    wait_until_quiet,
    watch_folders_of,
    write_atomic,
)
from trayapp.model.errors import FileChangedError, StorageError

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
exchange_only = pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="Linux and macOS exchange files")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who has a file open")


HOLD = """
import sys
from pathlib import Path
from trayapp.config.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_file_is_waited_for_as_long_as_it_is_being_saved_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    times: list[float] = []

    def waited(saves: int, age: float = 0.0) -> int:
        now = [1000.0 + age]
        times.clear()
        os.utime(path, (1000.0, 1000.0))

        def sleep(seconds: float) -> None:
            times.append(seconds)
            now[0] += seconds
            if len(times) <= saves:
                os.utime(path, (now[0], now[0]))

        wait_until_quiet(path, sleep, lambda: now[0])
        return len(times)

    assert waited(0, age=1.0) == 0  # saved long enough ago
    assert waited(0, age=-60.0) == 0  # the file system's clock is ahead
    assert waited(3) == 4
    assert waited(1000) == QUIET_LOOKS
    assert sum(times) <= 2.01
    path.unlink()
    wait_until_quiet(path, times.append)


def test_nobody_waits_for_what_we_wrote_ourselves(tmp_path: Path) -> None:
    times: list[float] = []
    replace_file(tmp_path / "f", b"x")
    wait_until_quiet(tmp_path / "f", times.append)
    assert times == []


def slow_writer(path: Path, pieces: list[bytes], pause_s: float, flags: int, began: threading.Event) -> None:
    descriptor = os.open(path, os.O_WRONLY | flags)
    for piece in pieces:
        os.write(descriptor, piece)
        began.set()
        time.sleep(pause_s)
    os.ftruncate(descriptor, sum(map(len, pieces)))
    os.close(descriptor)


def moved(one: Path, to: Path) -> None:
    one.replace(to)


def is_opened(path: Path, began: threading.Event) -> None:
    """Wait until the editor has written, or until its open(2) waits for us to release our lease."""
    number = path.stat().st_ino
    wait_until(lambda: began.is_set() or waits_for_lease(number))


def waits_for_lease(number: int) -> bool:
    if sys.platform != "linux":
        return False
    return any(f":{number} " in line and "BREAKING" in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.fixture(params=["with leases", "without leases", "without exchange", "with neither"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Simulate systems and disks with and without leases and atomic exchange. Return the name of the case."""
    if request.param in ("without leases", "with neither"):
        monkeypatch.setattr(files, "take_lease", lambda descriptor, exclusive=False: None)
    if request.param in ("without exchange", "with neither"):
        monkeypatch.setattr(files, "exchange", lambda one, other: False)
    return str(request.param)


@posix_only
@pytest.mark.requirement("file-slow-editor")
def test_an_editor_that_begins_in_the_last_moment_wins_whole(tmp_path: Path, disk: str) -> None:
    """The editor opens the file just before we replace it, and writes for a while."""
    path, began = tmp_path / "f", threading.Event()
    path.write_bytes(b"old")
    os.utime(path, (1000, 1000))
    pieces = [b"one ", b"two ", b"three"]
    editor = threading.Thread(target=slow_writer, args=(path, pieces, 0.03, os.O_TRUNC, began))

    def last_moment() -> None:
        editor.start()
        is_opened(path, began)

    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", last_moment)
    editor.join()
    assert path.read_bytes() == b"".join(pieces)
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@exchange_only
@pytest.mark.requirement("file-slow-editor")
def test_an_editor_that_replaces_the_file_in_the_last_moment_wins(tmp_path: Path) -> None:
    path, fresh = tmp_path / "f", tmp_path / "g"
    path.write_bytes(b"old")
    fresh.write_bytes(b"saved")
    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", lambda: moved(fresh, path))
    assert path.read_bytes() == b"saved"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@exchange_only
@pytest.mark.requirement("file-slow-editor")
def test_an_editor_that_moves_the_file_away_in_the_last_moment_finds_none(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", lambda: moved(path, tmp_path / "f~"))
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("f~", b"old")]


@linux_only
@pytest.mark.requirement("file-slow-editor")
def test_nobody_reads_our_text_until_it_is_known_to_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads our text, and then saves, would overwrite the editor's save."""
    path, fresh, seen = tmp_path / "f", tmp_path / "g", list[bytes]()
    path.write_bytes(b"old")
    fresh.write_bytes(b"saved")
    reader = threading.Thread(target=lambda: seen.append(path.read_bytes()))

    def exchange_and_read(one: Path, other: Path) -> bool:
        done = exchange(one, other)
        if reader.ident is None:
            number = other.stat().st_ino
            reader.start()
            wait_until(lambda: bool(seen) or waits_for_lease(number))
        return done

    monkeypatch.setattr(files, "exchange", exchange_and_read)
    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", lambda: moved(fresh, path))
    reader.join()
    assert (seen, path.read_bytes()) == ([b"saved"], b"saved")


@linux_only
@pytest.mark.requirement("file-slow-editor")
def test_an_editor_that_found_the_file_before_it_was_replaced_and_opens_it_after_that_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, began = tmp_path / "f", threading.Event()
    path.write_bytes(b"old")
    editor: list[threading.Thread] = []

    def open_late(folder: Path) -> None:
        (left,) = folder.glob(".f.*.tmp")  # the name of the old file after the exchange
        editor.append(threading.Thread(target=slow_writer, args=(left, [b"one ", b"two"], 0.03, os.O_TRUNC, began)))
        editor[0].start()
        is_opened(left, began)

    monkeypatch.setattr(files, "_sync_folder", open_late)
    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours")
    editor[0].join()
    assert path.read_bytes() == b"one two"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@linux_only
@pytest.mark.requirement("file-slow-editor")
@pytest.mark.parametrize("flags", [0, os.O_TRUNC], ids=["over the old text", "emptied first"])
def test_an_editor_that_pauses_is_waited_for_while_it_has_the_file_open(tmp_path: Path, flags: int) -> None:
    path, began = tmp_path / "f", threading.Event()
    path.write_bytes(b"old")
    editor = threading.Thread(target=slow_writer, args=(path, [b"one ", b"two"], 0.5, flags, began))
    editor.start()
    assert began.wait(10)

    def still_as_seen() -> None:
        if path.read_bytes() != b"one ":
            raise FileChangedError("changed")

    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", still_as_seen)
    editor.join()
    assert path.read_bytes() == b"one two"


def test_a_file_that_nobody_writes_is_replaced_at_once(tmp_path: Path) -> None:
    path, asked = tmp_path / "f", list[int]()
    path.write_bytes(b"old")
    with path.open("rb"):  # readers do not delay us
        write_atomic(path, b"ours", lambda: asked.append(1) if os.name != "nt" else None)
    assert path.read_bytes() == b"ours"


@pytest.mark.requirement("file-one-writer")
def test_a_lock_is_waited_for_and_names_who_holds_it_for_too_long(home: Path) -> None:
    path = home / "servers.yaml"
    holder = start(HOLD, str(path))
    assert line_of(holder) == "held"
    with pytest.raises(StorageError, match=f"process {holder.pid}") as caught, locked(path, wait_s=0.05):
        pass
    assert caught.value.hint
    with locked(home / "trusted.json", wait_s=0):  # each file has its own lock
        pass
    end(holder)
    with locked(path):
        pass


@pytest.mark.requirement("file-one-writer")
def test_the_death_of_its_holder_frees_a_lock(home: Path) -> None:
    path = home / "servers.yaml"
    holder = start(HOLD, str(path))
    assert line_of(holder) == "held"
    holder.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    with locked(path, wait_s=30):
        pass
    end(holder)


def test_a_lock_leaves_nothing_behind_and_holds_among_threads(home: Path) -> None:
    path, inside, seen = home / "a" / "servers.yaml", [0], list[int]()

    def work() -> None:
        for _ in range(20):
            with locked(path):
                inside[0] += 1
                seen.append(inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 160
    if os.name != "nt":
        assert list((home / "run").iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_file_has_one_lock_whatever_link_leads_to_it(home: Path) -> None:
    (home / "link.yaml").symlink_to(home / "servers.yaml")
    held_by_us = pytest.raises(StorageError, match=str(os.getpid()))
    with locked(home / "servers.yaml"), held_by_us, locked(home / "link.yaml", wait_s=0):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_lock_is_never_written_through_a_link(home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    (home / "precious").write_text("mine")
    with locked(home / "servers.yaml"):
        (name,) = [file.name for file in (home / "run").iterdir()]
    (home / "run" / name).symlink_to(home / "precious")
    with pytest.raises(StorageError, match="Cannot change"), locked(home / "servers.yaml"):
        pass
    assert (home / "precious").read_text() == "mine"


def test_a_lock_that_cannot_be_made_is_a_clear_error(home: Path) -> None:
    (home / "run").write_text("in the way")
    with pytest.raises(StorageError, match="Cannot change") as caught, locked(home / "servers.yaml"):
        pass
    assert caught.value.hint


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no open file")
def test_a_lock_whose_folder_was_removed_takes_no_other_one_away(home: Path) -> None:
    path = home / "servers.yaml"
    with locked(path):
        shutil.rmtree(home / "run")
        other = start(HOLD, str(path))
        assert line_of(other) == "held"
    with pytest.raises(StorageError, match=str(other.pid)), locked(path, wait_s=0):
        pass
    end(other)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def noticed(watch: FolderWatch) -> bool:
    return bool(select.select([watch.descriptor], [], [], 5.0)[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "servers.yaml"
    path.write_text("servers: {}\n")
    return path


def watched(path: Path) -> FolderWatch:
    watch = watch_folders_of(path)
    assert watch is not None
    return watch


@pytest.mark.parametrize("how", ["in place", "replaced", "removed"])
def test_every_way_of_saving_is_noticed(file: Path, how: str) -> None:
    watch = watched(file)
    if how == "in place":
        file.write_text("servers: {a: {command: x}}\n")
    elif how == "replaced":
        write_atomic(file, b"servers: {b: {command: x}}\n")
    else:
        file.unlink()
    assert noticed(watch)
    watch.close()


def test_a_linked_file_is_noticed_where_it_really_lies(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles"
    elsewhere.mkdir()
    real = file.rename(elsewhere / "real.yaml")
    file.symlink_to(real)
    watch = watched(file)
    real.write_text("servers: {c: {command: x}}\n")
    assert noticed(watch)
    watch.close()


def test_what_was_told_is_forgotten_when_drained(file: Path) -> None:
    watch = watched(file)
    file.write_text("x: 1\n")
    assert noticed(watch)
    watch.drain()
    assert not select.select([watch.descriptor], [], [], 0)[0]
    watch.close()


def test_who_writes_beside_the_file_without_end_does_not_hold_up_the_gateway() -> None:
    watch = FolderWatch(os.open("/dev/zero", os.O_RDONLY))
    watch.drain()
    watch.close()


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    assert watch_folders_of(tmp_path / "nowhere" / "servers.yaml") is None
