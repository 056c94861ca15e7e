"""Turn a server's entry into a launch: resolve its variables, find its program and build its environment.

The secrets of an entry are found by their names or positions. The patterns of names are in model/secret_patterns.
model/redact removes the values from texts. npm's cache is read in stdio/npx, the login shell in stdio/shellenv.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import anyio.to_thread

from trayapp.auth.grant import ClientSettings
from trayapp.auth.vault import Secrets
from trayapp.backends.stdio.shellenv import Environment
from trayapp.config.interpolate import resolve, variable_names
from trayapp.config.paths import HOME_VARIABLE, PASSPHRASE, find_paths
from trayapp.config.programs import found_elsewhere, is_runner, own_folder
from trayapp.model.config import Auth, ServerConfig, auth_of
from trayapp.model.errors import KEYRING, ConfigError, ConnectFailedError, KeyringLockedError, MissingVariableError
from trayapp.model.redact import KNOWN, REDACTED, redacted
from trayapp.model.secret_patterns import is_random

if TYPE_CHECKING:
    from trayapp.confinement.record import RefusalRecord
    from trayapp.confinement.start import Confinement
    from trayapp.packages.locks import Locks

# The variables that a child inherits with `inherit_env: false`: enough to find programs, folders and the user.
_POSIX_DEFAULTS = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_WINDOWS_DEFAULTS = (
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
DEFAULT_VARIABLES = _WINDOWS_DEFAULTS if sys.platform == "win32" else _POSIX_DEFAULTS

OURS = (HOME_VARIABLE, PASSPHRASE)  # variables that servers must not get
NPX = ("npx", "npm")  # commands that a program in npm's cache may replace; a path to npx or npm runs as written
NPX_LIMIT_S = 2.0  # limit on reading npm's cache, which takes 2 ms; on a hanging network disk, npm decides
NO_SECRETS = Secrets()
Keyring = Callable[[Sequence[str]], Awaitable[Secrets]]  # names of secrets -> their values


@dataclass(frozen=True, slots=True)
class StdioLaunch:
    """A program to start. Once prepared, `argv[0]` is an absolute path."""

    server: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    cwd: str | None = None
    confinement: Confinement | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HttpLaunch:
    """An address to connect to. `kind` is "http", "sse", or None for Streamable HTTP first and then SSE."""

    server: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    kind: str | None = None
    auth: Auth = "oauth"
    client: ClientSettings = field(default_factory=ClientSettings, repr=False)


Launch = StdioLaunch | HttpLaunch


async def prepare_start(
    server: ServerConfig,
    environ: Mapping[str, str],
    keyring: Keyring,
    now: float,
    record: RefusalRecord | None = None,
    locks: Callable[[], Locks | None] = lambda: None,
) -> Launch:
    """Prepare and return the launch of `server`. Wait for the login shell's PATH, and read the server's secrets.

    A package is started in its locked version if `locks` returns locks, and without npm if npm's cache has it. `now` is
    in Unix seconds. `record` is the server's confinement record, None if it is not confined. Raises ConfigError (a
    variable without a value), KeyringLockedError, ConnectFailedError (the program, folder or package is missing).
    """
    if isinstance(environ, Environment):
        await environ.settled()
    names = variable_names(server)[1]
    secrets = await keyring(names) if names else NO_SECRETS
    try:
        launch = _resolve_launch(server, environ, secrets)
    except MissingVariableError as error:
        refused = secrets.refused
        if refused is not None and refused.state == "locked" and any(name.startswith(KEYRING) for name in error.names):
            raise KeyringLockedError(server.name, refused) from None
        raise
    if not isinstance(launch, StdioLaunch):
        return launch
    package = None
    if server.lock and is_runner(launch.argv) and (kept := locks()) is not None:
        launch = await _lock_package(launch, kept, confined=record is not None)
        package = kept.folder_of(launch.argv)
    elif record is not None and launch.cwd is not None and (kept := locks()) is not None:
        package = kept.folder_of((launch.cwd,))  # an unpacked bundle
    argv = await _without_npm(launch, environ, now) if launch.argv[0] in NPX else None
    if record is not None:
        launch = _confine_launch(launch, server, environ, record, package)
        if launch.argv[0] in NPX and not argv:
            argv = await _without_npm(launch, environ, now)  # look in the confined server's own npm cache, too
    return replace(launch, argv=argv) if argv else _locate_program(launch)


def _confine_launch(
    launch: StdioLaunch, server: ServerConfig, environ: Mapping[str, str], record: RefusalRecord, package: str | None
) -> StdioLaunch:
    from trayapp.confinement.policy import own_folders, scratch_folder  # imported when the first server is confined
    from trayapp.confinement.start import Confinement, confined_environment

    scratch = scratch_folder(server.name, environ)
    confinement = Confinement(record, own_folders(environ), scratch, frozenset(server.env), package)
    return replace(launch, env=confined_environment(confinement, launch.env), confinement=confinement)


def _resolve_launch(server: ServerConfig, environ: Mapping[str, str], secrets: Secrets) -> Launch:
    """Return the launch with variables and secrets filled in. Its program is as written, not yet found or locked.

    Raises ConfigError, ConnectFailedError.
    """
    home = environ.get("HOME") or str(Path.home())
    ready = resolve(server, environ, secrets.values.get, home)
    headers = dict(ready.headers)
    if ready.bearer_token_env:
        headers.setdefault("Authorization", f"Bearer {environ.get(ready.bearer_token_env, '')}")
    KNOWN.note((*secrets.values.values(), *secrets_in(ready, headers), *secret_variables(server, environ)))
    if ready.url is not None:
        client = ClientSettings(ready.client_id, ready.client_secret, ready.scopes, ready.account)
        return HttpLaunch(server.name, ready.url, headers, ready.type, auth_of(ready), client)
    if ready.command is None:
        raise ConfigError(f"{server.name} has neither command nor url", "Add command or url in servers.yaml")
    cwd = working_folder(ready.cwd, home)
    if not Path(cwd).is_dir():
        raise ConnectFailedError(
            server.name, f"Cannot start {server.name}: no folder {cwd} (ENOENT)", "Correct its cwd in servers.yaml"
        )
    return StdioLaunch(server.name, (ready.command, *ready.args), child_environment(ready, environ), cwd)


def is_remote(server: ServerConfig) -> bool:
    """Return True if a server is reached over the network: the host in its url is not, or may not be, this machine."""
    if server.url is None:
        return False
    try:
        host = urlsplit(server.url).hostname or ""
    except ValueError:
        return True  # the url may contain a variable
    return not (host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost"))


def _locate_program(launch: StdioLaunch) -> StdioLaunch:
    command, *args = launch.argv
    program = find_program(command, launch.env, launch.cwd)
    if program is None:
        on_path = "" if _is_path(command) else " on the PATH"
        first = command.split()[0]
        if first != command and find_program(first, launch.env, launch.cwd) is not None:
            hint = f"If there are args, command must be only the program. Or write one list: command: [{first}, ...]"
        else:
            elsewhere = found_elsewhere(command, launch.env.get("HOME") or str(Path.home()))
            hint = elsewhere or "Install it, or write its full path in servers.yaml"
        title = f"Cannot start {launch.server}: no program {command}{on_path} (ENOENT)"
        raise ConnectFailedError(launch.server, title, hint)
    return replace(launch, argv=(program, *args))


async def _lock_package(launch: StdioLaunch, locks: Locks, *, confined: bool) -> StdioLaunch:
    """Fetch and lock the package of a launch if needed, and return the launch that starts the locked package.

    The install scripts of a confined server's package do not run.
    """
    from trayapp.packages.tools import Tools  # imported when the first server is started from a package

    folder, path = own_folder(launch.argv), launch.env.get("PATH", "")
    tools = Tools(launch.env | {"PATH": os.pathsep.join((folder, path))} if folder else launch.env)
    argv = await tools.in_thread(lambda: locks.argv(launch.server, launch.argv, tools, scripts=not confined))
    return replace(launch, argv=argv)


async def _without_npm(launch: StdioLaunch, environ: Mapping[str, str], now: float) -> tuple[str, ...] | None:
    """Return the command to run instead of npx, or None if npm should decide: in doubt, or after NPX_LIMIT_S."""

    def look() -> tuple[str, ...] | None:
        from trayapp.backends.stdio.npx import resolve_npx  # imported when a server uses npx

        return resolve_npx(launch.argv, launch.env, find_paths(environ).cache_dir, now, launch.cwd)

    with anyio.move_on_after(NPX_LIMIT_S), suppress(OSError):
        return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
    return None


def working_folder(cwd: str | None, home: str) -> str:
    """Return the folder in which a server runs: its `cwd`, or else the home folder, never the gateway's own folder.

    Without a `cwd` and a home folder, return the system's temporary folder.
    """
    if cwd is None and not Path(home).is_dir():  # service accounts may have no home folder
        import tempfile  # takes 2 ms; only users without a home folder need it

        return tempfile.gettempdir()
    return str(Path(home, cwd or ""))


def child_environment(server: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the gateway's environment, limited to DEFAULT_VARIABLES without `inherit_env`, plus the entry's `env`."""
    base = dict(environ) if server.inherit_env else {k: environ[k] for k in DEFAULT_VARIABLES if k in environ}
    return {name: value for name, value in base.items() if name not in OURS} | server.env


