"""Tests of start at login: each system's autostart entry is written, read back and kept up to date."""

from __future__ import annotations

import plistlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import require
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.service.autostart import (
    APPROVED,
    LABEL,
    RUN,
    Autostart,
    AutostartEntry,
    LaunchAgent,
    RunKey,
    StartCommand,
    XdgEntry,
    find_autostart,
)
from trayapp.service.command_line import tray_command

PROGRAM = ("/opt/multi mcp/bin/multi-mcp", "tray", "--autostart")
ODD_PATHS = ["/a b/x", "/ä/ü", '/q"uote/x', "/back\\slash/x", "/semi;colon/x", "/single'quote/x", "/hash#/x", "/<&>/x"]


class FakeRegistry:
    """An in-memory autostart.Registry."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str | bytes] = {}
        self.refuses = False

    def get(self, key: str, name: str) -> str | bytes | None:
        self._check()
        return self.values.get((key, name))

    def set(self, key: str, name: str, value: str) -> None:
        self._check()
        self.values[key, name] = value

    def delete(self, key: str, name: str) -> None:
        self._check()
        self.values.pop((key, name), None)

    def _check(self) -> None:
        if self.refuses:
            raise PermissionError(5, "Access is denied")


@pytest.fixture(params=["xdg", "launchd", "registry"])
def entry(request: pytest.FixtureRequest, tmp_path: Path) -> AutostartEntry:
    made: dict[str, AutostartEntry] = {
        "xdg": XdgEntry(tmp_path / "config" / "autostart" / "multi-mcp.desktop"),
        "launchd": LaunchAgent(tmp_path / "LaunchAgents" / f"{LABEL}.plist"),
        "registry": RunKey(FakeRegistry()),
    }
    chosen: AutostartEntry = made[request.param]
    return chosen


@pytest.mark.requirement("autostart")
def test_on_and_off_are_read_back(entry: AutostartEntry) -> None:
    switch = Autostart(entry, StartCommand(PROGRAM))
    assert not entry.is_on()
    switch.turn(False)  # there is no entry to remove
    switch.turn(True)
    switch.turn(True)
    assert entry.is_on()
    assert entry.written() == StartCommand(PROGRAM)
    switch.turn(False)
    assert not entry.is_on()
    assert entry.written() is None


@pytest.mark.requirement("autostart")
@pytest.mark.parametrize("path", ODD_PATHS)
def test_odd_paths_come_back_as_they_are(entry: AutostartEntry, path: str) -> None:
    if isinstance(entry, RunKey):
        path = path.replace('"', "'")  # file names on Windows contain no quotes
    start = StartCommand((path, "tray", "--autostart"))
    entry.write(start)
    assert entry.written() == start


@pytest.mark.requirement("autostart-update")
def test_an_outdated_entry_of_this_home_is_rewritten(entry: AutostartEntry) -> None:
    Autostart(entry, StartCommand(("/old/multi-mcp", "tray"))).turn(True)
    switch = Autostart(entry, StartCommand(PROGRAM))
    assert switch.refresh_command()
    assert entry.written() == StartCommand(PROGRAM)
    assert not switch.refresh_command()


@pytest.mark.requirement("autostart-update")
def test_an_entry_that_is_off_stays_off(entry: AutostartEntry) -> None:
    assert not Autostart(entry, StartCommand(PROGRAM)).refresh_command()
    assert not entry.is_on()


def test_the_entry_of_another_home_is_left_alone(tmp_path: Path) -> None:
    for entry in (XdgEntry(tmp_path / "x.desktop"), LaunchAgent(tmp_path / "x.plist")):
        mine, other = StartCommand(PROGRAM, "/home/ada/a home"), StartCommand(("/old/x",), "")
        entry.write(mine)
        assert entry.written() == mine
        assert not Autostart(entry, other).refresh_command()
        assert entry.written() == mine


# -- Linux ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("autostart")
@pytest.mark.parametrize("path", ["/usr/bin/multi-mcp", *ODD_PATHS])
@pytest.mark.parametrize("home", ["", "/home/ada/a home"])
def test_the_desktop_entry_is_valid(tmp_path: Path, path: str, home: str) -> None:
    validator = require("desktop-file-validate")
    file = tmp_path / "multi-mcp.desktop"
    XdgEntry(file).write(StartCommand((path, "tray", "--autostart"), home))
    done = subprocess.run([validator, str(file)], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout, done.returncode) == ("", 0)


def test_a_desktop_starts_the_words_of_the_entry(tmp_path: Path) -> None:
    file = tmp_path / "multi-mcp.desktop"
    XdgEntry(file).write(StartCommand(PROGRAM, "/h"))
    command = next(line for line in file.read_text().splitlines() if line.startswith("Exec="))
    assert shlex.split(command.removeprefix("Exec=")) == ["/usr/bin/env", "MULTI_MCP_HOME=/h", *PROGRAM]
    assert f"\nTryExec={PROGRAM[0]}\n" in file.read_text()  # desktops silently skip a deleted program


@pytest.mark.parametrize("path", ["/a$b/x", "/100%/x", "/a`b/x", "/a\nb/x"])
def test_a_path_that_no_desktop_would_start_is_refused_and_nothing_written(tmp_path: Path, path: str) -> None:
    entry = XdgEntry(tmp_path / "multi-mcp.desktop")
    with pytest.raises(MultiMcpError, match="Start at login is not possible") as caught:
        entry.write(StartCommand((path, "tray")))
    assert caught.value.hint
    assert not (tmp_path / "multi-mcp.desktop").exists()


@pytest.mark.requirement("autostart")
@pytest.mark.parametrize(
    ("change", "on"),
    [
        ("Hidden=true", False),
        ("Hidden=TRUE", False),
        ("Hidden=false", True),
        ("X-GNOME-Autostart-enabled=false", False),
        ("X-KDE-autostart-enabled=perhaps", True),
        ("# Hidden=true", True),
        ("[Other]\nHidden=true", True),
    ],
)
def test_the_switch_of_a_desktop_is_respected(tmp_path: Path, change: str, on: bool) -> None:
    file = tmp_path / "multi-mcp.desktop"
    entry = XdgEntry(file)
    entry.write(StartCommand(PROGRAM))
    text = file.read_text(encoding="utf-8")
    name = change.partition("=")[0]
    file.write_text(re.sub(f"(?m)^{re.escape(name)}=.*\n", "", text) + change + "\n", encoding="utf-8")
    assert entry.is_on() is on
    if not on:
        Autostart(entry, StartCommand(PROGRAM)).turn(True)
        assert entry.is_on()


@pytest.mark.parametrize("text", ["", "nonsense", "[Desktop Entry]\nName=x\n", "Exec=/x\n"])
def test_an_entry_that_starts_nothing_is_off(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.desktop").write_text(text)
    assert not XdgEntry(tmp_path / "x.desktop").is_on()


@pytest.mark.skipif(sys.platform != "linux", reason="the place on Linux")
def test_the_entry_is_in_the_autostart_folder(tmp_path: Path) -> None:
    assert (
        find_autostart({"XDG_CONFIG_HOME": str(tmp_path)}, ["/x"]).entry.where
        == f"{tmp_path}/autostart/multi-mcp.desktop"
    )
    ours = f"{Path.home()}/.config/autostart/multi-mcp.desktop"
    assert find_autostart({}, ["/x"]).entry.where == ours
    assert find_autostart({"XDG_CONFIG_HOME": "relative"}, ["/x"]).entry.where == ours


@pytest.mark.skipif(sys.platform != "linux", reason="the place on Linux")
def test_a_relative_home_is_written_as_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    find_autostart({"XDG_CONFIG_HOME": str(tmp_path), "MULTI_MCP_HOME": " here "}, ["/x"]).turn(True)
    assert f'"MULTI_MCP_HOME={tmp_path}/here"' in (tmp_path / "autostart" / "multi-mcp.desktop").read_text()


def test_an_entry_that_cannot_be_written_read_or_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for entry in (XdgEntry(tmp_path / "file" / "x"), LaunchAgent(tmp_path / "file" / "x")):
        with pytest.raises(StorageError, match="Cannot write"):
            entry.write(StartCommand(PROGRAM))
    (tmp_path / "folder").mkdir()
    for entry in (XdgEntry(tmp_path / "folder"), LaunchAgent(tmp_path / "folder")):
        with pytest.raises(StorageError, match="is not a file"):
            entry.is_on()
        with pytest.raises(StorageError, match="Cannot remove"):
            entry.remove()


# -- macOS ---------------------------------------------------------------------------------------------------------


def test_the_launch_agent_starts_the_tray_once_in_the_graphical_session(tmp_path: Path) -> None:
    path = tmp_path / "x.plist"
    LaunchAgent(path).write(StartCommand(PROGRAM, "/h"))
    values = plistlib.loads(path.read_bytes())
    assert values["ProgramArguments"] == list(PROGRAM)
    assert values["EnvironmentVariables"] == {"MULTI_MCP_HOME": "/h"}
    assert (values["RunAtLoad"], values["KeepAlive"], values["LimitLoadToSessionType"]) == (True, False, "Aqua")


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"<plist", plistlib.dumps([1]), plistlib.dumps({"RunAtLoad": True})]
)
def test_a_launch_agent_that_starts_nothing_is_off(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.plist").write_bytes(data)
    assert not LaunchAgent(tmp_path / "x.plist").is_on()
    assert LaunchAgent(tmp_path / "x.plist").written() is None


def test_a_launch_agent_that_was_disabled_is_off(tmp_path: Path) -> None:
    path = tmp_path / "x.plist"
    LaunchAgent(path).write(StartCommand(PROGRAM))
    path.write_bytes(plistlib.dumps({**plistlib.loads(path.read_bytes()), "Disabled": True}))
    assert not LaunchAgent(path).is_on()


# -- Windows -------------------------------------------------------------------------------------------------------


def test_the_run_key_has_the_program_in_quotes() -> None:
    registry = FakeRegistry()
    RunKey(registry).write(StartCommand((r"C:\Program Files\multi-mcp\multi-mcp-tray.exe", "tray", "--autostart")))
    command = registry.values[RUN, "multi-mcp"]
    assert command == r'"C:\Program Files\multi-mcp\multi-mcp-tray.exe" tray --autostart'


@pytest.mark.parametrize(("switch", "on"), [(b"\x02" + bytes(11), True), (b"\x03" + bytes(11), False), (b"", True)])
def test_the_switch_of_the_task_manager_is_respected(switch: bytes, on: bool) -> None:
    registry = FakeRegistry()
    key = RunKey(registry)
    key.write(StartCommand(PROGRAM))
    registry.values[APPROVED, "multi-mcp"] = switch
    assert key.is_on() is on
    key.write(StartCommand(PROGRAM))
    assert key.is_on()


def test_the_run_key_refuses_a_home_because_it_cannot_set_variables() -> None:
    with pytest.raises(MultiMcpError, match="MULTI_MCP_HOME is set"):
        RunKey(FakeRegistry()).write(StartCommand(PROGRAM, "/h"))


def test_a_registry_that_refuses_access_is_an_error() -> None:
    registry = FakeRegistry()
    registry.refuses = True
    for work in (
        RunKey(registry).is_on,
        RunKey(registry).remove,
        lambda: RunKey(registry).write(StartCommand(PROGRAM)),
    ):
        with pytest.raises(StorageError, match="Access is denied"):
            work()


@pytest.mark.parametrize("words", [("C:\\x.exe",), ("C:\\a b\\x.exe", "tray"), ("x", "a b", "c")])
def test_a_run_command_is_read_back(words: tuple[str, ...]) -> None:
    key = RunKey(FakeRegistry())
    key.write(StartCommand(words))
    assert key.written() == StartCommand(words)


# -- the started command -------------------------------------------------------------------------------------------


@pytest.mark.requirement("autostart-update")
def test_the_started_command_is_absolute_and_silent() -> None:
    command = tray_command()
    assert Path(command[0]).is_absolute()
    assert command[-2:] == ["tray", "--autostart"]
