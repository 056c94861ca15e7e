"""Patterns and switches: which tools of a server pass."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.strategies import tools as tool_names
from trayapp.catalog.filters import passes, switch_of
from trayapp.model.config import ServerConfig, ToolSwitch

PATTERNS: list[tuple[str, str, str, str, bool]] = [
    ("filter-01", "get_screenshot", "figma", "get_screenshot", True),
    ("filter-02", "get_screenshot", "figma", "figma_get_screenshot", True),
    ("filter-04", "get_screenshot", "figma", "GET_*", False),
    ("filter-05", "get_screenshot", "figma", "get_?creenshot", True),
    ("filter-06", "get_screenshot", "figma", "screenshot", False),
    ("filter-07", "resolve-library-id", "context7", "resolve_library_id", True),
    ("filter-11", "a.b", "figma", "a.b", True),
    ("filter-12", "a.b", "figma", "figma_a_b", True),
    ("short spelling", "get", "figma-mcp", "figma_get", True),
    ("mcp spelling", "get", "figma", "mcp__figma_get", True),
    ("calling spelling", "get", "figma", "mcp__figma__get", True),
    ("whole server", "get", "figma", "figma_*", True),
    ("hyphens fold both ways", "a_b", "my-server", "my_server-a-b", True),
    ("a class is text", "get", "figma", "[g]et", False),
    ("brackets are themselves", "[g]et", "figma", "[g]et", True),
    ("a dot is itself", "axb", "figma", "a.b", False),
    ("several stars", "get_big_file", "figma", "g*_*_f*e", True),
    ("stars may be empty", "get", "figma", "*g**e*t*", True),
    ("the end counts", "get_file_x", "figma", "get_*_file", False),
    ("a later fit at the end", "a_b_a_b", "figma", "a*b", True),
    ("a line break is a character", "a\nb", "figma", "a?b", True),
    ("nothing", "get", "figma", "", False),
]


@pytest.mark.parametrize(
    ("tool", "server", "pattern", "excluded"), [row[1:] for row in PATTERNS], ids=[row[0] for row in PATTERNS]
)
def test_a_pattern_matches_whole_names(tool: str, server: str, pattern: str, excluded: bool) -> None:
    assert passes(server, tool, (), [pattern]) is not excluded
    assert passes(server, tool, [pattern], ()) is excluded


def test_filter_10_no_patterns_exclude_nothing() -> None:
    assert passes("figma", "get_screenshot", [], [])


@pytest.mark.parametrize(
    ("tools", "include", "exclude", "visible"),
    [
        pytest.param(["a", "b", "c"], ["a", "b"], ["b"], ["a"], id="filter-14"),
        pytest.param(["add", "multiply"], ["*"], ["add"], ["multiply"], id="filter-18"),
    ],
)
def test_include_comes_first_then_exclude(
    tools: list[str], include: list[str], exclude: list[str], visible: list[str]
) -> None:
    assert [tool for tool in tools if passes("s", tool, include, exclude)] == visible


@given(tool_names, st.text(alphabet="ab*?_-.", max_size=12))
def test_a_glob_agrees_with_the_plain_definition(tool: str, glob: str) -> None:
    def fits(pattern: str, name: str) -> bool:
        reached = {0}
        for char in pattern:
            if char == "*":
                reached = set(range(min(reached, default=len(name) + 1), len(name) + 1))
            else:
                reached = {i + 1 for i in reached if i < len(name) and char in ("?", name[i])}
        return len(name) in reached

    own = fits(glob.replace("-", "_"), tool.replace("-", "_"))
    assert not own or not passes("server-that-no-pattern-names", tool, (), [glob])


def test_a_pattern_of_many_stars_is_answered() -> None:
    assert passes("s", "a" * 5000, (), ["*a" * 200 + "*b"])


def server(tools: dict[str, ToolSwitch] | None, new_tools: Literal["enabled", "disabled"] = "enabled") -> ServerConfig:
    return ServerConfig("s", command="x", tools=tools, new_tools=new_tools)


def visible(config: ServerConfig, *names: str) -> list[str]:
    return [name for name in names if switch_of(config, name, names) == "on"]


@pytest.mark.requirement("merge-no-tools-key")
def test_filter_16_without_a_tools_key_all_pass_in_the_servers_order() -> None:
    assert visible(server(None), "b", "a") == ["b", "a"]
    assert visible(server(None, "disabled"), "b", "a") == ["b", "a"]


def test_disabled_tools_are_hidden() -> None:
    config = server({"off": ToolSwitch(False), "on": ToolSwitch()})
    assert visible(config, "off", "on", "new") == ["on", "new"]
    assert switch_of(config, "off") == "off"


@pytest.mark.requirement("lists-current")
def test_a_tool_that_is_listed_again_is_as_switched_before_the_file_is_written() -> None:
    switches = {"back": ToolSwitch(stale=True), "off": ToolSwitch(False, stale=True)}
    assert visible(server(switches), "back", "off") == ["back"]


def test_a_tool_that_the_switches_do_not_name_is_what_new_tools_says() -> None:
    assert visible(server({"a": ToolSwitch()}, "disabled"), "a", "b") == ["a"]
    assert visible(server({}, "disabled"), "a") == []


def test_a_switch_cannot_bring_back_what_a_pattern_excludes() -> None:
    config = ServerConfig("s", command="x", tools={"a": ToolSwitch()}, exclude_tools=("a",))
    assert visible(config, "a", "b") == ["b"]
