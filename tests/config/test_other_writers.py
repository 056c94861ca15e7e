"""A save is noticed without polling. Never here: what a gateway does about it."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from trayapp.config.files import write_atomic
from trayapp.config.other_writers import FolderWatch, watch_folders_of

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
