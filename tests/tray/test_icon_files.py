"""Tests of the icon files for installers: each size is drawn at that size rather than scaled down."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import IcnsImagePlugin, IcoImagePlugin, Image

from devtools.drawing import APPLE, HICOLOR, WINDOWS, app_icon, read_drawing, write_icon_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("icons")
    assert all(written.is_file() for written in write_icon_files(path))
    return path


def test_the_ico_holds_every_size(folder: Path) -> None:
    with Image.open(folder / "multi-mcp.ico") as opened:
        assert isinstance(opened, IcoImagePlugin.IcoImageFile)
        assert opened.ico.sizes() == {(size, size) for size in WINDOWS}
        for size in WINDOWS:
            assert opened.ico.getimage((size, size)).convert("RGBA").tobytes() == app_icon(size).tobytes()


def test_the_icns_holds_every_size(folder: Path) -> None:
    with Image.open(folder / "multi-mcp.icns") as opened:
        assert isinstance(opened, IcnsImagePlugin.IcnsImageFile)
        assert {width * scale for width, _, scale in opened.info["sizes"]} >= set(APPLE[1:])


def test_the_theme_has_every_size_and_the_drawing_itself(folder: Path) -> None:
    for size in HICOLOR:
        with Image.open(folder / "hicolor" / f"{size}x{size}" / "apps" / "multi-mcp.png") as opened:
            assert opened.tobytes() == app_icon(size).tobytes()
    assert read_drawing(folder / "hicolor" / "scalable" / "apps" / "multi-mcp.svg").shapes


def test_the_same_files_come_out_twice(folder: Path, tmp_path: Path) -> None:
    for one in write_icon_files(tmp_path):
        assert one.read_bytes() == (folder / one.relative_to(tmp_path)).read_bytes()
