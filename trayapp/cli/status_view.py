"""A snapshot, as `status --json` has it, in words: header, details, table, problems.

Never here: asking for it, printing, clocks.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from trayapp.cli.output import Table, as_typed
from trayapp.model.status import is_ready
from trayapp.model.text import ago, count, one_line

Snapshot = dict[str, Any]

STYLES = {
    "connected": "green",
    "connecting": "cyan",
    "failed": "bold red",
    "needs sign-in": "yellow",
    "keyring locked": "yellow",
    "idle": "dim",
    "disabled": "dim",
    "stopping": "dim",
}
WORDS = {"needs_auth": "needs sign-in", "keyring_locked": "keyring locked"}
HEADERS = ("SERVER", "STATE", "TOOLS", "CALLS", "NOTE")
CLIENTS_NAMED = 5
SERVERS_NAMED = 5


def header(snapshot: Snapshot) -> str:
    """Return the summary with the program's name: `multi-mcp: 5 of 7 servers ready, 112 tools`."""
    return f"multi-mcp: {summary(snapshot)}"


def summary(snapshot: Snapshot) -> str:
    """Return `5 of 7 servers ready, 112 tools`. Disabled servers do not count.

    A server that a call is starting counts as ready: otherwise the numbers would flip while nothing is wrong.
    """
    wanted = [server for server in snapshot["servers"] if server["state"] != "disabled"]
    ready = [server for server in wanted if is_ready(server["state"], server.get("unlisted")) or _is_waking(server)]
    tools = sum(server["tools"]["enabled"] for server in wanted)
    return f"{len(ready)} of {count(len(wanted), 'server')} ready, {count(tools, 'tool')}"


def summary_line(snapshot: Snapshot) -> str:
    """Return the summary and, as there is no table below it, the servers that are starting: `; starting: sample`."""
    new = [one for one in snapshot["servers"] if one["state"] == "connecting" and one["error"] is None]
    names = [one_line(one["name"]) for one in new if not _is_waking(one)]
    more = f" and {len(names) - SERVERS_NAMED} more" if len(names) > SERVERS_NAMED else ""
    return summary(snapshot) + (f"; starting: {', '.join(names[:SERVERS_NAMED])}{more}" if names else "")


def _is_waking(server: dict[str, Any]) -> bool:
    """Return True if a server with known tools is starting and did not fail before."""
    return server["state"] == "connecting" and server["error"] is None and server["tools"]["total"] > 0


def details(snapshot: Snapshot, *, live: bool = False) -> str:
    """Return the gateway's own line: state, process, clients, calls today, URL.

    It includes the uptime unless `live`: in a live display it would be wrong a second later.
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
    return Table(HEADERS, [_row(server) for server in snapshot["servers"]], STYLES, wraps=True)


def no_servers() -> str:
    """Return what to do while there are no servers."""
    return as_typed("No servers yet: multi-mcp setup")


def problem_lines(snapshot: Snapshot) -> list[str]:
    """Return the number of problems, then each as `FILE:LINE: problem`, and below it what to do. Empty without any."""
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
    """Return a line for each call or question that waits for the user, oldest first."""
    asks = snapshot.get("asks") or []
    rows = [one_line(f"  {ask['id']}: {ask['client']}, {ask['server']}/{ask['tool'] or 'a question'}") for ask in asks]
    return [as_typed(f"{count(len(asks), 'ask')} for you (multi-mcp asks):"), *rows] if asks else []


def failure(server: dict[str, Any]) -> str:
    """Return `NAME: why; what to do` for a server with an error. The text changes only with the error."""
    error = server["error"]
    parts = (f"{server['name']}: {error['title']}", error["hint"])
    return one_line(as_typed("; ".join(part for part in parts if part)))


def lines(snapshot: Snapshot) -> list[str]:
    """Return the whole snapshot as lines of plain text."""
    servers = table(snapshot).lines() if snapshot["servers"] else [no_servers()]
    problems = problem_lines(snapshot)
    keyring = keyring_lines(snapshot)
    asks = ask_lines(snapshot)
    parts = (keyring, problems, asks)
    more = [line for part in parts if part for line in ("", *part)]
    return [header(snapshot), details(snapshot), "", *servers, *more]


def _row(server: dict[str, Any]) -> tuple[str, ...]:
    tools = server["tools"]
    on, waiting = tools["enabled"], len(server.get("approvals") or ())
    all_on = on + min(waiting, tools["withheld"]) == tools["total"] - tools["stale"]  # the note reports tools that wait
    listed = str(tools["total"] - tools["stale"]) if all_on else f"{on} of {tools['total']}"
    state = WORDS.get(server["state"], server["state"])
    return one_line(server["name"]), state, listed, str(server["calls"]), as_typed("; ".join(_notes(server)))


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
    """Return why sign-ins are not kept, and what to do; nothing if they are kept."""
    error = snapshot["gateway"].get("keyring_error")
    if not error:
        return []
    lost = "new sign-ins are kept in memory only"
    return [one_line(f"{error['title']}: {lost}"), f"  {one_line(as_typed(error['hint']))}"]


def confinement_notes(server: dict[str, Any]) -> list[str]:
    """Return notes on a server's confinement: that it runs unconfined despite its entry, or what it may have missed."""
    confinement = server.get("confinement") or {}
    notes = [one_line(f"NOT CONFINED: {confinement['why_open']}")] if confinement.get("way") == "open" else []
    refused = confinement.get("refused") or ()
    if refused:
        last = refused[-1]
        what = (
            f"refused {last['access']} {last['what']}"
            if last["access"] in ("read", "write")
            else "refused " + last["what"]
        )
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        doubt = "protected" if last["secret"] else f"to allow it: {last['allow']}"
        notes.append(one_line(f"{what}{more} ({doubt}; see multi-mcp confine {server['name']})"))
    elif server.get("error") and confinement.get("way") not in (
        None,
        "",
        "open",
    ):  # its words may not name what it missed
        notes.append(one_line(f"it is confined: multi-mcp confine {server['name']}"))
    return notes


def _notes(server: dict[str, Any]) -> list[str]:
    notes: list[str] = []
    auth = server.get("auth")
    notes += [words] if (words := signed_in_words(auth)) else []
    more = auth is not None and auth["wanted"] is not None  # "": the server did not name the permissions
    notes += [f"wants more permissions: multi-mcp auth {one_line(server['name'])}"] if more else []
    error = server["error"]
    if error is not None:
        when = f" ({ago(server['failed_s_ago'])} ago)" if server["failed_s_ago"] is not None else ""
        notes.append(one_line(error["title"]) + when)
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
    notes += [f"{withheld} held back (why: multi-mcp list {name} --withheld)"] if withheld > 0 else []
    if waiting:
        wait = "waits" if waiting == 1 else "wait"
        notes.append(one_line(f"{count(waiting, 'tool')} {wait} for you: multi-mcp approve {server['name']}"))
    notes += confinement_notes(server)
    if suspicious := server.get("suspicious"):
        read = "reads like an order" if len(suspicious) == 1 else "read like orders"
        notes.append(one_line(f"{count(len(suspicious), 'tool')} {read}: multi-mcp approve {server['name']}"))
    return notes
