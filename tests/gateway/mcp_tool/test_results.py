"""Answers of servers pass through the one tool with as few changes as possible."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.mcp_tool.results import as_tool_result, fit_reply
from trayapp.gateway.mcp_tool.tool_dependencies import CutResults, ResultFiles
from trayapp.model.errors import MultiMcpError, ToolNotFoundError
from trayapp.wire.jsonio import JsonError
from trayapp.wire.messages import Reply

NEWEST, OLDEST = "2025-11-25", "2024-11-05"
LIMIT = 100_000
NO_FILES = ResultFiles(Path(os.devnull) / "results")  # no file can be created in this folder


def nothing_gone() -> MultiMcpError | None:
    return None


def finish(protocol: str = NEWEST, limit: int = LIMIT, *, reads: bool = False) -> Finishing:
    return partial(fit_reply, protocol, limit, CutResults(NO_FILES), nothing_gone, reads=reads)


def large(result: dict[str, Any]) -> Reply:
    """Return an answer that has not been parsed yet."""
    return Reply(b'{"jsonrpc":"2.0","id":1,"result":%b}' % json.dumps(result).encode(), 22, 23)


def text(size: int) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "x" * size}]}


@pytest.mark.requirement("one-tool-call")
@pytest.mark.parametrize(("size", "limit"), [(80_000, LIMIT), (500_000, 0)])
def test_a_large_answer_within_the_limit_is_not_even_read(size: int, limit: int) -> None:
    reply = large(text(size))
    assert finish(limit=limit)(reply) is reply
    assert reply.is_large


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (finish(), text(200_000)),
        (finish(), text(0) | {"content": [{"type": "text", "text": "a\n" * 3_000}]}),
        (finish(OLDEST), {"content": [{"type": "resource_link", "uri": "u://1", "x": "y" * 70_000}]}),
        (finish(limit=0, reads=True), {"contents": [{"uri": "u://1", "text": "x" * 70_000}]}),
    ],
)
def test_an_answer_that_is_too_long_or_not_understood_is_made_anew(made: Finishing, result: dict[str, Any]) -> None:
    reply = large(result)
    assert made(reply) is not reply


def test_an_answer_that_must_be_read_and_is_no_json_says_so() -> None:
    with pytest.raises(JsonError):
        finish()(Reply(b'{"jsonrpc":"2.0","id":1,"result":%b' % (b"x" * 200_000), 22, 23))


@pytest.mark.parametrize(
    "answer", [{"result": {"content": [], "isError": True}}, {"error": {"code": -32602, "message": "?"}}]
)
def test_a_refusal_of_a_tool_that_is_gone_says_that_it_is_gone(answer: dict[str, Any]) -> None:
    made = partial(fit_reply, NEWEST, LIMIT, CutResults(NO_FILES), lambda: ToolNotFoundError("t"), reads=False)
    reply = made(Reply(b"", message={"jsonrpc": "2.0", "id": 1, **answer}))
    assert reply.message["result"]["_meta"] == {"multi-mcp/error": "tool_not_found"}


@pytest.mark.parametrize("code", [-32000, -32603, 5])
def test_other_errors_of_servers_pass(code: int) -> None:
    made = partial(fit_reply, NEWEST, LIMIT, CutResults(NO_FILES), lambda: ToolNotFoundError("t"), reads=False)
    reply = Reply(b"", message={"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "own words"}})
    assert made(reply) is reply


@pytest.mark.requirement("resource-as-tool")
@pytest.mark.parametrize("contents", [None, "x", []])
def test_a_read_without_contents_is_an_empty_result(contents: Any) -> None:
    assert as_tool_result({"contents": contents, "_meta": {"a": 1}}) == {"content": [], "_meta": {"a": 1}}
