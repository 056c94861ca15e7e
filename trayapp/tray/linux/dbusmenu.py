"""The menu on the bus (com.canonical.dbusmenu): panels' requests about it, and the signals to panels.

The specification is dbus-menu.xml in libdbusmenu.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from trayapp.tray.linux.bus import Body, Method, SessionBus

MENU = "com.canonical.dbusmenu"
VERSION = 3  # version of the protocol, as in libdbusmenu
REPEAT_S = 1.0  # delay between the last change and the repeated signals, enough for a panel to read the layout


class MenuService:
    """The menu on the bus. `on_click` gets the clicked item; `on_open` is called when a panel opens the menu.

    Both are called on the thread that reads the bus.
    """

    interface = MENU
    signals: ClassVar[Mapping[str, str]] = {"ItemsPropertiesUpdated": "a(ia{sv})a(ias)", "LayoutUpdated": "ui"}

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
        self._root = numbered((), self._numbers)
        self._unread: set[int] = set()  # parents whose children changed since a panel last read them
        self._repeat: threading.Timer | None = None

    def show(self, menu: Iterable[Any] | None) -> None:
        """Show the current items of a pystray menu. Call this from any thread. The latest of concurrent calls wins."""
        ticket = next(self._tickets)
        # Not under the lock: a function that computes a text may wait for a thread that is in this method.
        read = entries(menu or (), self._separator)
        with self._lock:
            if ticket < self._shown_ticket:
                return
            self._shown_ticket = ticket
            before, self._root = self._root, numbered(read, self._numbers)
            told = difference(before, self._root)
            self._revision += bool(told.parents)
            self._unread |= set(told.parents)
            self._tell(told)
            if told != NOTHING:
                self._repeat_soon()

    def _tell(self, told: MenuDifference) -> None:
        """Send the changes, with one signal per changed submenu: KDE reads only one level below a signal's parent."""
        if told.changed or told.removed:
            self._bus.emit(self._path, MENU, "ItemsPropertiesUpdated", "a(ia{sv})a(ias)", (told.changed, told.removed))
        for parent in told.parents:
            self._bus.emit(self._path, MENU, "LayoutUpdated", "ui", (self._revision, parent))

    def _repeat_soon(self) -> None:
        """Repeat the signals after a burst, because a panel may have missed some.

        GNOME's extension may treat an answer as newer than a later signal. KDE drops the first layout signal
        after the first opening of a submenu (`m_idsRefreshedByAboutToShow` in its dbusmenuimporter.cpp). An
        item's kind never changes. The kind is not repeated, because GNOME's extension would close an open submenu.
        """
        if self._repeat is not None:
            self._repeat.cancel()

        def tell_again() -> None:
            with self._lock:
                known = self._known()
                nodes = [(number, without_kind(node.properties)) for number, node in known.items() if number != ROOT]
                self._tell(MenuDifference([number for number in known if number in self._unread], nodes, []))

        self._repeat = threading.Timer(REPEAT_S, tell_again)
        self._repeat.daemon = True
        self._repeat.start()

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "Version": ("u", VERSION),
            "TextDirection": ("s", "ltr"),
            "Status": ("s", "normal"),
            "IconThemePath": ("as", []),
        }

    def methods(self) -> Mapping[str, Method]:
        return {
            "GetLayout": ("iias", "u(ia{sv}av)", self._get_layout),
            "GetGroupProperties": ("aias", "a(ia{sv})", self._get_group_properties),
            "GetProperty": ("is", "v", lambda number, name: (self._known()[number].properties[name],)),
            "Event": ("isvu", "", self._event),
            "EventGroup": ("a(isvu)", "ai", self._event_group),
            "AboutToShow": ("i", "b", self._about_to_show),
            "AboutToShowGroup": ("ai", "aiai", self._about_to_show_group),
        }

    def _get_layout(self, parent: int, depth: int, names: list[str]) -> Body:
        with self._lock:
            revision, node = self._revision, self._known()[parent]
            self._unread -= {read.number for read in walk(node, depth)}
        return revision, _layout(node, depth, names)

    def _get_group_properties(self, numbers: list[int], names: list[str]) -> Body:
        known = self._known()
        asked = [known[number] for number in numbers or known if number in known]
        return ([(node.number, _only(node.properties, names)) for node in asked],)

    def _event(self, number: int, kind: str, data: object, timestamp: int) -> Body:
        # An unknown number is no error: the panel showed an older menu, and a signal about the change was already sent.
        self._clicked(number, kind)
        return ()

    def _event_group(self, events: list[tuple[int, str, object, int]]) -> Body:
        known = self._known()
        for number, kind, _, _ in events:
            self._clicked(number, kind)
        unknown = [number for number, *_ in events if number not in known]
        if events and len(unknown) == len(events):
            raise LookupError("all of the items")  # as dbus-menu.xml requires
        return (unknown,)

    def _about_to_show(self, number: int) -> Body:
        if number not in self._known():
            raise LookupError(number)
        self._opens([number])
        return (number in self._unread,)

    def _about_to_show_group(self, numbers: list[int]) -> Body:
        known = self._known()
        self._opens(numbers)
        unread = [number for number in numbers if number in self._unread]
        return unread, [number for number in numbers if number not in known]

    def _opens(self, numbers: list[int]) -> None:
        if ROOT in numbers:
            self._on_open()

    def _known(self) -> dict[int, MenuNode]:
        return {node.number: node for node in walk(self._root)}

    def _clicked(self, number: int, kind: str) -> None:
        node = self._known().get(number)
        if kind == "clicked" and node is not None and node.clickable:
            self._on_click(node.item)


