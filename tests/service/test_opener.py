"""Files opened with whatever the desktop has for them, and what is said when it has nothing. Never here: a desktop."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trayapp.model.errors import MultiMcpError
from trayapp.service.desktop_programs import open_file, open_url

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="xdg-open")
PATIENCE_S = 20.0


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """One whose xdg-open is the test's own."""
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
def test_an_opener_that_finds_no_program_is_an_error_with_what_to_do(
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
def test_without_display_or_opener_it_is_said_so(tmp_path: Path, environ: dict[str, str], missing: str) -> None:
    with pytest.raises(MultiMcpError, match="No program was found"):
        open_file(tmp_path / "x", {**environ, missing: ""})


def test_a_browser_that_is_not_there_is_noticed(environ: dict[str, str]) -> None:
    opener(environ, "exit 3")
    assert not open_url("https://example.com/", environ, PATIENCE_S)
    opener(environ, "exit 0")
    assert open_url("https://example.com/", environ, PATIENCE_S)
    assert not open_url("file:///etc/passwd", environ, PATIENCE_S)
