"""Concurrent writers of servers.yaml, including users' editors: no reported change and no user's byte is lost."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.running import environment, launch, launch_with, quick_program, run_cli
from tests.patience import stretched
from trayapp.config import edits
from trayapp.config.layers.project import TRUST_NAME, TrustStore, read_project
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore
from trayapp.model.config import ToolSwitch

TOOLS = 60
HEAD = "# mine\nservers:\n  s:\n    command: x   # keep\n    tools:\n"
SAVES = 12


def text_of(tools: int = TOOLS) -> str:
    return HEAD + "".join(f"      t{number}: {{enabled: true}}\n" for number in range(tools))


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "servers.yaml"
    path.write_text(text_of(), encoding="utf-8")
    return path


def switched_off(path: Path) -> set[str]:
    tools = parse(path.read_text(encoding="utf-8"), "servers.yaml").servers["s"].tools or {}
    return {name for name, switch in tools.items() if not switch.enabled}


def begin(home: Path, env: dict[str, str], *argv: str) -> subprocess.Popen[str]:
    """Start a verb in a fork and return its process. A test that kills the process uses `launch` instead."""
    return launch_with(home, env, *argv, program=quick_program())


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Wait for the processes to end. Return the exit code and stderr of each that failed."""
    said = [(process.communicate(timeout=stretched(60))[1], process.returncode) for process in processes]
    return [f"{code}: {text}" for text, code in said if code != 0]


@pytest.mark.requirement("file-one-writer")
@pytest.mark.parametrize("at_once", [2, 10, 50])
def test_every_switch_that_was_told_as_done_is_in_the_file_and_none_is_refused(
    home: Path, file: Path, at_once: int
) -> None:
    assert ended([begin(home, environment(home), "disable", f"s/t{number}") for number in range(at_once)]) == []
    assert switched_off(file) == {f"t{number}" for number in range(at_once)}
    assert file.read_text(encoding="utf-8").replace("false", "true") == text_of()


@pytest.mark.requirement("file-one-writer")
def test_the_first_edits_of_a_file_that_is_not_there_yet_are_all_written(home: Path) -> None:
    words = [
        ("add", f"s{number}", "--scope", "global", "--url", f"https://x{number}.example/", "--no-start")
        for number in range(8)
    ]
    assert ended([begin(home, environment(home), *each) for each in words]) == []
    names = {f"s{number}" for number in range(8)}
    assert parse((home / "servers.yaml").read_text(encoding="utf-8"), "f").servers.keys() == names | {"sample"}


@pytest.mark.requirement("file-one-writer")
@pytest.mark.skipif(os.name == "nt", reason="stops a process")
def test_a_holder_that_is_killed_is_in_nobodys_way(home: Path, file: Path) -> None:
    """Each kill comes at a different moment, when a process may wait, hold the lock or write."""
    for turn in range(6):
        victims, others = [
            [launch(home, "disable", f"s/t{10 * turn + number}") for number in numbers]
            for numbers in (range(4), range(4, 6))
        ]
        time.sleep(0.05 * turn)
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        assert ended(others) == []
        ended(victims)
        assert {f"t{10 * turn + number}" for number in range(4, 6)} <= switched_off(file)
        assert file.read_text(encoding="utf-8").replace("false", "true") == text_of()


