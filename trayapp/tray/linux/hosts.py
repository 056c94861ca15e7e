"""Who could show an icon here, and which way is taken.

Never here: the protocols (sni, xembed), what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

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
