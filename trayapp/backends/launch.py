"""From one server's entry to what is started or reached: variables resolved, program found, environment built.

Never here: starting it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trayapp.config.interpolate import resolve
from trayapp.model.errors import ConfigError, ConnectFailedError
from trayapp.model.servers import ServerConfig

# What a child gets of our environment with `inherit_env: false`: enough for a program to find itself and its user.
_POSIX_DEFAULTS = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_WINDOWS_DEFAULTS = (
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
DEFAULT_VARIABLES = _WINDOWS_DEFAULTS if sys.platform == "win32" else _POSIX_DEFAULTS

Keyring = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class StdioLaunch:
    """A program to start: `argv[0]` is an absolute path."""

    server: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class HttpLaunch:
    """An address to reach. `kind` is "http", "sse", or None for Streamable HTTP first and then SSE."""

    server: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    kind: str | None = None


Launch = StdioLaunch | HttpLaunch


def prepare(server: ServerConfig, environ: Mapping[str, str], keyring: Keyring) -> Launch:
    """What to start or reach for `server`, with every check that needs no start.

    Raises ConnectFailedError (program or folder missing) or ConfigError (a variable without value), before anything
    is started or sent.
    """
    home = environ.get("HOME") or str(Path.home())
    ready = resolve(server, environ, keyring, home)
    if ready.url is not None:
        return HttpLaunch(server.name, ready.url, _headers(ready, environ), ready.type)
    if ready.command is None:
        raise ConfigError(f"{server.name} has neither command nor url", "Give it one of them in servers.yaml")
    env = child_environment(ready, environ)
    cwd = ready.cwd
    if cwd is not None and not Path(cwd).is_dir():
        raise ConnectFailedError(
            server.name, f"Cannot start {server.name}: no folder {cwd} (ENOENT)", "Correct its cwd in servers.yaml"
        )
    program = find_program(ready.command, env, cwd)
    if program is None:
        raise ConnectFailedError(
            server.name,
            f"Cannot start {server.name}: no program {ready.command} on the PATH (ENOENT)",
            "Install it, or write its full path in servers.yaml",
        )
    return StdioLaunch(server.name, (program, *ready.args), env, cwd)


def child_environment(server: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the server's process: ours, or the platform's defaults, then the entry's own `env`."""
    base = dict(environ) if server.inherit_env else {k: environ[k] for k in DEFAULT_VARIABLES if k in environ}
    base.pop("MULTI_MCP_HOME", None) if "MULTI_MCP_HOME" not in server.env else None
    return {**base, **server.env}


def find_program(command: str, env: Mapping[str, str], cwd: str | None) -> str | None:
    """Absolute path of `command`, searched as the child's own shell would; None when there is none."""
    if os.sep in command or (os.altsep and os.altsep in command):
        path = Path(cwd or ".", command)
        return str(path.absolute()) if path.is_file() else None
    return shutil.which(command, path=env.get("PATH"))


def _headers(server: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    headers = dict(server.headers)
    if server.bearer_token_env:
        token = environ.get(server.bearer_token_env, "")
        headers.setdefault("Authorization", f"Bearer {token}")
    return headers
