"""Tests of how a refresh changes the switches of a server's tools and the order of its lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.catalog.filters import ToolsChange, merge_tools, tools_change
from trayapp.catalog.variants import in_known_order
from trayapp.model.config import ToolSwitch
from trayapp.model.offer import Item, Offer

ON, OFF = ToolSwitch(), ToolSwitch(enabled=False)
ON_STALE, OFF_STALE = ToolSwitch(stale=True), ToolSwitch(enabled=False, stale=True)
Switches = dict[str, ToolSwitch]

CASES: list[tuple[str, Switches | None, list[str], Switches]] = [
    ("merge-01", {}, ["a"], {"a": ON}),
    ("merge-02", {"a": OFF}, ["a"], {"a": OFF}),
    ("merge-03", {"a": ON}, ["b"], {"a": ON_STALE, "b": ON}),
    ("merge-09", {"delete": OFF_STALE}, ["delete"], {"delete": OFF}),
    ("merge-10", {"old": OFF_STALE}, [], {"old": OFF_STALE}),
    ("back and on", {"a": ON_STALE}, ["a"], {"a": ON}),
    ("first discovery", None, ["b", "a"], {"b": ON, "a": ON}),
    ("listed twice", {}, ["a", "a"], {"a": ON}),
]


@pytest.mark.requirement("merge-kept", "merge-stale")
@pytest.mark.parametrize(("before", "found", "after"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_refresh_keeps_what_the_user_said(before: Switches | None, found: list[str], after: Switches) -> None:
    assert merge_tools(before, found) == after


def test_known_tools_keep_their_order_and_new_ones_follow_in_the_servers() -> None:
    assert list(merge_tools({"z": ON, "a": OFF}, ["m", "a", "b"])) == ["z", "a", "m", "b"]


def test_new_tools_start_as_the_server_says_but_those_of_the_first_discovery_pass() -> None:
    assert merge_tools({"a": ON}, ["a", "b"], new_enabled=False) == {"a": ON, "b": OFF}
    assert merge_tools(None, ["a"], new_enabled=False) == {"a": ON}


def test_the_change_is_told_once() -> None:
    before = {"kept": ON, "lost": OFF, "lost before": ON_STALE, "found again": OFF_STALE}
    found = ["new", "found again", "kept"]
    assert tools_change(before, found) == ToolsChange(("new",), ("lost",), ("found again",))
    assert tools_change(merge_tools(before, found), found) == ToolsChange()


_names = st.text(alphabet="abcd", min_size=1, max_size=2)
_switches = st.none() | st.dictionaries(_names, st.builds(ToolSwitch, st.booleans(), st.booleans()))


@given(_switches, st.lists(_names), st.booleans())
def test_merging_twice_is_merging_once(before: Switches | None, found: list[str], new_enabled: bool) -> None:
    once = merge_tools(before, found, new_enabled)
    assert list(merge_tools(once, found, new_enabled).items()) == list(once.items())


@given(_switches, st.lists(st.lists(_names), max_size=5))
def test_no_row_of_refreshes_switches_a_known_tool_or_forgets_it(
    before: Switches | None, lists: list[list[str]]
) -> None:
    after = before
    for found in lists:
        after = merge_tools(after, found)
    for name, switch in (before or {}).items():
        assert (after or {})[name].enabled == switch.enabled


def named(*names: str, member: str = "name") -> tuple[Item, ...]:
    return tuple({member: name, "at": place} for place, name in enumerate(names))


def names_of(items: tuple[Item, ...]) -> list[str]:
    return [item["name"] for item in items]


def test_a_server_that_lists_its_tools_in_another_order_each_time_changes_no_list() -> None:
    known, found = Offer(tools=named("b", "a", "c"), prompts=named("q", "p")), Offer(tools=named("c", "b", "a"))
    ordered = in_known_order(known, found)
    assert names_of(ordered.tools) == ["b", "a", "c"]
    assert ordered.tools[0] == {"name": "b", "at": 1}
    assert ordered.prompts == ()


def test_resources_and_templates_keep_their_order_too() -> None:
    one = Offer(resources=named("u", "v", member="uri"), templates=named("s", "t", member="uriTemplate"))
    two = Offer(resources=one.resources[::-1], templates=one.templates[::-1])
    assert in_known_order(one, two) == one


@pytest.mark.parametrize("found", [["a", "b"], ["c", "b", "a"], ["a"], ["b", "b", "a"], []])
def test_a_list_with_more_or_less_in_it_or_in_the_known_order_is_as_it_came(found: list[str]) -> None:
    offer = Offer(tools=named(*found))
    assert in_known_order(Offer(tools=named("a", "b")), offer) is offer


def test_items_without_a_name_are_left_where_they_are() -> None:
    odd = Offer(tools=({"name": "b"}, {"title": "none"}, {"name": "a"}))
    assert in_known_order(Offer(tools=odd.tools[::-1]), odd) is odd


def test_a_refresh_keeps_what_the_user_set_beside_the_switch() -> None:
    merged = merge_tools({"a": ToolSwitch(ask="all")}, [])
    assert merged == {"a": ToolSwitch(stale=True, ask="all")}
