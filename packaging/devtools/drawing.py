"""The pictures in assets/, drawn from the SVG files beside them, and the app's icon in the formats of installers.

Each size is drawn separately, because a resized picture loses the sharp edges that `scaled` produces. All sizes of a
drawing are in one file, from left to right. `packaging/dev.py icons [FOLDER]` runs this module in .venv.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image, ImageDraw

from devtools.places import ROOT
from trayapp.tray.icons import APP, SIZES, offset
from trayapp.tray.state.tray_state import IconKind

ASSETS = ROOT / "assets"
FINEST, COARSEST = 16, 4  # samples per pixel along each side, for small pictures and for large ones
MOST_SAMPLES = 1024  # limit on the samples along a side, unless COARSEST requires more
NAME = "multi-mcp"
WINDOWS = (16, 20, 24, 32, 40, 48, 64, 256)  # the sizes that Windows uses at 100 to 250 % and in Explorer
APPLE = (16, 32, 64, 128, 256, 512, 1024)  # each is also the picture of half its size for Retina displays
HICOLOR = (16, 22, 24, 32, 48, 64, 128, 256)  # freedesktop.org icon theme specification


def write_pictures(folder: Path = ASSETS) -> list[Path]:
    """Draw all pictures into the folder. Return the paths of those that changed."""
    changed = []
    for name in (APP, *(f"tray-{kind}" for kind in IconKind)):
        path, drawn = folder / f"{name}.png", sheet(name)
        if not path.exists() or not is_equal(path, drawn):
            drawn.save(path, optimize=True)
            changed.append(path)
    return changed


def is_equal(path: Path, drawn: Image.Image) -> bool:
    """Return True if the file holds these pixels, however it is compressed."""
    with Image.open(path) as kept:
        return (kept.mode, kept.size) == (drawn.mode, drawn.size) and kept.tobytes() == drawn.tobytes()


def sheet(name: str) -> Image.Image:
    """Return a drawing in all SIZES side by side: the app's icon in its colors, any other as its coverage."""
    source, mode = drawing(name), "RGBA" if name == APP else "L"
    whole = Image.new(mode, (offset(SIZES[-1]) + SIZES[-1], SIZES[-1]))
    for size in SIZES:
        drawn = picture(source, size)
        whole.paste(drawn if name == APP else drawn.getchannel("A"), (offset(size), 0))
    return whole


@cache
def app_icon(size: int) -> Image.Image:
    """Return the app's own icon as an RGBA image of `size` by `size` pixels. It is cached: do not draw on it."""
    return picture(drawing(APP), size)


@cache
def drawing(name: str) -> Drawing:
    """Return the drawing in assets/ with this name."""
    return read_drawing(ASSETS / f"{name}.svg")


def picture(source: Drawing, size: int, color: str = "#000000") -> Image.Image:
    """Return a drawing as an RGBA image of `size` by `size` pixels. `color` replaces `currentColor`."""
    whole = Image.new("RGBA", (size, size))
    for named, shapes in groupby(scaled(source, size), key=lambda shape: shape.color):
        layer = Image.new("RGBA", (size, size), color if named == CURRENT else named)
        layer.putalpha(_coverage(tuple(shapes), size))  # one layer for these shapes, or seams would show between them
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
        if rounded or width / 2 < way < along[-1] - width / 2:  # a disc nearer the end would protrude beyond a flat cap
            _disc(canvas, point, width / 2)


# Pillow's shapes include the samples on their right and lower edges. `_area` and `_disc` leave those out.


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


# --- the drawings in assets/, in a subset of SVG: paths with absolute M L H V C Z (holes by evenodd), circles,
# rectangles, fill and stroke, round or butt caps

CURVE_STEPS = 24  # straight segments per Bezier curve; no curve here spans more than half of a picture
CURRENT = "currentColor"
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shape:
    """A line or an area, with points in units of the drawing.

    `stroke`: the line's width, 0 for an area. `color`: `#rrggbb`, or CURRENT for the color of the state.
    """

    points: tuple[Point, ...]
    color: str
    stroke: float = 0.0
    closed: bool = False
    round_caps: bool = False
    radius: float = 0.0  # above 0 for a circle around the single point
    hole: bool = False  # True: cuts this shape out of the earlier shapes of the same color


