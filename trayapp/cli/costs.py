"""`multi-mcp status --tokens`: what each way to show the tools costs a model's context.

Never here: the estimate (the gateway's).
"""

from __future__ import annotations

from typing import Any

from trayapp.cli.options import ask
from trayapp.cli.output import print_json, say
from trayapp.cli.text import count, one_line
from trayapp.wire.control import COSTS

SERVERS_SHOWN = 5
WAYS = {"tools": "every tool is listed", "search": "the one tool is listed"}


def show_costs(as_json: bool) -> None:
    """Ask and print."""
    found = ask(COSTS)
    if as_json:
        print_json(found)
    else:
        say(*lines(found))


def lines(found: dict[str, Any]) -> list[str]:
    """The two ways, where they meet, and which servers cost most."""
    tools, search = found["tools"], found["search"]
    direct = f", {search['direct']} direct among them" if search["direct"] else ""
    said = [
        f"expose: tools   {tokens(tools['tokens'])} for {count(tools['count'], 'tool')}",
        f"expose: search  {tokens(search['tokens'])}{direct}, and about {search['answer_tokens']} for each search",
        f"Now: {WAYS[found['mode']]} to a client that does not say otherwise (o200k tokens, estimated)",
    ]
    even = found["break_even"]
    if even is not None:
        said.append(f"Break-even: {count(even['tools'], 'tool')} like these cost what the one tool and a search cost; ")
        said[-1] += f"{count(even['searches'], 'search').replace('searchs', 'searches')} cost what the whole list costs"
    most = [f"{one_line(one['name'])} {tokens(one['tokens'])}" for one in found["servers"][:SERVERS_SHOWN]]
    return [*said, *([f"Most: {', '.join(most)}"] if most else [])]


def tokens(number: int) -> str:
    """`62,000 tokens`."""
    return f"{number:,} tokens"
