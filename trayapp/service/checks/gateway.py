"""Checks of the gateway: its runtime folder, socket, port, status and leftovers. They start and stop nothing."""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from trayapp import __version__
from trayapp.model.errors import NoGatewayError
from trayapp.model.text import without_code
from trayapp.service.checks.check import CheckContext, CheckResult, note, ok, problem
from trayapp.service.checks.servers import lacking, read_config
from trayapp.service.command_line import kill_command
from trayapp.service.pause import PAUSE_LOCK, RESUME_HINT
from trayapp.service.version import Update
from trayapp.wire.control import SNAPSHOT, ControlClient
from trayapp.wire.greeting import endpoint_file, read_endpoint
from trayapp.wire.lock import FileLock
from trayapp.wire.loopback import holder_words, is_ours, port_holder
from trayapp.wire.rundir import socket_folder, socket_path

ANSWER_TIMEOUT_S = 1.5  # less than the limit of a check; an answer usually takes milliseconds
PORT_TIMEOUT_S = 0.5
STARTING_S = 10.0  # maximum time from taking the lock to listening (usually 0.3 s)
CLOCK_S = 1.0  # tolerance when the times of files and processes are compared
SUCCESSION_HINT = (
    "To switch to the new version now: multi-mcp stop, then multi-mcp start --detach. With a tray, starting multi-mcp "
    "again is enough. Without a tray, the gateway switches by itself after ten minutes without a call"
)
LOCK = "gateway.lock"


def home_short(context: CheckContext) -> list[CheckResult]:
    """Report whether the socket is in the runtime folder, whose path may be too long for a socket."""
    code, folder = "home.short", socket_folder(context.run)
    if context.platform == "win32" or folder == context.run:
        return [ok(code, f"The runtime folder is {context.run}")]
    what = f"The path of {context.run} is too long for a socket. The socket is in {folder}"
    return [note(code, what, "To avoid that, set MULTI_MCP_HOME to a shorter path")]


def socket_mode(context: CheckContext) -> list[CheckResult]:
    """Report whether only this user can access the runtime folder and its files."""
    code = "socket.mode"
    if context.platform == "win32":
        return [ok(code, "Only this user can reach the gateway")]
    folders = list(dict.fromkeys((Path(context.run), Path(socket_folder(context.run)))))
    files = [Path(context.run, LOCK), endpoint_file(context.run), folders[-1] / "gateway.sock"]
    found = [finding for path in (*folders, *files) if (finding := _not_private(path)) is not None]
    return found or [ok(code, "Only this user can reach the gateway")]


def socket_answers(context: CheckContext) -> list[CheckResult]:
    """Report whether a gateway answers, its version, and the state of its servers."""
    code = "socket.answers"
    try:
        client = ControlClient(context.run, ANSWER_TIMEOUT_S)
    except NoGatewayError:
        return [_no_answer(context)]
    except PermissionError as error:
        what = f"{error.filename} does not belong to this user alone"
        return [problem(code, what, "Remove it, or ask its owner to remove it")]
    try:
        with client:
            snapshot = client.call(SNAPSHOT)
    except NoGatewayError as error:
        return [problem(code, error.title, _end(_holder(context)))]
    answers = ok(code, f"The gateway answers (process {snapshot['gateway']['pid']})")
    lack = lacking(context)  # another check reports the failures of these servers
    servers = [server for server in snapshot["servers"] if not (server["name"] in lack and server["state"] == "failed")]
    states = [_of_server(one) for one in servers if one["error"] or one["state"] in ("needs_auth", "keyring_locked")]
    states += [_of_approvals(server) for server in snapshot["servers"] if server.get("approvals")]
    states = states or [ok("gateway.servers", "No server has failed")]
    return [answers, _version(context, snapshot["gateway"]), *states]


def http_port(context: CheckContext) -> list[CheckResult]:
    """Report whether the port for HTTP clients is free or used by our gateway. Otherwise, the gateway uses another."""
    code, config = "port.http", read_config(context)
    if config is None:
        return []
    port = config.settings.http.port
    endpoint = read_endpoint(context.run)
    if not config.settings.http.enabled:
        return [ok(code, "HTTP is switched off")]
    if endpoint is not None and f":{port}/" in (endpoint.http_url or ""):
        return [ok(code, f"The gateway uses port {port}")]
    try:
        socket.create_connection(("127.0.0.1", port), PORT_TIMEOUT_S).close()
    except (OSError, OverflowError):
        return [ok(code, f"Port {port} is free")]
    holder = port_holder(port)
    what = f"Port {port} is held by {holder_words(holder)}; the gateway uses the next free one"
    hint = "Set settings.http.port in servers.yaml to another port"
    if holder is None or is_ours(holder):
        return [note(code, what, hint)]
    what += f". AI tools that use port {port} send their token to that program"
    return [problem(code, what, f"{hint}, and give those AI tools the new address and token")]


