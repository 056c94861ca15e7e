"""The programs that can show an icon here, and the choice between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["sni", "xembed"]
KINDS: tuple[Kind, ...] = ("sni", "xembed")
# At login the panel may start after the tray. XEmbed, and the notice that nothing shows icons, wait this long for it.
PANEL_WAIT_S = 10.0
STARTED_WAIT_S = 3.0  # the same if a person started the tray, or a window manager's file started it and the bar
DOCK_WAIT_S = 1.0  # for an existing XEmbed tray to take the icon, before the user is told that nothing shows it


class SearchStep(NamedTuple):
    """The next step of the search.

    - `way`: the kind of host to use; None: none yet.
    - `nobody`: True if it is time to tell the user, should nothing show the icon.
    - `wait_s`: the seconds until the next question if nothing happens before; None: no limit.
    """

    way: Kind | None
    nobody: bool
    wait_s: float | None


class HostSearch:
    """Decides by the hosts that exist, and by how long none has existed. It never asks or waits itself.

    `now` is the seconds of any clock that only goes forward.
    """

    def __init__(self, bus: bool, display: bool, now: float, panel_wait_s: float = PANEL_WAIT_S) -> None:
        self._bus, self._display = bus, display
        self._alone_since = now
        self._watcher = False
        # XEmbed is tried once no better host can be expected. If nothing can ever show icons, the user is told at once.
        self._xembed_after_s = panel_wait_s if bus else 0.0
        self._told_after_s = panel_wait_s + DOCK_WAIT_S if bus or display else 0.0

    def step(self, watcher: bool, now: float) -> SearchStep:
        """Return the next step; `watcher`: True if there is a panel that supports StatusNotifierItem."""
        if self._watcher and not watcher:  # the panel is restarting, which takes some seconds
            self._alone_since = now
            self._xembed_after_s, self._told_after_s = PANEL_WAIT_S, PANEL_WAIT_S + DOCK_WAIT_S
        self._watcher = watcher
        if watcher:
            return SearchStep("sni", False, None)
        alone_s = now - self._alone_since
        way: Kind | None = "xembed" if self._display and alone_s >= self._xembed_after_s else None
        left = [mark - alone_s for mark in (self._xembed_after_s, self._told_after_s) if mark > alone_s]
        return SearchStep(way, alone_s >= self._told_after_s, min(left, default=None))


def may_have_xembed(environ: Mapping[str, str]) -> bool:
    """Return True if it makes sense to look for an XEmbed tray.

    Not under Wayland: panels there support StatusNotifierItem, and the question would start Xwayland.
    """
    return bool(environ.get("DISPLAY")) and not environ.get("WAYLAND_DISPLAY")