def _layout(node: MenuNode, depth: int, names: list[str]) -> tuple[int, Properties, list[tuple[str, Any]]]:
    """Return a node as (ia{sv}av), with each child in a variant.

    `depth`: the levels of children to include, or -1 for all. `names`: the properties to include, or [] for all.
    """
    below = node.children if depth else ()
    return (
        node.number,
        _only(node.properties, names),
        [("(ia{sv}av)", _layout(child, depth - 1 if depth > 0 else depth, names)) for child in below],
    )


def _only(properties: Properties, names: list[str]) -> Properties:
    return {name: value for name, value in properties.items() if not names or name in names}


# --- the menu as a tree of numbered nodes, and the difference between two trees: values and pure functions
#
# An item's number depends on its parent and on its key or text, never on its position. A panel may show an older menu
# than ours, and a click in it must do what was shown or nothing. The number also depends on the item's kind:
# libdbusmenu-qt (KDE, LXQt) creates submenus and check marks only for new numbers.

ROOT = 0
REMEMBERED = 1000  # limit on removed items that keep their numbers: texts with counters create new items all the time

KIND = ("type", "children-display", "toggle-type")

Properties = dict[str, tuple[str, Any]]  # name -> D-Bus signature and value
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """The content of a pystray menu item, read once."""

    key: str
    properties: Properties
    item: Any
    children: tuple[MenuEntry, ...] = ()

    @property
    def kind(self) -> str:
        """Return the kind: submenu, check mark, separator, or plain entry. Panels read it only for new entries."""
        return "/".join(str(self.properties[name][1]) for name in KIND if name in self.properties)


@dataclass(frozen=True, slots=True)
class MenuNode:
    """A menu entry with its number. `item`: the pystray item that a click calls, or None for the root."""

    number: int
    properties: Properties
    children: tuple[MenuNode, ...] = ()
    item: Any = field(default=None, compare=False)

    @property
    def clickable(self) -> bool:
        """True if a click has an effect. Separators, disabled entries and submenus ignore clicks."""
        return self.properties.get("enabled") == ("b", True) and "children-display" not in self.properties


