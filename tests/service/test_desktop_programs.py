"""Tests of opening files and URLs, the clipboard, verbs, the pause, the version and logged reasons for a crash."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.tools import require
from trayapp import __version__
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.service.desktop_programs import copy, encoded, open_file, open_url
from trayapp.service.gateway_launch import connect_gateway
from trayapp.service.gateway_process import logged_end_reason
from trayapp.service.pause import PAUSE_LOCK, PausedError, TrayLock, refuse_while_paused
from trayapp.service.verb_process import end_verbs, run_verb
from trayapp.service.version import commit_of, version_text

HASH = "3de80d5" + "0" * 33
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the programs of Linux")


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="xdg-open")
PATIENCE_S = 20.0


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


# -- the clipboard -------------------------------------------------------------------------------------------------


@linux_only
def test_the_program_of_the_display_gets_the_text(tmp_path: Path) -> None:
    program(tmp_path / "bin", "wl-copy", f"/bin/cat > {tmp_path}/copied")
    assert copy("multi-mcp stdio ä", {"PATH": str(tmp_path / "bin"), "WAYLAND_DISPLAY": "w"})
    assert (tmp_path / "copied").read_text() == "multi-mcp stdio ä"


@linux_only
@pytest.mark.parametrize("environ", [{}, {"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "w"}])
def test_without_a_clipboard_program_copying_returns_false(tmp_path: Path, environ: dict[str, str]) -> None:
    program(tmp_path / "bin", "wl-copy", "exit 1")
    assert not copy("x", {"PATH": str(tmp_path / "bin"), **environ})


def test_text_for_windows_has_a_byte_order_mark() -> None:
    assert encoded("ä", "win32") == b"\xff\xfe\xe4\x00"
    assert encoded("ä", "darwin") == "ä".encode()


# -- verbs ---------------------------------------------------------------------------------------------------------


def test_the_answer_of_a_verb_is_returned(home: Path) -> None:
    answer = (
        run_verb(["doctor"], os.environ, 50.0)
        if sys.platform == "win32"
        else run_verb(["autostart", "status"], {**os.environ, "XDG_CONFIG_HOME": str(home)}, 50.0)
    )
    assert answer["autostart"] is False


def test_the_error_of_a_verb_is_raised_with_its_hint(home: Path) -> None:
    with pytest.raises(MultiMcpError, match="No server is named nope") as caught:
        run_verb(["enable", "nope"], os.environ, 50.0)
    assert caught.value.hint


def test_a_verb_that_takes_too_long_is_ended_and_named(home: Path) -> None:
    with pytest.raises(MultiMcpError, match="did not end within 0") as caught:
        run_verb(["start"], os.environ, 0.01)
    assert caught.value.hint == "Try it in a terminal: multi-mcp start"


def test_verbs_that_still_run_when_their_process_ends_are_killed(home: Path) -> None:
    before = psutil.Process().children()
    with ThreadPoolExecutor() as pool:
        verb = pool.submit(run_verb, ["logs", "--follow"], os.environ, 50.0)
        while not verb.done():
            end_verbs()
        with pytest.raises(MultiMcpError, match="multi-mcp logs --follow failed"):
            verb.result()
    assert psutil.Process().children() == before


# -- the pause -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-pause")
def test_no_gateway_is_started_for_a_client_during_a_pause(home: Path) -> None:
    run = str(home / "run")
    refuse_while_paused(run)
    pause = TrayLock(run, PAUSE_LOCK)
    pause.hold()
    pause.hold()
    with pytest.raises(PausedError, match="multi-mcp is paused") as caught:
        refuse_while_paused(run)
    assert "Resume" in caught.value.hint
    with pytest.raises(PausedError):
        connect_gateway(run, 1.0)
    pause.end()
    with pytest.raises(NoGatewayError, match="The gateway is not running"):
        connect_gateway(run, 1.0)
    refuse_while_paused(run)
    pause.end()


# -- the version ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "commit"), [(None, ""), (f"{HASH}\n", HASH), ("nonsense", "")])
def test_the_commit_of_a_package_is_in_its_file(tmp_path: Path, text: str | None, commit: str) -> None:
    if text is not None:
        (tmp_path / "commit").write_text(text)
    assert commit_of(tmp_path) == commit
    assert version_text(tmp_path) == (f"{__version__} (3de80d5)" if commit else __version__)


def test_the_commit_of_a_checkout_is_that_of_git(tmp_path: Path) -> None:
    git = [require("git"), "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    assert commit_of(tmp_path / "trayapp") == ""
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run([*git, *author, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    commit = commit_of(tmp_path / "trayapp")
    assert re.fullmatch("[0-9a-f]{40}", commit)
    assert version_text(tmp_path / "trayapp") == f"{__version__} ({commit[:7]})"


# -- why a gateway ended -------------------------------------------------------------------------------------------

STARTED = "2026-11-22 00:36:20,026 INFO trayapp.gateway.run: Gateway 0.1.0 ready"
ENDED = "2026-11-22 00:36:21,026 CRITICAL trayapp.gateway.run: The gateway ends: Cannot write x. Free some space"
MISTAKE = [
    "2026-11-22 00:36:21,026 CRITICAL trayapp.gateway.run: The gateway ends: None",
    "    Traceback (most recent call last):",
    "    ValueError: too long",
]


@pytest.mark.requirement("tray-crash-loop")
@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], ""),
        ([STARTED], ""),  # a killed gateway logs no error
        ([ENDED, STARTED], ""),  # the error of an earlier gateway
        ([STARTED, ENDED], "Cannot write x. Free some space"),
        ([STARTED, *MISTAKE], "ValueError: too long"),
        (MISTAKE[1:], ""),  # only the end of the traceback was read
    ],
)
def test_only_an_error_at_the_end_of_the_log_is_the_reason_why_a_gateway_ended(lines: list[str], why: str) -> None:
    assert logged_end_reason(lines) == why


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Create a folder for fake programs, and return an environment with that folder first on PATH."""
    (tmp_path / "bin").mkdir()
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "DISPLAY": ":99"}


