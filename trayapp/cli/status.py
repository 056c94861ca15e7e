"""`multi-mcp status`: the gateway, its servers and their problems, once or continuously, or the tools' token cost.

The functions that put a snapshot into words are below the verb.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from trayapp.cli.options import ask, gateway, import_hint, verb
from trayapp.cli.output import Table, as_typed, await_input, is_terminal, note, print_json, print_result, say
from trayapp.model.errors import NoGatewayError, UsageError
from trayapp.model.status import is_ready
from trayapp.model.text import ago, count, one_line, without_code
from trayapp.wire.control import COSTS, SNAPSHOT

if TYPE_CHECKING:
    from rich.console import Group


Snapshot = dict[str, Any]

STYLES = {
    "connected": "green", "connecting": "cyan", "failed": "bold red", "needs sign-in": "yellow",
    "keyring locked": "yellow", "idle": "dim", "disabled": "dim", "stopping": "dim",
}  # fmt: skip
WORDS = {"needs_auth": "needs sign-in", "keyring_locked": "keyring locked"}
HEADERS = ("SERVER", "STATE", "TOOLS", "CALLS", "NOTE")
CLIENTS_NAMED = 5
SERVERS_NAMED = 5
SERVERS_SHOWN = 5
DAY_S = 86_400.0
UNUSED_SHOWN = 20  # the most unused tools listed; --json and the panel have all of them
WAYS = {"tools": "every tool", "search": "only the tool mcp"}


@verb("status", "multi-mcp status --watch")
@click.option("--watch", is_flag=True, help="Keep running and show every change.")
@click.option("--tokens", is_flag=True, help="Show how many tokens each way of listing the tools costs a model.")
def status_verb(watch: bool, tokens: bool, as_json: bool) -> None:
    """Show the gateway, its servers and their problems.

    With --watch and --json, print one document per line, one for each change.
    """
    if tokens:
        if watch:
            raise UsageError("--tokens and --watch cannot be combined", "Pass only one of them")
        found = ask(COSTS)
        print_result(as_json, found, *cost_lines(found))
        return
    if not watch:
        with gateway() as client:
            show(client.call(SNAPSHOT), as_json)
        if not as_json and (hint := import_hint()):
            note(hint)
        return
    with gateway(timeout=None) as client:
        watched(client.watch(await_input), as_json)
    raise NoGatewayError("The gateway ended")


def show(snapshot: dict[str, Any], as_json: bool) -> None:
    """Print one snapshot on stdout."""
    if as_json:
        print_json(snapshot)
    elif is_terminal(sys.stdout):
        from rich.console import Console

        Console(highlight=False).print(screen(snapshot))
    else:
        say(*lines(snapshot))


def watched(snapshots: Iterator[dict[str, Any]], as_json: bool) -> None:
    """Print each snapshot: as JSON, as a live table on a terminal, or elsewhere as its summary if that changed."""
    if as_json:
        for snapshot in snapshots:
            print_json(snapshot, compact=True)
    elif is_terminal(sys.stdout):
        live(snapshots)
    else:
        for line, _ in groupby(map(summary_line, snapshots)):  # print a line only if it changed
            say(line)


def live(snapshots: Iterator[dict[str, Any]], below: str = "") -> None:
    """Draw each snapshot over the previous one. `below`: a line shown at the end while no client is connected."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as display:
        for snapshot in snapshots:
            last = [Text(f"\n{below}")] if below and not snapshot["gateway"]["sessions"] else []
            display.update(Group(screen(snapshot, live=True), *last), refresh=True)


def screen(snapshot: dict[str, Any], *, live: bool = False) -> Group:
    """Return a snapshot as a group that rich can print on a terminal. `live`: as for `details`."""
    from rich.console import Group
    from rich.text import Text

    head = [Text(header(snapshot), style="bold"), Text(details(snapshot, live=live), style="dim")]
    parts: list[Any] = [*head, Text(), table(snapshot) if snapshot["servers"] else Text(no_servers())]
    keyring, problems, asks = keyring_lines(snapshot), problem_lines(snapshot), ask_lines(snapshot)
    for below, style in ((keyring, "yellow"), (problems, "yellow"), (asks, "bold yellow")):
        if below:
            parts += [Text(), Text("\n".join(below), style=style)]
    return Group(*parts)


def cost_lines(found: dict[str, Any]) -> list[str]:
    """Return lines with the token cost of both ways to list tools, the costliest servers, and the unused tools."""
    tools, search = found["tools"], found["search"]
    direct = f" (direct tools: {search['direct']})" if search["direct"] else ""
    lines = [
        f"expose: tools   {token_count(tools['tokens'])} for {count(tools['count'], 'tool')}",
        f"expose: search  {token_count(search['tokens'])}{direct}, and about {search['answer_tokens']} for each search",
        f"By default, a client sees {WAYS[found['mode']]}. Estimated in o200k tokens",
    ]
    even = found["break_even"]
    if even is not None:
        searches = count(even["searches"], "search").replace("searchs", "searches")
        lines.append(
            f"Break-even: from {count(even['tools'], 'tool')} of this size, the tool mcp and one search cost less"
            f" than the list{f'. For your tools: up to {searches} in a session' if even['searches'] else ''}"
        )
    most = [f"{one_line(one['name'])} {token_count(one['tokens'])}" for one in found["servers"][:SERVERS_SHOWN]]
    return [*lines, *([f"Most: {', '.join(most)}"] if most else []), *_unused_lines(found["unused"])]


