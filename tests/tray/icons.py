"""One-color artwork for tray icons, and a context manager that runs an icon on a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image

from tests.tray.bus import WAIT_S
from trayapp.tray.icons import Artwork

RED, GREEN = (255, 0, 0, 255), (0, 255, 0, 255)


def plain(color: tuple[int, int, int, int] = RED) -> Artwork:
    """Return artwork of one color in any size."""
    return lambda size: Image.new("RGBA", (size, size), color)


@contextmanager
def running(icon: Any) -> Iterator[threading.Thread]:
    """Run the icon on a thread, and yield the thread. At the end, stop the icon and check that the thread ends."""
    thread = threading.Thread(target=icon.run, name="the icon's")
    thread.start()
    try:
        yield thread
    finally:
        icon.stop()
        thread.join(WAIT_S)
        assert not thread.is_alive()