@dataclass(frozen=True, slots=True)
class Drawing:
    """A square picture of `size` by `size` units. Later shapes cover earlier ones."""

    size: float
    shapes: tuple[Shape, ...]


def read_drawing(path: Path) -> Drawing:
    """Return the drawing in a file. Raises OSError, or ValueError for content outside our subset of SVG."""
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    if (left, top) != (0, 0) or width != height:
        raise ValueError(f"{path.name}: the drawing is not a square from 0 0")
    return Drawing(width, tuple(shape for element in root for shape in _shapes(element)))


def _shapes(element: ElementTree.Element) -> Iterator[Shape]:
    kind = element.tag.rpartition("}")[2]
    if kind == "title":
        return
    outline = OUTLINES.get(kind)
    if outline is None:
        raise ValueError(f"<{kind}> is not in the supported part of SVG")
    given = element.attrib
    fill, stroke = given.get("fill", "none"), given.get("stroke", "none")
    for number, (points, closed, radius) in enumerate(outline(given)):
        if fill != "none":
            hole = number > 0 and given.get("fill-rule") == "evenodd"
            yield Shape(points, fill, closed=True, radius=radius, hole=hole)
        if stroke != "none":
            caps = given.get("stroke-linecap") == "round"
            yield Shape(points, stroke, float(given.get("stroke-width", "1")), closed, caps, radius)


Outline = tuple[tuple[Point, ...], bool, float]  # points, closed, radius


def _circle(given: dict[str, str]) -> Iterator[Outline]:
    yield ((float(given["cx"]), float(given["cy"])),), True, float(given["r"])


def _rectangle(given: dict[str, str]) -> Iterator[Outline]:
    x, y, width, height = (float(given[name]) for name in ("x", "y", "width", "height"))
    r = float(given.get("rx", "0"))
    if not r:
        yield ((x, y), (x + width, y), (x + width, y + height), (x, y + height)), True, 0.0
        return
    right, bottom, k = x + width, y + height, r * 0.4477  # 1 - 0.5523: handles of a curve that approximates a circle
    corners = f"""M {x + r} {y} H {right - r} C {right - k} {y} {right} {y + k} {right} {y + r} V {bottom - r}
        C {right} {bottom - k} {right - k} {bottom} {right - r} {bottom} H {x + r}
        C {x + k} {bottom} {x} {bottom - k} {x} {bottom - r} V {y + r} C {x} {y + k} {x + k} {y} {x + r} {y} Z"""
    yield from _path({"d": corners})


def _path(given: dict[str, str]) -> Iterator[Outline]:
    points: list[Point] = []
    for command, numbers in _commands(given["d"]):
        if command == "M" and points:
            yield tuple(points), False, 0.0
            points = []
        if command == "Z":
            yield tuple(points), True, 0.0
            points = []
        else:
            points += _drawn(command, numbers, points[-1] if points else (0.0, 0.0))
    if points:
        yield tuple(points), False, 0.0


