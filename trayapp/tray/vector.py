"""The drawings in assets/: a small part of SVG read into shapes, and shapes brought onto the pixels of a size.

Paths with absolute M L H V C Z (holes by evenodd), circles, rectangles; fill and stroke, round or butt caps.
Never here: pixels, PIL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

Point = tuple[float, float]
CURVE_STEPS = 24  # straight pieces of one Bezier curve; a curve of ours is at most half the picture long
SNAPPED_BELOW = 48  # pixels: in smaller pictures edges are moved onto pixels; in larger ones half a pixel is not seen
CURRENT = "currentColor"


@dataclass(frozen=True, slots=True)
class Shape:
    """One line or area: points in units of the drawing. `stroke` is its width, 0 = filled.

    `colour`: `#rrggbb`, or CURRENT for what the state's colour is.
    """

    points: tuple[Point, ...]
    colour: str
    stroke: float = 0.0
    closed: bool = False
    round_caps: bool = False
    radius: float = 0.0  # > 0: a circle around the one point
    hole: bool = False  # takes away from what lies below it in the same colour


@dataclass(frozen=True, slots=True)
class Drawing:
    """A square picture of `size` by `size` units; later shapes lie over earlier ones."""

    size: float
    shapes: tuple[Shape, ...]


def read(path: Path) -> Drawing:
    """The drawing in a file. Raises OSError, ValueError for what is not in our part of SVG."""
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
        raise ValueError(f"<{kind}> is not in our part of SVG")
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
    right, bottom, k = x + width, y + height, r * 0.4477  # 1 - 0.5523: where a curve's handles make a circle
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
    """Each command with its numbers; those that go on without a letter are split up."""
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", text):
        numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", rest)]
        need = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Z": 0}.get(letter)
        if need is None or (len(numbers) % need if need else numbers):
            raise ValueError(f"{letter} {rest.strip()}: not in our part of SVG paths")
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

# -- onto the pixels of a size ---------------------------------------------------------------------------------------


def scaled(drawing: Drawing, size: int) -> tuple[Shape, ...]:
    """The shapes in pixels of a picture of `size` by `size`, their edges on pixels where that is seen."""
    factor = size / drawing.size
    snaps = size < SNAPPED_BELOW and not factor.is_integer()
    return tuple(_snapped(shape, factor) if snaps else _grown(shape, factor) for shape in drawing.shapes)


def _grown(shape: Shape, factor: float) -> Shape:
    points = tuple((x * factor, y * factor) for x, y in shape.points)
    return replace(shape, points=points, stroke=shape.stroke * factor, radius=shape.radius * factor)


def _snapped(shape: Shape, factor: float) -> Shape:
    """Lines get a whole width and run on whole pixels (or on their middles, when the width is odd); so do edges."""
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
    """Where a line with flat ends ends along this axis: there its end has to lie on a pixel, not its middle."""
    if shape.closed or shape.round_caps:
        return set()
    ends = ((shape.points[0], shape.points[1]), (shape.points[-1], shape.points[-2]))
    return {end[axis] for end, next_ in ends if abs(end[axis] - next_[axis]) > abs(end[1 - axis] - next_[1 - axis])}


def _moved(values: list[float], width: int, ends: set[float]) -> list[float]:
    """Coordinates after the lowest and the highest were snapped, those between them in proportion."""
    low, high = min(values), max(values)
    to_low, to_high = (_to_grid(value, 0 if value in ends else width) for value in (low, high))
    if math.isclose(low, high):
        return [to_low] * len(values)
    return [to_low + (value - low) * (to_high - to_low) / (high - low) for value in values]


def _to_grid(value: float, width: int) -> float:
    """The nearest place where a line of that width has its edges on pixels."""
    return math.floor(value) + 0.5 if width % 2 else float(math.floor(value + 0.5))
