"""Tests of the menu as numbered nodes: each item keeps its number, and panels get every change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.tray.linux.dbusmenu import (
    REMEMBERED,
    ROOT,
    EntryNumbers,
    MenuDifference,
    MenuEntry,
    MenuNode,
    difference,
    entries,
    numbered,
    walk,
)
from trayapp.tray.painter import KeyedItem, Menu, MenuItem


def entry(key: str, label: str = "", *children: MenuEntry, **more: Any) -> MenuEntry:
    properties = {"label": ("s", label or key), "enabled": ("b", True), **more}
    if children:
        properties["children-display"] = ("s", "submenu")
    return MenuEntry(key, properties, f"item {key}", children)


# -- strategies --------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["git", "linear", "files", "quit", ""])  # few, so that equal and returning keys are common
LABELS = st.sampled_from(["one", "two", "three"])


def menus(depth: int = 2) -> st.SearchStrategy[tuple[MenuEntry, ...]]:
    below: st.SearchStrategy[tuple[MenuEntry, ...]] = menus(depth - 1) if depth else st.just(())
    made = st.builds(
        lambda key, label, children, checked: entry(
            key, label, *children, **({} if checked is None else {"toggle-state": ("i", checked)})
        ),
        KEYS,
        LABELS,
        below,
        st.sampled_from([None, 0, 1]),
    )
    return st.lists(made, max_size=4).map(tuple)


def paths(node: MenuNode, menu: tuple[MenuEntry, ...], above: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], int]:
    """Return the number of each item by its path: one (key, occurrence, kind) for each level, from the top."""
    found: dict[tuple[Any, ...], int] = {}
    seen: dict[str, int] = {}
    for child, item in zip(node.children, menu, strict=True):
        seen[item.key] = seen.get(item.key, 0) + 1
        path = (*above, (item.key, seen[item.key], item.kind))
        found[path] = child.number
        found |= paths(child, item.children, path)
    return found


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-menu-steady")
@given(st.lists(menus(), min_size=1, max_size=8))
def test_a_number_means_the_same_thing_in_every_menu_that_follows(shown: list[tuple[MenuEntry, ...]]) -> None:
    numbers = EntryNumbers()
    meaning: dict[int, tuple[Any, ...]] = {}
    for menu in shown:
        root = numbered(menu, numbers)
        for path, number in paths(root, menu).items():
            assert meaning.setdefault(number, path) == path
    assert len(set(meaning.values())) == len(meaning), "and a thing that came back has the number that it had"


def test_texts_that_hold_counters_do_not_fill_the_memory_and_numbers_are_never_used_twice() -> None:
    numbers, given_out = EntryNumbers(), set()
    for count in range(3 * REMEMBERED):
        root = numbered((entry("quit"), entry(f"{count} calls")), numbers)
        given_out.add(root.children[1].number)
        assert root.children[0].number == 1
    assert len(given_out) == 3 * REMEMBERED
    assert len(numbers._known) <= REMEMBERED + 2


# -- differences -------------------------------------------------------------------------------------------------------


def told(old: MenuNode, new: MenuNode, change: MenuDifference) -> MenuNode:
    """Return the menu of a KDE panel that showed `old`, applied the change, and read the changed parents again.

    KDE reads one level at a time. It keeps deeper levels that it has read, and reads a new entry when that is opened.
    """
    fresh, lost = dict(change.changed), dict(change.removed)
    known = {node.number: node for node in walk(old)}
    source = {node.number: node for node in walk(new)}

    def after(node: MenuNode) -> MenuNode:
        if node.number not in known:
            return node
        before = known[node.number]
        kept = {name: value for name, value in before.properties.items() if name not in lost.get(node.number, [])}
        children = source[node.number].children if node.number in change.parents else before.children
        return MenuNode(node.number, {**kept, **fresh.get(node.number, {})}, tuple(map(after, children)))

    return after(old)


@given(menus(), menus())
def test_what_panels_are_told_is_enough_to_show_the_new_menu(
    before: tuple[MenuEntry, ...], after: tuple[MenuEntry, ...]
) -> None:
    numbers = EntryNumbers()
    old = numbered(before, numbers)
    new = numbered(after, numbers)
    assert told(old, new, difference(old, new)) == new


@given(menus())
def test_nothing_is_told_of_a_menu_that_is_the_same(menu: tuple[MenuEntry, ...]) -> None:
    numbers = EntryNumbers()
    assert difference(numbered(menu, numbers), numbered(menu, numbers)) == ([], [], [])


def test_a_change_inside_a_submenu_leaves_the_rest_alone() -> None:
    numbers = EntryNumbers()
    old = numbered((entry("quit"), entry("servers", "", entry("git"))), numbers)
    new = numbered((entry("quit"), entry("servers", "", entry("git"), entry("linear"))), numbers)
    assert difference(old, new) == ([2], [], [])


@pytest.mark.requirement("tray-submenus")
def test_each_submenu_that_changed_is_told_not_only_what_is_around_them() -> None:
    numbers = EntryNumbers()
    servers = (
        entry("git", "", entry("sign in")),
        entry("linear", "", entry("sign in")),
        entry("time", "", entry("log")),
    )
    old = numbered((entry("servers", "", *servers),), numbers)
    servers = (entry("git", "", entry("out")), entry("linear", "", entry("out")), entry("time", "", entry("log")))
    new = numbered((entry("servers", "", *servers),), numbers)
    git, linear, _ = new.children[0].children
    assert difference(old, new) == ([git.number, linear.number], [], [])


@pytest.mark.requirement("tray-submenus")
@pytest.mark.parametrize("more", [{"toggle-type": ("s", "checkmark")}, {"children-display": ("s", "submenu")}])
def test_an_entry_that_becomes_another_kind_of_entry_is_a_new_one_for_the_panel(more: dict[str, Any]) -> None:
    numbers = EntryNumbers()
    plain = numbered((entry("servers"),), numbers)
    other = numbered((entry("servers", **more),), numbers)
    assert plain.children[0].number != other.children[0].number
    assert difference(plain, other).parents == [ROOT]


def test_another_text_is_no_change_of_layout() -> None:
    numbers = EntryNumbers()
    old = numbered((entry("git", "starting"),), numbers)
    new = numbered((entry("git", "ready"),), numbers)
    assert difference(old, new) == ([], [(1, {"label": ("s", "ready")})], [])


# -- reading a pystray menu --------------------------------------------------------------------------------------------


def test_items_say_what_dbusmenu_has_words_for() -> None:
    menu = Menu(
        MenuItem("my_server", None),
        Menu.SEPARATOR,
        MenuItem("on", None, checked=lambda item: True),
        MenuItem("choice", None, checked=lambda item: False, radio=True),
        MenuItem("off", None, enabled=False),
        MenuItem("more", Menu(KeyedItem("deep", "text", None))),
        MenuItem("hidden", None, visible=False),
    )
    read = entries(menu, Menu.SEPARATOR)
    enabled = ("b", True)
    assert [item.properties for item in read] == [
        {"label": ("s", "my__server"), "enabled": enabled},
        {"type": ("s", "separator")},
        {"label": ("s", "on"), "enabled": enabled, "toggle-type": ("s", "checkmark"), "toggle-state": ("i", 1)},
        {"label": ("s", "choice"), "enabled": enabled, "toggle-type": ("s", "radio"), "toggle-state": ("i", 0)},
        {"label": ("s", "off"), "enabled": ("b", False)},
        {"label": ("s", "more"), "enabled": enabled, "children-display": ("s", "submenu")},
    ]
    assert [item.key for item in read[-1].children] == ["deep"]
    assert [node.clickable for node in numbered(read, EntryNumbers()).children] == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
