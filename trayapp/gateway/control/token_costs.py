"""Estimate what each exposure costs a model's context in tokens, and when the one tool is cheaper."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Any

from trayapp.catalog.describe import compact
from trayapp.catalog.search.index import LIMIT
from trayapp.catalog.tokens import tokens
from trayapp.gateway.exposure.exposure import Exposure, first_paragraph
from trayapp.gateway.exposure.list_results import ListResults
from trayapp.gateway.mcp_tool.texts import HIT_LONGEST


def costs(lists: ListResults) -> dict[str, Any]:
    """Return the costs of a session's lists, in tokens:

    - `mode`: the exposure in use
    - `tools`: {"count", "tokens"} of the whole list
    - `search`: {"tokens", "direct", "answer_tokens"} of the one tool, its direct tools, and a search with LIMIT hits
    - `break_even`: {"tools", "searches"}, or None if there is nothing to compare
    - `servers`: [{"name", "tokens", "tools": [{"name", "tokens"}]}], the largest first

    `break_even["tools"]`: the number of tools from which the one tool and a search cost less than the list.
    `break_even["searches"]`: the number of searches in one session that cost as much as the whole list.
    """
    seen = lists.seen
    each = {key: tokens(tool.listed(seen.name_of(key)).decode("utf-8", "replace")) for key, tool in seen.tools.items()}
    listed = sum(each.values())
    one = tokens(lists.one_tool_result.decode("utf-8", "replace"))
    hits = [_hit_tokens(seen, key) for key in seen.tools]
    answer = round(LIMIT * sum(hits) / len(hits)) if hits else 0
    by_server: dict[str, list[tuple[str, int]]] = {}
    for (server, name), cost in each.items():
        by_server.setdefault(server, []).append((name, cost))
    return {
        "mode": seen.mode,
        "tools": {"count": len(each), "tokens": listed},
        "search": {"tokens": one, "direct": len(seen.direct_keys), "answer_tokens": answer},
        "break_even": _break_even(len(each), listed, one, answer),
        "servers": _largest_first(
            {
                "name": server,
                "tokens": sum(cost for _, cost in tools),
                "tools": _largest_first({"name": name, "tokens": cost} for name, cost in tools),
            }
            for server, tools in by_server.items()
        ),
    }


def unused(found: dict[str, Any], since: float, called: Container[tuple[str, str]]) -> dict[str, Any]:
    """Return the tools among these costs that nobody called, the largest first.

    `since`: Unix time from which on `called` is known; 0 means that no call was kept, and then nothing can be said.
    """
    rows = [
        {"server": server["name"], **tool}
        for server in found["servers"]
        for tool in server["tools"]
        if since and (server["name"], tool["name"]) not in called
    ]
    return {"since": since, "tools": _largest_first(rows), "tokens": sum(row["tokens"] for row in rows)}


def _largest_first(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row["tokens"], row["name"]))


def _hit_tokens(seen: Exposure, key: tuple[str, str]) -> int:
    item = seen.tools[key].item
    line = first_paragraph(item.get("description"), HIT_LONGEST)
    return tokens(f"{seen.name_of(key)}{compact(item)}\n  {line}\n")


def _break_even(count: int, listed: int, one: int, answer: int) -> dict[str, int] | None:
    if not count or not listed:
        return None
    each = listed / count
    left = max(0, listed - one)
    return {"tools": math.ceil((one + answer) / each), "searches": left // answer if answer else 0}