@pytest.mark.requirement("file-one-writer")
def test_projects_that_are_trusted_at_once_are_all_trusted(home: Path) -> None:
    folders = [home / f"shop{number}" for number in range(8)]
    for folder in folders:
        folder.mkdir()
        (folder / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    trusting = {"MULTI_MCP_UNATTENDED": "1"}
    running = [begin(home, environment(home, **trusting), "trust", str(folder), "--yes") for folder in folders]
    assert ended(running) == []
    assert {path.parent for path in TrustStore(home / TRUST_NAME).paths()} == {folder.resolve() for folder in folders}


@pytest.mark.requirement("file-one-writer")
@pytest.mark.parametrize("name", [".multi-mcp.yaml", ".mcp.json"])
def test_servers_that_are_added_to_a_project_at_once_are_all_there_and_trusted(home: Path, name: str) -> None:
    shop = home / "shop"
    shop.mkdir()
    if name == ".mcp.json":
        (shop / name).write_text("{}", encoding="utf-8")
        assert (
            run_cli(home, "trust", str(shop), "--yes", env=environment(home, MULTI_MCP_UNATTENDED="1")).returncode == 0
        )
    words = [("--scope", "project", "--url", f"https://x{number}.example/", "--no-start") for number in range(6)]
    env = environment(home, HOME=str(home))
    running = [
        subprocess.Popen(
            [*quick_program(), "add", f"s{number}", *each], cwd=shop, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8",
        )
        for number, each in enumerate(words)
    ]  # fmt: skip
    assert ended(running) == []
    file = read_project(shop / name)
    assert file is not None
    assert parse(file.text(), name).servers.keys() == {f"s{number}" for number in range(6)}
    assert TrustStore(home / TRUST_NAME).check(file) is not None


@pytest.mark.requirement("file-one-writer")
def test_secrets_that_are_set_at_once_without_a_gateway_are_all_kept(home: Path) -> None:
    (home / "servers.yaml").write_text("settings: {token_store: file}\n", encoding="utf-8")
    env = environment(home, MULTI_MCP_PASSPHRASE="open sesame")
    names = [f"name{number}" for number in range(6)]
    given = [
        subprocess.Popen(
            [*quick_program(), "secret", "set", name], cwd=home, env=env, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8",
        )
        for name in names
    ]  # fmt: skip
    for process, name in zip(given, names, strict=True):
        assert process.stdin is not None
        process.stdin.write(f"value of {name}\n")
        process.stdin.flush()
    assert ended(given) == []
    listed = run_cli(home, "secret", "list", "--json", env=env)
    assert json.loads(listed.stdout) == names


@pytest.mark.requirement("file-one-writer")
def test_ai_tools_that_are_connected_at_once_are_all_noted_and_each_file_is_whole(home: Path, tmp_path: Path) -> None:
    files = {"cursor": ".cursor/mcp.json", "gemini-cli": ".gemini/settings.json", "claude-code": ".claude.json"}
    for file in files.values():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text('{"mine": 1}\n', encoding="utf-8")
    env = environment(home, HOME=str(tmp_path), USERPROFILE=str(tmp_path))
    assert ended([begin(home, env, "connect", client) for client in [*files, *files]]) == []
    assert json.loads((home / "clients.json").read_text(encoding="utf-8"))["connected"].keys() == files.keys()
    for file in files.values():
        written = json.loads((tmp_path / file).read_text(encoding="utf-8"))
        assert (written["mine"], list(written["mcpServers"])) == (1, ["multi-mcp"])


# -- editors ---------------------------------------------------------------------------------------------------------


def in_place(path: Path, data: bytes, pieces: int, pause_s: float, flags: int) -> None:
    """Write `data` to the file in pieces. Unless appending, cut off the rest of a longer old text."""
    size = len(data) // pieces + 1
    descriptor = os.open(path, os.O_WRONLY | flags)
    for start in range(0, len(data), size):
        os.write(descriptor, data[start : start + size])
        time.sleep(pause_s)
    if not flags & os.O_APPEND:
        os.ftruncate(descriptor, len(data))
    os.close(descriptor)


def by_rename(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + "~new")
    fresh.write_bytes(data)
    fresh.replace(path)


def moved_away(path: Path, data: bytes) -> None:
    path.replace(path.with_name(path.name + "~"))
    time.sleep(0.02)
    in_place(path, data, 4, 0.03, os.O_CREAT | os.O_TRUNC)


def appended(path: Path, data: bytes) -> None:
    """Append the last line of `data` at the file's current end, as a shell's `>>` does."""
    in_place(path, data.splitlines(keepends=True)[-1], 1, 0.03, os.O_APPEND)


def switch_tool(store: ConfigStore, number: int) -> None:
    """Switch one tool. Rising numbers switch each tool off in turn, then each on again."""
    name, enabled = f"t{number % TOOLS}", number // TOOLS % 2 == 1
    store.edit(lambda text: edits.set_tools_enabled(text, "s", [name], enabled))


Editor = Callable[[Path, bytes], None]
EDITORS: dict[str, Editor] = {
    "slow": lambda path, data: in_place(path, data, 4, 0.03, os.O_TRUNC),
    "slow, over the old text": lambda path, data: in_place(path, data, 4, 0.03, 0),
    "in place": lambda path, data: in_place(path, data, 1, 0, os.O_TRUNC),
    "by rename": by_rename,
    "moved away first": moved_away,
    "appended": appended,
}
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who has a file open")


@pytest.mark.requirement("file-slow-editor")
@pytest.mark.parametrize("editor", EDITORS.values(), ids=EDITORS)
def test_editors_of_all_kinds_lose_no_byte_while_switches_and_found_tools_are_written(
    home: Path, file: Path, editor: Editor
) -> None:
    ready, lost = threading.Event(), list[str]()

    def edit() -> None:
        for number in range(SAVES):
            editor(file, file.read_bytes() + f"# note {number}\n".encode())
            time.sleep(0.05 * (number % 8))
        ready.set()

    def switch() -> None:
        store = ConfigStore(file)
        for number in itertools.count():
            if ready.is_set():
                return
            switch_tool(store, number)
            lost.extend(store.merge_tools({"s": {f"found{number}": ToolSwitch()}}).values())

    with ThreadPoolExecutor(2) as threads:
        for work in [threads.submit(edit), threads.submit(switch)]:
            work.result()
    text = file.read_text(encoding="utf-8")
    assert [number for number in range(SAVES) if f"# note {number}\n" not in text] == []
    assert all(f"      t{number}: " in text for number in range(TOOLS))
    assert lost == []
    assert parse(text, "servers.yaml").problems == ()


@pytest.mark.requirement("file-slow-editor")
@pytest.mark.parametrize("editor", EDITORS.values(), ids=EDITORS)
def test_an_editor_that_keeps_its_own_text_loses_no_byte_however_quickly_it_saves_again(
    file: Path, editor: Editor
) -> None:
    ready, store, text = threading.Event(), ConfigStore(file), file.read_bytes()

    def switch() -> None:
        for number in itertools.count():
            if ready.is_set():
                return
            switch_tool(store, number)

    with ThreadPoolExecutor(1) as threads:
        switching = threads.submit(switch)
        for number in range(SAVES):
            text += f"# note {number}\n".encode()
            editor(file, text)
        ready.set()
        switching.result()
    kept = file.read_text(encoding="utf-8")
    assert [number for number in range(SAVES) if f"# note {number}\n" not in kept] == []


@linux_only
@pytest.mark.requirement("file-slow-editor")
@pytest.mark.parametrize("flags", [os.O_TRUNC, 0], ids=["emptied first", "over the old text"])
@pytest.mark.parametrize("pause_s", [0.03, 0.5])
def test_a_switch_during_a_save_is_in_the_file_with_all_that_was_saved(
    home: Path, file: Path, flags: int, pause_s: float
) -> None:
    saved = file.read_bytes() + b"# the end\n"
    editor = threading.Thread(target=in_place, args=(file, saved, 3, pause_s, flags))
    editor.start()
    done = run_cli(home, "disable", "s/t7")
    editor.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text(encoding="utf-8") == saved.decode().replace("t7: {enabled: true}", "t7: {enabled: false}")
