"""A picture in every size that a panel may ask for, and the bytes that panels want.

Never here: drawing (icons), D-Bus, X.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

# One picture for all sizes, a picture for each of some sizes (pixels, square), or whoever draws the size asked for.
Artwork: TypeAlias = "Image | Mapping[int, Image] | Callable[[int], Image]"
PANEL_SIZES = (16, 22, 24, 32, 48, 64)  # heights of the panels that there are, twice for dense screens

Pixmap = tuple[int, int, bytes]


def at_size(artwork: Artwork, size: int) -> Image:
    """The picture as RGBA of `size` by `size` pixels, made from the nearest larger one where there is none."""
    drawn = _source(artwork, size)
    picture = drawn if drawn.mode == "RGBA" else drawn.convert("RGBA")
    return picture if picture.size == (size, size) else picture.resize((size, size))


def _source(artwork: Artwork, size: int) -> Image:
    if isinstance(artwork, Mapping):
        return artwork[min((known for known in artwork if known >= size), default=max(artwork))]
    if callable(artwork):
        return artwork(size)
    return artwork


def argb32(picture: Image) -> bytes:
    """RGBA pixels as ARGB32 in network byte order, as IconPixmap wants them (StatusNotifierItem specification)."""
    rgba = picture.tobytes()
    turned = bytearray(len(rgba))
    turned[0::4] = rgba[3::4]
    turned[1::4] = rgba[0::4]
    turned[2::4] = rgba[1::4]
    turned[3::4] = rgba[2::4]
    return bytes(turned)


def pixmaps(artwork: Artwork) -> list[Pixmap]:
    """The picture in all PANEL_SIZES: (width, height, ARGB32)."""
    return [(size, size, argb32(at_size(artwork, size))) for size in PANEL_SIZES]