def _unused_lines(unused: dict[str, Any]) -> list[str]:
    """Return a heading and a line with the tools that had no call in the history of at most a month.

    Return [] if there are none, or if the history is shorter than a day.
    """
    tools, span_s = unused["tools"], time.time() - unused["since"]
    if not tools or span_s < DAY_S:
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


# --- a snapshot in words


def header(snapshot: Snapshot) -> str:
    """Return the summary with the program's name: `multi-mcp: 5 of 7 servers ready, 112 tools`."""
    return f"multi-mcp: {summary(snapshot)}"


def summary(snapshot: Snapshot) -> str:
    """Return `5 of 7 servers ready, 112 tools`. Disabled servers do not count.

    A server with known tools that is starting counts as ready: otherwise the numbers would change with each start.
    """
    wanted = [server for server in snapshot["servers"] if server["state"] != "disabled"]
    ready = [server for server in wanted if is_ready(server["state"], server.get("unlisted")) or _is_waking(server)]
    tools = sum(server["tools"]["enabled"] for server in wanted)
    return f"{len(ready)} of {count(len(wanted), 'server')} ready, {count(tools, 'tool')}"


def summary_line(snapshot: Snapshot) -> str:
    """Return the summary and the servers that are starting (`; starting: sample`), since no table follows."""
    new = [one for one in snapshot["servers"] if one["state"] == "connecting" and one["error"] is None]
    names = [one_line(one["name"]) for one in new if not _is_waking(one)]
    more = f" and {len(names) - SERVERS_NAMED} more" if len(names) > SERVERS_NAMED else ""
    return summary(snapshot) + (f"; starting: {', '.join(names[:SERVERS_NAMED])}{more}" if names else "")


def _is_waking(server: dict[str, Any]) -> bool:
    """Return True if a server with known tools is starting and did not fail before."""
    return server["state"] == "connecting" and server["error"] is None and server["tools"]["total"] > 0


def details(snapshot: Snapshot, *, live: bool = False) -> str:
    """Return the gateway's own line: state, process, clients, calls today, URL.

    The line includes the uptime unless `live`: in a live display, the uptime would be wrong a second later.
    """
    gateway = snapshot["gateway"]
    since = "" if live else f" for {ago(gateway['uptime_s'])}"
    parts = [f"{gateway['state'].capitalize()}{since}", f"process {gateway['pid']}"]
    clients = [one_line(session["client"]) or "unknown" for session in gateway["sessions"]]
    more = "" if len(clients) <= CLIENTS_NAMED else ", ..."
    named = f" ({', '.join(clients[:CLIENTS_NAMED])}{more})" if clients else ""
    parts.append(f"{count(len(clients), 'client')}{named}")
    if today := gateway.get("today"):
        failed = f" ({today['failed']} failed)" if today["failed"] else ""
        parts.append(f"{count(today['calls'], 'call')} today{failed}")
    if gateway["http_url"]:
        parts.append(one_line(gateway["http_url"]))
    return ", ".join(parts)


def table(snapshot: Snapshot) -> Table:
    """Return a table with one row per server."""
    rows: list[tuple[str, ...]] = []
    for server in snapshot["servers"]:
        tools, waiting = server["tools"], len(server.get("approvals") or ())
        on, there = tools["enabled"], tools["total"] - tools["stale"]
        all_on = on + min(waiting, tools["withheld"]) == there  # a separate note reports tools that wait for approval
        state = WORDS.get(server["state"], server["state"])
        listed = str(there) if all_on else f"{on} of {tools['total']}"
        notes = as_typed("; ".join(_notes(server)))
        rows.append((one_line(server["name"]), state, listed, str(server["calls"]), notes))
    return Table(HEADERS, rows, STYLES, wraps=True)


def no_servers() -> str:
    """Return what to do while there are no servers."""
    return as_typed("No servers yet: multi-mcp setup")


def problem_lines(snapshot: Snapshot) -> list[str]:
    """Return lines: the number of problems, then each as `FILE:LINE: problem` and its remedy; [] if there are none."""
    lines: list[str] = []
    for problem in snapshot["problems"]:
        lines.append(one_line(f"{place(problem)}{as_typed(problem['message'])}"))
        if problem["hint"]:
            lines.append(f"  {one_line(as_typed(problem['hint']))}")
    return [count(len(snapshot["problems"]), "problem") + ":", *lines] if lines else []


def place(problem: dict[str, Any]) -> str:
    """Return a problem's location and server, if known: `FILE:LINE: SERVER: `."""
    line = f":{problem['line']}" if problem["line"] else ""
    file = f"{problem['file']}{line}: " if problem["file"] else ""
    server = problem.get("server")
    return f"{file}{server}: " if server and server not in problem["message"] else file


