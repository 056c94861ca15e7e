"""The icon on Windows: pystray's icon with texts cut to Windows' limits and a menu that stays open during updates."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

# Limits of NOTIFYICONDATAW, in UTF-16 units without the terminator: ctypes raises ValueError beyond them.
TIP, INFO, INFO_TITLE = 127, 255, 63
LIGHT_THEME = r"Software\Microsoft\Windows\CurrentVersion\Themes\Personalize"
SM_CXSMICON = 49  # the width of icons in the notification area
DEFAULT_PX = 16
RIGHT_BUTTON_UP = 0x0205  # WM_RBUTTONUP, which opens the menu
BALLOON_CLICK = 0x0405  # NIN_BALLOONUSERCLICK, a click on the notification itself
PER_MONITOR = -4  # DPI_AWARENESS_CONTEXT_PER_MONITOR_AWARE_V2, since Windows 10 1703


def cut(text: str | None, units: int) -> str:
    """Return as much of `text` as fits into `units` UTF-16 units, without splitting a character."""
    return (text or "").encode("utf-16-le", "replace")[: 2 * units].decode("utf-16-le", "ignore")


def be_dpi_aware(windll: Any) -> None:
    """Make the process DPI-aware, before its first window exists. `windll`: ctypes.windll.

    Otherwise, Windows stretches the icon and menu, and reports an icon size of 16 pixels on every screen.
    """
    try:
        done = windll.user32.SetProcessDpiAwarenessContext(PER_MONITOR)
    except (AttributeError, OSError):  # an older Windows
        done = False
    if not done:
        windll.user32.SetProcessDPIAware()


def menu_text(text: str) -> str:
    """Return a menu text with `&` escaped, which would otherwise underline the next letter."""
    return text.replace("&", "&&")


def mended(base: Any) -> type[Any]:
    """Return pystray's class with its faults on Windows fixed."""

    class WindowsIcon(base):  # type: ignore[misc]  # pystray has no types
        """pystray's icon on Windows, with texts cut to size. Updates do not close its open menu."""

        attention = False  # has an effect only on Linux
        # Called when the menu opens. Changes that it makes to the menu appear at the next opening.
        on_open: Callable[[], None] | None = None
        on_balloon: Callable[[], None] | None = None  # called for a click on the current notification

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._is_open = self._is_stale = False

        def _update_menu(self) -> None:
            """Update the menu, but wait until it closes if it is open: an update would destroy it."""
            if self._is_open:
                self._is_stale = True
            else:
                super()._update_menu()

        def _on_notify(self, wparam: int, lparam: int) -> None:
            if lparam == BALLOON_CLICK and self.on_balloon is not None:
                self.on_balloon()
            self._is_open = True
            if lparam == RIGHT_BUTTON_UP and self.on_open is not None:
                self.on_open()
            try:
                super()._on_notify(wparam, lparam)
            finally:
                self._is_open, stale, self._is_stale = False, self._is_stale, False
                if stale:
                    super()._update_menu()

        def _message(self, code: int, flags: int, **values: Any) -> Any:
            limits = {"szTip": TIP, "szInfo": INFO, "szInfoTitle": INFO_TITLE}
            values |= {name: cut(values[name], limit) for name, limit in limits.items() if name in values}
            return super()._message(code, flags, **values)

    return WindowsIcon


def light_taskbar() -> bool:
    """True if the taskbar is light. If the setting cannot be read, the taskbar counts as dark, as by default."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, LIGHT_THEME) as key:
                return bool(winreg.QueryValueEx(key, "SystemUsesLightTheme")[0])
        except OSError:
            return False
    return False


def icon_px() -> int:
    """Return the size of the taskbar's icons in pixels."""
    if sys.platform == "win32":
        import ctypes

        return int(ctypes.windll.user32.GetSystemMetrics(SM_CXSMICON)) or DEFAULT_PX
    return DEFAULT_PX
