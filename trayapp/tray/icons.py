"""The icons as pictures: six kinds, distinguished by shape as well as by color, for dark, light and unknown panels.

They are drawn at build time (packaging/devtools/drawing). A file in assets/ holds all SIZES of one drawing. A panel
receives all PANEL_SIZES, or the one size that it requests, in its own format.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import trayapp
from trayapp.tray.state.tray_state import IconKind

if TYPE_CHECKING:
    from PIL import Image

SIZES = (*range(16, 49), 64, 128)  # other sizes are scaled down from the next larger one; above 48, this is not visible
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
    """Return the tray icon as RGBA of `size` by `size` pixels. `dark`: True for a dark panel, None if unknown.

    The picture is cached: do not draw on it.
    """
    colors = COLORS[kind]
    from PIL import Image  # imported late: takes 20 ms, which would delay the registration of the tray

    whole = Image.new("RGBA", (size, size), colors.either if dark is None else colors.dark if dark else colors.light)
    whole.putalpha(_picture(f"tray-{kind}", size))
    return Image.alpha_composite(Image.new("RGBA", (size, size)), whole)  # fully transparent pixels have no color


@cache
def app_icon(size: int) -> Image.Image:
    """Return the app's own icon, for notifications, as RGBA of `size` by `size` pixels."""
    return _picture(APP, size)


def offset(size: int) -> int:
    """Return the x position, in pixels, of the picture with this size (one of SIZES) in a file of assets/."""
    return sum(SIZES[: SIZES.index(size)])


def assets() -> Path:
    """Return the folder of the pictures: inside the installed package, or beside it in a checkout."""
    package = Path(trayapp.__file__).parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def _picture(name: str, size: int) -> Image.Image:
    """Return a picture of assets/ with `size` pixels on a side. Raises OSError if the installation is incomplete."""
    from PIL import Image

    kept = min((known for known in SIZES if known >= size), default=SIZES[-1])
    left = offset(kept)
    with Image.open(assets() / f"{name}.png") as whole:
        found = whole.crop((left, 0, left + kept, kept))
    return found if kept == size else found.resize((size, size))


Artwork: TypeAlias = "Callable[[int], Image.Image]"  # from a size in pixels to a square RGBA picture
PANEL_SIZES = (16, 22, 24, 32, 48, 64)  # common panel heights, and twice these for high-density screens

Pixmap = tuple[int, int, bytes]


def argb32(picture: Image.Image) -> bytes:
    """Return RGBA pixels as ARGB32 in network byte order, for IconPixmap (StatusNotifierItem specification)."""
    from PIL import Image

    red, green, blue, alpha = picture.split()
    return Image.merge("RGBA", (alpha, red, green, blue)).tobytes()


def pixmaps(artwork: Artwork) -> list[Pixmap]:
    """Return the picture in all PANEL_SIZES, each as (width, height, ARGB32)."""
    return [(size, size, argb32(artwork(size))) for size in PANEL_SIZES]
