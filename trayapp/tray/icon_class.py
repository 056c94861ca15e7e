"""The choice of the icon's class for this system.

The interface for tray/app on Linux:

    notifier = Notifier(None, "multi-mcp")            (trayapp.tray.linux.notifications)
    icon = icon_class()("multi-mcp", artwork, "tooltip, lines", menu, on_no_host=say_so,
                        on_bus=notifier.join)        # as soon as there is a session bus
    icon.on_open = read_again                        # when the menu opens
    icon.attention = True; icon.icon = other; icon.title = ...; icon.menu = ...     # any thread
    icon.run(setup)                                  # until stop() or the end of the session, even without a host
    icon.host                                        # "sni", "xembed" or None, as it is now
"""

from __future__ import annotations

import sys
from typing import Any


def icon_class(kind: str | None = None) -> type[Any]:
    """Return the icon's class: on Linux, one that uses any available host, or only the `kind` given.

    On Windows and macOS it is pystray's own. All are subclasses of pystray's base class. Does not open a display.
    """
    if sys.platform in ("win32", "darwin"):
        from trayapp.tray.toolkit import NativeIcon

        native: type[Any] = NativeIcon
        return native
    from trayapp.tray.linux import icon

    return {None: icon.LinuxIcon, "sni": icon.SniIcon, "xembed": icon.XembedIcon}[kind]
