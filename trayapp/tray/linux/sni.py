"""The icon as a StatusNotifierItem: the item and its menu (dbusmenu), registered with every panel that starts.

The specification is "Status Notifier Item" of freedesktop.org.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jeepney import Message

from trayapp.tray.icons import Artwork, Pixmap, pixmaps
from trayapp.tray.linux.bus import Body, Method, SessionBus, method_call, values
from trayapp.tray.linux.dbusmenu import MenuService

log = logging.getLogger(__name__)
WATCHER = "org.kde.StatusNotifierWatcher"
WATCHER_PATH = "/StatusNotifierWatcher"
ITEM_PATH = "/StatusNotifierItem"
MENU_PATH = "/StatusNotifierItem/Menu"
ITEM = "org.kde.StatusNotifierItem"
# By the specification, tooltips may contain markup, but panels differ. XFCE shows no tooltip that contains <br>. Plasma
# shows "&amp;" literally in a text without tags, and joins the lines of a text that seems to have tags. Text without
# these characters looks right everywhere.
PLAIN = str.maketrans({"&": "+", "<": "‹", ">": "›"})


@dataclass(frozen=True, slots=True)
class ItemLook:
    """The visible state of the item. `title`: the tooltip's lines, with the headline first."""

    pixmaps: tuple[Pixmap, ...] = ()
    title: str = ""
    attention: bool = False
    visible: bool = False

    @property
    def status(self) -> str:
        """Return the status in the specification's words: Passive, Active, or NeedsAttention."""
        return "Passive" if not self.visible else "NeedsAttention" if self.attention else "Active"


class StatusNotifierIcon:
    """The item on the bus: picture, title, tooltip, status and menu. Its methods may be called from any thread.

    The callbacks run on the thread that reads the bus:

    - `on_activate`: called when the icon is clicked.
    - `on_click`: called with the pystray item when a menu item is clicked.
    - `on_open`: called when a panel is about to show the menu.
    - `on_watcher`: called with True if a panel can show the icon, or False if none can, now and after each change.
    """

    interface = ITEM
    signals: ClassVar[Mapping[str, str]] = {
        "NewIcon": "",
        "NewAttentionIcon": "",
        "NewTitle": "",
        "NewToolTip": "",
        "NewStatus": "s",
    }

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
        self._bus, self._name, self._on_activate, self._on_watcher = bus, name, on_activate, on_watcher
        self._menu = MenuService(bus, MENU_PATH, on_click, separator, on_open)
        self._look, self._watcher = ItemLook(), ""
        self._lock = threading.RLock()  # reentrant: `picture` holds it when it calls `_change`
        self._tickets, self._drawn_ticket = itertools.count(1), 0
        bus.serve(ITEM_PATH, self)
        bus.serve(MENU_PATH, self._menu)
        bus.follow(WATCHER, self._watcher_is)

    def show(self, visible: bool) -> None:
        """Show or hide the icon."""
        self._change(visible=visible)
        if visible:
            self._register()

    def picture(self, artwork: Artwork) -> None:
        """Set the picture. The later of two concurrent calls wins."""
        ticket = next(self._tickets)
        drawn = tuple(pixmaps(artwork))
        with self._lock:
            if ticket > self._drawn_ticket:
                self._drawn_ticket = ticket
                self._change(pixmaps=drawn)

    def title(self, text: str) -> None:
        """Set the tooltip. Its first line is the headline."""
        self._change(title=text)

    def attention(self, wanted: bool) -> None:
        """Request that panels not hide the icon among unimportant ones or, if not `wanted`, withdraw the request."""
        self._change(attention=wanted)

    def menu(self, menu: Iterable[Any] | None) -> None:
        """Show the current items of a pystray menu."""
        self._menu.show(menu)

    def _change(self, **changes: Any) -> None:
        """Change fields of the ItemLook, and signal the differences to panels."""
        with self._lock:
            before, self._look = self._look, replace(self._look, **changes)
            told: list[str] = []
            if before.pixmaps != self._look.pixmaps:
                told += ["NewIcon", "NewAttentionIcon"]
            if before.title != self._look.title:
                told += ["NewTitle", "NewToolTip"]
            for member in told:
                self._bus.emit(ITEM_PATH, ITEM, member)
            if before.status != self._look.status:
                self._bus.emit(ITEM_PATH, ITEM, "NewStatus", "s", (self._look.status,))

    def _watcher_is(self, owner: str) -> None:
        self._watcher = owner
        if owner and self._look.visible:
            self._register()
        self._on_watcher(bool(owner))

    def _register(self) -> None:
        """Register the item with the panels, if one can show it.

        Register by object path, as libayatana does: GNOME's AppIndicator extension loses items with a bus name.
        """
        if not self._watcher:
            return
        call = method_call(WATCHER, WATCHER_PATH, WATCHER, "RegisterStatusNotifierItem", "s", (ITEM_PATH,))

        def registered(reply: Message | None) -> None:
            if reply is not None and values(reply) is None:
                log.warning("The panel refused the icon: %s", reply.header.fields)

        self._bus.call(call, registered)

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        look = self._look
        headline, _, rest = look.title.partition("\n")
        pixmaps = ("a(iiay)", list(look.pixmaps))
        return {
            "Category": ("s", "ApplicationStatus"),
            "Id": ("s", self._name),
            "Title": ("s", headline or self._name),
            "Status": ("s", look.status),
            "WindowId": ("i", 0),
            "IconThemePath": ("s", ""),
            "IconName": ("s", ""),
            "IconPixmap": pixmaps,
            "OverlayIconName": ("s", ""),
            "OverlayIconPixmap": ("a(iiay)", []),
            "AttentionIconName": ("s", ""),
            "AttentionIconPixmap": pixmaps,  # the only picture that some panels show while attention is needed
            "AttentionMovieName": ("s", ""),
            "IconAccessibleDesc": ("s", headline),  # from libayatana, not from the specification: GNOME reads it aloud
            "AttentionAccessibleDesc": ("s", headline),
            "ToolTip": ("(sa(iiay)ss)", ("", [], headline.translate(PLAIN), rest.translate(PLAIN))),
            "ItemIsMenu": ("b", False),
            "Menu": ("o", MENU_PATH),
        }

    def methods(self) -> Mapping[str, Method]:
        return {
            "Activate": ("ii", "", self._activate),
            "SecondaryActivate": ("ii", "", self._activate),
            "ContextMenu": ("ii", "", _nothing),  # the panel shows our menu itself
            "Scroll": ("is", "", _nothing),
            "ProvideXdgActivationToken": ("s", "", _nothing),
        }

    def _activate(self, x: int, y: int) -> Body:
        self._on_activate()
        return ()


def _nothing(*arguments: object) -> Body:
    return ()
