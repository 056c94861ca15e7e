"""The painter, which draws a TrayView on the icon: only what changed, and at a limited rate.

This module imports pystray without touching a display, GTK, or a bus. xembed adds the X backend.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from trayapp.tray.state.tray_state import Action, IconKind, Item, Separator, TrayView

# On Linux, pystray opens a display when it is imported, and raises an exception if there is none. Its backend `dummy`
# needs no desktop. Child processes must not inherit the variable that selects this backend.
CHOICE = "PYSTRAY_BACKEND"
before = os.environ.get(CHOICE)
if sys.platform not in ("win32", "darwin"):
    os.environ[CHOICE] = "dummy"
try:
    import pystray
finally:
    os.environ.pop(CHOICE, None)
    if before is not None:
        os.environ[CHOICE] = before

log = logging.getLogger(__name__)

BaseIcon: Any = pystray._base.Icon
NativeIcon: Any = pystray.Icon  # the system's own icon on Windows and macOS; BaseIcon elsewhere
Menu: Any = pystray.Menu
MenuItem: Any = pystray.MenuItem

PAUSE_S = 0.25  # at most 4 redraws a second: more would not be noticed
Click = Callable[[Action], None]
WANTS_EYES = frozenset({IconKind.ATTENTION, IconKind.DOWN})  # panels should not hide the icon in these states


class KeyedItem(pystray.MenuItem):  # type: ignore[misc]  # pystray has no types
    """A menu item that keeps its identity when its text changes, so a click in an open menu hits the right item.

    `key` identifies the item ("pause") and is unique among siblings. A plain MenuItem is identified by its text.
    """

    def __init__(self, key: str, text: str, action: Callable[..., Any] | Any = None, **options: Any) -> None:
        super().__init__(text, action, **options)
        self.key = key


class Painter:
    """The only code that draws on the icon.

    `picture`: returns the picture for a kind, in the form that the icon accepts.
    `click`: called with the action of a clicked entry, or of the icon.
    `label`: returns a menu text in which the characters that this system would interpret are escaped.
    """

    def __init__(
        self, icon: Any, picture: Callable[[IconKind], Any], click: Click, label: Callable[[str], str] = str
    ) -> None:
        self._icon = icon
        self._picture = picture
        self._click = click
        self._label = label
        self._shown: TrayView | None = None

    def render(self, view: TrayView) -> None:
        """Show a view. Update only what differs from the previous view."""
        before, self._shown = self._shown, view
        if before is None or before.icon is not view.icon:
            self._icon.attention = view.icon in WANTS_EYES  # used by LinuxIcon; pystray's own icons only store it
            self._icon.icon = self._picture(view.icon)
        if before is None or before.tooltip != view.tooltip:
            self._icon.title = view.tooltip
        if before is None or (before.menu, before.click) != (view.menu, view.click):
            # A click on the icon itself triggers pystray's default entry, even if the entry is invisible.
            itself = MenuItem("", self._clicked(view.click), default=True, visible=False)
            self._icon.menu = Menu(itself, *map(self._entry, view.menu))

    def _clicked(self, action: Action) -> Callable[..., None]:
        return lambda *_: self._click(action)

    def _entry(self, entry: Item | Separator) -> Any:
        if isinstance(entry, Separator):
            return Menu.SEPARATOR
        action: Any = None
        if entry.children:
            action = Menu(*map(self._entry, entry.children))
        elif entry.action is not None:
            action = self._clicked(entry.action)
        checked = None if entry.checked is None else lambda *_: entry.checked
        return KeyedItem(entry.key, self._label(entry.text), action, checked=checked, enabled=entry.enabled)


class Redraws:
    """A thread that calls `draw` after `request()`, with a pause after each call. The latest state is always drawn.

    `draw` returns the seconds after which it must be called again, or None to wait for the next `request()`.
    """

    def __init__(self, draw: Callable[[], float | None], sleep: Callable[[float], object] | None = None) -> None:
        self._draw = draw
        self._ended = threading.Event()
        self._sleep = sleep or self._ended.wait
        self._requested = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redraws", daemon=True)

    def start(self) -> None:
        """Start the thread, with a first redraw."""
        self._requested.set()
        self._thread.start()

    def request(self) -> None:
        """Request a redraw, from any thread and without waiting for it."""
        self._requested.set()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop drawing. Wait up to `timeout_s` seconds for the thread to end."""
        self._ended.set()
        self._requested.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        again_s: float | None = None
        while True:
            self._requested.wait(again_s)
            if self._ended.is_set():
                return
            self._requested.clear()  # before the redraw: a change during it causes another one
            try:
                again_s = self._draw()
            except Exception:  # the boundary of a redraw: the thread must continue
                log.exception("Unexpected error while drawing")
                again_s = None
            self._sleep(PAUSE_S)
