"""One change at a time to each file of ours: waited for, freed by its holder's death, told where it cannot be had."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.wire.processes import end, line_of, start
from trayapp.config.files import locked
from trayapp.model.errors import StorageError

HOLD = """
import sys
from pathlib import Path
from trayapp.config.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.requirement("file-one-writer")
def test_a_lock_is_waited_for_and_names_who_holds_it_for_too_long(home: Path) -> None:
    path = home / "servers.yaml"
    holder = start(HOLD, str(path))
    assert line_of(holder) == "held"
    with pytest.raises(StorageError, match=f"process {holder.pid}") as caught, locked(path, wait_s=0.05):
        pass
    assert caught.value.hint
    with locked(home / "trusted.json", wait_s=0):  # each file has its own
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
