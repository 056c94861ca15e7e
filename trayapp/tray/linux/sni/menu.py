"""com.canonical.dbusmenu: the panels' requests about the menu, and the signals to them (libdbusmenu, dbus-menu.xml)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trayapp.tray.linux.bus import Answer, Method, SessionBus
from trayapp.tray.linux.sni import description
from trayapp.tray.linux.sni.tree import (
    ROOT,
    EntryNumbers,
    MenuDifference,
    MenuNode,
    Properties,
    difference,
    entries,
    numbered,
    walk,
    without_kind,
)

MENU = "com.canonical.dbusmenu"
ALL_LEVELS = -1
VERSION = 3  # of the protocol, as in libdbusmenu
REPEAT_S = 1.0  # after the last change; a panel has read the layout by then
NOTHING = MenuDifference([], [], [])


class MenuService:
    """The menu on the bus. `on_click` gets the clicked item; `on_open` is called when a panel opens the menu.

    Both are called on the thread that reads the bus.
    """

    interface = MENU
    description = description.MENU

    def __init__(
        self,
        bus: SessionBus,
        path: str,
        on_click: Callable[[Any], None],
        separator: Any,
        on_open: Callable[[], None],
    ) -> None:
        self._bus, self._path, self._on_click, self._separator = bus, path, on_click, separator
        self._on_open = on_open
        self._lock = threading.Lock()
        self._tickets, self._shown_ticket = itertools.count(1), 0
        self._numbers, self._revision = EntryNumbers(), 1
        self._root, self._shown = numbered((), self._numbers)
        self._unread: set[int] = set()  # parents whose children changed since a panel last read them
        self._repeat: threading.Timer | None = None

    def show(self, menu: Iterable[Any] | None) -> None:
        """Show the items of a pystray menu as they are now, from any thread. Of concurrent calls, the latest wins."""
        ticket = next(self._tickets)
        # Without the lock: the code that computes a text may wait for a thread that wants to show something, too.
        read = entries(menu or (), self._separator)
        with self._lock:
            if ticket < self._shown_ticket:
                return
            self._shown_ticket = ticket
            before = self._root
            self._root, self._shown = numbered(read, self._numbers)
            told = difference(before, self._root)
            self._revision += bool(told.parents)
            self._unread |= set(told.parents)
            self._tell(told)
            if told != NOTHING:
                self._repeat_soon()

    def close(self) -> None:
        """Cancel the pending repetition of signals."""
        with self._lock:
            if self._repeat is not None:
                self._repeat.cancel()

    def _tell(self, told: MenuDifference) -> None:
        """Signal each submenu that changed: KDE reads only one level, from the parent in the signal."""
        if told.changed or told.removed:
            self._bus.emit(self._path, MENU, "ItemsPropertiesUpdated", "a(ia{sv})a(ias)", (told.changed, told.removed))
        for parent in told.parents:
            self._bus.emit(self._path, MENU, "LayoutUpdated", "ui", (self._revision, parent))

    def _repeat_soon(self) -> None:
        """Repeat the signals after a burst, because a panel may have missed some.

        GNOME's extension may take an older answer for newer than a signal. KDE drops the first layout signal that
        follows the first opening of a submenu (`m_idsRefreshedByAboutToShow` in its dbusmenuimporter.cpp). The kind of
        an item is not repeated: it never changes, and a repetition makes GNOME's extension close an open submenu.
        """
        if self._repeat is not None:
            self._repeat.cancel()
        self._repeat = threading.Timer(REPEAT_S, self._tell_again)
        self._repeat.daemon = True
        self._repeat.start()

    def _tell_again(self) -> None:
        with self._lock:
            known = self._known()
            nodes = [(number, without_kind(node.properties)) for number, node in known.items() if number != ROOT]
            self._tell(MenuDifference([number for number in known if number in self._unread], nodes, []))

    # -- the panels' requests --------------------------------------------------------------------------------------

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "Version": ("u", VERSION),
            "TextDirection": ("s", "ltr"),
            "Status": ("s", "normal"),
            "IconThemePath": ("as", []),
        }

    def methods(self) -> Mapping[str, Method]:
        return {
            "GetLayout": ("iias", self._get_layout),
            "GetGroupProperties": ("aias", self._get_group_properties),
            "GetProperty": ("is", self._get_property),
            "Event": ("isvu", self._event),
            "EventGroup": ("a(isvu)", self._event_group),
            "AboutToShow": ("i", self._about_to_show),
            "AboutToShowGroup": ("ai", self._about_to_show_group),
        }

    def _get_layout(self, parent: int, depth: int, names: list[str]) -> Answer:
        with self._lock:
            revision, node = self._revision, self._known()[parent]
            self._unread -= {read.number for read in walk(node, depth)}
        return "u(ia{sv}av)", (revision, _layout(node, depth, names))

    def _get_group_properties(self, numbers: list[int], names: list[str]) -> Answer:
        known = self._known()
        asked = [known[number] for number in numbers or known if number in known]
        return "a(ia{sv})", ([(node.number, _only(node.properties, names)) for node in asked],)

    def _get_property(self, number: int, name: str) -> Answer:
        return "v", (self._known()[number].properties[name],)

    def _event(self, number: int, kind: str, data: object, timestamp: int) -> Answer:
        # A missing item is not the panel's error: it showed an older menu, and has already been told about the change.
        self._clicked(number, kind)
        return "", ()

    def _event_group(self, events: list[tuple[int, str, object, int]]) -> Answer:
        known = self._known()
        for number, kind, _, _ in events:
            self._clicked(number, kind)
        unknown = [number for number, *_ in events if number not in known]
        if events and len(unknown) == len(events):
            raise LookupError("all of the items")  # as dbus-menu.xml requires
        return "ai", (unknown,)

    def _about_to_show(self, number: int) -> Answer:
        if number not in self._known():
            raise LookupError(number)
        self._opens([number])
        return "b", (number in self._unread,)

    def _about_to_show_group(self, numbers: list[int]) -> Answer:
        known = self._known()
        self._opens(numbers)
        return "aiai", (
            [number for number in numbers if number in self._unread],
            [number for number in numbers if number not in known],
        )

    def _opens(self, numbers: list[int]) -> None:
        if ROOT in numbers:
            self._on_open()

    def _known(self) -> dict[int, MenuNode]:
        return {node.number: node for node in walk(self._root)}

    def _clicked(self, number: int, kind: str) -> None:
        entry = self._shown.get(number)
        if kind == "clicked" and entry is not None and entry.clickable:
            self._on_click(entry.item)


def _layout(node: MenuNode, depth: int, names: list[str]) -> tuple[int, Properties, list[tuple[str, Any]]]:
    """Return an (ia{sv}av), with each child boxed in a variant. `depth`: the levels of children, or ALL_LEVELS."""
    below = node.children if depth else ()
    return (
        node.number,
        _only(node.properties, names),
        [("(ia{sv}av)", _layout(child, depth - 1 if depth > 0 else depth, names)) for child in below],
    )


def _only(properties: Properties, names: list[str]) -> Properties:
    return {name: value for name, value in properties.items() if not names or name in names}
