"""The icon on Windows: pystray's own, with texts cut to what its structures hold, and a menu that stays while open.

Never here: what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

# Of NOTIFYICONDATAW, in UTF-16 units without the end: ctypes raises ValueError beyond.
TIP, INFO, INFO_TITLE = 127, 255, 63
LIGHT_THEME = r"Software\Microsoft\Windows\CurrentVersion\Themes\Personalize"
SM_CXSMICON = 49  # the width of icons in the notification area
DEFAULT_PX = 16
RIGHT_BUTTON_UP = 0x0205  # WM_RBUTTONUP: what opens the menu
BALLOON_CLICK = 0x0405  # NIN_BALLOONUSERCLICK: on the notification itself
PER_MONITOR = -4  # DPI_AWARENESS_CONTEXT_PER_MONITOR_AWARE_V2, since Windows 10 1703


def cut(text: str | None, units: int) -> str:
    """As much of `text` as fits, never half a character."""
    return (text or "").encode("utf-16-le", "replace")[: 2 * units].decode("utf-16-le", "ignore")


def be_dpi_aware(windll: Any) -> None:
    """Draw in real pixels: else Windows stretches icon and menu, and says that icons are 16 pixels wide on any screen.

    `windll`: ctypes' own. To be called before the first window is made.
    """
    try:
        done = windll.user32.SetProcessDpiAwarenessContext(PER_MONITOR)
    except (AttributeError, OSError):  # an older Windows
        done = False
    if not done:
        windll.user32.SetProcessDPIAware()


def menu_text(text: str) -> str:
    """A single `&` would underline the letter after it."""
    return text.replace("&", "&&")


def mended(base: Any) -> type[Any]:
    """pystray's class made fit."""

    class WindowsIcon(base):  # type: ignore[misc]  # pystray has no types
        """See the module."""

        attention = False  # other systems' icons tell their panel by it
        on_open: Callable[[], None] | None = None  # the menu is opened; what it brings is there the next time
        on_balloon: Callable[[], None] | None = None  # the notification that is shown was clicked

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._is_open = self._is_stale = False

        def _update_menu(self) -> None:
            """Not under the user's hand: the open menu would be destroyed. It is renewed once it is closed."""
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
    """Whether the taskbar is light; where that cannot be read it is taken for dark, as Windows comes."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, LIGHT_THEME) as key:
                return bool(winreg.QueryValueEx(key, "SystemUsesLightTheme")[0])
        except OSError:
            return False
    return False


def icon_px() -> int:
    """The size in which the taskbar shows icons, in pixels."""
    if sys.platform == "win32":
        import ctypes

        return int(ctypes.windll.user32.GetSystemMetrics(SM_CXSMICON)) or DEFAULT_PX
    return DEFAULT_PX
