"""Pictures in the sizes and the bytes that panels want."""

from __future__ import annotations

import pytest
from PIL import Image

from trayapp.tray.icons import PANEL_SIZES, argb32, at_size, pixmaps


def plain(size: int, color: tuple[int, int, int, int] = (1, 2, 3, 255)) -> Image.Image:
    return Image.new("RGBA", (size, size), color)


def test_pixels_are_alpha_red_green_blue() -> None:
    assert argb32(plain(1, (10, 20, 30, 40))) == bytes((40, 10, 20, 30))


@pytest.mark.parametrize("artwork", [plain(64), {16: plain(16), 64: plain(64)}, plain], ids=["one", "some", "any"])
def test_every_size_that_panels_ask_for_is_there(artwork: object) -> None:
    made = pixmaps(artwork)  # type: ignore[arg-type]
    assert [(width, height, len(data)) for width, height, data in made] == [(s, s, 4 * s * s) for s in PANEL_SIZES]
    assert {data[:4] for _, _, data in made} == {bytes((255, 1, 2, 3))}


def test_of_some_sizes_the_next_larger_one_is_taken() -> None:
    some = {16: plain(16, (16, 0, 0, 255)), 32: plain(32, (32, 0, 0, 255))}
    assert [at_size(some, size).tobytes()[0] for size in (8, 16, 17, 32, 48)] == [16, 16, 32, 32, 32]


def test_pictures_without_alpha_are_taken_too() -> None:
    assert at_size(Image.new("RGB", (8, 8), (1, 2, 3)), 8).getpixel((0, 0)) == (1, 2, 3, 255)
