"""Names, switches, clashes and instructions that clients see. The bytes do not depend on which server answers first."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.strategies import modes
from tests.gateway.world import offer, served, server
from trayapp.catalog.names import NAME_LENGTH
from trayapp.gateway.control.catalog import tool_rows
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import INDEX, INSTRUCTIONS_EACH, Choice, Exposure
from trayapp.gateway.exposure.instructions import INSTRUCTIONS_ALL, instructions
from trayapp.gateway.exposure.list_results import ListResults
from trayapp.gateway.exposure.served_tools import ServedOffer
from trayapp.inspection.subjects import is_tool
from trayapp.model.config import Config, PrefixMode, ServerConfig, Settings, ToolSwitch
from trayapp.model.errors import ToolNotFoundError
from trayapp.model.offer import Offer
from trayapp.model.status import ToolCounts

KINDS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "templates": "resourceTemplates"}
OFF, GONE = ToolSwitch(enabled=False), ToolSwitch(enabled=False, stale=True)


def exposure(offers: Mapping[str, Offer], *servers: ServerConfig, mode: PrefixMode = "server") -> Exposure:
    entries = {name: server(name) for name in offers} | {entry.name: entry for entry in servers}
    return Exposure(Catalog(Config(Settings(tool_prefix=mode), entries), served(offers)), Choice("tools"))


def listed(seen: Exposure, kind: str = "tools") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(ListResults(seen).result(kind))[KINDS[kind]]
    return [item for item in items if item != INDEX]


def names(seen: Exposure, kind: str = "tools", member: str = "name") -> list[str]:
    return [item[member] for item in listed(seen, kind)]


@pytest.mark.requirement("name-form")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("server", ["fs-mcp_read", "gh_make"]),
        ("short", ["fs_read", "gh_make"]),
        ("none", ["read", "make"]),
        ("mcp", ["mcp__fs-mcp_read", "mcp__gh_make"]),
    ],
)
def test_tools_are_listed_under_their_exposed_names(mode: PrefixMode, expected: list[str]) -> None:
    assert names(exposure({"fs-mcp": offer("read"), "gh": offer("make")}, mode=mode)) == expected


@pytest.mark.requirement("call-no-field-lost")
def test_an_item_keeps_every_field_but_the_one_that_names_it() -> None:
    extra = {
        "description": "d",
        "x-unknown": {"deep": [1, None]},
        "_meta": {"a": 1},
        "annotations": {"readOnlyHint": True},
    }
    facts = Offer(
        tools=({"name": "t", "inputSchema": {"type": "object", "x": 1}, **extra},),
        prompts=({"name": "p", "arguments": [{"name": "a", "x": 1}], **extra},),
        resources=({"uri": "x://r", "name": "r", "size": 1, **extra},),
        templates=({"uriTemplate": "x://{t}", "name": "t", **extra},),
    )
    seen = exposure({"a": facts})
    assert listed(seen) == [{**facts.tools[0], "name": "a_t"}]
    assert listed(seen, "prompts") == [{**facts.prompts[0], "name": "a_p"}]
    assert listed(seen, "resources") == list(facts.resources)
    assert listed(seen, "templates") == list(facts.templates)


@pytest.mark.requirement("call-disabled-refused", "merge-no-tools-key")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["a_x", "a_y"]),
        ({"tools": {}}, ["a_x", "a_y"]),
        ({"tools": {"x": OFF}}, ["a_y"]),
        ({"tools": {"x": GONE}}, ["a_y"]),
        ({"tools": {"x": ToolSwitch()}, "new_tools": "disabled"}, ["a_x"]),
        ({"include_tools": ("x",)}, ["a_x"]),
        ({"include_tools": ("a_*",), "exclude_tools": ("*y",)}, ["a_x"]),
        ({"disabled": True}, []),
    ],
)
def test_switches_and_patterns_hide_tools_and_what_is_hidden_cannot_be_called(
    more: dict[str, Any], expected: list[str]
) -> None:
    seen = exposure({"a": offer("x", "y")}, server("a", **more))
    assert names(seen) == expected
    for name in ("a_x", "a_y"):
        if name in expected:
            assert seen.find(name) == ("a", name[2:])
        else:
            with pytest.raises(ToolNotFoundError, match="multi-mcp enable"):
                seen.find(name)


@pytest.mark.parametrize("more", [{"include_tools": ("y",)}, {"exclude_tools": ("x",), "tools": {"x": OFF}}])
def test_of_a_tool_that_a_pattern_leaves_out_no_switch_is_named_as_the_remedy(more: dict[str, Any]) -> None:
    with pytest.raises(ToolNotFoundError, match="include_tools or exclude_tools of a exclude it"):
        exposure({"a": offer("x", "y")}, server("a", **more)).find("a_x")


@pytest.mark.requirement("name-stable")
@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"exclude_tools": ("my_server_do_thing",)}, {"do-thing"}),
        ({"include_tools": ("my_server_do_thing",)}, {"my_server_do_thing"}),
        ({"exclude_tools": ("do-thing",)}, {"my_server_do_thing"}),
        ({"exclude_tools": ("my_server_do_*",)}, set()),
        ({"exclude_tools": ("mcp__my-server__do-thing",)}, {"my_server_do_thing"}),
    ],
)
def test_a_pattern_that_is_a_tools_own_name_means_that_one_alone(more: dict[str, Any], names: set[str]) -> None:
    facts = {"my-server": offer("do-thing", "my_server_do_thing")}
    assert {tool for _, tool in exposure(facts, server("my-server", **more)).tools} == names


def test_a_switch_renames_no_other_tool() -> None:
    offers = {"a": offer("b_c"), "a_b": offer("c")}
    before = exposure(offers).catalog.names.by_key
    after = exposure(offers, server("a", disabled=True)).catalog.names.by_key
    assert before == after


def test_rows_name_every_tool_with_what_becomes_of_it() -> None:
    tools = {"on": ToolSwitch(), "off": OFF, "gone": GONE, "gone_on": ToolSwitch(stale=True)}
    facts = Offer(tools=({"name": "on", "description": "Does it"}, {"name": "off", "description": 5}, {"name": "new"}))
    rows = tool_rows(exposure({"a": facts}, server("a", tools=tools)).catalog)
    base = {"server": "a", "stale": False, "withheld": None, "description": ""}
    assert rows == [
        {**base, "name": "on", "exposed_name": "a_on", "enabled": True, "description": "Does it"},
        {**base, "name": "off", "exposed_name": "a_off", "enabled": False},
        {**base, "name": "new", "exposed_name": "a_new", "enabled": True},
        {**base, "name": "gone", "exposed_name": None, "enabled": False, "stale": True},
        {**base, "name": "gone_on", "exposed_name": None, "enabled": True, "stale": True},
    ]


@pytest.mark.requirement("schema-repaired")
def test_a_tool_that_no_client_could_take_is_withheld_alone_with_the_reason() -> None:
    tools = ({"name": "odd", "inputSchema": {"type": "string"}}, {"name": "good", "inputSchema": {"type": "object"}})
    seen = exposure({"a": Offer(tools=tools)})
    assert names(seen) == ["a_good"]
    odd, good = tool_rows(seen.catalog)
    assert (odd["enabled"], "does not describe an object" in odd["withheld"], good["withheld"]) == (False, True, None)
    assert seen.catalog.counts["a"] == ToolCounts(total=2, enabled=1, withheld=1)
    with pytest.raises(ToolNotFoundError, match="withheld"):
        seen.find("a_odd")


def test_rows_of_one_server_hold_nothing_of_another() -> None:
    seen = exposure({"a": offer("x"), "b": offer("y")}, server("b", tools={"z": GONE}))
    assert [(row["server"], row["name"]) for row in tool_rows(seen.catalog, "b")] == [("b", "y"), ("b", "z")]
    assert len(tool_rows(seen.catalog)) == 3


def test_counts_add_up() -> None:
    tools = {"x": ToolSwitch(), "y": OFF, "z": GONE}
    seen = exposure({"a": offer("x", "y", "w")}, server("a", tools=tools), server("b", tools={"q": GONE}), server("c"))
    assert seen.catalog.counts["a"] == ToolCounts(total=4, enabled=2, stale=1)
    assert seen.catalog.counts["b"] == ToolCounts(total=1, enabled=0, stale=1)
    assert seen.catalog.counts["c"] == ToolCounts()


def test_a_clash_is_a_problem_of_the_servers_concerned_and_not_fatal() -> None:
    seen = exposure({"a": offer("x"), "b": offer("x"), "c": offer("y")}, mode="none")
    assert sorted((problem.server, problem.fatal) for problem in seen.catalog.problems) == [("a", False), ("b", False)]
    assert all("x" in problem.message for problem in seen.catalog.problems)
    assert len(set(names(seen))) == 3


@pytest.mark.requirement("resource-clash")
def test_resources_keep_their_uris_and_those_that_clash_get_a_prefix() -> None:
    both = ({"uri": "file:///both"},)
    seen = exposure(
        {
            "a": Offer(resources=({"uri": "file:///a"}, *both), templates=({"uriTemplate": "x://{p}"},)),
            "b b": Offer(resources=both, templates=({"uriTemplate": "x://{q}"}, {"uriTemplate": "y://{q}"})),
        }
    )
    assert names(seen, "resources", "uri") == [
        "file:///a",
        "multi-mcp://a/file:///both",
        "multi-mcp://b%20b/file:///both",
    ]
    assert names(seen, "templates", "uriTemplate") == ["multi-mcp://a/x://{p}", "multi-mcp://b%20b/x://{q}", "y://{q}"]
    assert seen.find_template("multi-mcp://b%20b/x://{q}") == ("b b", "x://{q}")
    assert seen.find_template("x://{q}") is None


def test_prompts_that_clash_are_all_there_under_different_names() -> None:
    seen = exposure({"a": Offer(prompts=({"name": "b_c"},)), "a_b": Offer(prompts=({"name": "c"}, {"name": "d e"}))})
    found = names(seen, "prompts")
    assert len(set(found)) == 3
    assert {seen.find_prompt(name) for name in found} == {("a", "b_c"), ("a_b", "c"), ("a_b", "d e")}


@pytest.mark.parametrize("mode", ["server", "short", "none", "mcp"])
def test_a_prompt_is_found_under_every_spelling_that_leads_to_it_alone(mode: Any) -> None:
    offers = {"a": Offer(prompts=({"name": "plan"}, {"name": "both"})), "b": Offer(prompts=({"name": "both"},))}
    seen = exposure(offers, mode=mode)
    assert {seen.find_prompt(name) for name in ("plan", "a_plan", "mcp__a__plan", "a/plan")} == {("a", "plan")}
    assert (seen.find_prompt("both"), seen.find_prompt("b_both"), seen.find_prompt("nope")) == (
        None,
        ("b", "both"),
        None,
    )
    assert seen.no_prompt("both") == "both means more than one prompt: a/both, b/both"
    assert {seen.find_prompt("a/both"), seen.find_prompt("b/both")} == {("a", "both"), ("b", "both")}
    assert seen.no_prompt("a_plam").startswith("No prompt is named a_plam. Did you mean ")
    assert seen.no_prompt("zzzzzz") == "No prompt is named zzzzzz"


def test_a_disabled_server_offers_no_prompt_no_resource_and_no_instructions() -> None:
    facts = offer(
        prompts=({"name": "p"},),
        resources=({"uri": "x://1"},),
        templates=({"uriTemplate": "x://{a}"},),
        instructions="Hi",
    )
    seen = exposure({"a": facts}, server("a", disabled=True))
    assert [listed(seen, kind) for kind in KINDS] == [[]] * 4
    assert (instructions(seen), seen.capabilities) == (None, {})


@pytest.mark.parametrize("name", [None, 5, [], {}, True])
def test_an_item_without_a_name_is_passed_over_and_its_siblings_stay(name: Any) -> None:
    facts = Offer(
        tools=({"name": name}, {}, {"name": "t"}, {"name": "t", "second": 1}),
        prompts=({"name": name}, {"name": "p"}),
        resources=({"uri": name}, {"uri": "x://1"}),
        templates=({"uriTemplate": name}, {"uriTemplate": "x://{a}"}),
    )
    seen = exposure({"a": facts})
    assert listed(seen) == [{"name": "a_t", "inputSchema": {"type": "object", "properties": {}}}]
    assert [len(listed(seen, kind)) for kind in KINDS] == [1] * 4
    assert seen.catalog.counts["a"].total == 1


def test_instructions_stand_under_their_server_and_are_bounded() -> None:
    facts = {f"s{n}": offer(instructions="ü" * 5_000 if n else "  short \n") for n in range(12)}
    text = instructions(exposure({**facts, "none": offer(), "blank": offer(instructions=" \n")}))
    assert text is not None
    assert text.startswith("# s0\nshort\n\n# s1\nü")
    assert len(text) <= INSTRUCTIONS_ALL
    assert max(len(part) for part in text.split("\n")) <= INSTRUCTIONS_EACH
    assert "# none" not in text
    assert "# blank" not in text
    assert instructions(exposure({})) is None


@pytest.mark.requirement("name-stable")
def test_the_bytes_are_the_same_whatever_the_order_in_which_the_servers_answered() -> None:
    facts = {
        "b": offer("x", "y", prompts=({"name": "p"},), resources=({"uri": "u"},), instructions="B"),
        "a": offer("b_x", prompts=({"name": "p"},), resources=({"uri": "u"},), instructions="A"),
        "a_b": offer("x", templates=({"uriTemplate": "u{v}"},)),
    }
    config = Config(Settings(), {name: server(name) for name in facts})
    results = set()
    for order in itertools.permutations(facts):
        came = {name: facts[name] for name in order}
        seen = Exposure(Catalog(config, served(came)))
        results.add((*(ListResults(seen).result(kind) for kind in KINDS), instructions(seen)))
    assert len(results) == 1


tool_names = st.text().filter(is_tool)  # no reserved names, which Hypothesis finds in our source code


@pytest.mark.requirement("name-form", "name-stable")
@given(st.dictionaries(st.text(min_size=1), st.lists(tool_names, max_size=4), max_size=4), modes)
def test_whatever_servers_and_tools_are_called_each_listed_name_is_safe_unique_and_leads_back(
    catalog: dict[str, list[str]], mode: PrefixMode
) -> None:
    seen = exposure({name: offer(*tools) for name, tools in catalog.items()}, mode=mode)
    found = names(seen)
    assert len(set(found)) == len(found) == sum(len(set(tools)) for tools in catalog.values())
    assert all(0 < len(name) <= NAME_LENGTH and name.isascii() for name in found)
    assert {seen.find(name) for name in found} == {(name, t) for name, tools in catalog.items() for t in tools}


def test_tools_without_a_usable_name_or_listed_twice_are_left_out() -> None:
    items = tuple({"name": name, "at": at} for at, name in enumerate(("a", None, 3, "a", "b")))
    tools = ServedOffer(Offer(tools=items)).tools
    assert [(name, tool.item["at"]) for name, tool in tools.items()] == [("a", 0), ("b", 4)]


@pytest.mark.requirement("schema-output")
def test_only_clients_of_the_newer_era_are_listed_output_schemas_of_any_value() -> None:
    outputs: list[Any] = [{"type": "array"}, {"type": ["object", "null"]}, {"type": "object"}]
    tools = [{"name": f"t{n}", "inputSchema": {"type": "object"}, "outputSchema": one} for n, one in enumerate(outputs)]
    seen = exposure({"a": Offer(tools=tuple(tools))})
    newer = json.loads(ListResults(seen, any_output=True).result("tools"))["tools"]
    assert [item["outputSchema"] for item in newer] == outputs
    assert [item.get("outputSchema") for item in listed(seen)] == [None, None, outputs[2]]
    assert seen.has_other_outputs
    assert not exposure({"a": Offer(tools=tuple(tools[2:]))}).has_other_outputs
