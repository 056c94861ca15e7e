"""`multi-mcp status --tokens`: the tokens of a model's context that each way to expose the tools costs.

Never here: the estimate (the gateway makes it).
"""

from __future__ import annotations

import time
from typing import Any

from trayapp.cli.options import ask
from trayapp.cli.output import print_json, say
from trayapp.cli.text import ago, count, one_line
from trayapp.wire.control import COSTS

SERVERS_SHOWN = 5
UNUSED_SHOWN = 20  # the whole list: --json, or the panel
WAYS = {"tools": "every tool is listed", "search": "the one tool is listed"}


def show_costs(as_json: bool) -> None:
    """Ask the gateway for the costs and print them."""
    found = ask(COSTS)
    if as_json:
        print_json(found)
    else:
        say(*lines(found))


def lines(found: dict[str, Any]) -> list[str]:
    """Return the costs of both ways, their break-even, the most expensive servers, and unused tools."""
    tools, search = found["tools"], found["search"]
    direct = f", {search['direct']} direct among them" if search["direct"] else ""
    said = [
        f"expose: tools   {tokens(tools['tokens'])} for {count(tools['count'], 'tool')}",
        f"expose: search  {tokens(search['tokens'])}{direct}, and about {search['answer_tokens']} for each search",
        f"Now: {WAYS[found['mode']]} to a client that does not ask for something else (o200k tokens, estimated)",
    ]
    even = found["break_even"]
    if even is not None:
        said.append(f"Break-even: {count(even['tools'], 'tool')} like these cost what the one tool and a search cost; ")
        said[-1] += f"{count(even['searches'], 'search').replace('searchs', 'searches')} cost what the whole list costs"
    most = [f"{one_line(one['name'])} {tokens(one['tokens'])}" for one in found["servers"][:SERVERS_SHOWN]]
    return [*said, *([f"Most: {', '.join(most)}"] if most else []), *_unused_lines(found.get("unused"))]


def _unused_lines(unused: dict[str, Any] | None) -> list[str]:
    """Return the tools not called for a month, or since the history began; nothing without a history."""
    if unused is None or not unused["tools"]:  # None: an older gateway
        return []
    tools = unused["tools"]
    span = ago(time.time() - unused["since"])
    named = [one_line(f"{one['server']}/{one['name']}") for one in tools[:UNUSED_SHOWN]]
    more = [f"{len(tools) - UNUSED_SHOWN} more"] if len(tools) > UNUSED_SHOWN else []
    return [
        f"Not called for {span} (the history): {count(len(tools), 'tool')}, {tokens(unused['tokens'])}",
        f"  {', '.join([*named, *more])}",
    ]


def tokens(number: int) -> str:
    """Return a number of tokens in words: `62,000 tokens`."""
    return f"{number:,} tokens"