def stale_processes(context: CheckContext) -> list[CheckResult]:
    """Report registries and server processes that an ended gateway left behind."""
    code = "processes.stale"
    registries = []
    for path in sorted(Path(context.run).glob("backends-*.tsv")):  # one gateway's server processes (POSIX only)
        owner = path.stem.split("-")[1]  # the rest of the name distinguishes gateways with the same process id
        if not (owner.isdecimal() and _is_alive(int(owner), path)):
            registries.append(path)
    left: list[int] = []  # server processes; only the next gateway also finds their descendants
    for path in registries:
        with suppress(OSError):
            rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
            started = [int(first) for row in rows if (first := row.split("\t")[0]).isdecimal()]
            left += [pid for pid in started if _is_alive(pid, path)]
    if left:
        pids = " ".join(map(str, left))
        what = f"An earlier gateway left {len(left)} server process{'es' if len(left) > 1 else ''} running: {pids}"
        return [problem(code, what, f"Start the gateway, which ends them, or run: kill {pids}")]
    if registries:
        what = f"A killed gateway left its registry behind ({registries[0].name})"
        return [note(code, what, "The next gateway removes it")]
    return [ok(code, "Earlier gateways left nothing behind")]


def _not_private(path: Path) -> CheckResult | None:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return None
    if facts.st_uid != os.getuid():
        remedy = "Remove it, or set MULTI_MCP_HOME to a folder of yours"
        return problem("socket.mode", f"{path} belongs to another user", remedy)
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077 == 0:
        return None
    wanted = "700" if stat.S_ISDIR(facts.st_mode) else "600"
    what = f"Other users can reach {path} (mode {mode:03o})"
    return problem("socket.mode", what, f"Restrict it with: chmod {wanted} {path}")


def _no_answer(context: CheckContext) -> CheckResult:
    """Return the reason why no gateway answers, with a remedy."""
    code, holder = "socket.answers", _holder(context)
    if holder and time.time() - Path(context.run, LOCK).stat().st_mtime < STARTING_S:
        return note(code, f"The gateway (process {holder}) is starting", "Check again in a few seconds")
    if holder:
        return problem(code, f"The gateway (process {holder}) runs but does not listen", _end(holder))
    if FileLock(context.run, PAUSE_LOCK).is_held():
        return note(code, "multi-mcp is paused: no gateway runs", RESUME_HINT)
    is_left = context.platform != "win32" and Path(socket_path(context.run)).exists()
    what = "The gateway was killed and is not running" if is_left else "The gateway is not running"
    return note(code, what, "Nothing to do: AI tools start the gateway. To start it now: multi-mcp start --detach")


def _holder(context: CheckContext) -> int:
    """Return the process id in the gateway's lock file, or 0 if there is none or that process has ended."""
    lock = Path(context.run, LOCK)
    try:
        text = lock.read_bytes()[:20].strip()
    except OSError:  # on Windows, the locked part cannot be read
        return 0
    pid = int(text) if text.isdigit() else 0
    return pid if _is_alive(pid, lock) else 0


def _end(pid: int) -> str:
    return f"End it with: {kill_command(pid)}" if pid else "End that process, then: multi-mcp start --detach"


def _version(context: CheckContext, running: dict[str, Any]) -> CheckResult:
    """Report whether the running gateway has this program's version and was started after its installation."""
    code, version = "version.gateway", running["version"]
    if version != __version__:
        what = f"The running gateway is version {version}, but this program is {__version__}"
        return problem(code, what, "Restart it: multi-mcp stop, then multi-mcp start --detach")
    if Update(context.run).replaced_gateway(running["pid"]):
        what = "The running gateway was started before this program was installed"
        return note(code, what, SUCCESSION_HINT)
    return ok(code, f"The gateway is version {version}, the same as this program")


def _of_server(server: dict[str, Any]) -> CheckResult:
    name, error = server["name"], server["error"]
    if server["state"] == "needs_auth":
        return note("gateway.servers", f"{name} needs a sign-in", f"Sign in with: multi-mcp auth {name}")
    if server["state"] == "keyring_locked":
        return note("gateway.servers", error["title"], error["hint"])
    why = without_code(error["title"])
    what = why if name in why else f"{name}: {why}"
    see = f"See: multi-mcp logs {name}" if server["transport"] == "stdio" else f"Try: multi-mcp reconnect {name}"
    return problem("gateway.servers", what, error["hint"] or see)


def _of_approvals(server: dict[str, Any]) -> CheckResult:
    name, waiting = server["name"], server["approvals"]
    tools, looks, wait = ("tool", "looks", "waits") if len(waiting) == 1 else ("tools", "look", "wait")
    state = f"changed, or {looks} suspicious, and {wait} for approval"
    what = f"{len(waiting)} {tools} of {name} {state}: {', '.join(waiting[:5])}"
    return note("gateway.approvals", what, f"Review with: multi-mcp approve {name}")


def _is_alive(pid: int, noted_in: Path) -> bool:
    """Return True if the process named in a file still runs and was started before the file was written."""
    try:
        process = psutil.Process(pid)
        is_older = process.create_time() <= noted_in.stat().st_mtime + CLOCK_S
        return pid > 0 and is_older and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError, ValueError, OverflowError):
        return False
