"""servers.yaml while the gateway runs: first start, saves, mistakes, truncating editors, unwritable folders."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from trayapp.clients.servers import ClientLayers
from trayapp.gateway.servers_file import Layers, Outcome, ServersFile
from trayapp.model.config import Config, Imported, ToolSwitch
from trayapp.model.errors import MultiMcpError, Problem, StorageError

pytestmark = pytest.mark.anyio
ONE = "servers:\n  a: {command: x}\n"
TWO = "servers:\n  a: {command: x}\n  b: {command: y}\n"


class Taken:
    """A watched file, and the outcomes of reading it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: list[Outcome] = []
        self.config = Config()
        self.news = anyio.Event()
        self.file = ServersFile(path, ["python", "-m", "sample"], lambda: self.config, self._take, ClientLayers)

    def _take(self, outcome: Outcome) -> None:
        self.all.append(outcome)
        if isinstance(outcome, Config):
            self.config = outcome
        self.news.set()
        self.news = anyio.Event()

    @property
    def last(self) -> Outcome:
        return self.all[-1]

    async def reads(self, text: str) -> Outcome:
        """Save the text, read the file and return the outcome."""
        self.path.write_text(text, encoding="utf-8")
        await self.file.reload()
        return self.last

    async def until(self, servers: list[str]) -> None:
        """Wait until the configuration has exactly these servers."""
        with anyio.fail_after(10):
            while list(self.config.servers) != servers:
                await self.news.wait()


@pytest.fixture
def taken(tmp_path: Path) -> Taken:
    return Taken(tmp_path / "servers.yaml")


def problem(outcome: Outcome) -> Problem:
    assert isinstance(outcome, Problem)
    return outcome


@pytest.mark.requirement("file-first-run")
async def test_the_first_start_writes_a_file_with_the_sample_server_and_takes_it(taken: Taken) -> None:
    taken.file.create()
    await taken.file.reload()
    assert list(taken.config.servers) == ["sample"]
    assert taken.config.servers["sample"].args == ("-m", "sample")
    assert "# " in taken.path.read_text(encoding="utf-8")


async def test_a_file_that_is_there_is_never_replaced(taken: Taken) -> None:
    for text in (ONE, "", "{broken"):
        taken.path.write_text(text, encoding="utf-8")
        taken.file.create()
        assert taken.path.read_text(encoding="utf-8") == text


@pytest.mark.requirement("fault-disk-full")
async def test_a_folder_that_cannot_be_made_is_a_problem_and_no_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    taken = Taken(tmp_path / "file" / "servers.yaml")
    taken.file.create()
    await taken.file.reload()
    assert "servers.yaml" in caplog.text
    assert problem(taken.last).hint


async def test_a_missing_file_is_a_problem_that_says_what_to_do(taken: Taken) -> None:
    await taken.file.reload()
    assert "missing" in problem(taken.last).message
    assert "multi-mcp edit" in problem(taken.last).hint


@pytest.mark.requirement("file-broken-goes-on")
@pytest.mark.parametrize("text", ["servers:\n  a: {command: x\n  b: [", "servers:\n\ta: 1\n", "- a\n- b\n"])
async def test_a_broken_file_is_a_problem_with_its_line_and_nothing_else_is_taken(taken: Taken, text: str) -> None:
    await taken.reads(ONE)
    assert problem(await taken.reads(text)).line > 0
    assert taken.path.read_text(encoding="utf-8") == text
    assert list(taken.config.servers) == ["a"]
    await taken.file.reload()
    assert len(taken.all) == 2
    assert isinstance(await taken.reads(ONE), Config)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: \x00"])
async def test_a_file_that_is_no_text_is_a_problem(taken: Taken, data: bytes) -> None:
    taken.path.write_bytes(data)
    await taken.file.reload()
    assert problem(taken.last)


@pytest.mark.requirement("file-one-wrong-entry")
async def test_one_wrong_entry_leaves_the_others(taken: Taken) -> None:
    outcome = await taken.reads("servers:\n  a: {command: x}\n  b: {command: [1, {}]}\n")
    assert isinstance(outcome, Config)
    assert list(outcome.servers) == ["a"]
    assert [(found.server, found.line) for found in outcome.problems] == [("b", 3)]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "servers:\n", "servers: {}\n"])
async def test_an_emptied_file_is_believed_at_the_second_look(taken: Taken, text: str) -> None:
    await taken.reads(ONE)
    await taken.reads(text)
    assert list(taken.config.servers) == ["a"]
    await taken.file.reload()
    assert list(taken.config.servers) == []


async def test_a_file_that_is_emptied_and_then_written_is_never_empty(taken: Taken) -> None:
    await taken.reads(ONE)
    for _ in range(3):
        await taken.reads("")
        await taken.reads(TWO)
    assert all(isinstance(outcome, Config) and outcome.servers for outcome in taken.all)


async def test_an_empty_file_at_the_start_is_believed_at_once(taken: Taken) -> None:
    assert isinstance(await taken.reads(""), Config)