def ask_lines(snapshot: Snapshot) -> list[str]:
    """Return a heading and a line for each call or question that waits for the user, oldest first; [] if none does."""
    asks = snapshot.get("asks") or []
    rows = [one_line(f"  {ask['id']}: {ask['client']}, {ask['server']}/{ask['tool'] or 'a question'}") for ask in asks]
    return [as_typed(f"{count(len(asks), 'request')} waiting for your answer (multi-mcp asks):"), *rows] if asks else []


def failure(server: dict[str, Any]) -> str:
    """Return `NAME: why; what to do` for a server with an error. It has no times, so it changes only with the error."""
    error = server["error"]
    parts = (f"{server['name']}: {error['title']}", error["hint"])
    return one_line(as_typed("; ".join(part for part in parts if part)))


def lines(snapshot: Snapshot) -> list[str]:
    """Return the whole snapshot as lines of plain text."""
    servers = table(snapshot).lines() if snapshot["servers"] else [no_servers()]
    parts = (keyring_lines(snapshot), problem_lines(snapshot), ask_lines(snapshot))
    more = [line for part in parts if part for line in ("", *part)]
    return [header(snapshot), details(snapshot), "", *servers, *more]


def signed_in_words(auth: dict[str, Any] | None) -> str:
    """Return `signed in until 2026-01-31 14:05, renewed automatically`; "" if not signed in."""
    if not auth or not auth["signed_in"]:
        return ""
    until = ""
    with suppress(TypeError, ValueError, OverflowError, OSError):  # None, or a time out of range
        until = time.strftime(" until %Y-%m-%d %H:%M", time.localtime(float(auth["until"])))
    kept = "" if auth["kept"] else ", lost when the gateway ends"
    return f"signed in{until}{', renewed automatically' if auth['renews'] else ''}{kept}"


def keyring_lines(snapshot: Snapshot) -> list[str]:
    """Return why sign-ins are not kept, and what to do; [] if they are kept."""
    error = snapshot["gateway"].get("keyring_error")
    if not error:
        return []
    lost = "new sign-ins are kept in memory only"
    return [one_line(f"{error['title']}: {lost}"), f"  {one_line(as_typed(error['hint']))}"]


def confinement_notes(server: dict[str, Any]) -> list[str]:
    """Return notes on a server's confinement: why it runs unconfined, and what was refused or may be missing."""
    confinement = server.get("confinement") or {}
    notes = [one_line(f"NOT CONFINED: {confinement['why_open']}")] if confinement.get("way") == "open" else []
    refused = confinement.get("refused") or ()
    if refused:
        last = refused[-1]
        access = f"{last['access']} " if last["access"] in ("read", "write") else ""
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        doubt = "protected" if last["secret"] else f"to allow it: {last['allow']}"
        notes.append(
            one_line(f"refused {access}{last['what']}{more} ({doubt}; see multi-mcp confine {server['name']})")
        )
    elif server.get("error") and confinement.get("way") not in (None, "", "open"):
        # the server's message may not name the missing access
        notes.append(one_line(f"its confinement may be the cause: multi-mcp confine {server['name']}"))
    return notes


def _notes(server: dict[str, Any]) -> list[str]:
    notes: list[str] = []
    auth = server.get("auth")
    notes += [words] if (words := signed_in_words(auth)) else []
    more = auth is not None and auth["wanted"] is not None  # "": the server did not name the permissions
    notes += [f"needs more permissions: multi-mcp auth {one_line(server['name'])}"] if more else []
    error = server["error"]
    if error is not None:
        when = f" ({ago(server['failed_s_ago'])} ago)" if server["failed_s_ago"] is not None else ""
        notes.append(without_code(one_line(error["title"])) + when)
        if error["hint"]:
            notes.append(one_line(error["hint"]))
    notes += [one_line(f"only in {server['project']}")] if server.get("project") else []
    if connections := server.get("connections"):
        notes.append(f"{connections} connections (why: multi-mcp help connections)")
    tools = server["tools"]
    name = one_line(server["name"])
    gone = "tool is gone" if tools["stale"] == 1 else "tools are gone"
    notes += [f"{tools['stale']} {gone} (which: multi-mcp list {name} --stale)"] if tools["stale"] else []
    waiting = len(server.get("approvals") or ())
    withheld = tools["withheld"] - waiting
    notes += [f"{withheld} withheld (why: multi-mcp list {name} --withheld)"] if withheld > 0 else []
    if waiting:
        wait = "waits" if waiting == 1 else "wait"
        notes.append(one_line(f"{count(waiting, 'tool')} {wait} for your approval: multi-mcp approve {server['name']}"))
    notes += confinement_notes(server)
    notes += [one_line(server["not_locked"])] if error is None and server.get("not_locked") else []
    if suspicious := server.get("suspicious"):
        read = "reads like an instruction" if len(suspicious) == 1 else "read like instructions"
        words = f"{count(len(suspicious), 'tool')} {read} to the model: multi-mcp approve {server['name']}"
        notes.append(one_line(words))
    return notes
