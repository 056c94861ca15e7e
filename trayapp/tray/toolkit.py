"""pystray, imported without touching a display, GTK, or a bus. Other modules get it here; xembed adds the X backend."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

CHOICE = "PYSTRAY_BACKEND"

# On Linux, pystray opens a display when it is imported, and raises if there is none. `dummy` is its name for the base
# class without any desktop. Child processes must not inherit the variable.
before = os.environ.get(CHOICE)
if sys.platform not in ("win32", "darwin"):
    os.environ[CHOICE] = "dummy"
try:
    import pystray
finally:
    os.environ.pop(CHOICE, None)
    if before is not None:
        os.environ[CHOICE] = before

BaseIcon: Any = pystray._base.Icon
NativeIcon: Any = pystray.Icon  # the real one on Windows and macOS, elsewhere BaseIcon
Menu: Any = pystray.Menu
MenuItem: Any = pystray.MenuItem


class KeyedItem(pystray.MenuItem):  # type: ignore[misc]  # pystray has no types
    """A menu item that keeps its identity when its text changes, so that a click on an open menu never hits a neighbor.

    `key` names the item's meaning ("pause"), not its position, and is unique among siblings. An item without a key (a
    plain MenuItem) is identified by its text.
    """

    def __init__(self, key: str, text: str, action: Callable[..., Any] | Any = None, **options: Any) -> None:
        super().__init__(text, action, **options)
        self.key = key
