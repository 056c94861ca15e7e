"""Tool classes from annotations and names, compared with real tools that two judges labeled."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trayapp.catalog.tool_class import ToolClassification, class_of_name, classify
from trayapp.gateway.asks import asks_first

DATA = Path(__file__).parent / "data"
GUIDE = " ".join((Path(__file__).parents[2] / "packaging/guide/safety.md").read_text(encoding="utf-8").split())
LABELLED: list[dict[str, Any]] = json.loads((DATA / "labelled_tools.json").read_text(encoding="utf-8"))
# Names and servers from LiveMCPBench (Apache License 2.0), whose data has no annotations.
BENCH: dict[str, list[str]] = json.loads((DATA / "livemcpbench_names.json").read_text(encoding="utf-8"))
TEST_SERVERS: dict[str, dict[str, Any]] = json.loads((DATA / "test_server_tools.json").read_text(encoding="utf-8"))


@pytest.mark.requirement("ask-classes")
@pytest.mark.parametrize(
    ("name", "annotations", "expected"),
    [
        ("x", {"readOnlyHint": True}, ToolClassification("read", "annotations")),
        ("x", {"readOnlyHint": False}, ToolClassification("destructive", "annotations")),
        ("x", {"readOnlyHint": False, "destructiveHint": False}, ToolClassification("write", "annotations")),
        ("x", {"destructiveHint": False}, ToolClassification("write", "annotations")),
        ("x", {"destructiveHint": True}, ToolClassification("destructive", "annotations")),
        ("get_x", {"destructiveHint": True}, ToolClassification("destructive", "annotations")),
        ("get_x", {"readOnlyHint": True, "destructiveHint": True}, ToolClassification("destructive", "annotations")),
        ("open_nodes", {"readOnlyHint": True}, ToolClassification("read", "annotations")),
        ("delete_x", {"readOnlyHint": True}, ToolClassification("destructive", "name")),
        ("delete_x", {"destructiveHint": False}, ToolClassification("destructive", "name")),
        ("send_x", {"readOnlyHint": True}, ToolClassification("write", "name")),
        ("get_x", {"title": "Get"}, ToolClassification("read", "name")),
        ("execute_sql", {"readOnlyHint": True}, ToolClassification("read", "annotations")),
        ("execute_sql", {"title": "SQL"}, ToolClassification("destructive", "name")),
        ("get_x", {"readOnlyHint": "yes"}, ToolClassification("read", "name")),
        ("get_x", None, ToolClassification("read", "name")),
        ("x", None, ToolClassification("write", "name")),
        ("", {}, ToolClassification("write", "name")),
    ],
)
def test_annotations_decide_with_their_defaults_and_never_soften_a_clear_name(
    name: str, annotations: Any, expected: ToolClassification
) -> None:
    assert classify({"name": name, "annotations": annotations}) == expected


@pytest.mark.requirement("ask-classes")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list_issues", "read"),
        ("getUserById", "read"),
        ("package_search", "read"),
        ("zia_list_rules", "read"),
        ("list_deleted_users", "read"),
        ("get_delete_log", "read"),
        ("create-issue", "write"),
        ("search_and_replace", "write"),
        ("get_or_create", "write"),
        ("deleteRepo", "destructive"),
        ("DELETE_REPO", "destructive"),
        ("user_list_delete", "destructive"),
        ("cacheClear", "destructive"),
        ("find_and_remove", "destructive"),
        ("batch_delete", "destructive"),
        ("execute_command", "destructive"),
        ("run_sql", "destructive"),
        ("bash", "destructive"),
        ("edit_file", "destructive"),
        ("get_edit_history", "read"),
        ("browser_evaluate", "destructive"),
        ("page-eval", "destructive"),
        ("evaluate_answer", None),
        ("force_push", "destructive"),
        ("git_force_push", "destructive"),
        ("git_push_force", "destructive"),
        ("SalesForceQuery", None),
        ("get_run_command_status", "read"),
        ("run_code_review", None),
        ("shell_run", "destructive"),
        ("write_file", "destructive"),
        ("write_query", "destructive"),
        ("write_note", "write"),
        ("pods_exec", "destructive"),
        ("empty_bucket", "destructive"),
        ("find_empty", "read"),
        ("flushdb", "destructive"),
        ("deleted_items_list", "read"),
        ("can_delete_item", "read"),
        ("list_trash", "read"),
        ("list_delete", "destructive"),
        ("list_reset", "destructive"),
        ("get_last_edit", "read"),
        ("list_create", "write"),
        ("find_replace", "write"),
        ("cancel_order", "destructive"),
        ("sequentialthinking", None),
        ("recent_activity", None),
        ("открыть", None),
        ("", None),
    ],
)
def test_the_verb_of_a_name_tells_its_class(name: str, expected: str | None) -> None:
    assert class_of_name(name) == expected


@pytest.mark.requirement("ask-classes")
@pytest.mark.parametrize(
    ("name", "properties", "expected"),
    [
        ("manage_index", {"action": {"enum": ["create", "drop"]}}, "destructive"),
        ("todo", {"operation": {"anyOf": [{"enum": ["add", "remove"]}, {"type": "null"}]}}, "destructive"),
        ("manage_index", {"action": {"enum": ["create", "list"]}}, "write"),
        ("manage_index", {"kind": {"enum": ["drop", "keep"]}}, "write"),
        ("get_audit_log", {"action": {"enum": ["create", "delete"]}}, "read"),
        ("manage_index", {"action": {"enum": 5, "anyOf": 5}, "op": None}, "write"),
        ("manage_index", [], "write"),
    ],
)
def test_a_tool_whose_argument_can_choose_to_destroy_is_destructive(name: str, properties: Any, expected: str) -> None:
    item = {"name": name, "inputSchema": {"type": "object", "properties": properties}}
    assert classify(item).tool_class == expected
    if expected == "destructive":
        assert classify({**item, "annotations": {"destructiveHint": False}}).tool_class == "write"


@pytest.mark.requirement("ask-classes")
def test_of_labelled_tools_all_destructive_ones_ask_and_no_reader_does() -> None:
    """The labels are those of two judges who read only names, descriptions and schemas. Neither saw our code or the
    other's labels.

    Their rubric:

    - read: only looks, computes or returns.
    - write: changes something that lasts, but what was there is kept or easy to restore.
    - destructive: deletes, discards or overwrites what cannot be recovered, ends things, or runs anything.

    65 tools are from LiveMCPBench, and 35 from the servers of these tests. Nothing is promised where the judges
    disagree.
    """
    assert len({(tool["server"], tool["name"]) for tool in LABELLED}) == 100
    agreed = {tool["name"]: tool for tool in LABELLED if tool["judge_a"] == tool["judge_b"]}
    assert len(agreed) == 98
    assert {tool["name"] for tool in LABELLED} - agreed.keys() == {"delete_slide", "save_presentation"}
    asking = {name for name, tool in agreed.items() if asks_first("auto", classify(tool).tool_class, listed=False)}
    destructive = {name for name, tool in agreed.items() if tool["judge_a"] == "destructive"}
    readers = {name for name, tool in agreed.items() if tool["judge_a"] == "read"}
    assert destructive <= asking
    assert asking & readers == set()
    assert asking - destructive == {"git_reset"}  # it only unstages, but other tools of that name discard changes


@pytest.mark.requirement("ask-auto")
def test_auto_asks_for_few_of_many_real_tools() -> None:
    bench = Counter(classify({"name": name}).tool_class for names in BENCH.values() for name in names)
    assert bench == {"read": 271, "write": 232, "destructive": 24}
    assert f"{bench['destructive']} of {bench.total()} tools of 70 public servers ask" in GUIDE
    real = [
        (name, annotations, classify({"name": name, "annotations": annotations}))
        for tools in TEST_SERVERS.values()
        for name, annotations in tools.items()
    ]
    asking = {name for name, _, found in real if found.tool_class == "destructive"}
    assert len(real) == 54
    assert asking == {
        "write_file",
        "edit_file",
        "move_file",
        "delete_entities",
        "delete_observations",
        "delete_relations",
        "git_reset",
    }
    assert {
        name for name, annotations, found in real if annotations["readOnlyHint"] and found.tool_class != "read"
    } == set()