def opener(environ: dict[str, str], script: str) -> None:
    path = Path(environ["PATH"].partition(":")[0], "xdg-open")
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_the_path_is_given_to_the_opener(tmp_path: Path, environ: dict[str, str]) -> None:
    opener(environ, f'echo "$1" > {tmp_path}/opened')
    open_file(tmp_path / "a file.yaml", environ, PATIENCE_S)
    assert (tmp_path / "opened").read_text() == f"{tmp_path}/a file.yaml\n"


@pytest.mark.parametrize("code", [1, 3, 4])
def test_an_opener_that_finds_no_program_is_an_error_with_a_hint(
    tmp_path: Path, environ: dict[str, str], code: int
) -> None:
    opener(environ, f"exit {code}")
    with pytest.raises(MultiMcpError, match="No program was found that opens") as caught:
        open_file(tmp_path / "x", environ, PATIENCE_S)
    assert caught.value.hint


def test_an_opener_that_stays_until_its_window_is_closed_is_not_waited_for(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    os.mkfifo(tmp_path / "window")
    opener(environ, f"read line < {tmp_path}/window; echo closed > {tmp_path}/closed")
    open_file(tmp_path / "x", environ, 0.05)
    assert not (tmp_path / "closed").exists()
    (tmp_path / "window").write_text("close\n")


@pytest.mark.parametrize("missing", ["DISPLAY", "PATH"])
def test_without_display_or_opener_opening_is_an_error(tmp_path: Path, environ: dict[str, str], missing: str) -> None:
    with pytest.raises(MultiMcpError, match="No program was found"):
        open_file(tmp_path / "x", {**environ, missing: ""})


def test_a_missing_browser_is_noticed(environ: dict[str, str]) -> None:
    opener(environ, "exit 3")
    assert not open_url("https://example.com/", environ, PATIENCE_S)
    opener(environ, "exit 0")
    assert open_url("https://example.com/", environ, PATIENCE_S)
    assert not open_url("file:///etc/passwd", environ, PATIENCE_S)