# -- following -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def followed(taken: Taken) -> AsyncIterator[None]:
    await taken.file.reload()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(taken.file.follow)
        with anyio.fail_after(20):
            yield
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("file-applied-on-save")
async def test_every_way_to_save_is_noticed(taken: Taken) -> None:
    taken.path.write_text(ONE, encoding="utf-8")
    async with followed(taken):
        taken.path.write_text(TWO, encoding="utf-8")  # in place
        await taken.until(["a", "b"])
        fresh = taken.path.with_suffix(".new")
        fresh.write_text(ONE, encoding="utf-8")
        fresh.replace(taken.path)  # as most editors do
        await taken.until(["a"])
        taken.path.unlink()
        taken.path.write_text(TWO, encoding="utf-8")
        await taken.until(["a", "b"])


@pytest.mark.requirement("file-slow-editor")
async def test_half_of_a_slow_save_is_never_taken(taken: Taken) -> None:
    """Half a file may be valid, and the servers missing from it would be stopped."""
    taken.path.write_text(TWO, encoding="utf-8")
    async with followed(taken):
        for title in ("one", "two"):
            text = TWO + f"  c: {{command: z, title: {title}}}\n"
            with taken.path.open("w", encoding="utf-8") as file:
                for line in text.splitlines(keepends=True):
                    file.write(line)
                    file.flush()
                    await anyio.sleep(0.03)
            while list(taken.config.servers) != ["a", "b", "c"] or taken.config.servers["c"].title != title:
                await taken.news.wait()
    taken_servers = [list(outcome.servers) for outcome in taken.all if isinstance(outcome, Config)]
    assert taken_servers == [["a", "b"], ["a", "b", "c"], ["a", "b", "c"]]
    assert len(taken.all) == 3


async def test_a_file_that_is_emptied_for_good_is_believed_without_another_save(taken: Taken) -> None:
    taken.path.write_text(ONE, encoding="utf-8")
    async with followed(taken):
        taken.path.write_text("", encoding="utf-8")
        await taken.until([])


async def test_a_file_that_goes_away_is_a_problem_and_what_runs_goes_on(taken: Taken) -> None:
    taken.path.write_text(ONE, encoding="utf-8")
    async with followed(taken):
        taken.path.unlink()
        while not isinstance(taken.last, Problem):
            await taken.news.wait()
        assert list(taken.config.servers) == ["a"]
        taken.path.write_text(ONE, encoding="utf-8")
        while not isinstance(taken.last, Config):
            await taken.news.wait()


async def test_what_could_not_be_read_is_read_again_without_a_save_once_it_can(taken: Taken) -> None:
    """Restored permissions are not a save. In this test, a folder in the file's place makes reading fail."""
    taken.path.mkdir()
    await taken.file.reload()
    assert "not a file" in problem(taken.last).message
    async with followed(taken):
        assert len(taken.all) == 1
        taken.path.rmdir()
        taken.path.write_text(ONE, encoding="utf-8")
        await taken.until(["a"])


# -- writing found tools ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("cat-found-tools-written", "file-comments-kept")
async def test_found_tools_are_noted_and_all_else_stays(taken: Taken) -> None:
    text = "# mine\nservers:\n  a:\n    command: 'x'   # quoted\n"
    taken.path.write_text(text, encoding="utf-8")
    taken.file.note_tools({"a": {"t": ToolSwitch()}})
    outcome = await taken.reads(taken.path.read_text(encoding="utf-8"))
    assert isinstance(outcome, Config)
    assert outcome.servers["a"].tools == {"t": ToolSwitch()}
    assert taken.path.read_text(encoding="utf-8").startswith(text)


async def test_a_server_that_is_no_longer_in_the_file_is_a_line_in_the_log(
    taken: Taken, caplog: pytest.LogCaptureFixture
) -> None:
    taken.path.write_text(ONE, encoding="utf-8")
    taken.file.note_tools({"gone": {"t": ToolSwitch()}, "a": {"t": ToolSwitch()}})
    assert "Cannot write the tools of gone to servers.yaml" in caplog.text
    assert "t:" in taken.path.read_text(encoding="utf-8")


@pytest.mark.requirement("merge-failed-refresh")
async def test_a_broken_file_is_not_touched_by_what_was_found(taken: Taken) -> None:
    taken.path.write_text("servers: [", encoding="utf-8")
    with pytest.raises(MultiMcpError):
        taken.file.note_tools({"a": {"t": ToolSwitch()}})
    assert taken.path.read_text(encoding="utf-8") == "servers: ["


@pytest.mark.requirement("fault-disk-full")
async def test_a_file_that_cannot_be_written_is_a_plain_error(taken: Taken) -> None:
    taken.path.mkdir()
    with pytest.raises(StorageError):
        taken.file.note_tools({"a": {"t": ToolSwitch()}})


class Looked(Layers):
    """Layers that record the threads that read them."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        self.threads.append(threading.get_ident())
        return ()

    def signature(self, names: Sequence[str]) -> object:
        self.threads.append(threading.get_ident())
        return None


async def test_no_file_is_looked_at_on_the_event_loop(tmp_path: Path) -> None:
    """A network drive may take seconds to answer."""
    taken, looked = Taken(tmp_path / "servers.yaml"), Looked()
    imports = "settings: {imports: [cursor]}\n"
    taken.file = ServersFile(taken.path, ["sample"], lambda: taken.config, taken._take, lambda: looked)
    await taken.reads(imports + ONE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(taken.file.follow)
        taken.path.write_text(imports + TWO, encoding="utf-8")
        await taken.until(["a", "b"])
        tasks.cancel_scope.cancel()
    assert len(looked.threads) > 4
    assert threading.get_ident() not in looked.threads
