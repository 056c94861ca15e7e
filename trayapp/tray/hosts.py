"""Who could show an icon here, which way is taken, and the classes that take it.

The interface for tray/app on Linux:

    notifier = Notifier(None, "multi-mcp", worker.submit)            (trayapp.tray.notifications)
    icon = icon_class()("multi-mcp", artwork, "tooltip, lines", menu, worker=worker, on_no_host=say_so,
                        on_bus=notifier.join)        # as soon as there is a session bus
    icon.on_open = read_again                        # the menu is opened
    icon.attention = True; icon.icon = other; icon.title = ...; icon.menu = ...     # any thread
    icon.run(setup)                                  # until stop(), or the session ends; goes on without any host
    icon.host                                        # "sni", "xembed" or None, as it is now

Never here: the protocols (sni, xembed), what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["sni", "xembed"]
KINDS: tuple[Kind, ...] = ("sni", "xembed")
# At login the panel may start after us; the poorer way, or telling that there is none, waits that long for it.
PANEL_WAIT_S = 10.0
STARTED_WAIT_S = 3.0  # the same for one that a person started, or the file of a window manager together with its bar
DOCK_WAIT_S = 1.0  # for an XEmbed tray that is there to take the icon, before it is told that nobody does


class Step(NamedTuple):
    """What to do now: `way` to take (None: none, yet), whether to tell that `nobody` shows icons if so it is, and in
    how many seconds to ask again if nothing happens before (None: never).
    """

    way: Kind | None
    nobody: bool
    wait_s: float | None


class Search:
    """Decides, by what is there and how long it has been missing. Never asks or waits itself.

    `now` is any clock that only goes forward, in seconds.
    """

    def __init__(self, bus: bool, display: bool, now: float, panel_wait_s: float = PANEL_WAIT_S) -> None:
        self._bus, self._display = bus, display
        self._alone_since = now
        self._watcher = False
        # XEmbed is tried as soon as no better way is to be expected; what nobody can ever show is told at once.
        self._xembed_after_s = panel_wait_s if bus else 0.0
        self._told_after_s = panel_wait_s + DOCK_WAIT_S if bus or display else 0.0

    def step(self, watcher: bool, now: float) -> Step:
        """What to do; `watcher`: whether a panel that speaks StatusNotifierItem is there."""
        if self._watcher and not watcher:  # a panel that was there starts again, which takes one some seconds
            self._alone_since = now
            self._xembed_after_s, self._told_after_s = PANEL_WAIT_S, PANEL_WAIT_S + DOCK_WAIT_S
        self._watcher = watcher
        if watcher:
            return Step("sni", False, None)
        alone_s = now - self._alone_since
        way: Kind | None = "xembed" if self._display and alone_s >= self._xembed_after_s else None
        left = [mark - alone_s for mark in (self._xembed_after_s, self._told_after_s) if mark > alone_s]
        return Step(way, alone_s >= self._told_after_s, min(left, default=None))


def may_have_xembed(environ: Mapping[str, str]) -> bool:
    """Whether to look for an XEmbed tray at all.

    Under Wayland there is none worth it: its panels speak StatusNotifierItem, and asking would start Xwayland.
    """
    return bool(environ.get("DISPLAY")) and not environ.get("WAYLAND_DISPLAY")


def icon_class(kind: Kind | None = None) -> type[Any]:
    """The class of icon to make: on Linux one that takes whichever way there is, or only the `kind` given.

    On Windows and macOS pystray's own. All are subclasses of pystray's base class. Touches no display.
    """
    if sys.platform in ("win32", "darwin"):
        from trayapp.tray.toolkit import NativeIcon

        native: type[Any] = NativeIcon
        return native
    from trayapp.tray import linux

    return {None: linux.Icon, "sni": linux.SniIcon, "xembed": linux.XembedIcon}[kind]
