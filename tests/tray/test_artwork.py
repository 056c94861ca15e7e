"""Tests of pictures in the sizes and the byte order that panels require."""

from __future__ import annotations

from PIL import Image

from trayapp.tray.icons import PANEL_SIZES, argb32, pixmaps


def plain(size: int, color: tuple[int, int, int, int] = (1, 2, 3, 255)) -> Image.Image:
    return Image.new("RGBA", (size, size), color)


def test_pixels_are_alpha_red_green_blue() -> None:
    assert argb32(plain(1, (10, 20, 30, 40))) == bytes((40, 10, 20, 30))


def test_every_size_that_panels_ask_for_is_there() -> None:
    made = pixmaps(plain)
    assert [(width, height, len(data)) for width, height, data in made] == [(s, s, 4 * s * s) for s in PANEL_SIZES]
    assert {data[:4] for _, _, data in made} == {bytes((255, 1, 2, 3))}
