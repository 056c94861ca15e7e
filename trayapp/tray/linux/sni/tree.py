"""A menu as a tree of numbered nodes, and what changed from one to the next: values and pure functions.

A number belongs to what an item means (its key, or its text, below its parent's), never to its place: what a panel
shows may be older than what we know, and a click on it must do what was shown, or nothing. It also belongs to the kind
of item: libdbusmenu-qt (KDE, LXQt) builds a submenu or a check mark only when it first sees a number.
Never here: D-Bus messages, what a click does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

ROOT = 0
REMEMBERED = 1000  # numbers of items that are gone: a menu whose texts hold counters makes new ones all day

KIND = ("type", "children-display", "toggle-type")

Properties = dict[str, tuple[str, Any]]  # name -> D-Bus signature and value
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a menu item says, read once; `item` is the pystray item that a click calls."""

    key: str
    properties: Properties
    item: Any
    children: tuple[Entry, ...] = ()

    @property
    def kind(self) -> str:
        """Return what panels build for it once and for all: a submenu, a check mark, a separator or a plain entry."""
        return "/".join(str(self.properties[name][1]) for name in KIND if name in self.properties)

    @property
    def clickable(self) -> bool:
        """Whether a click does something: no separator, not disabled, no way to a submenu."""
        return self.properties.get("enabled") == ("b", True) and "children-display" not in self.properties


@dataclass(frozen=True, slots=True)
class Node:
    """An entry with its number."""

    number: int
    properties: Properties
    children: tuple[Node, ...] = ()


class Numbers:
    """Gives each key its number, the same each time, and none ever to two keys."""

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
        """Drop the oldest keys that none of the `shown` latest questions was about, beyond REMEMBERED."""
        while len(self._known) > shown + REMEMBERED:
            self._known.popitem(last=False)


def entries(menu: Iterable[Any], separator: Any) -> tuple[Entry, ...]:
    """What the items of a pystray menu say now; this calls whatever computes their texts."""
    return tuple(_entry(item, separator) for item in menu)


def _entry(item: Any, separator: Any) -> Entry:
    if item is separator:
        return Entry("", {"type": ("s", "separator")}, item)
    text, checked, submenu = item.text, item.checked, item.submenu
    properties: Properties = {"label": ("s", text.replace("_", "__")), "enabled": ("b", bool(item.enabled))}
    if checked is not None:
        properties["toggle-type"] = ("s", "radio" if item.radio else "checkmark")
        properties["toggle-state"] = ("i", int(bool(checked)))
    if submenu:
        properties["children-display"] = ("s", "submenu")
    return Entry(getattr(item, "key", text), properties, item, entries(submenu or (), separator))


def numbered(menu: tuple[Entry, ...], numbers: Numbers) -> tuple[Node, dict[int, Entry]]:
    """The tree below ROOT, and the entries by their numbers."""
    shown: dict[int, Entry] = {}
    root = Node(ROOT, {"children-display": ("s", "submenu")}, _nodes(menu, (), numbers, shown))
    numbers.forget(len(shown))
    return root, shown


def _nodes(menu: tuple[Entry, ...], parent: Key, numbers: Numbers, shown: dict[int, Entry]) -> tuple[Node, ...]:
    seen: dict[str, int] = {}
    nodes = []
    for entry in menu:
        seen[entry.key] = seen.get(entry.key, 0) + 1  # separators, and twins that nobody gave a key
        key = (*parent, entry.key, seen[entry.key], entry.kind)
        number = numbers[key]
        shown[number] = entry
        nodes.append(Node(number, entry.properties, _nodes(entry.children, key, numbers, shown)))
    return tuple(nodes)


def walk(node: Node, depth: int = -1) -> Iterator[Node]:
    """Yield the node and those below it; `depth`: as many levels of them are looked into, -1 without end."""
    if depth:
        yield node
        for child in node.children:
            yield from walk(child, depth - 1)


def without_kind(properties: Properties) -> Properties:
    """Return those properties that can change while an item keeps its number."""
    return {name: value for name, value in properties.items() if name not in KIND}


class Difference(NamedTuple):
    """What panels have to be told. `parents`: nodes of both trees whose own children came, went or moved, outermost
    first. `changed` and `removed`: properties of nodes that are in both trees, by number.
    """

    parents: list[int]
    changed: list[tuple[int, Properties]]
    removed: list[tuple[int, list[str]]]


def difference(old: Node, new: Node) -> Difference:
    """Compare two trees; two nodes of one number are taken for the same item."""
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
    return Difference(parents, changed, removed)
