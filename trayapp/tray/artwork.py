"""Pictures in every size that a panel may ask for, and their bytes in the panels' format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

# One picture for all sizes, pictures by size (pixels, square), or a function that draws the requested size.
Artwork: TypeAlias = "Image | Mapping[int, Image] | Callable[[int], Image]"
PANEL_SIZES = (16, 22, 24, 32, 48, 64)  # the heights of existing panels, and their doubles for high-density screens

Pixmap = tuple[int, int, bytes]


def at_size(artwork: Artwork, size: int) -> Image:
    """Return the picture as RGBA of `size` by `size` pixels.

    A missing size is made from the nearest larger one or, if there is none, from the largest.
    """
    if isinstance(artwork, Mapping):
        drawn = artwork[min((known for known in artwork if known >= size), default=max(artwork))]
    else:
        drawn = artwork(size) if callable(artwork) else artwork
    picture = drawn if drawn.mode == "RGBA" else drawn.convert("RGBA")
    return picture if picture.size == (size, size) else picture.resize((size, size))


def argb32(picture: Image) -> bytes:
    """Convert RGBA pixels to ARGB32 in network byte order, for IconPixmap (StatusNotifierItem specification)."""
    rgba = picture.tobytes()
    turned = bytearray(len(rgba))
    turned[0::4] = rgba[3::4]
    turned[1::4] = rgba[0::4]
    turned[2::4] = rgba[1::4]
    turned[3::4] = rgba[2::4]
    return bytes(turned)


def pixmaps(artwork: Artwork) -> list[Pixmap]:
    """Return the picture in all PANEL_SIZES, each a (width, height, ARGB32)."""
    return [(size, size, argb32(at_size(artwork, size))) for size in PANEL_SIZES]
