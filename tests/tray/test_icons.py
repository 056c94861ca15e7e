"""Tests of the icons' pixels: distinct by shape alone, visible on dark and light, crisp when small."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat

from devtools.drawing import (
    ASSETS,
    Drawing,
    Shape,
    drawing,
    is_equal,
    picture,
    read_drawing,
    scaled,
    sheet,
    write_pictures,
)
from trayapp.tray.icons import COLORS, app_icon, icon
from trayapp.tray.icons import SIZES as DRAWN
from trayapp.tray.state.tray_state import IconKind

SIZES = (16, 18, 20, 22, 24, 32, 36, 44, 48, 64, 128, 256)
PAIRS = list(combinations(IconKind, 2))
DARK_PANELS, LIGHT_PANELS = ("#000000", "#202124", "#2e3440"), ("#ffffff", "#f4f4f5", "#e6e6e6")
CLEARLY = 0.4  # minimum difference, as a share of the pixels that either shape covers
TEXT_CONTRAST, PICTURE_CONTRAST = 4.5, 3.0  # WCAG 2.2: 1.4.3 for text, 1.4.11 for pictures


def silhouette(kind: IconKind, size: int) -> Image.Image:
    return icon(kind, size).getchannel("A")


def ink(picture: Image.Image) -> float:
    """Return the sum of all pixels' coverage, in full pixels."""
    return float(ImageStat.Stat(picture).sum[0]) / 255


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return how different two pictures are: 0 if they are equal, 1 if they have nothing in common."""
    return ink(ImageChops.difference(one, other)) / ink(ImageChops.lighter(one, other))


@pytest.mark.requirement("tray-icons")
@pytest.mark.parametrize("size", [16, 22, 24, 32])
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_any_two_differ_in_shape_alone(one: IconKind, other: IconKind, size: int) -> None:
    assert difference(silhouette(one, size), silhouette(other, size)) > CLEARLY


@pytest.mark.parametrize("panel", ["#202124", "#f4f4f5"])
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_any_two_differ_for_who_sees_no_colors(one: IconKind, other: IconKind, panel: str) -> None:
    """Two icons differ in brightness on the panel, which is the only difference that some color-blind people see."""
    grey = [on_panel(kind, panel).convert("L") for kind in (one, other)]
    far = ImageChops.difference(*grey).point(lambda step: 255 * (step > 60))
    assert ink(far) >= 0.1 * 16 * 16


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_any_two_differ_without_red_and_green(one: IconKind, other: IconKind) -> None:
    seen = [deuteranopia(on_panel(kind, "#202124")) for kind in (one, other)]
    far = ImageChops.difference(*seen).convert("L").point(lambda step: 255 * (step > 40))
    assert ink(far) >= 0.1 * 16 * 16


def on_panel(kind: IconKind, panel: str, size: int = 16) -> Image.Image:
    ground = Image.new("RGBA", (size, size), panel)
    return Image.alpha_composite(ground, icon(kind, size)).convert("RGB")


def deuteranopia(seen: Image.Image) -> Image.Image:
    """Return a picture as seen without green cones (Machado, Oliveira and Fernandes 2009, severity 1.0)."""
    matrix = (0.367, 0.861, -0.228, 0, 0.280, 0.673, 0.047, 0, -0.012, 0.043, 0.969, 0)
    return seen.convert("RGB", matrix)


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast ratio of two `#rrggbb` colors, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.requirement("tray-icons")
@pytest.mark.parametrize("kind", IconKind)
def test_colors_stand_out_on_their_panels(kind: IconKind) -> None:
    colors = COLORS[kind]
    assert min(contrast(colors.dark, panel) for panel in DARK_PANELS) >= TEXT_CONTRAST
    assert min(contrast(colors.light, panel) for panel in LIGHT_PANELS) >= TEXT_CONTRAST
    assert min(contrast(colors.either, panel) for panel in (*DARK_PANELS[:2], *LIGHT_PANELS[:2])) >= PICTURE_CONTRAST


@pytest.mark.parametrize("dark", [True, False, None])
def test_the_color_is_that_of_the_panel(dark: bool | None) -> None:
    colors = COLORS[IconKind.HEALTHY]
    wanted = {True: colors.dark, False: colors.light, None: colors.either}[dark]
    *color, alpha = pixel(icon(IconKind.HEALTHY, 32, dark), 24, 16)
    assert ("#" + "".join(f"{part:02x}" for part in color), alpha) == (wanted, 255)


def pixel(seen: Image.Image, x: int, y: int) -> tuple[int, ...]:
    found = seen.getpixel((x, y))
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", IconKind)
def test_every_size_is_filled_and_nothing_touches_the_edge(kind: IconKind, size: int) -> None:
    drawn = icon(kind, size)
    assert (drawn.mode, drawn.size) == ("RGBA", (size, size))
    left, top, right, bottom = silhouette(kind, size).point(lambda step: 255 * (step > 32)).getbbox() or (0, 0, 0, 0)
    assert right - left >= 0.8 * size
    assert bottom - top >= 0.7 * size
    assert left >= 0.04 * size
    assert ink(silhouette(kind, size)) >= 0.2 * size * size


@pytest.mark.parametrize("size", [16, 22, 24, 32, 48])
@pytest.mark.parametrize("kind", sorted(set(IconKind) - {IconKind.DOWN}))  # a cross has only slanted lines
def test_small_ones_are_crisp(kind: IconKind, size: int) -> None:
    """Most pixels are fully covered, because only curves and slanted lines are not aligned with pixels."""
    steps = silhouette(kind, size).histogram()
    assert sum(steps[16:240]) <= 0.6 * sum(steps[240:])


@pytest.mark.parametrize("size", [16, 22, 24, 32])
def test_straight_lines_have_sharp_edges(size: int) -> None:
    """In a column near the left end of the healthy mark, its three lines have no partly covered pixels."""
    alpha = silhouette(IconKind.HEALTHY, size)
    column = [alpha.getpixel((size * 2 // 16, y)) for y in range(size)]
    assert set(column) <= {0, 255}
    assert sum(one != other for one, other in pairwise(column)) == 6


def test_a_picture_is_drawn_once() -> None:
    assert icon(IconKind.DOWN, 24, True) is icon(IconKind.DOWN, 24, True)


@pytest.mark.parametrize("size", [16, 32, 256])
def test_the_app_has_an_icon(size: int) -> None:
    drawn = app_icon(size)
    assert drawn.size == (size, size)
    assert len(set(drawn.convert("RGB").resize((8, 8)).tobytes())) > 8


@pytest.mark.requirement("tray-icons")
def test_the_pictures_in_assets_are_what_their_drawings_are_now() -> None:
    names = {path.stem for path in ASSETS.glob("*.svg")}
    assert names == {"app", *(f"tray-{kind}" for kind in IconKind)} == {path.stem for path in ASSETS.glob("*.png")}
    assert all(drawing(name).shapes for name in names)
    stale = [name for name in sorted(names) if not is_equal(ASSETS / f"{name}.png", sheet(name))]
    assert not stale, f"Draw them again: python3 packaging/dev.py icons ({', '.join(stale)})"


def test_only_what_changed_is_drawn_again(tmp_path: Path) -> None:
    assert len(write_pictures(tmp_path)) == len(IconKind) + 1
    Image.new("L", (3, 3)).save(tmp_path / "tray-down.png")
    assert write_pictures(tmp_path) == [tmp_path / "tray-down.png"]
    assert write_pictures(tmp_path) == []


@pytest.mark.parametrize("kind", IconKind)
@pytest.mark.parametrize("size", DRAWN)
def test_a_size_that_was_drawn_is_shown_as_it_is(kind: IconKind, size: int) -> None:
    assert icon(kind, size, True).tobytes() == picture(drawing(f"tray-{kind}"), size, COLORS[kind].dark).tobytes()


def test_the_tray_reads_no_drawing() -> None:
    code = (
        "import sys, trayapp.tray.icons; print('xml.etree.ElementTree' in sys.modules, 'PIL.ImageDraw' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# -- supported SVG ---------------------------------------------------------------------------------------------------


def drawn(tmp_path: Path, body: str, box: str = "0 0 16 16") -> Drawing:
    path = tmp_path / "x.svg"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{body}</svg>', encoding="utf-8")
    return read_drawing(path)


def alpha_at(source: Drawing, size: int, x: int, y: int) -> int:
    return pixel(picture(source, size), x, y)[3]


@pytest.mark.parametrize(
    "body",
    [
        "<g/>",
        '<path d="m 1 1 l 2 2" stroke="currentColor"/>',
        '<path d="M 1" stroke="currentColor"/>',
        '<path d="A 1 1" stroke="currentColor"/>',
        '<path d="M 1 1 Z 3" stroke="currentColor"/>',
    ],
)
def test_what_we_cannot_draw_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(ValueError, match="not in the supported part of SVG"):
        drawn(tmp_path, body)


def test_a_drawing_has_to_be_a_square(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a square"):
        drawn(tmp_path, "", "0 0 16 24")


def test_a_rectangle_fills_its_pixels_and_no_others(tmp_path: Path) -> None:
    square = drawn(tmp_path, '<rect x="4" y="4" width="8" height="8" fill="#ff0000"/>')
    assert ink(picture(square, 16).getchannel("A")) == 64
    assert [alpha_at(square, 16, at, at) for at in (3, 4, 11, 12)] == [0, 255, 255, 0]
    assert pixel(picture(square, 16), 8, 8) == (255, 0, 0, 255)


def test_a_hole_is_one(tmp_path: Path) -> None:
    frame = '<path fill-rule="evenodd" fill="currentColor" d="M 0 0 H 16 V 16 H 0 Z M 4 4 H 12 V 12 H 4 Z"/>'
    assert ink(picture(drawn(tmp_path, frame), 16).getchannel("A")) == 192


def test_a_circle_a_ring_and_a_curve_have_their_size(tmp_path: Path) -> None:
    disc = drawn(tmp_path, '<circle cx="8" cy="8" r="6" fill="currentColor"/>')
    ring = drawn(tmp_path, '<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2"/>')
    rounded = drawn(tmp_path, '<rect x="2" y="2" width="12" height="12" rx="6" fill="currentColor"/>')
    assert ink(picture(disc, 64).getchannel("A")) == pytest.approx(3.1416 * 24**2, rel=0.01)
    assert ink(picture(ring, 64).getchannel("A")) == pytest.approx(3.1416 * (28**2 - 20**2), rel=0.01)
    assert difference(picture(disc, 64).getchannel("A"), picture(rounded, 64).getchannel("A")) < 0.02


def test_round_caps_reach_further_than_flat_ones(tmp_path: Path) -> None:
    line = '<path d="M 4 8 H 12" stroke="currentColor" stroke-width="4" stroke-linecap="{}"/>'
    flat, rounded = drawn(tmp_path, line.format("butt")), drawn(tmp_path, line.format("round"))
    assert [alpha_at(source, 16, 3, 8) > 0 for source in (flat, rounded)] == [False, True]


@pytest.mark.parametrize("size", [17, 22, 24, 31])
def test_lines_are_brought_onto_the_pixels(size: int) -> None:
    line = Drawing(16, (Shape(((1, 8), (11, 8)), "currentColor", stroke=2),))
    [snapped] = scaled(line, size)
    edges = [y + side * snapped.stroke / 2 for _, y in snapped.points for side in (-1, 1)]
    assert all(edge.is_integer() for edge in [*edges, *(x for x, _ in snapped.points)])
