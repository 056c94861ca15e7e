"""pystray, imported so that no display, GTK or bus is touched; the one place that imports it at module level.

Never here: an icon class of ours (linux, xembed), what a menu holds (view).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CHOICE = "PYSTRAY_BACKEND"


@contextmanager
def _no_display_touched() -> Iterator[None]:
    """While pystray is imported: on Linux it opens the display at once and raises where there is none.

    `dummy` is its own name for "the base class, and nothing of a desktop"; children must not inherit that.
    """
    before = os.environ.get(CHOICE)
    if sys.platform not in ("win32", "darwin"):
        os.environ[CHOICE] = "dummy"
    try:
        yield
    finally:
        os.environ.pop(CHOICE, None)
        if before is not None:
            os.environ[CHOICE] = before


with _no_display_touched():
    import pystray

BaseIcon: Any = pystray._base.Icon
NativeIcon: Any = pystray.Icon  # on Windows and macOS the real one, elsewhere BaseIcon
Menu: Any = pystray.Menu
MenuItem: Any = pystray.MenuItem


class KeyedItem(pystray.MenuItem):  # type: ignore[misc]  # pystray has no types
    """A menu item that stays itself when its text changes, so that a click on an open menu never hits a neighbour.

    `key` names what the item means ("pause"), not where it stands; of two siblings no two have the same. An item
    without a key (a plain MenuItem) is known by its text.
    """

    def __init__(self, key: str, text: str, action: Callable[..., Any] | Any = None, **options: Any) -> None:
        super().__init__(text, action, **options)
        self.key = key
