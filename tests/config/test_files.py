"""Files that other programs save, too: waited for, and nothing that they write is lost."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from trayapp.config.files import QUIET_LOOKS, replace_file, wait_until_quiet, write_atomic
from trayapp.model.errors import FileChangedError

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who has a file open")


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

    assert waited(0, age=1.0) == 0  # as nearly always
    assert waited(0, age=-60.0) == 0  # a disk with another clock
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


@posix_only
@pytest.mark.requirement("file-slow-editor")
def test_an_editor_that_begins_in_the_last_moment_wins_whole(tmp_path: Path) -> None:
    """It opened the file before we replaced it, and writes on for a while into what has no name any more."""
    path, began = tmp_path / "f", threading.Event()
    path.write_bytes(b"old")
    os.utime(path, (1000, 1000))
    pieces = [b"one ", b"two ", b"three"]
    editor = threading.Thread(target=slow_writer, args=(path, pieces, 0.03, os.O_TRUNC, began))

    def last_moment() -> None:
        editor.start()
        assert began.wait(10)

    with pytest.raises(FileChangedError):
        write_atomic(path, b"ours", last_moment)
    editor.join()
    assert path.read_bytes() == b"".join(pieces)
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
    with path.open("rb"):  # a reader is in nobody's way
        write_atomic(path, b"ours", lambda: asked.append(1) if os.name != "nt" else None)
    assert path.read_bytes() == b"ours"
