"""`multi-mcp` without a verb (the tray, or the gateway with its status), and the verbs `autostart` and `quit`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment, run_cli
from trayapp.cli.tray import has_desktop
from trayapp.service.single_instance import TRAY_LOCK, SingleTray
from trayapp.tray.app import ENDED_BY
from trayapp.wire.rundir import run_dir

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a desktop")


@linux_only
@pytest.mark.parametrize(
    ("environ", "there"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}, True),
        ({"DISPLAY": ""}, False),
        ({"XDG_RUNTIME_DIR": "/nowhere"}, False),
    ],
)
def test_a_desktop_is_a_display_or_a_session_bus(environ: dict[str, str], there: bool) -> None:
    assert has_desktop(environ) is there


@linux_only
def test_a_bus_in_the_runtime_folder_is_a_desktop(tmp_path: Path) -> None:
    (tmp_path / "bus").touch()
    assert has_desktop({"XDG_RUNTIME_DIR": str(tmp_path)})


@linux_only
@pytest.mark.requirement("autostart")
def test_autostart_is_switched_and_read_by_the_verb(home: Path) -> None:
    env = environment(home, XDG_CONFIG_HOME=str(home / "config"))
    entry = home / "config" / "autostart" / "multi-mcp.desktop"
    assert run_cli(home, "autostart", env=env).stdout == "The tray does not start at login\n"
    assert run_cli(home, "autostart", "on", env=env).stdout == f"The tray starts at login\n{entry}\n"
    entry.write_text(entry.read_text() + "Hidden=true\n")
    document = json.loads(run_cli(home, "autostart", "status", "--json", env=env).stdout)
    assert document == {"autostart": False, "entry": str(entry)}
    assert json.loads(run_cli(home, "autostart", "on", "--json", env=env).stdout)["autostart"] is True
    assert run_cli(home, "autostart", "off", env=env).stdout == "The tray does not start at login\n"
    assert not entry.exists()


@linux_only
def test_autostart_that_cannot_be_written_says_so(home: Path) -> None:
    (home / "config").write_text("")
    done = run_cli(home, "autostart", "on", env=environment(home, XDG_CONFIG_HOME=str(home / "config")))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: Cannot write {home}/config/autostart/multi-mcp.desktop")


@linux_only
def test_quit_names_no_process_that_the_lock_does_not_name(home: Path) -> None:
    """A tray that started with a full disk could not write its process ID."""
    run = run_dir({"MULTI_MCP_HOME": str(home)})
    tray, asked = SingleTray(run), list[str]()

    def answer(request: str) -> str:
        asked.append(request)
        return "It ends"

    assert tray.take() is None
    Path(run, TRAY_LOCK).write_text("", encoding="utf-8")
    try:
        silent = run_cli(home, "quit")
        assert silent.stderr == "Error: The tray does not answer\nEnd the process multi-mcp-tray\n"
        tray.serve(answer)
        assert run_cli(home, "quit").stdout == "The tray app is quitting\n"
    finally:
        tray.close()
    assert asked == [ENDED_BY]


def test_autostart_takes_three_words(home: Path) -> None:
    assert run_cli(home, "autostart", "perhaps").returncode == 2
