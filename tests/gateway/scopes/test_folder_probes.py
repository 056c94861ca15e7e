"""Tests of folder probes: a folder that hangs delays its caller only briefly, and all other folders are still read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from tests.patience import stretched
from trayapp.gateway.scopes.projects import FolderProbes

pytestmark = pytest.mark.anyio
A, B, C = Path("/a"), Path("/b"), Path("/c")


class Folders:
    """A reader that returns a folder's name and notes the thread. Folders in `hang` block until `gate` is set."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.hang: set[Path] = set()
        self.seen: list[tuple[Path, int]] = []

    def look(self, folder: Path) -> str:
        self.seen.append((folder, threading.get_ident()))
        if folder in self.hang:
            self.gate.wait(30)
        return folder.name


@pytest.fixture
def folders() -> Iterator[Folders]:
    made = Folders()
    yield made
    made.gate.set()


@pytest.fixture
def looks() -> FolderProbes[str]:
    return FolderProbes("")


@pytest.mark.requirement("idle-quiet")
async def test_all_folders_are_looked_at_in_one_thread(looks: FolderProbes[str], folders: Folders) -> None:
    assert await looks.at([A, B, C], folders.look) == {A: "a", B: "b", C: "c"}
    assert [folder for folder, _ in folders.seen] == [A, B, C]
    assert len({thread for _, thread in folders.seen}) == 1


async def test_a_folder_that_hangs_is_missing_and_holds_up_no_other(
    looks: FolderProbes[str], folders: Folders, caplog: pytest.LogCaptureFixture
) -> None:
    looks.limit_s, folders.hang = stretched(0.2), {B}
    assert await looks.at([A, B, C], folders.look) == {A: "a", C: "c"}
    assert [record.getMessage() for record in caplog.records] == [
        "/b, where a client runs, does not answer. Its project cannot be checked"
    ]
    assert await looks.at([B, A], folders.look) == {A: "a"}  # B is not read again while its first read hangs
    assert [folder for folder, _ in folders.seen].count(B) == 1


async def test_a_folder_that_answers_again_is_looked_at_again(looks: FolderProbes[str], folders: Folders) -> None:
    looks.limit_s, folders.hang = 0.05, {B}
    assert await looks.at([B], folders.look) == {}
    folders.gate.set()
    looks.limit_s = 30
    with anyio.fail_after(30):
        while await looks.at([B], folders.look) != {B: "b"}:
            await anyio.lowlevel.checkpoint()


async def test_who_comes_meanwhile_waits_for_the_look_under_way(looks: FolderProbes[str], folders: Folders) -> None:
    folders.hang = {A}
    found: list[dict[Path, str]] = []

    async def look() -> None:
        found.append(await looks.at([A], folders.look))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        tasks.start_soon(look)
        await anyio.lowlevel.checkpoint()
        folders.gate.set()
    assert found == [{A: "a"}, {A: "a"}]


async def test_who_was_cancelled_holds_up_nobody(looks: FolderProbes[str], folders: Folders) -> None:
    folders.hang = {A}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(looks.at, [A, B], folders.look)
        while not folders.seen:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert await looks.at([A, B], folders.look) == {B: "b"}


async def test_a_look_that_fails_gives_nothing_and_goes_into_the_log(
    looks: FolderProbes[str], folders: Folders, caplog: pytest.LogCaptureFixture
) -> None:
    def look(folder: Path) -> str:
        return folder.name * (1 // (folder != A))

    assert await looks.at([A, B], look) == {A: "", B: "b"}
    assert "Unexpected error while reading /a" in caplog.text


async def test_where_no_thread_is_free_nothing_is_found(looks: FolderProbes[str], folders: Folders) -> None:
    limiter = anyio.to_thread.current_default_thread_limiter()
    tokens, limiter.total_tokens, looks.limit_s = limiter.total_tokens, 0, 0.05
    try:
        assert await looks.at([A, B], folders.look) == {}
    finally:
        limiter.total_tokens = tokens
    assert folders.seen == []
