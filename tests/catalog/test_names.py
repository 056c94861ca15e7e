"""The rules of exposed names: single cases, and properties of any catalog."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.strategies import catalogs, modes
from trayapp.catalog.names import NAME_LENGTH, Key, call_spelling, expose_names
from trayapp.model.config import PrefixMode

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")

ALONE: list[tuple[str, str, str, PrefixMode, str]] = [
    ("name-02", "list_sims", "xcodebuild", "short", "xcodebuild_list_sims"),
    ("name-03", "list_sims", "xcodebuild", "none", "list_sims"),
    ("name-05", "read_file", "filesystem-mcp", "short", "filesystem_read_file"),
    ("name-06", "query", "-mcp", "short", "mcp_query"),
    ("name-07", "query", "mcp", "short", "mcp_query"),
    ("name-08", "x", "Foo-MCP", "short", "Foo_x"),
    ("name-10", "x", "mcp-foo", "short", "mcp-foo_x"),
    ("name-11", "namespace.tool", "demo", "server", "demo_namespace_tool"),
    ("name-12", "web_search", "my server", "server", "my_20_server_web_search"),
    ("name-13", "t", "my-server", "server", "my-server_t"),
    ("name-15", "t", "名前", "server", "_540d__524d__t"),
    ("name-16", "create", "github.com", "server", "github_2e_com_create"),
    ("name-17", "get-repo", "github", "server", "github_get-repo"),
    ("name-19", "codegraph_", "codegraph", "server", "codegraph_codegraph_"),
    ("name-20", "codegraph", "codegraph", "server", "codegraph_codegraph"),
    ("name-22", "run", "my-server", "mcp", "mcp__my-server_run"),
    ("name-23", "a b", "demo", "server", "demo_a_b"),
    ("name-28", "t", "bad__name", "server", "bad__name_t"),
    ("prefix once", "codegraph_explore", "codegraph", "server", "codegraph_explore"),
    ("prefix once, short", "foo_run", "foo-mcp", "short", "foo_run"),
    ("prefix once, mcp", "mcp__s_run", "s", "mcp", "mcp__s_run"),
    ("mcp compares the whole prefix", "s_run", "s", "mcp", "mcp__s_s_run"),
    ("no hyphen before mcp", "x", "foomcp", "short", "foo_x"),
    ("all symbols", "日本", "s", "none", "__"),
    ("no name", "", "s", "none", "tool"),
    ("no name, prefixed", "", "s", "server", "s_"),
]


@pytest.mark.parametrize(("tool", "server", "mode", "name"), [row[1:] for row in ALONE], ids=[row[0] for row in ALONE])
def test_a_tool_alone_is_named_by_the_rule(tool: str, server: str, mode: PrefixMode, name: str) -> None:
    assert expose_names([(server, tool)], mode).by_key == {(server, tool): name}


def test_name_24_a_long_name_is_cut_and_ends_in_a_hash() -> None:
    tool = "a" * 80
    name = expose_names([("s", tool)], "server").by_key["s", tool]
    assert len(name) == NAME_LENGTH
    assert name.startswith("s_aaa")
    assert expose_names([("s", tool + "b")], "server").by_key["s", tool + "b"] != name
    assert not expose_names([("s", tool)], "server").clashes


def test_name_25_the_calling_spelling_has_two_underscores() -> None:
    assert call_spelling("filesystem", "read_file") == "mcp__filesystem__read_file"


@pytest.mark.requirement("name-stable")
def test_the_hash_is_the_same_for_ever() -> None:
    exposed = expose_names([("a", "get"), ("b", "get")], "none")
    assert exposed.by_key == {("a", "get"): "get_qrwyhd", ("b", "get"): "get_kjhmhj"}


def test_collide_01_the_tool_whose_own_name_it_is_keeps_it() -> None:
    exposed = expose_names([("demo", "a.b"), ("demo", "a_b"), ("demo", "c")], "server")
    assert exposed.by_key["demo", "a_b"] == "demo_a_b"
    assert exposed.by_key["demo", "c"] == "demo_c"
    assert re.fullmatch("demo_a_b_[a-z2-7]{6}", exposed.by_key["demo", "a.b"])
    (clash,) = exposed.clashes
    assert (clash.server, clash.tool, clash.exposed) == ("demo", "a.b", exposed.by_key["demo", "a.b"])
    assert "demo/a_b" in clash.reason


@pytest.mark.parametrize(
    ("mode", "first", "second", "name"),
    [
        ("none", ("a", "get"), ("b", "get"), "get"),
        ("server", ("x", "y"), ("x", "x_y"), "x_y"),
        ("server", ("a", "b_c"), ("a_b", "c"), "a_b_c"),
        ("server", ("demo", "a.b"), ("demo", "a b"), "demo_a_b"),
    ],
)
def test_a_name_with_two_equal_claims_belongs_to_nobody(mode: PrefixMode, first: Key, second: Key, name: str) -> None:
    exposed = expose_names([first, second], mode)
    assert name not in exposed.by_name
    assert exposed.shared == {name: tuple(sorted([first, second]))}
    assert [(clash.server, clash.tool) for clash in exposed.clashes] == sorted([first, second])


def test_a_server_named_like_the_escape_of_another_clashes_and_both_stay_reachable() -> None:
    exposed = expose_names([("my server", "t"), ("my_20_server", "t")], "server")
    assert exposed.by_key["my_20_server", "t"] == "my_20_server_t"
    assert len(exposed.by_name) == 2


def test_a_name_that_looks_hashed_makes_the_hash_longer() -> None:
    clashing = [("a", "get"), ("b", "get")]
    hashed = expose_names(clashing, "none").by_key["a", "get"]
    exposed = expose_names([*clashing, ("c", hashed)], "none")
    assert exposed.by_key["c", hashed] == hashed
    assert len(exposed.by_key["a", "get"]) == len(hashed) + 2


@pytest.mark.requirement("name-form")
@given(catalogs, modes)
def test_names_are_valid_and_unique_and_lead_back(entries: list[Key], mode: PrefixMode) -> None:
    exposed = expose_names(entries, mode)
    assert set(exposed.by_key) == set(entries)
    assert all(VALID.fullmatch(name) for name in exposed.by_name)
    assert {exposed.by_name[name]: name for name in exposed.by_key.values()} == exposed.by_key
    assert exposed.by_name.keys().isdisjoint(exposed.shared)


@pytest.mark.requirement("name-stable")
@given(catalogs.flatmap(lambda entries: st.tuples(st.just(entries), st.permutations(entries))), modes)
def test_collide_05_order_does_not_matter(both: tuple[list[Key], list[Key]], mode: PrefixMode) -> None:
    entries, shuffled = both
    first, second = expose_names(entries, mode), expose_names(shuffled + shuffled, mode)
    assert (first.by_key, first.shared, first.clashes) == (second.by_key, second.shared, second.clashes)


@pytest.mark.requirement("name-stable")
@given(catalogs, modes, st.sampled_from(["unrelated", "qqq"]))
def test_a_tool_that_clashes_with_nothing_renames_nothing(entries: list[Key], mode: PrefixMode, tool: str) -> None:
    before = expose_names(entries, mode).by_key
    after = expose_names([*entries, ("zzz", tool)], mode).by_key
    assert {key: after[key] for key in before} == before
