"""Names and URIs of resources, templates and prompts, and the matching of URIs to templates."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.strategies import catalogs, modes, servers
from trayapp.catalog.names import Key
from trayapp.catalog.resources import (
    AmbiguousResourceError,
    ResourceMap,
    expose_prompts,
    match_template,
    resource_base,
    resource_tools,
    safe_prompt,
)
from trayapp.model.config import PrefixMode


@pytest.mark.parametrize(
    ("name", "base"),
    [
        pytest.param("README", "readme", id="resource-01"),
        pytest.param("My File.txt", "my_file_txt", id="resource-02"),
        pytest.param("  hello world  ", "hello_world", id="resource-03"),
        pytest.param("123data", "resource_123data", id="resource-04"),
        pytest.param("__x__", "x", id="resource-05"),
        pytest.param("", "resource", id="resource-06"),
        pytest.param("日本語", "resource", id="resource-07"),
        pytest.param("a--b..c", "a_b_c", id="resource-08"),
        pytest.param("file:///tmp/a b.md", "file_tmp_a_b_md", id="resource-10"),
        pytest.param("get_simulators", "get_simulators", id="resource-12"),
    ],
)
def test_a_resources_base_is_lower_case_words(name: str, base: str) -> None:
    assert resource_base(name) == base


@pytest.mark.parametrize(
    ("server", "name", "tool"),
    [
        pytest.param("demo", "Guide Book", "demo_read_guide_book", id="resource-14"),
        pytest.param("xcodebuild", "simulators", "xcodebuild_read_simulators", id="resource-16"),
    ],
)
def test_a_resource_is_a_tool_that_reads_it(server: str, name: str, tool: str) -> None:
    found = resource_tools([(server, name, "u://g")], "server")
    assert found.exposed.by_key == {(server, "u://g"): tool}
    assert found.find(tool) == (server, "u://g")


def test_a_resource_without_a_name_is_called_by_its_uri() -> None:
    found = resource_tools([("s", "", "file:///tmp/a b.md")], "server")
    assert list(found.exposed.by_name) == ["s_read_file_tmp_a_b_md"]


def test_resource_16_the_old_name_is_an_alias_unless_a_real_tool_owns_it() -> None:
    resources = [("xcodebuild", "simulators", "u://s")]
    alias = "xcodebuild_get_simulators"
    assert resource_tools(resources, "server").find(alias) == ("xcodebuild", "u://s")
    assert resource_tools(resources, "server", {alias}).find(alias) is None


def test_resource_19_resources_of_one_name_have_distinct_names_in_any_order() -> None:
    resources = [("s", "日本語", "u://1"), ("s", "中文", "u://2"), ("s", "README", "u://3")]
    found = resource_tools(resources, "server").exposed
    assert found.by_key["s", "u://3"] == "s_read_readme"
    assert len(found.by_name) == 3
    assert all(re.fullmatch("s_read_re.*", name) for name in found.by_name)
    assert resource_tools(reversed(resources), "server").exposed.by_key == found.by_key
    assert resource_tools(resources, "server").find("s_get_resource") is None


def test_a_real_tool_keeps_its_name_from_a_resource() -> None:
    found = resource_tools([("s", "a", "u://a")], "server", {"s_read_a"})
    assert "s_read_a" not in found.exposed.by_name
    assert found.find("s_read_a") is None


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        pytest.param("weekly.report", "weekly_report", id="prompt-01"),
        pytest.param("with spaces & symbols", "with_spaces_symbols", id="prompt-02"),
        pytest.param("123-start", "_123-start", id="prompt-03"),
        pytest.param("---", "prompt", id="prompt-04"),
        ("", "prompt"),
        ("日本", "prompt"),
        ("plain_name-1", "plain_name-1"),
    ],
)
def test_a_prompts_name_is_made_safe(name: str, safe: str) -> None:
    assert safe_prompt(name) == safe


@pytest.mark.parametrize(
    ("server", "prompt", "mode", "name"),
    [
        pytest.param("agent-board", "plan", "none", "mcp__agent-board__plan", id="prompt-07"),
        ("agent-board", "plan", "server", "agent-board_plan"),
        ("agent-mcp", "weekly.report", "short", "agent_weekly_report"),
        ("agent", "plan", "mcp", "mcp__agent_plan"),
    ],
)
def test_prompts_are_named_like_tools(server: str, prompt: str, mode: PrefixMode, name: str) -> None:
    assert expose_prompts([(server, prompt)], mode).by_name == {name: (server, prompt)}


@given(catalogs, modes)
def test_exposed_prompts_are_valid_and_lead_back(entries: list[Key], mode: PrefixMode) -> None:
    exposed = expose_prompts(entries, mode)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in exposed.by_name)
    assert set(exposed.by_name.values()) == set(entries)
    assert expose_prompts(reversed(entries), mode).by_key == exposed.by_key


def test_resources_keep_their_uris() -> None:
    uris = ResourceMap([("a", "file:///x"), ("b", "file:///y")], [("a", "file:///{path}")])
    assert uris.exposed("a", "file:///x") == "file:///x"
    assert uris.exposed_template("a", "file:///{path}") == "file:///{path}"
    assert uris.find("file:///y") == ("b", "file:///y")


@pytest.mark.requirement("resource-clash")
@pytest.mark.parametrize("order", [1, -1])
def test_collide_04_a_uri_of_two_servers_is_prefixed_for_both(order: int) -> None:
    uris = ResourceMap([("a", "file:///x"), ("b c", "file:///x"), ("a", "file:///only")][::order])
    assert uris.exposed("a", "file:///x") == "multi-mcp://a/file:///x"
    assert uris.exposed("b c", "file:///x") == "multi-mcp://b%20c/file:///x"
    assert uris.exposed("a", "file:///only") == "file:///only"
    assert uris.find("multi-mcp://a/file:///x") == ("a", "file:///x")
    assert uris.find("multi-mcp://b%20c/file:///x") == ("b c", "file:///x")
    with pytest.raises(AmbiguousResourceError) as caught:
        uris.find("file:///x")
    assert caught.value.hint == "Specify one of: multi-mcp://a/file:///x, multi-mcp://b%20c/file:///x"
    assert uris.find("file:///x", {"b c"}.__contains__) == ("b c", "file:///x")
    assert uris.find("multi-mcp://a/file:///x", {"b c"}.__contains__) is None


def test_the_prefix_is_understood_without_a_clash_too() -> None:
    uris = ResourceMap([("a", "file:///x")])
    assert uris.find("multi-mcp://a/file:///new?q=1#f") == ("a", "file:///new?q=1#f")
    assert uris.find("multi-mcp://nobody/file:///x") is None


def test_uris_of_our_own_scheme_are_never_a_servers() -> None:
    uris = ResourceMap([("a", "multi-mcp://index")], [("a", "multi-mcp://{x}")])
    assert uris.find("multi-mcp://index") is None
    assert uris.exposed("a", "multi-mcp://index") == "multi-mcp://a/multi-mcp://index"
    assert uris.find("multi-mcp://a/multi-mcp://index") == ("a", "multi-mcp://index")


def test_a_uri_made_from_a_template_leads_to_its_server() -> None:
    uris = ResourceMap(
        [("a", "db://users/1")], [("a", "db://{table}/{id}"), ("b", "db://logs/{id}"), ("c", "log://{d}")]
    )
    assert uris.find("log://today") == ("c", "log://today")
    assert uris.find("db://logs/7") == ("b", "db://logs/7")  # matches the more literal template
    assert uris.find("db://users/7") == ("a", "db://users/7")
    assert uris.find("other://x") is None
    assert uris.exposed("c", "log://today") == "log://today"
    assert uris.exposed("c", "db://users/7") == "multi-mcp://c/db://users/7"


def test_templates_that_differ_only_in_their_variables_clash() -> None:
    uris = ResourceMap([], [("a", "file:///{path}"), ("b", "file:///{name}")])
    assert uris.exposed_template("a", "file:///{path}") == "multi-mcp://a/file:///{path}"
    assert uris.find("multi-mcp://b/file:///etc") == ("b", "file:///etc")
    assert uris.exposed("a", "file:///etc") == "multi-mcp://a/file:///etc"
    with pytest.raises(AmbiguousResourceError):
        uris.find("file:///etc")


_uris = st.one_of(
    st.text(max_size=8), st.sampled_from(["file:///x", "multi-mcp://index", "u://{a}", "multi-mcp://a/b"])
)


@given(st.lists(st.tuples(servers, _uris.filter(bool)), max_size=12))
def test_each_exposed_uri_is_one_servers_and_leads_back(keys: list[Key]) -> None:
    uris, turned = ResourceMap(keys), ResourceMap(reversed(keys))
    exposed = {key: uris.exposed(*key) for key in keys}
    assert len(set(exposed.values())) == len(exposed)
    for key, uri in exposed.items():
        assert uris.find(uri) == key
        assert turned.exposed(*key) == uri


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("file:///{path}", "file:///a", True),
        ("file:///{path}", "file:///a/b", False),
        ("file:///{+path}", "file:///a/b", True),
        ("file:///{path}", "file:///", True),  # an undefined variable expands to nothing
        ("u://{a}/{b}", "u://1/2", True),
        ("u://{a}/{b}", "u://1", False),
        ("u://{a}-{b}", "u://1-2-3", True),
        ("u://{a}.txt", "u://a.txt.txt", True),
        ("u://{a}.txt", "u://a.md", False),
        ("u://x{?q,n}", "u://x", True),
        ("u://x{?q,n}", "u://x?q=1&n=2", True),
        ("u://x{?q,n}", "u://xq=1", False),
        ("u://x?a=1{&q}", "u://x?a=1&q=2", True),
        ("u://x{/seg*}", "u://x/a/b", True),
        ("u://x{.ext}", "u://x.md", True),
        ("u://x{;p}", "u://x;p=1", True),
        ("u://x{#frag}", "u://x#top/1", True),
        ("u://x{#frag}", "u://xtop", False),
        ("u://x", "u://x", True),
        ("u://x", "u://xy", False),
        ("u://名/{a}", "u://名/前", True),
        ("u://{unclosed", "u://{unclosed", True),
    ],
)
def test_a_template_fits_what_it_may_expand_to(template: str, uri: str, fits: bool) -> None:
    assert match_template(uri, [template]) == ([template] if fits else [])


def test_of_several_the_most_literal_fits_best() -> None:
    assert match_template("u://a/b", ["u://{x}/{y}", "u://a/{y}", "u://{x}/b", "v://{x}"]) == ["u://a/{y}", "u://{x}/b"]


def test_no_template_is_slow() -> None:
    assert match_template("u://" + "-" * 8000, ["u://" + "{a}-" * 30 + "x"]) == []
    assert match_template("u://" + "-" * 9000, ["u://{a}"]) == []
    assert match_template("a" * 100, ["{a}" * 100]) == []
