"""`multi-mcp logs`: the last lines of the gateway's log or of a server's stderr, and new ones with --follow.

Never here: how a log is read (log_file), what is written to it (gateway/process/server_logs).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click

from trayapp.cli.log_file import LogFile
from trayapp.cli.options import ask, examples, json_option
from trayapp.cli.output import await_input, note, print_json, say
from trayapp.cli.servers_file import own_store
from trayapp.cli.text import one_line
from trayapp.config.paths import find_paths
from trayapp.config.problems import nearest
from trayapp.config.read.parse import parse
from trayapp.model.errors import NoGatewayError, ServerNotFoundError
from trayapp.model.logs import GATEWAY_LOG, SERVER_LOGS, log_name, names_server
from trayapp.wire.control import SNAPSHOT, ControlError

LINES = 50
LOOKED_THROUGH = 10_000  # lines of the gateway's log that are searched for those about one server
FOLLOW_S = 0.3  # between two reads; to a person it looks immediate

Show = Callable[[list[str]], None]


@click.command("logs", epilog=examples("multi-mcp logs github -f"))
@click.argument("server", required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep running and show new lines.")
@click.option("-n", "--lines", "count", type=click.IntRange(min=0), default=LINES, show_default=True, help="How many.")
@json_option
def logs_verb(server: str | None, follow: bool, count: int, as_json: bool) -> None:
    """Show the last lines of the gateway's log, or of what SERVER wrote to its stderr.

    With --follow and --json: one document a line, one for each batch of
    new lines.
    """
    log = LogFile(log_path(server))
    show = shower(server, log.path, as_json, follow)
    lines = log.last(count)
    if not follow:
        lines = [*lines, *log.unfinished()][-count:] if count else []
    if server is not None and not (lines or follow or as_json):
        lines = lines_about(server)[-count:] if count else []
        if lines:
            note(f"{one_line(server)} has written nothing itself. What the gateway's log says of it:")
    if not log.path.exists() and not lines:
        note(f"There is no log of {one_line(server) if server else 'the gateway'} yet")
    if lines or as_json:
        show(lines)
    for came in followed(log, pause) if follow else ():
        show(came)


def lines_about(server: str) -> list[str]:
    """Return the lines of the gateway's log that name this server. A server at a URL has no log of its own."""
    log = LogFile(find_paths(os.environ).log_dir / GATEWAY_LOG)
    return [line for line in log.last(LOOKED_THROUGH) if names_server(line, server)]


def log_path(server: str | None) -> Path:
    """Return the path of a server's log; None means the gateway's.

    Raises ServerNotFoundError for a server that is not configured and has no log.
    """
    folder = find_paths(os.environ).log_dir
    if server is None:
        return folder / GATEWAY_LOG
    path = folder / SERVER_LOGS / log_name(server)
    known = [] if path.exists() else known_servers()
    if not path.exists() and server not in known:
        error = ServerNotFoundError(server, known)
        near = nearest(server, known)
        error.hint = f"Did you mean {near}? {error.hint}" if near else error.hint
        raise error
    return path


def known_servers() -> list[str]:
    """Return the servers in servers.yaml, invalid ones too, and those that a running gateway has from other sources."""
    store = own_store()
    config = parse(store.read().text, str(store.path))
    names = [*config.servers, *(problem.server for problem in config.problems if problem.server)]
    with suppress(NoGatewayError, ControlError):
        names += [server["name"] for server in ask(SNAPSHOT)["servers"]]
    return list(dict.fromkeys(names))


def shower(server: str | None, path: Path, as_json: bool, follow: bool) -> Show:
    """Return the function that prints lines, as text or as JSON."""
    if not as_json:
        return lambda lines: say(*lines)
    head = {"server": server, "file": str(path)}
    return lambda lines: print_json({**head, "lines": lines}, compact=follow)


def followed(log: LogFile, wait: Callable[[], None]) -> Iterator[list[str]]:
    """Yield new lines without end. `wait` is called before each read and may raise."""
    while True:
        wait()
        lines = log.more()
        if lines:
            yield lines


def pause() -> None:
    """Wait FOLLOW_S seconds. Raises BrokenPipeError as soon as the reader of stdout is gone (not on Windows)."""
    if sys.platform == "win32" or sys.stdout is None:
        time.sleep(FOLLOW_S)
    else:
        await_input(None, FOLLOW_S)
