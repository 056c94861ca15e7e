"""Who could show an icon here, which way is taken, and the classes that take it.

The interface for tray/app on Linux:

    bus = connect()                                  # SessionBus | None
    notifier = Notifier(bus, "multi-mcp", worker.submit)            (trayapp.tray.notifications)
    icon = icon_class()("multi-mcp", artwork, "tooltip, lines", menu, bus=bus, worker=worker, on_no_host=say_so)
    icon.attention = True; icon.icon = other; icon.title = ...; icon.menu = ...     # any thread
    icon.run(setup)                                  # until stop(), or the session ends; goes on without any host
    icon.host                                        # "sni", "xembed" or None, as it is now

Never here: the protocols (sni, xembed), what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["sni", "xembed"]
KINDS: tuple[Kind, ...] = ("sni", "xembed")
# At login the panel may start after us; the poorer way, or telling that there is none, waits that long for it.
PANEL_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of this desktop. `display`: an X display that may have an XEmbed tray. `waited`: PANEL_WAIT_S went
    by without a watcher; with no bus there is none to wait for.
    """

    bus: bool
    watcher: bool
    display: bool
    waited: bool


def way(facts: Facts) -> Kind | None:
    """The way to take now; None: none, yet. XEmbed is tried as soon as no better one is to be expected."""
    if facts.watcher:
        return "sni"
    if facts.display and (facts.waited or not facts.bus):
        return "xembed"
    return None


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
