"""The environment of the user's login shell. A gateway started by the desktop has a PATH without nvm or Homebrew.

POSIX only. Values of variables are never logged.

The shell is run unless the gateway was certainly started from a terminal. A needless run costs little, but without a
needed one, servers do not start. Certain signs of a terminal are:
- a terminal on stdin, stdout or stderr,
- TERM_PROGRAM, which terminal programs set,
- SHLVL with a TERM that only terminal windows have. SHLVL alone is not certain: display managers start whole sessions
  through a login shell.

The shell gets RESOLVING in its environment, for rc files to check. If it is already set, no shell is run: this ends a
loop through an rc file that starts the gateway.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc

from trayapp.backends.stdio.guardian import signal_group
from trayapp.model.late import late

log = logging.getLogger(__name__)

SHELL_LIMIT_S = 10.0  # slow rc files take 2 s; an rc file that hangs must not block servers forever
GROUP_CHECK_S = 0.02
HANG_UP_S = 1.0  # time from SIGHUP to SIGKILL
EXIT_GRACE_S = 0.5  # time for a logout file to run after the environment was read
OUTPUT_LARGEST = 4 << 20  # bytes; an environment has up to about 100 kB, and only broken rc files print more than this
RESOLVING = "MULTI_MCP_RESOLVING_ENVIRONMENT"

# The variables, besides PATH, that are taken if ours are unset: the folders of toolchains, and what downloads need in a
# company network.
# No wildcards where a token may match (HOMEBREW_GITHUB_API_TOKEN, UV_PUBLISH_TOKEN, npm_config__auth).
_TAKEN = late(
    r"NVM_(?:DIR|BIN|INC)|FNM_(?:DIR|MULTISHELL_PATH)|VOLTA_HOME|N_PREFIX|PNPM_HOME|BUN_INSTALL|DENO_(?:DIR|INSTALL(?:_ROOT)?)"
    r"|(?:npm_config|NPM_CONFIG)_(?:cache|prefix|userconfig|CACHE|PREFIX|USERCONFIG)|COREPACK_HOME|NODE_EXTRA_CA_CERTS"
    r"|(?:PY|RB|NOD|GO|J|PL|PHP)ENV_ROOT|PIPX_(?:HOME|BIN_DIR)|UV_(?:CACHE_DIR|TOOL_DIR|TOOL_BIN_DIR|PYTHON_INSTALL_DIR)"
    r"|CONDA_(?:EXE|PREFIX|PYTHON_EXE)|MAMBA_(?:EXE|ROOT_PREFIX)|ASDF_(?:DIR|DATA_DIR)|MISE_(?:DATA_DIR|CONFIG_DIR)"
    r"|HOMEBREW_(?:PREFIX|CELLAR|REPOSITORY)|SDKMAN_(?:DIR|CANDIDATES_DIR)|JAVA_HOME|ANDROID_HOME|DOTNET_ROOT"
    r"|CARGO_HOME|RUSTUP_HOME|GO(?:PATH|ROOT|BIN)|GEM_(?:HOME|PATH)|DOCKER_HOST|NIX_(?:PROFILES|SSL_CERT_FILE)"
    r"|(?:HTTPS?|NO|ALL)_PROXY|(?:https?|no|all)_proxy|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|LANG|LC_(?:ALL|CTYPE)"
)
_POOR_TERMS = ("", "dumb", "linux")  # sessions without a terminal window have these, too
_BEGIN, _END = "begin", "end"
_NAME = late(r"[A-Za-z_][\w()]*", re.ASCII)
_NEW_VARIABLE = late(r"\n(?=[A-Za-z_]\w*=)", re.ASCII)

Find = Callable[[Mapping[str, str]], Awaitable[dict[str, str]]]


class Environment(dict[str, str]):
    """The gateway's environment. `complete` merges the login shell's into it, once. Belongs to one event loop."""

    def __init__(self, own: Mapping[str, str]) -> None:
        super().__init__(own)
        self._settled = anyio.Event()
        self.wanted = anyio.Event()  # set once a caller waits for completion

    async def complete(self, find: Find | None = None) -> None:
        """Add the login shell's variables. Afterwards `settled` returns, whatever was found."""
        try:
            if found := await (find or login_environment)(self):
                self.update(merged(self, found))
                folders = self.get("PATH", "").count(os.pathsep) + 1
                log.info("Merged the login shell's variables; PATH has %d folders", folders)
        finally:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the environment is complete."""
        self.wanted.set()
        await self._settled.wait()


def merged(own: Mapping[str, str], shell: Mapping[str, str]) -> dict[str, str]:
    """Return our variables with the shell's merged in: its PATH before ours, and others that _TAKEN matches.

    Pure. Except for PATH, our own variables never change.
    """
    taken = {name: value for name, value in shell.items() if name not in own and _TAKEN.fullmatch(name)}
    both = [*shell.get("PATH", "").split(os.pathsep), *own.get("PATH", "").split(os.pathsep)]
    path = os.pathsep.join(dict.fromkeys(folder for folder in both if folder))
    return {**own, **taken, **({"PATH": path} if path else {})}


async def login_environment(
    environ: Mapping[str, str], limit_s: float = SHELL_LIMIT_S, descriptors: tuple[int, ...] = (0, 1, 2)
) -> dict[str, str]:
    """Run the user's login shell for at most `limit_s` seconds, and return all variables of its environment.

    Return {} if there is no need to run it (see the module; `descriptors` are checked for a terminal). Log a warning
    and return {} if it printed no environment. When cancelled or at the limit, kill the shell and its group.
    """
    if not should_ask(environ, any(map(os.isatty, descriptors))):
        return {}
    shell = login_shell(environ)
    found: dict[str, str] | None = None
    with anyio.move_on_after(limit_s) as limit:
        found = await ask_shell(shell, environ)
    if found is None:
        why = f"did not end within {limit_s:g} s" if limit.cancelled_caught else "did not print its environment"
        log.warning("Servers start with the gateway's own PATH: the login shell %s %s", shell, why)
    return found or {}


def should_ask(environ: Mapping[str, str], has_terminal: bool) -> bool:
    """Return True if the login shell may have more variables than we do, by the module's rule."""
    if sys.platform == "win32" or has_terminal or environ.get(RESOLVING) or environ.get("TERM_PROGRAM"):
        return False
    return environ.get("SHLVL", "") in ("", "0") or environ.get("TERM", "") in _POOR_TERMS