class EntryNumbers:
    """The numbers of menu entries. Each key keeps its number until it is forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, int] = OrderedDict()
        self._last = ROOT

    def __getitem__(self, key: Key) -> int:
        if key not in self._known:
            self._last += 1
            self._known[key] = self._last
        self._known.move_to_end(key)
        return self._known[key]

    def forget(self, shown: int) -> None:
        """Keep only the `shown` + REMEMBERED keys that were looked up most recently."""
        while len(self._known) > shown + REMEMBERED:
            self._known.popitem(last=False)


def entries(menu: Iterable[Any], separator: Any) -> tuple[MenuEntry, ...]:
    """Return the current items of a pystray menu as entries. This calls the functions that compute their texts."""
    read = []
    for item in menu:
        if item is separator:
            read.append(MenuEntry("", {"type": ("s", "separator")}, item))
            continue
        text, checked, submenu = item.text, item.checked, item.submenu
        properties: Properties = {"label": ("s", text.replace("_", "__")), "enabled": ("b", bool(item.enabled))}
        if checked is not None:
            properties["toggle-type"] = ("s", "radio" if item.radio else "checkmark")
            properties["toggle-state"] = ("i", int(bool(checked)))
        if submenu:
            properties["children-display"] = ("s", "submenu")
        read.append(MenuEntry(getattr(item, "key", text), properties, item, entries(submenu or (), separator)))
    return tuple(read)


def numbered(menu: tuple[MenuEntry, ...], numbers: EntryNumbers) -> MenuNode:
    """Number a tree of entries. Return its root, which has the number ROOT."""
    root = MenuNode(ROOT, {"children-display": ("s", "submenu")}, _nodes(menu, (), numbers))
    numbers.forget(sum(1 for _ in walk(root)) - 1)
    return root


def _nodes(menu: tuple[MenuEntry, ...], parent: Key, numbers: EntryNumbers) -> tuple[MenuNode, ...]:
    seen: dict[str, int] = {}
    nodes = []
    for entry in menu:
        seen[entry.key] = seen.get(entry.key, 0) + 1  # distinguishes separators, and siblings without a key
        key = (*parent, entry.key, seen[entry.key], entry.kind)
        nodes.append(MenuNode(numbers[key], entry.properties, _nodes(entry.children, key, numbers), entry.item))
    return tuple(nodes)


def walk(node: MenuNode, depth: int = -1) -> Iterator[MenuNode]:
    """Yield the node and its descendants. `depth`: the levels to visit, including its own, or -1 for all."""
    if depth:
        yield node
        for child in node.children:
            yield from walk(child, depth - 1)


def without_kind(properties: Properties) -> Properties:
    """Return the properties that can change while an item keeps its number."""
    return {name: value for name, value in properties.items() if name not in KIND}


class MenuDifference(NamedTuple):
    """The changes to report to panels.

    - `parents`: numbers of nodes in both trees whose children were added, removed, or moved, outermost first
    - `changed`: new or changed properties by number, for nodes in both trees
    - `removed`: names of removed properties by number, for nodes in both trees
    """

    parents: list[int]
    changed: list[tuple[int, Properties]]
    removed: list[tuple[int, list[str]]]


NOTHING = MenuDifference([], [], [])


def difference(old: MenuNode, new: MenuNode) -> MenuDifference:
    """Return the changes from `old` to `new`. Nodes with the same number are the same item."""
    before = {node.number: node for node in walk(old)}
    parents, changed, removed = [], [], []
    for node in walk(new):
        known = before.get(node.number)
        if known is None:
            continue
        if [child.number for child in known.children] != [child.number for child in node.children]:
            parents.append(node.number)
        if fresh := {name: value for name, value in node.properties.items() if known.properties.get(name) != value}:
            changed.append((node.number, fresh))
        if lost := [name for name in known.properties if name not in node.properties]:
            removed.append((node.number, lost))
    return MenuDifference(parents, changed, removed)
