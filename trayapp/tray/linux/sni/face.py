"""The item and its menu together, registered with every panel that starts."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from jeepney import Message

from trayapp.tray.artwork import Artwork, pixmaps
from trayapp.tray.linux.bus import SessionBus, method_call, values
from trayapp.tray.linux.sni.item import ItemService
from trayapp.tray.linux.sni.menu import MenuService

log = logging.getLogger(__name__)
WATCHER = "org.kde.StatusNotifierWatcher"
WATCHER_PATH = "/StatusNotifierWatcher"
ITEM_PATH = "/StatusNotifierItem"
MENU_PATH = "/StatusNotifierItem/Menu"


class StatusNotifierIcon:
    """An icon for panels that support StatusNotifierItem. All methods may be called from any thread.

    The callbacks run on the thread that reads the bus:

    - `on_activate`: the icon was clicked.
    - `on_click`: a menu item was clicked; gets the pystray item.
    - `on_open`: the menu is about to be shown.
    - `on_watcher`: True if a panel can show the icon, False if not; first called with the present state.
    """

    def __init__(
        self,
        bus: SessionBus,
        name: str,
        separator: Any,
        on_activate: Callable[[], None],
        on_click: Callable[[Any], None],
        on_watcher: Callable[[bool], None],
        on_open: Callable[[], None],
    ) -> None:
        self._bus, self._on_watcher = bus, on_watcher
        self._item = ItemService(bus, ITEM_PATH, MENU_PATH, name, on_activate)
        self._menu = MenuService(bus, MENU_PATH, on_click, separator, on_open)
        self._visible, self._watcher = False, ""
        self._lock = threading.Lock()
        self._tickets, self._drawn_ticket = itertools.count(1), 0
        bus.serve(ITEM_PATH, self._item)
        bus.serve(MENU_PATH, self._menu)
        bus.follow(WATCHER, self._watcher_is)

    def show(self, visible: bool) -> None:
        """Show or hide the icon."""
        self._visible = visible
        self._item.show(visible=visible)
        if visible:
            self._register()

    def picture(self, artwork: Artwork) -> None:
        """Show another picture. Of two concurrent calls, the later one wins."""
        ticket = next(self._tickets)
        drawn = tuple(pixmaps(artwork))
        with self._lock:
            if ticket > self._drawn_ticket:
                self._drawn_ticket = ticket
                self._item.show(pixmaps=drawn)

    def title(self, text: str) -> None:
        """Show another tooltip; its first line is the headline."""
        self._item.show(title=text)

    def attention(self, wanted: bool) -> None:
        """Ask panels not to hide the icon among the unimportant ones."""
        self._item.show(attention=wanted)

    def menu(self, menu: Iterable[Any] | None) -> None:
        """Show the items of a pystray menu as they are now."""
        self._menu.show(menu)

    def close(self) -> None:
        """Remove item and menu from the bus. Panels notice when the connection ends: the protocol cannot unregister."""
        self.show(False)
        self._menu.close()
        self._bus.withdraw(ITEM_PATH)
        self._bus.withdraw(MENU_PATH)

    def _watcher_is(self, owner: str) -> None:
        self._watcher = owner
        if owner and self._visible:
            self._register()
        self._on_watcher(bool(owner))

    def _register(self) -> None:
        """Register by object path, as libayatana does: GNOME's AppIndicator extension loses icons with a bus name."""
        if not self._watcher:
            return
        call = method_call(WATCHER, WATCHER_PATH, WATCHER, "RegisterStatusNotifierItem", "s", (ITEM_PATH,))
        self._bus.call(call, _registered)


def _registered(reply: Message | None) -> None:
    if reply is not None and values(reply) is None:
        log.warning("The panel refused the icon: %s", reply.header.fields)
