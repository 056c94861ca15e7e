"""Lookup of a tool by name: precedence, spellings, ambiguity and disabled tools."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from tests.catalog.strategies import catalogs, modes
from trayapp.catalog.lookup import HiddenReason, Lookup, server_of, switched_off
from trayapp.catalog.names import Key, expose_names, spelled
from trayapp.model.config import PREFIX_MODES, PrefixMode
from trayapp.model.errors import AmbiguousToolError, ToolNotFoundError

SERVERS: list[tuple[str, str, list[str], PrefixMode, list[str]]] = [
    ("resolve-01", "searxng_searxng_web_search", ["searxng"], "server", ["searxng"]),
    ("resolve-03", "github_create_issue", ["searxng", "github"], "server", ["github"]),
    ("resolve-04", "searxng-extra_deep_search", ["searxng", "searxng-extra"], "server", ["searxng-extra", "searxng"]),
    ("resolve-05", "filesystem_read_file", ["filesystem-mcp"], "short", ["filesystem-mcp"]),
    ("resolve-06", "mcp_query", ["-mcp"], "short", ["-mcp"]),
    ("resolve-08", "foo-mcp_query", ["foo", "foo-mcp"], "server", ["foo-mcp", "foo"]),
    ("resolve-11", "searxng_web_search", ["searxng"], "none", []),
    ("resolve-13", "web_search", ["searxng"], "server", []),
    ("resolve-15", "notsearxng_search", ["searxng"], "server", []),
    ("resolve-16", "searxngweb_search", ["searxng"], "server", []),
    ("resolve-18", "a-20-b_run", ["a b", "a-20-b"], "server", ["a-20-b", "a b"]),
    ("call-13", "searxng_web_search", ["searxng"], "server", ["searxng"]),
    ("call-14", "a-b_x", ["a", "a-b"], "server", ["a-b", "a"]),
    ("nothing after the prefix", "github_", ["github"], "server", []),
    ("mcp mode", "mcp__my-server_run", ["my-server"], "mcp", ["my-server"]),
    ("name-25 with nothing known", "mcp__fs__read", ["fs"], "none", ["fs"]),
]


@pytest.mark.requirement("name-resolved")
@pytest.mark.parametrize(
    ("name", "servers", "mode", "found"), [row[1:] for row in SERVERS], ids=[row[0] for row in SERVERS]
)
def test_a_prefix_names_the_servers_to_ask(name: str, servers: list[str], mode: PrefixMode, found: list[str]) -> None:
    assert server_of(name, servers, mode) == found
    assert server_of(name, reversed(servers), mode) == found


def lookup(*tools: Key, mode: PrefixMode = "server", hidden: tuple[Key, ...] = ()) -> Lookup:
    return Lookup(expose_names(tools, mode), {key: switched_off(*key) for key in hidden})


SIM = ("xcodebuild", "boot_sim")
LIBRARY = ("context7", "resolve-library-id")


@pytest.mark.requirement("name-resolved")
@pytest.mark.parametrize("mode", PREFIX_MODES)
@pytest.mark.parametrize(
    ("asked", "tool"),
    [
        pytest.param("xcodebuild_boot_sim", SIM, id="call-05"),
        pytest.param("xcodebuild-boot-sim", SIM, id="describe-22"),
        pytest.param("context7_resolve_library_id", LIBRARY, id="resolve-20"),
        ("boot_sim", SIM),
        ("boot-sim", SIM),
        ("mcp__xcodebuild_boot_sim", SIM),
        ("mcp__xcodebuild__boot_sim", SIM),
        ("xcodebuild/boot_sim", SIM),
        ("XCODEBUILD_BOOT_SIM", SIM),
        ("fs_read", ("fs-mcp", "read")),
        ("fs-mcp_read", ("fs-mcp", "read")),
        ("mcp__fs-mcp__read", ("fs-mcp", "read")),
        ("codegraph_explore", ("codegraph", "codegraph_explore")),
        ("codegraph_codegraph_explore", ("codegraph", "codegraph_explore")),
        ("mcp__codegraph__codegraph_explore", ("codegraph", "codegraph_explore")),
        ("my server_a.b", ("my server", "a.b")),
        ("my_20_server_a_b", ("my server", "a.b")),
        ("a.b", ("my server", "a.b")),
        ("s_" + "a" * 80, ("s", "a" * 80)),
    ],
)
def test_every_spelling_is_understood_in_every_mode(asked: str, tool: Key, mode: PrefixMode) -> None:
    tools = [
        SIM,
        LIBRARY,
        ("fs-mcp", "read"),
        ("codegraph", "codegraph_explore"),
        ("my server", "a.b"),
        ("s", "a" * 80),
    ]
    assert lookup(*tools, mode=mode).find(asked) == tool


def test_a_hashed_name_of_another_mode_is_understood() -> None:
    tools = [("a", "get"), ("b", "get")]
    for key, name in expose_names(tools, "none").by_key.items():
        assert lookup(*tools).find(name) == key


@pytest.mark.parametrize(
    ("tools", "asked", "server"),
    [
        pytest.param([("a", "get"), ("b", "get")], "get", None, id="resolve-21"),
        pytest.param([("x", "y"), ("x", "x_y")], "x_y", "x", id="resolve-22"),
        pytest.param([("x", "y"), ("x", "x_y")], "x_y", None, id="resolve-22 without its server"),
        ([("a", "b_c"), ("a_b", "c")], "a_b_c", None),
        ([("a", "x-y"), ("b", "x_y")], "X_Y", None),
        ([("s", "a-b"), ("a", "b")], "a-b", None),  # one tool's own name, and a spelling of the other's exposed name
    ],
)
@pytest.mark.parametrize("mode", ["server", "short"])
def test_a_name_of_two_tools_is_refused(tools: list[Key], asked: str, server: str | None, mode: PrefixMode) -> None:
    with pytest.raises(AmbiguousToolError) as caught:
        lookup(*tools, mode=mode).find(asked, server)
    assert caught.value.candidates == sorted("/".join(key) for key in tools)
    assert "server" in str(caught.value)


def test_collide_03_the_bare_name_of_a_clash_is_refused_and_its_server_settles_it() -> None:
    tools = lookup(("a", "get"), ("b", "get"), mode="none")
    with pytest.raises(AmbiguousToolError):
        tools.find("get")
    assert tools.find("get", "b") == ("b", "get")
    assert tools.find("a/get") == ("a", "get")


@pytest.mark.parametrize(
    ("tools", "asked", "found"),
    [
        ([("x", "y"), ("z", "x_y")], "x_y", ("x", "y")),  # exact exposed name before exact original name
        ([("a", "a-b"), ("a", "b.")], "a-b", ("a", "a-b")),  # exact exposed name before any other spelling
        ([("a", "b"), ("z", "a-b")], "a_b", ("a", "b")),  # exact exposed name before a spelling of the original
        ([("s", "a_b"), ("s", "a-b")], "a-b", ("s", "a-b")),
        ([("s", "a_b"), ("s", "a-b")], "s_a-b", ("s", "a-b")),
        ([("s", "A"), ("s", "a")], "A", ("s", "A")),
    ],
)
def test_resolve_23_the_more_literal_reading_wins(tools: list[Key], asked: str, found: Key) -> None:
    assert lookup(*tools).find(asked) == found


def test_a_given_server_is_the_only_one_looked_at() -> None:
    tools = lookup(("a", "get"), ("b", "get"), ("b", "put"))
    assert tools.find("get", "a") == ("a", "get")
    assert tools.find("a_get", "a") == ("a", "get")
    with pytest.raises(ToolNotFoundError) as caught:
        tools.find("put", "a")
    assert "b_put" not in caught.value.suggestions


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        pytest.param(SIM, "xcodebuild_boot", id="describe-23"),
        pytest.param(SIM, "xcodebuild_boot_simm", id="describe-24"),
        pytest.param(("github", "search_repositories"), "github_serch", id="describe-26"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(known: Key, asked: str) -> None:
    with pytest.raises(ToolNotFoundError) as caught:
        lookup(known, ("github", "create_issue"), ("xcodebuild", "list_sims")).find(asked)
    assert caught.value.suggestions == ["_".join(known)]
    assert asked in str(caught.value)


@pytest.mark.requirement("call-disabled-refused")
@pytest.mark.parametrize("asked", ["a_get", "get", "a-get", "mcp__a__get", "A_GET"])
def test_filter_15_a_tool_that_is_switched_off_is_not_found_and_the_error_says_why(asked: str) -> None:
    with pytest.raises(ToolNotFoundError) as caught:
        lookup(("a", "get"), ("a", "put"), hidden=(("a", "get"),)).find(asked)
    assert caught.value.code == "tool_not_found"
    assert "disabled in servers.yaml" in caught.value.hint
    assert caught.value.title == f"{asked} cannot be called"  # the title does not deny that the tool exists


def test_sec_23_a_tool_that_waits_for_an_approval_says_so() -> None:
    names = expose_names([("a", "get"), ("a", "put")], "server")
    why = HiddenReason("see: multi-mcp approve", "Ask")
    tools = Lookup(names, dict.fromkeys(names.by_key, why), lambda key: key[1] == "get")
    for asked, code in (("a_get", "approval_required"), ("get", "approval_required"), ("a-put", "tool_not_found")):
        with pytest.raises(ToolNotFoundError) as caught:
            tools.find(asked)
        assert (caught.value.code, caught.value.hint) == (code, "see: multi-mcp approve")


def test_a_switched_off_tool_is_never_suggested() -> None:
    with pytest.raises(ToolNotFoundError) as caught:
        lookup(("a", "getter"), ("a", "gets"), hidden=(("a", "getter"),)).find("a_gett")
    assert caught.value.suggestions == ["a_gets"]


def test_a_switched_off_tool_steps_aside_for_another_servers_but_not_for_its_sibling() -> None:
    elsewhere = lookup(("a", "get"), ("b", "get"), mode="none", hidden=(("a", "get"),))
    assert elsewhere.find("get") == ("b", "get")
    sibling = lookup(("x", "y"), ("x", "x_y"), hidden=(("x", "x_y"),))
    with pytest.raises(AmbiguousToolError):
        sibling.find("x_y")


@given(catalogs, modes)
def test_each_listed_name_leads_to_its_tool(entries: list[Key], mode: PrefixMode) -> None:
    exposed = expose_names(entries, mode)
    tools = Lookup(exposed)
    for key, name in exposed.by_key.items():
        assert tools.find(name) == key
        assert tools.find(name, key[0]) == key


@given(catalogs, modes, modes)
def test_any_spelling_leads_to_its_server_or_is_refused(
    entries: list[Key], mode: PrefixMode, other: PrefixMode
) -> None:
    tools = Lookup(expose_names(entries, mode))
    for server, tool in entries:
        name = spelled(server, tool, other)
        with suppress(AmbiguousToolError):
            assert tools.find(name, server)[0] == server


@pytest.mark.requirement("name-resolved")
@given(catalogs, modes, modes)
def test_a_name_of_any_mode_that_could_be_no_other_tool_s_is_understood(
    entries: list[Key], mode: PrefixMode, other: PrefixMode
) -> None:
    tools, theirs = Lookup(expose_names(entries, mode)), expose_names(entries, other).by_key
    spellings = {key: {spelled(*key, each).replace("-", "_").lower() for each in PREFIX_MODES} for key in entries}
    for key, name in theirs.items():
        try:
            found = tools.find(name)
        except AmbiguousToolError:
            continue
        if found != key:  # the name is a more literal match for the found tool
            loose = name.replace("-", "_").lower()
            names = spellings[found] | {found[1].replace("-", "_").lower()}
            assert loose in names | {expose_names(entries, mode).by_key[found].replace("-", "_").lower()}


@pytest.mark.requirement("name-resolved", "name-stable")
@given(catalogs, modes)
def test_names_survive_a_restart_in_another_order_and_other_tools(entries: list[Key], mode: PrefixMode) -> None:
    names = expose_names(entries, mode).by_key
    again = Lookup(expose_names(sorted(entries, reverse=True), mode))
    assert {key: again.find(name) for key, name in names.items()} == {key: key for key in names}
