"""A menu as a tree of numbered nodes, and the difference between two trees: values and pure functions.

A number belongs to the meaning of an item (its key or its text, below its parent's), never to its position. A panel may
show an older menu than ours, and a click on it must do what was shown, or nothing.

A number also belongs to the kind of an item. libdbusmenu-qt (KDE, LXQt) builds a submenu or a check mark only when it
first sees a number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

ROOT = 0
REMEMBERED = 1000  # numbers of removed items: a menu with counters in its texts creates new ones all day

KIND = ("type", "children-display", "toggle-type")

Properties = dict[str, tuple[str, Any]]  # name -> D-Bus signature and value
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """The content of a menu item, read once. `item`: the pystray item that a click calls."""

    key: str
    properties: Properties
    item: Any
    children: tuple[MenuEntry, ...] = ()

    @property
    def kind(self) -> str:
        """Return the part that panels build only once: a submenu, a check mark, a separator, or a plain entry."""
        return "/".join(str(self.properties[name][1]) for name in KIND if name in self.properties)

    @property
    def clickable(self) -> bool:
        """True if a click does something: not for separators, disabled entries, and submenus."""
        return self.properties.get("enabled") == ("b", True) and "children-display" not in self.properties


@dataclass(frozen=True, slots=True)
class MenuNode:
    """A menu entry with its number."""

    number: int
    properties: Properties
    children: tuple[MenuNode, ...] = ()


class EntryNumbers:
    """Gives each key its number: always the same one, and never one number to two keys."""

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
        """Drop the oldest keys beyond REMEMBERED, but none of those that the `shown` latest lookups were about."""
        while len(self._known) > shown + REMEMBERED:
            self._known.popitem(last=False)


def entries(menu: Iterable[Any], separator: Any) -> tuple[MenuEntry, ...]:
    """Read the items of a pystray menu as they are now. This calls the functions that compute their texts."""
    return tuple(_entry(item, separator) for item in menu)


def _entry(item: Any, separator: Any) -> MenuEntry:
    if item is separator:
        return MenuEntry("", {"type": ("s", "separator")}, item)
    text, checked, submenu = item.text, item.checked, item.submenu
    properties: Properties = {"label": ("s", text.replace("_", "__")), "enabled": ("b", bool(item.enabled))}
    if checked is not None:
        properties["toggle-type"] = ("s", "radio" if item.radio else "checkmark")
        properties["toggle-state"] = ("i", int(bool(checked)))
    if submenu:
        properties["children-display"] = ("s", "submenu")
    return MenuEntry(getattr(item, "key", text), properties, item, entries(submenu or (), separator))


def numbered(menu: tuple[MenuEntry, ...], numbers: EntryNumbers) -> tuple[MenuNode, dict[int, MenuEntry]]:
    """Return the tree below ROOT, and the entries by number."""
    shown: dict[int, MenuEntry] = {}
    root = MenuNode(ROOT, {"children-display": ("s", "submenu")}, _nodes(menu, (), numbers, shown))
    numbers.forget(len(shown))
    return root, shown


def _nodes(
    menu: tuple[MenuEntry, ...], parent: Key, numbers: EntryNumbers, shown: dict[int, MenuEntry]
) -> tuple[MenuNode, ...]:
    seen: dict[str, int] = {}
    nodes = []
    for entry in menu:
        seen[entry.key] = seen.get(entry.key, 0) + 1  # tells separators apart, and siblings without a key of their own
        key = (*parent, entry.key, seen[entry.key], entry.kind)
        number = numbers[key]
        shown[number] = entry
        nodes.append(MenuNode(number, entry.properties, _nodes(entry.children, key, numbers, shown)))
    return tuple(nodes)


def walk(node: MenuNode, depth: int = -1) -> Iterator[MenuNode]:
    """Yield the node and those below it. `depth`: the number of levels to visit, or -1 for all."""
    if depth:
        yield node
        for child in node.children:
            yield from walk(child, depth - 1)


def without_kind(properties: Properties) -> Properties:
    """Return the properties that can change while an item keeps its number."""
    return {name: value for name, value in properties.items() if name not in KIND}


class MenuDifference(NamedTuple):
    """The changes to report to panels.

    `parents`: nodes of both trees whose own children were added, removed, or moved, outermost first. `changed` and
    `removed`: properties by number, for nodes that are in both trees.
    """

    parents: list[int]
    changed: list[tuple[int, Properties]]
    removed: list[tuple[int, list[str]]]


def difference(old: MenuNode, new: MenuNode) -> MenuDifference:
    """Compare two trees. Nodes with the same number are the same item."""
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
