"""Test that the gallery, which people look at when a text changes, still runs."""

from __future__ import annotations

from pathlib import Path

from tests.tray.gallery import STATES, pages, sheet
from trayapp.tray.state.tray_state import IconKind
from trayapp.tray.state.view import view


def test_it_shows_every_icon_and_writes_its_sheet(tmp_path: Path) -> None:
    assert {view(state).icon for state in STATES.values()} == set(IconKind)
    assert any("Sign in to linear" in line for line in pages())
    sheet(tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size > 1000
