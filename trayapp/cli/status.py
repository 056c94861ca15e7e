"""`multi-mcp status`: print the gateway, its servers and their problems, once or continuously. Also `status --tokens`.

Never here: the words (status_view), the estimate of tokens (the gateway makes it).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from trayapp.cli import status_view as view
from trayapp.cli.hints import say_import_hint
from trayapp.cli.options import ask, examples, gateway, json_option
from trayapp.cli.output import await_input, is_terminal, print_json, say
from trayapp.model.errors import NoGatewayError, UsageError
from trayapp.model.text import ago, count, one_line
from trayapp.wire.control import COSTS, SNAPSHOT

if TYPE_CHECKING:
    from rich.console import Group


SERVERS_SHOWN = 5
DAY_S = 86_400.0
UNUSED_SHOWN = 20  # the whole list: --json, or the panel
WAYS = {"tools": "every tool is listed", "search": "the one tool is listed"}


@click.command("status", epilog=examples("multi-mcp status --watch"))
@click.option("--watch", is_flag=True, help="Keep running and show every change.")
@click.option("--tokens", is_flag=True, help="Show how many tokens each way of listing the tools costs a model.")
@json_option
def status_verb(watch: bool, tokens: bool, as_json: bool) -> None:
    """Show the gateway, its servers and their problems.

    With --watch and --json, print one document per line, one for each change.
    """
    if tokens:
        if watch:
            raise UsageError("--tokens and --watch cannot be combined", "Pass only one of them")
        show_costs(as_json)
        return
    if not watch:
        with gateway() as client:
            show(client.call(SNAPSHOT), as_json)
        if not as_json:
            say_import_hint()
        return
    with gateway(timeout=None) as client:
        polls = sys.platform != "win32" and sys.stdout is not None
        watched(client.watch(await_input if polls else lambda source: None), as_json)
    raise NoGatewayError("The gateway ended")


def show(snapshot: dict[str, Any], as_json: bool) -> None:
    """Print one snapshot on stdout."""
    if as_json:
        print_json(snapshot)
    elif is_terminal(sys.stdout):
        from rich.console import Console

        Console(highlight=False).print(screen(snapshot))
    else:
        say(*view.lines(snapshot))


def watched(snapshots: Iterator[dict[str, Any]], as_json: bool) -> None:
    """Print each snapshot until they end: a live table on a terminal, else a line for each change."""
    if as_json:
        for snapshot in snapshots:
            print_json(snapshot, compact=True)
    elif is_terminal(sys.stdout):
        live(snapshots)
    else:
        for line in changes(map(view.summary_line, snapshots)):
            say(line)


def changes(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines that differ from the one before."""
    last = None
    for line in lines:
        if line != last:
            yield line
        last = line


def live(snapshots: Iterator[dict[str, Any]], below: str = "") -> None:
    """Draw each snapshot over the one before. `below`: a line for as long as no client is connected."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as display:
        for snapshot in snapshots:
            last = [Text(f"\n{below}")] if below and not snapshot["gateway"]["sessions"] else []
            display.update(Group(screen(snapshot, live=True), *last), refresh=True)


def screen(snapshot: dict[str, Any], *, live: bool = False) -> Group:
    """Return a snapshot as rich renders it on a terminal."""
    from rich.console import Group
    from rich.text import Text

    head, details = Text(view.header(snapshot), style="bold"), Text(view.details(snapshot, live=live), style="dim")
    parts: list[Any] = [head, details, Text()]
    parts.append(view.table(snapshot).rich() if snapshot["servers"] else Text(view.no_servers()))
    keyring = view.keyring_lines(snapshot)
    if keyring:
        parts += [Text(), Text("\n".join(keyring), style="yellow")]
    problems = view.problem_lines(snapshot)
    if problems:
        parts += [Text(), Text("\n".join(problems), style="yellow")]
    if asks := view.ask_lines(snapshot):
        parts += [Text(), Text("\n".join(asks), style="bold yellow")]
    return Group(*parts)


def show_costs(as_json: bool) -> None:
    """Ask the gateway for the costs and print them."""
    found = ask(COSTS)
    if as_json:
        print_json(found)
    else:
        say(*cost_lines(found))


def cost_lines(found: dict[str, Any]) -> list[str]:
    """Return the costs of both ways, their break-even, the most expensive servers, and unused tools."""
    tools, search = found["tools"], found["search"]
    direct = f", {search['direct']} direct among them" if search["direct"] else ""
    lines = [
        f"expose: tools   {token_count(tools['tokens'])} for {count(tools['count'], 'tool')}",
        f"expose: search  {token_count(search['tokens'])}{direct}, and about {search['answer_tokens']} for each search",
        f"Now: {WAYS[found['mode']]} to a client that does not ask for something else (o200k tokens, estimated)",
    ]
    even = found["break_even"]
    if even is not None:
        searches = count(even["searches"], "search").replace("searchs", "searches")
        lines.append(
            f"Break-even: from {count(even['tools'], 'tool')} like these on, the one tool and a search cost less"
            f" than the list{f', up to {searches} in a session' if even['searches'] else ''}"
        )
    most = [f"{one_line(one['name'])} {token_count(one['tokens'])}" for one in found["servers"][:SERVERS_SHOWN]]
    return [*lines, *([f"Most: {', '.join(most)}"] if most else []), *_unused_lines(found.get("unused"))]


def _unused_lines(unused: dict[str, Any] | None) -> list[str]:
    """Return the tools that the history, of at most a month, has no call of; nothing if it began today."""
    if unused is None or not unused["tools"]:  # None: an older gateway
        return []
    tools, span_s = unused["tools"], time.time() - unused["since"]
    if span_s < DAY_S:
        return []
    span = ago(span_s)
    named = [one_line(f"{one['server']}/{one['name']}") for one in tools[:UNUSED_SHOWN]]
    more = [f"{len(tools) - UNUSED_SHOWN} more"] if len(tools) > UNUSED_SHOWN else []
    return [
        f"In {span} of history, {count(len(tools), 'tool')} ({token_count(unused['tokens'])}) had no call:",
        f"  {', '.join([*named, *more])}",
    ]


def token_count(number: int) -> str:
    """Return a number of tokens in words: `62,000 tokens`."""
    return f"{number:,} tokens"
