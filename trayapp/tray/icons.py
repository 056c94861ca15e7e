"""The icons as pictures, drawn from assets/ in any size.

There are six kinds, distinguished by shape as well as by color, for dark panels, light panels, and unknown ones.

They are drawn on demand, not at build time. XEmbed trays and Windows ask for any size, and a resized picture loses the
sharp edges that `vector.scaled` produces. Drawing one takes 1 to 4 ms, once.
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

FINEST, COARSEST = 16, 4  # samples per pixel along each side, for small pictures and for large ones
MOST_SAMPLES = 1024  # samples along a side, until COARSEST applies
APP = "app"


class Colors(NamedTuple):
    """The colors of one kind: for a dark panel, for a light one, and one that is visible on both."""

    dark: str
    light: str
    either: str


COLORS: dict[IconKind, Colors] = {
    IconKind.STARTING: Colors("#8ab4f8", "#2563c9", "#4a86e0"),
    IconKind.HEALTHY: Colors("#4ade9a", "#0a7044", "#17995f"),
    IconKind.DEGRADED: Colors("#fbbf4a", "#955200", "#c97a10"),
    IconKind.ATTENTION: Colors("#c9a6ff", "#7a3fd1", "#9d66e8"),
    IconKind.DOWN: Colors("#ff8a80", "#c0261c", "#e0493f"),
    IconKind.PAUSED: Colors("#b8bec8", "#59616d", "#828a96"),
}


@cache
def icon(kind: IconKind, size: int, dark: bool | None = None) -> Image.Image:
    """Return the tray icon as RGBA of `size` by `size` pixels. `dark`: True for a dark panel; None = unknown.

    The picture is cached: do not draw on it.
    """
    colors = COLORS[kind]
    color = colors.either if dark is None else colors.dark if dark else colors.light
    return picture(drawing(f"tray-{kind}"), size, color)


@cache
def app_icon(size: int) -> Image.Image:
    """Return the app's own icon, for desktop entries, windows, and About, as RGBA of `size` by `size` pixels."""
    return picture(drawing(APP), size)


@cache
def drawing(name: str) -> Drawing:
    """Return one of our drawings by name. Raises OSError if the installation is incomplete."""
    return read(assets() / f"{name}.svg")


def assets() -> Path:
    """Return the folder of the drawings: inside the installed package, or beside it in a checkout."""
    package = Path(trayapp.__file__).parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def picture(source: Drawing, size: int, color: str = "#000000") -> Image.Image:
    """Draw a drawing as RGBA of `size` by `size` pixels. `color` replaces `currentColor`."""
    whole = Image.new("RGBA", (size, size))
    for named, shapes in groupby(scaled(source, size), key=lambda shape: shape.color):
        layer = Image.new("RGBA", (size, size), color if named == CURRENT else named)
        layer.putalpha(_coverage(tuple(shapes), size))  # one layer for all of them: no seam is visible where they touch
        whole = Image.alpha_composite(whole, layer)
    return whole


def _coverage(shapes: tuple[Shape, ...], size: int) -> Image.Image:
    """Return how much of each pixel the shapes together cover, 0 to 255."""
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
    """Draw straight segments with round joins, and with round ends if the drawing has them."""
    along = [0.0]
    for (x0, y0), (x1, y1) in pairwise(points):
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (y1 - y0) / length * width / 2, (x0 - x1) / length * width / 2
        _area(canvas, [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)])
        along.append(along[-1] + length)
    rounded = round_caps or points[0] == points[-1]
    for point, way in zip(points, along, strict=True):
        if rounded or width / 2 < way < along[-1] - width / 2:  # closer to the end, it would protrude beyond a flat cap
            _disc(canvas, point, width / 2)


# Pillow's shapes include the samples on their right and lower edges, so both functions use one less there.


def _area(canvas: ImageDraw.ImageDraw, points: list[Point], fill: int = 255) -> None:
    middle_x, middle_y = (sum(point[axis] for point in points) / len(points) for axis in (0, 1))
    canvas.polygon([(x - (x > middle_x), y - (y > middle_y)) for x, y in points], fill=fill)


def _disc(canvas: ImageDraw.ImageDraw, middle: Point, radius: float, ring: float = 0.0) -> None:
    """Draw a disc or, with `ring` > 0, only its rim of that width."""
    (x, y), r = middle, radius
    box = (x - r, y - r, x + r - 1, y + r - 1)
    if ring:
        canvas.ellipse(box, outline=255, width=round(ring))
    else:
        canvas.ellipse(box, fill=255)