def find_program(command: str, env: Mapping[str, str], cwd: str | None) -> str | None:
    """Return the absolute path of `command`, found as the child's own shell would find it, or None if there is none."""
    if _is_path(command):
        path = Path(cwd or ".", command)
        return str(path.absolute()) if path.is_file() else None
    import shutil  # imports bz2 and lzma, 3 ms: cached lists do not need it

    return shutil.which(command, path=env.get("PATH"))


def _is_path(command: str) -> bool:
    return os.sep in command or bool(os.altsep and os.altsep in command)


# -- secrets in an entry -----------------------------------------------------------------------------------------------

_AFTER_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|bot)\s+(\S.*)", re.DOTALL)
_USERINFO = re.compile(r"://[^/\s:@]*:([^/\s]+)@")
_PATH = re.compile(r"(?:~|\.{0,2}|[A-Za-z]:)(?:[/\\][\w.@ -]+)+")
_FLAG = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


def secrets_in(server: ServerConfig, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the secret values of an entry with resolved variables, and of its `headers` as sent."""
    yield from (value for name, value in server.env.items() if _is_secret(f"{name}=", value))
    for name, value in headers.items():
        if _is_secret(f"{name}: ", value):
            yield from _header_secrets(value)
    yield from _argument_secrets((server.command or "", *server.args))
    if server.client_secret:
        yield server.client_secret
    for text in (server.url or "", *server.args, *server.env.values()):
        yield from _url_secrets(text)


def secret_variables(server: ServerConfig, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of the environment variables that the entry refers to and whose names suggest a secret."""
    asked = (name for name in variable_names(server)[0] if _is_secret(f"{name}=", environ.get(name, "")))
    yield from (environ[name] for name in asked)


def _is_secret(name: str, value: str) -> bool:
    """Return True if `value`, the value of `name`, must be redacted. File paths are shown: errors have to name them."""
    if not value or (_PATH.fullmatch(value) and not any(map(is_random, re.split(r"[/\\]", value)))):
        return False
    return REDACTED in redacted(name + value)


def _header_secrets(value: str) -> Iterator[str]:
    scheme = _AFTER_SCHEME.fullmatch(value.strip())
    yield scheme[1] if scheme else value
    if scheme and value.lower().startswith("basic"):
        try:
            yield b64decode(scheme[1]).decode().partition(":")[2]
        except (NotBase64, ValueError):
            return


def _argument_secrets(words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        flag = _FLAG.fullmatch(word)
        if flag and flag[2] and _is_secret(f"{flag[1]}=", flag[2]):
            yield flag[2]
    for before, word in pairwise(words):
        flag = _FLAG.fullmatch(before)
        if flag and flag[2] is None and _is_secret(f"{before} ", word):
            yield word


def _url_secrets(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    for found in _USERINFO.finditer(text):
        yield from (found[1], unquote(found[1]))
    try:
        pairs = parse_qsl(urlsplit(text).query)
    except ValueError:
        return
    yield from (value for name, value in pairs if _is_secret(f"?{name}=", value))