def _commands(text: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each command with its numbers. A repetition without its letter is yielded as a separate command."""
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", text):
        numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", rest)]
        need = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Z": 0}.get(letter)
        if need is None or (len(numbers) % need if need else numbers):
            raise ValueError(f"{letter} {rest.strip()}: not in the supported part of SVG paths")
        yield from ([(letter, numbers[at : at + need]) for at in range(0, len(numbers), need)] if need else [("Z", [])])


def _drawn(command: str, numbers: list[float], here: Point) -> list[Point]:
    if command == "H":
        return [(numbers[0], here[1])]
    if command == "V":
        return [(here[0], numbers[0])]
    if command == "C":
        handles = (here, (numbers[0], numbers[1]), (numbers[2], numbers[3]), (numbers[4], numbers[5]))
        return [_on_curve(handles, step / CURVE_STEPS) for step in range(1, CURVE_STEPS + 1)]
    return [(numbers[0], numbers[1])]


def _on_curve(handles: tuple[Point, Point, Point, Point], t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    x, y = (sum(w * handle[axis] for w, handle in zip(weights, handles, strict=True)) for axis in (0, 1))
    return x, y


OUTLINES: dict[str, Callable[[dict[str, str]], Iterator[Outline]]] = {
    "path": _path,
    "circle": _circle,
    "rect": _rectangle,
}


# --- onto the pixels of a size

SNAPPED_BELOW = 48  # in pixels: only smaller pictures need edges on whole pixels; in others, half a pixel is invisible


def scaled(source: Drawing, size: int) -> tuple[Shape, ...]:
    """Return the shapes in pixels of a picture of `size` by `size`, with edges on pixels where that is visible."""
    factor = size / source.size
    snaps = size < SNAPPED_BELOW and not factor.is_integer()
    return tuple(_snapped(shape, factor) if snaps else _grown(shape, factor) for shape in source.shapes)


def _grown(shape: Shape, factor: float) -> Shape:
    points = tuple((x * factor, y * factor) for x, y in shape.points)
    return replace(shape, points=points, stroke=shape.stroke * factor, radius=shape.radius * factor)


def _snapped(shape: Shape, factor: float) -> Shape:
    """Return the shape with whole widths, and with lines and edges on whole pixels (odd widths: on pixel centers)."""
    grown = _grown(shape, factor)
    if shape.radius:
        across = round(2 * grown.radius)
        (x, y), stroke = grown.points[0], max(1, round(grown.stroke)) if grown.stroke else 0
        middle = (_to_grid(x, across + stroke), _to_grid(y, across + stroke))
        return replace(shape, points=(middle,), stroke=stroke, radius=across / 2)
    width = max(1, round(grown.stroke)) if shape.stroke else 0
    axes = [_moved([point[axis] for point in grown.points], width, _ends(grown, axis)) for axis in (0, 1)]
    return replace(shape, points=tuple(zip(*axes, strict=True)), stroke=float(width))


def _ends(shape: Shape, axis: int) -> set[float]:
    """Return the coordinates on this axis of a line's flat ends, which must be on the edge of a pixel."""
    if shape.closed or shape.round_caps:
        return set()
    ends = ((shape.points[0], shape.points[1]), (shape.points[-1], shape.points[-2]))
    return {end[axis] for end, next_ in ends if abs(end[axis] - next_[axis]) > abs(end[1 - axis] - next_[1 - axis])}


def _moved(values: list[float], width: int, ends: set[float]) -> list[float]:
    """Return the coordinates, with the lowest and the highest snapped and the others scaled in proportion."""
    low, high = min(values), max(values)
    to_low, to_high = (_to_grid(value, 0 if value in ends else width) for value in (low, high))
    if math.isclose(low, high):
        return [to_low] * len(values)
    return [to_low + (value - low) * (to_high - to_low) / (high - low) for value in values]


def _to_grid(value: float, width: int) -> float:
    """Return the nearest position at which a line of that width has its edges on pixels."""
    return math.floor(value) + 0.5 if width % 2 else float(math.floor(value + 0.5))


def write_icon_files(folder: Path) -> list[Path]:
    """Write the app's icon in all formats below `folder`, and return the paths. Raises OSError."""
    theme = folder / "hicolor"
    scalable = theme / "scalable" / "apps" / f"{NAME}.svg"
    pictures = {theme / f"{size}x{size}" / "apps" / f"{NAME}.png": app_icon(size) for size in HICOLOR}
    for path in (scalable, *pictures):
        path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ASSETS / f"{APP}.svg", scalable)
    for path, drawn in pictures.items():
        drawn.save(path, optimize=True)
    together = {folder / f"{NAME}.ico": WINDOWS, folder / f"{NAME}.icns": APPLE}
    for path, sizes in together.items():
        *smaller, largest = (app_icon(size) for size in sizes)
        largest.save(path, sizes=[(size, size) for size in sizes], append_images=smaller)
    return [*together, scalable, *pictures]


if __name__ == "__main__":
    for written in (*write_pictures(), *write_icon_files(Path(sys.argv[1]))):
        print(written)
