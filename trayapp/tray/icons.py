"""The icons as pictures, drawn from assets/ in any size.

Six kinds, told apart by shape as well as by colour, for dark panels, light ones, and panels of which nothing is known.

They are drawn when they are asked for, not at build time: XEmbed trays and Windows ask for any size, and a picture made
for another size loses the edges that `vector.scaled` puts onto pixels. One takes 1 to 4 ms, once.

Never here: which kind a state has (view), what a panel takes (artwork).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

import trayapp
from trayapp.tray.state.state import IconKind
from trayapp.tray.vector import CURRENT, Drawing, Point, Shape, read, scaled

FINEST, COARSEST = 16, 4  # samples a pixel along each side, for small pictures and for large ones
MOST_SAMPLES = 1024  # along a side, before COARSEST counts
APP = "app"


class Colours(NamedTuple):
    """Of one kind: on a dark panel, on a light one, and one that can be seen on both."""

    dark: str
    light: str
    either: str


COLOURS: dict[IconKind, Colours] = {
    IconKind.STARTING: Colours("#8ab4f8", "#2563c9", "#4a86e0"),
    IconKind.HEALTHY: Colours("#4ade9a", "#0a7044", "#17995f"),
    IconKind.DEGRADED: Colours("#fbbf4a", "#955200", "#c97a10"),
    IconKind.ATTENTION: Colours("#c9a6ff", "#7a3fd1", "#9d66e8"),
    IconKind.DOWN: Colours("#ff8a80", "#c0261c", "#e0493f"),
    IconKind.PAUSED: Colours("#b8bec8", "#59616d", "#828a96"),
}


@cache
def icon(kind: IconKind, size: int, dark: bool | None = None) -> Image.Image:
    """The tray icon, RGBA of `size` by `size` pixels. `dark`: whether the panel is; None = not known.

    The same picture each time: not to be drawn upon.
    """
    colours = COLOURS[kind]
    colour = colours.either if dark is None else colours.dark if dark else colours.light
    return picture(drawing(f"tray-{kind}"), size, colour)


@cache
def app_icon(size: int) -> Image.Image:
    """The icon of the app itself, for desktop entries, windows and About: RGBA of `size` by `size` pixels."""
    return picture(drawing(APP), size)


@cache
def drawing(name: str) -> Drawing:
    """A drawing of ours by its name. Raises OSError when the installation is incomplete."""
    return read(assets() / f"{name}.svg")


def assets() -> Path:
    """The folder of the drawings: inside the installed package, beside it in a checkout."""
    package = Path(trayapp.__file__).parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def picture(source: Drawing, size: int, colour: str = "#000000") -> Image.Image:
    """A drawing as RGBA of `size` by `size` pixels; `colour` is what `currentColor` means in it."""
    whole = Image.new("RGBA", (size, size))
    for named, shapes in groupby(scaled(source, size), key=lambda shape: shape.colour):
        layer = Image.new("RGBA", (size, size), colour if named == CURRENT else named)
        layer.putalpha(_coverage(tuple(shapes), size))  # together: where they touch, no seam shines through
        whole = Image.alpha_composite(whole, layer)
    return whole


def _coverage(shapes: tuple[Shape, ...], size: int) -> Image.Image:
    """How much of each pixel the shapes cover together, 0 to 255."""
    fine = max(COARSEST, min(FINEST, MOST_SAMPLES // size))
    mask = Image.new("L", (size * fine, size * fine))
    canvas = ImageDraw.Draw(mask)
    for shape in shapes:
        _draw(canvas, shape, fine)
    return mask.resize((size, size), Image.Resampling.BOX)


def _draw(canvas: ImageDraw.ImageDraw, shape: Shape, fine: int) -> None:
    points = [(x * fine, y * fine) for x, y in shape.points]
    width = shape.stroke * fine
    if shape.radius:
        _disc(canvas, points[0], shape.radius * fine + width / 2, width)
    elif not width:
        _area(canvas, points, 0 if shape.hole else 255)
    else:
        _line(canvas, [*points, points[0]] if shape.closed else points, width, round_caps=shape.round_caps)


def _line(canvas: ImageDraw.ImageDraw, points: list[Point], width: float, *, round_caps: bool) -> None:
    """Straight pieces, round where they meet; round at the ends too where the drawing says so."""
    along = [0.0]
    for (x0, y0), (x1, y1) in pairwise(points):
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (y1 - y0) / length * width / 2, (x0 - x1) / length * width / 2
        _area(canvas, [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)])
        along.append(along[-1] + length)
    rounded = round_caps or points[0] == points[-1]
    for point, way in zip(points, along, strict=True):
        if rounded or width / 2 < way < along[-1] - width / 2:  # nearer, it would stand out of a flat end
            _disc(canvas, point, width / 2)


# Pillow's shapes hold the samples on their right and lower edges too: one less there.


def _area(canvas: ImageDraw.ImageDraw, points: list[Point], fill: int = 255) -> None:
    middle_x, middle_y = (sum(point[axis] for point in points) / len(points) for axis in (0, 1))
    canvas.polygon([(x - (x > middle_x), y - (y > middle_y)) for x, y in points], fill=fill)


def _disc(canvas: ImageDraw.ImageDraw, middle: Point, radius: float, ring: float = 0.0) -> None:
    """A disc; with `ring` > 0 only its rim of that width."""
    (x, y), r = middle, radius
    box = (x - r, y - r, x + r - 1, y + r - 1)
    if ring:
        canvas.ellipse(box, outline=255, width=round(ring))
    else:
        canvas.ellipse(box, fill=255)