def login_shell(environ: Mapping[str, str]) -> str:
    """Return the user's shell: SHELL, the shell in the password file, or /bin/sh."""
    if environ.get("SHELL"):
        return environ["SHELL"]
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    return "/bin/sh"


async def ask_shell(shell: str, environ: Mapping[str, str]) -> dict[str, str] | None:
    """Run the shell as a login shell, with its rc files. Return its environment, or None if it printed none."""
    mark = f"multi-mcp-{secrets.token_hex(8)}"
    said = bytearray()
    try:
        async with _started(shell_command(shell, mark), {**environ, RESOLVING: "1"}) as process:
            assert process.stdout is not None
            async for data in process.stdout:
                said += data
                if f"{mark}{_END}".encode() in said or len(said) > OUTPUT_LARGEST:
                    break  # do not wait for the end: a background process of an rc file may keep the pipe open
            with anyio.move_on_after(EXIT_GRACE_S):
                await process.wait()
    except (OSError, ValueError):  # the shell cannot be started
        return None
    return read_output(bytes(said), mark)


def shell_command(shell: str, mark: str) -> list[str]:
    """Return a command that prints the environment between `mark` with _BEGIN and `mark` with _END.

    Its syntax is valid in sh, fish and csh. An old `env` without `-0` (macOS 12) is run again without it. The quotes
    keep the marks out of the script's own text, which a shell may print, for example as a window title.
    """
    script = f"echo {mark}''{_BEGIN}; /usr/bin/env -0 || /usr/bin/env; echo {mark}''{_END}"
    # csh takes -l only as its sole flag. -i makes it read .cshrc, in which csh users set their PATH.
    return [shell, "-ic" if Path(shell).name in ("csh", "tcsh") else "-ilc", script]


def read_output(said: bytes, mark: str) -> dict[str, str] | None:
    """Return the variables between the marks, without those that the query itself sets. None if a mark is missing."""
    rest = os.fsdecode(said).partition(mark + _BEGIN)[2]  # the first match: dash repeats the mark in `_`
    body, ended, _ = rest.partition(mark + _END)
    if not ended:
        return None
    body = body.lstrip("\r\n")
    rows = body.split("\0") if "\0" in body else _NEW_VARIABLE.split(body.rstrip("\n"))
    pairs = (row.partition("=") for row in rows)
    found = {name: value for name, equals, value in pairs if equals and _NAME.fullmatch(name)}
    return {name: value for name, value in found.items() if name not in (RESOLVING, "SHLVL", "PWD", "OLDPWD", "_")}


@asynccontextmanager
async def _started(argv: list[str], env: Mapping[str, str]) -> AsyncIterator[anyio.abc.Process]:
    """Start and yield the process. At the end its whole group is killed. Raises OSError, ValueError.

    It runs in its own session, so it can neither read from a terminal nor change one.
    """
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    # Shielded: a cancellation between fork and `try` would leave a shell that nobody stops.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            argv, stdin=null, stdout=pipe, stderr=null, env=dict(env), start_new_session=True
        )
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                await _hang_up(process)
            signal_group(process.pid, signal.SIGKILL)
            await process.wait()
            await process.aclose()


async def _hang_up(process: anyio.abc.Process) -> None:
    """End a shell as a closing terminal does, with SIGHUP, so that programs of its rc files can clean up.

    For example, a killed pyenv leaves a lock, and each of the user's later shells then waits a minute for it.
    """
    signal_group(process.pid, signal.SIGHUP)
    with anyio.move_on_after(HANG_UP_S):
        await process.wait()
        while signal_group(process.pid, 0):  # noqa: ASYNC110  # the shell ends first; nothing reports an empty group
            await anyio.sleep(GROUP_CHECK_S)
