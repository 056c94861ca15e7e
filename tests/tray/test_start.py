"""Tests of the tray's start: its messages, its pictures, and the rows that the verb `connect` prints."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from trayapp.model.errors import MultiMcpError
from trayapp.tray.app import App
from trayapp.tray.start import SystemPlatform, client_of, report_update, second_words
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import ClientState, IconKind


class Heard:
    """A fake of the app that collects notices."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def show(self, notice: Notice) -> None:
        self.notices.append(notice)


def face(told: Path | None) -> tuple[SystemPlatform, Heard, list[str]]:
    heard, said = Heard(), list[str]()
    made = SystemPlatform(said.append, told)
    made.app = cast(App, heard)
    return made, heard, said


@pytest.mark.requirement("tray-no-host")
def test_that_nothing_shows_icons_is_said_at_the_first_login_only_and_whenever_a_person_starts_it(
    tmp_path: Path,
) -> None:
    told = tmp_path / "cache" / "told"
    for times, marker in ((1, told), (0, told), (1, None)):
        made, heard, said = face(marker)
        made._nobody()
        assert len(heard.notices) == len(said) == times
    assert sys.platform == "win32" or stat.S_IMODE(told.parent.stat().st_mode) == 0o700


@pytest.mark.requirement("tray-single")
def test_a_second_start_says_who_runs_and_how_it_stands() -> None:
    assert second_words(7, "2 servers ready") == "multi-mcp is already running (process 7)\n2 servers ready"
    assert second_words(0, "x") == "multi-mcp is already running\nx"
    assert second_words(7, None) == "multi-mcp is already running (process 7), but it does not answer"


@pytest.mark.parametrize(
    ("state", "connected", "found", "drift"),
    [
        ("connected", True, True, None),
        ("not connected", False, True, None),
        ("drifted", True, True, "it points elsewhere"),
        ("unreadable", False, True, None),
        ("not found", False, False, None),
    ],
)
def test_a_row_of_the_verb_connect_is_read(state: str, connected: bool, found: bool, drift: str | None) -> None:
    row = {"name": "codex", "title": "Codex", "state": state, "reason": "it points elsewhere", "file": "/x"}
    assert client_of(row) == ClientState("codex", "Codex", connected, found, drift)


@pytest.mark.skipif(sys.platform != "linux", reason="one picture a size")
@pytest.mark.parametrize("kind", list(IconKind))
def test_there_is_a_picture_of_every_kind_in_every_size(kind: IconKind) -> None:
    made, _, _ = face(None)
    picture = made.picture(kind)
    assert [picture(size).size for size in (16, 22, 64)] == [(16, 16), (22, 22), (64, 64)]
    assert made.label("R&D") == "R&D"


@pytest.mark.requirement("update-notice")
def test_a_newer_version_is_told_once_and_the_next_one_again(tmp_path: Path) -> None:
    shown: list[Notice] = []
    answer: dict[str, Any] = {"newer": {"version": "0.2.0", "url": "https://example.org/r"}}
    told = tmp_path / "cache" / "told"
    report_update(lambda: answer, shown.append, told)
    report_update(lambda: answer, shown.append, told)  # as after a restart
    assert [(notice.title, notice.text) for notice in shown] == [
        ("multi-mcp 0.2.0 is available", "https://example.org/r")
    ]
    answer["newer"]["version"] = "0.3.0"
    report_update(lambda: answer, shown.append, told)
    assert len(shown) == 2


def test_no_newer_version_and_no_answer_are_silent(tmp_path: Path) -> None:
    def fail() -> None:
        raise MultiMcpError("It did not end within 40 s", "")

    shown: list[Notice] = []
    for look in (lambda: {"newer": None}, lambda: None, fail):
        report_update(look, shown.append, tmp_path / "told")
    assert shown == []
