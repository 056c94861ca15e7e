"""A newer version is told once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trayapp.model.errors import MultiMcpError
from trayapp.tray.state.notices import Notice
from trayapp.tray.updates import Updates


@pytest.mark.requirement("update-notice")
def test_a_newer_version_is_told_once_and_the_next_one_again(tmp_path: Path) -> None:
    shown: list[Notice] = []
    answer: dict[str, Any] = {"newer": {"version": "0.2.0", "url": "https://example.org/r"}}
    told = tmp_path / "cache" / "told"
    Updates(lambda: answer, shown.append, told).look_once()
    Updates(lambda: answer, shown.append, told).look_once()  # after a restart
    assert [(notice.title, notice.text) for notice in shown] == [
        ("multi-mcp 0.2.0 is available", "https://example.org/r")
    ]
    answer["newer"]["version"] = "0.3.0"
    Updates(lambda: answer, shown.append, told).look_once()
    assert len(shown) == 2


def test_no_newer_version_and_no_answer_are_silent(tmp_path: Path) -> None:
    def fail() -> None:
        raise MultiMcpError("It did not end within 40 s", "")

    shown: list[Notice] = []
    for look in (lambda: {"newer": None}, lambda: None, fail):
        Updates(look, shown.append, tmp_path / "told").look_once()
    assert shown == []
