"""Tests of the bundled sample server, run as a process over its stdin and stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROGRAM, environment
from trayapp.service.command_line import sample_command


def answers(*messages: Any, command: list[str] | None = None) -> list[dict[str, Any]]:
    """Send the messages to the server, close its stdin and return its answers. Strings are sent unchanged."""
    lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    done = subprocess.run(
        command or sample_command(),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def request(method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    (answer,) = answers(request("tools/call", name=name, arguments=arguments))
    result: dict[str, Any] = answer["result"]
    return result


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ],
)
def test_initialize_agrees_to_a_known_revision_and_else_offers_the_newest(asked: str, agreed: str) -> None:
    (answer,) = answers(request("initialize", protocolVersion=asked, capabilities={}))
    assert answer["result"]["protocolVersion"] == agreed
    assert answer["result"]["serverInfo"]["name"] == "multi-mcp-sample"


def test_discover_answers_in_the_form_of_the_newer_era() -> None:
    (answer,) = answers(request("server/discover"))
    result = answer["result"]
    assert result["resultType"] == "complete"
    assert result["supportedVersions"][0] == "2026-07-28"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"]
    assert "tools" in result["capabilities"]


def test_tools_have_schemas_descriptions_and_annotations() -> None:
    (answer,) = answers(request("tools/list"))
    tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
    assert tools.keys() == {"echo", "add", "clock"}
    assert all(tool["inputSchema"]["type"] == "object" and tool["description"] for tool in tools.values())
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())


@pytest.mark.parametrize(
    ("a", "b", "total"), [(1, 2, "3"), (1.5, 2, "3.5"), (-1, 1, "0"), (2**70, 1, "1180591620717411303425")]
)
def test_add_adds(a: float, b: float, total: str) -> None:
    assert called("add", a=a, b=b) == {
        "resultType": "complete",
        "content": [{"type": "text", "text": total}],
        "isError": False,
    }


def test_echo_gives_any_text_back() -> None:
    assert called("echo", text='"ü\n漢 \ud83d')["content"][0]["text"] == '"ü\n漢 \ud83d'


def test_clock_tells_a_time() -> None:
    assert called("clock")["content"][0]["text"][:2] == "20"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add", {"a": 1}),
        ("add", {"a": True, "b": 1}),
        ("add", {"a": 10**400, "b": 0.5}),
        ("echo", {}),
        ("echo", {"text": 5}),
    ],
)
def test_wrong_arguments_are_an_answer_for_the_model(name: str, arguments: dict[str, Any]) -> None:
    result = called(name, **arguments)
    assert result["isError"]
    assert result["content"][0]["text"]


def test_unknown_methods_and_tools_are_errors_and_notifications_are_ignored() -> None:
    found = answers(
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request("nix", "a"),
        request("tools/call", 2, name="nix"),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        request("ping", 3),
    )
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in found] == [
        ("a", -32601),
        (2, -32602),
        (3, None),
    ]
    assert found[-1]["result"] == {}


def test_junk_is_an_error_and_the_server_lives() -> None:
    found = answers("{junk", "[1]", "", "[" * 100_000, request("ping", 7))
    assert [answer["id"] for answer in found] == [None, None, None, 7]


def test_the_hidden_verb_is_the_same_server(home: Path) -> None:
    (answer,) = answers(request("ping"), command=[*PROGRAM, "sample-server"])
    assert answer["result"] == {}
    assert environment(home)["MULTI_MCP_HOME"]


def test_it_imports_nothing_but_the_standard_library() -> None:
    assert sys.executable == sample_command()[0]
    assert sample_command()[1:3] == ["-I", "-S"]
