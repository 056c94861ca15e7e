"""Checks of servers.yaml and of the variables, folders and programs of its servers.

They start no server and show no values of variables.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePath

from trayapp.config.interpolate import resolve
from trayapp.config.problems import UnparsableError
from trayapp.config.programs import WHY, found_elsewhere, is_browser
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore, with_sample
from trayapp.model.config import Config, ServerConfig
from trayapp.model.errors import COMMAND, ConfigError, MissingVariableError, StorageError
from trayapp.model.redact import redacted
from trayapp.model.text import one_line
from trayapp.service.checks.check import CheckContext, CheckResult, note, ok, problem
from trayapp.service.command_line import sample_command

SERVERS_NAMED = 5
NODE_OLDEST = 18  # the oldest version that the SDK of most npx servers supports
REMEDIES = {  # program that servers need -> remedy if it is missing
    **dict.fromkeys(("node", "npx", "npm"), "Install Node.js (https://nodejs.org), or correct the PATH"),
    **dict.fromkeys(("uvx", "uv"), "Install uv (https://docs.astral.sh/uv), or correct the PATH"),
    "docker": "Install Docker, or correct the PATH",
    "bunx": "Install Bun, or correct the PATH",
    "deno": "Install Deno, or correct the PATH",
}


def config_parses(context: CheckContext) -> list[CheckResult]:
    """Report whether servers.yaml can be parsed, and where the error is."""
    code, path = "config.parses", context.paths.config_file
    text = ConfigStore(path).read()
    if text is None:
        return [note(code, f"There is no {path} yet", "Create it with: multi-mcp edit")]
    try:
        config = context.lay(parse(text, str(path)), str(path))
    except UnparsableError as error:
        return [problem(code, error.title, error.hint or "Correct it with: multi-mcp edit")]
    count = len(config.servers)
    return [ok(code, f"{path}: {count} server{'' if count == 1 else 's'}")]


def config_servers(context: CheckContext) -> list[CheckResult]:
    """Report the invalid entries and settings of a configuration that can be parsed, each with its line."""
    config = read_config(context)
    if config is None:
        return []
    found = []
    for one in config.problems:
        place = f"line {one.line}: " if one.line else ""
        if one.file != str(context.paths.config_file):  # from an imported file
            place = f"{one.file}, {place}" if place else f"{one.file}: "
        server = f"{one.server}: " if one.server and one.server not in one.message else ""
        report = problem if one.fatal else note
        what = f"{place}{server}{one.message}"
        found.append(report("config.servers", what, one.hint or "Correct it with: multi-mcp edit"))
    return found or [ok("config.servers", "All entries are valid")]


def launches(context: CheckContext) -> list[CheckResult]:
    """Report problems and notes about starting enabled servers, unless `programs` reports their programs as missing."""
    servers = _enabled(context)
    reported = {program for program in _wanted(servers) if _on_path(program, context) is None}
    found = [finding for server in servers if server.command not in reported for finding in _launch(server, context)]
    if servers and not found and not reported:
        found = [ok("server.launch", "The variables, folders and programs of all servers exist")]
    return found


def programs(context: CheckContext) -> list[CheckResult]:
    """Report whether the programs that run enabled servers, such as node or uvx, are installed and new enough."""
    results = []
    for program, servers in _wanted(_enabled(context)).items():
        code, found = f"path.{program}", _on_path(program, context)
        if found is None:
            need = f"{', '.join(servers[:SERVERS_NAMED])} need{'s' * (len(servers) == 1)} it"
            remedy = found_elsewhere(program, context.home) or REMEDIES[program]
            results.append(problem(code, f"{program} is not on the PATH; {need}", remedy))
            continue
        version = _version(found, context) if program == "node" else ""
        major = re.match(r"v?(\d+)\.", version)
        if major and int(major[1]) < NODE_OLDEST:
            what = f"{found} is {version}; many servers need {NODE_OLDEST} or newer"
            results.append(note(code, what, "Install a newer Node.js"))
        else:
            results.append(ok(code, f"{found} {version}".rstrip()))
    return results


def lacking(context: CheckContext) -> frozenset[str]:
    """Return the names of the enabled servers whose programs this process cannot find."""
    codes = {server.name: [finding.code for finding in _launch(server, context)] for server in _enabled(context)}
    return frozenset(name for name, found in codes.items() if "server.command" in found)


def _wanted(servers: list[ServerConfig]) -> dict[str, list[str]]:
    """Map the programs that run these servers, such as node, to the names of the servers that need them."""
    wanted: dict[str, list[str]] = {}
    commands = [(PurePath(server.command or "").stem, server.name) for server in servers]
    for command, name in sorted(commands, key=lambda pair: pair[0]):
        for program in ("node", command) if command in ("npx", "npm") else (command,):
            if program in REMEDIES:
                wanted.setdefault(program, []).append(name)
    return wanted


def _on_path(program: str, context: CheckContext) -> str | None:
    return shutil.which(program, path=context.environ.get("PATH"))


def read_config(context: CheckContext) -> Config | None:
    """Return the configuration, or None if it cannot be read, which the check `config.parses` reports."""
    path = context.paths.config_file
    try:
        return with_sample(context.lay(parse(ConfigStore(path).read() or "", str(path)), str(path)), sample_command())
    except (UnparsableError, StorageError):
        return None


def _enabled(context: CheckContext) -> list[ServerConfig]:
    config = read_config(context)
    return [server for server in config.servers.values() if not server.disabled] if config else []


def _launch(server: ServerConfig, context: CheckContext) -> Iterable[CheckResult]:
    """Yield the problems and notes that concern the start of a server."""
    kept: list[str] = []

    def keyring(name: str) -> str:
        kept.append(name)  # only the gateway opens the keyring
        return "kept"

    try:
        ready = resolve(server, context.environ, keyring, context.home)
    except ConfigError as error:
        name = f"{server.name}: " if isinstance(error, MissingVariableError) else ""
        yield problem("server.variables", name + error.title, error.hint)
        return
    for name in kept:
        secret = f"the secret {name} in the keyring was not checked"
        if name.startswith(COMMAND):
            secret = f"the command of a secret was not run: `{one_line(redacted(name.removeprefix(COMMAND)))}`"
        yield note("server.variables", f"{server.name}: {secret}")
    if ready.command is not None:
        yield from _program_of(server, ready, context)
        if server.scope == "shared" and is_browser((ready.command, *ready.args)):
            remedy = f"Give each session its own process: set scope: session for {server.name} in servers.yaml"
            yield note("server.browser", f"{server.name}: {WHY[0].lower()}{WHY[1:]}", remedy)
        from trayapp.packages.locks import not_locked  # loaded only if a server runs a command

        if server.lock and (told := not_locked((ready.command, *ready.args))) is not None:
            yield note("server.lock", f"{server.name}: not locked: {told.why}", told.hint)


def _program_of(server: ServerConfig, ready: ServerConfig, context: CheckContext) -> Iterable[CheckResult]:
    """Yield a problem if the server's folder or program is missing.

    `ready` is `server` with variables replaced by their values, which may be secrets, so messages quote only `server`.
    """
    assert ready.command is not None
    folder = Path(context.home, ready.cwd or "")
    if ready.cwd is not None and not folder.is_dir():
        where = "Create it, or correct cwd in servers.yaml"
        yield problem("server.cwd", f"{server.name}: there is no folder {server.cwd}", where)
        return
    path = ready.env.get("PATH", context.environ.get("PATH"))
    is_path = os.sep in ready.command or bool(os.altsep and os.altsep in ready.command)
    file = folder / ready.command
    is_there = file.is_file() and os.access(file, os.X_OK) if is_path else shutil.which(ready.command, path=path)
    if not is_there:
        where = found_elsewhere(ready.command, context.home) or "Install it, or write its full path in servers.yaml"
        on_path = "" if is_path else " on the PATH"
        yield problem("server.command", f"{server.name}: there is no program {server.command}{on_path}", where)


def _version(program: str, context: CheckContext) -> str:
    """Return the first 20 characters of the output of `PROGRAM --version`, or "" if it fails or takes too long."""
    try:
        done = subprocess.run(
            [program, "--version"], env=context.environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=1.0
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()[:20]
