"""The environment of the user's login shell: a gateway that the desktop started has a PATH without nvm or Homebrew.

Never here: what servers get of it otherwise (launch), values of variables in the log. POSIX only; elsewhere nothing is
asked and nothing found.

Decided: the shell is asked unless the gateway was surely started from a terminal, for asking in vain costs nobody
anything and not asking breaks servers. A terminal on stdin, stdout or stderr is sure, TERM_PROGRAM is (terminal
programs set it), and SHLVL with a TERM that only terminal windows have; SHLVL alone is not, since display managers
start whole sessions by a login shell. The shell gets RESOLVING in its environment: rc files may look at it, and who
has it set is not asked, which also ends a loop through an rc file that starts us.
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

from trayapp.model.late import late

log = logging.getLogger(__name__)

SHELL_LIMIT_S = 10.0  # slow rc files take 2 s; one that hangs must not keep servers from starting for good
GROUP_CHECK_S = 0.02
HANG_UP_S = 1.0  # from the hang-up to the end by force
EXIT_GRACE_S = 0.5  # for a logout file, once we know all
OUTPUT_LARGEST = 4 << 20  # bytes; an environment has at most some 100 kB, rc files that print more are broken
RESOLVING = "MULTI_MCP_RESOLVING_ENVIRONMENT"

# Besides PATH, and only where we have none: where toolchains lie, and what a download needs in a company's network.
# No wild cards where a token may hide (HOMEBREW_GITHUB_API_TOKEN, UV_PUBLISH_TOKEN, npm_config__auth).
_TAKEN = late(
    r"NVM_(?:DIR|BIN|INC)|FNM_(?:DIR|MULTISHELL_PATH)|VOLTA_HOME|N_PREFIX|PNPM_HOME|BUN_INSTALL|DENO_(?:DIR|INSTALL(?:_ROOT)?)"
    r"|(?:npm_config|NPM_CONFIG)_(?:cache|prefix|userconfig|CACHE|PREFIX|USERCONFIG)|COREPACK_HOME|NODE_EXTRA_CA_CERTS"
    r"|(?:PY|RB|NOD|GO|J|PL|PHP)ENV_ROOT|PIPX_(?:HOME|BIN_DIR)|UV_(?:CACHE_DIR|TOOL_DIR|TOOL_BIN_DIR|PYTHON_INSTALL_DIR)"
    r"|CONDA_(?:EXE|PREFIX|PYTHON_EXE)|MAMBA_(?:EXE|ROOT_PREFIX)|ASDF_(?:DIR|DATA_DIR)|MISE_(?:DATA_DIR|CONFIG_DIR)"
    r"|HOMEBREW_(?:PREFIX|CELLAR|REPOSITORY)|SDKMAN_(?:DIR|CANDIDATES_DIR)|JAVA_HOME|ANDROID_HOME|DOTNET_ROOT"
    r"|CARGO_HOME|RUSTUP_HOME|GO(?:PATH|ROOT|BIN)|GEM_(?:HOME|PATH)|DOCKER_HOST|NIX_(?:PROFILES|SSL_CERT_FILE)"
    r"|(?:HTTPS?|NO|ALL)_PROXY|(?:https?|no|all)_proxy|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|LANG|LC_(?:ALL|CTYPE)"
)
_POOR_TERMS = ("", "dumb", "linux")  # what a session without a terminal window has too
_BEGIN, _END = "begin", "end"
_NAME = late(r"[A-Za-z_][\w()]*", re.ASCII)
_NEW_VARIABLE = late(r"\n(?=[A-Za-z_]\w*=)", re.ASCII)

Find = Callable[[Mapping[str, str]], Awaitable[dict[str, str]]]


class Environment(dict[str, str]):
    """Our environment; `complete` makes it the merged one, once. Belongs to one event loop."""

    def __init__(self, own: Mapping[str, str]) -> None:
        super().__init__(own)
        self._settled = anyio.Event()
        self.wanted = anyio.Event()  # somebody waits for it to be complete

    async def complete(self, find: Find | None = None) -> None:
        """Add what the login shell has. Never raises; `settled` returns afterwards, whatever was found."""
        try:
            found = await (find or login_environment)(self)
            if found:
                self.update(merged(self, found))
                log.info(
                    "The login shell was asked: %d folders on the PATH", self.get("PATH", "").count(os.pathsep) + 1
                )
        finally:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until nothing more is added."""
        self.wanted.set()
        await self._settled.wait()


def merged(own: Mapping[str, str], shell: Mapping[str, str]) -> dict[str, str]:
    """Ours with the shell's: its PATH first and then what only ours has; of its other variables the listed ones.

    Pure. A variable that we have is never changed, PATH excepted.
    """
    taken = {name: value for name, value in shell.items() if name not in own and _TAKEN.fullmatch(name)}
    both = [*shell.get("PATH", "").split(os.pathsep), *own.get("PATH", "").split(os.pathsep)]
    path = os.pathsep.join(dict.fromkeys(folder for folder in both if folder))
    return {**own, **taken, **({"PATH": path} if path else {})}


async def login_environment(
    environ: Mapping[str, str], limit_s: float = SHELL_LIMIT_S, descriptors: tuple[int, ...] = (0, 1, 2)
) -> dict[str, str]:
    """All variables of the user's login shell, asked for at most `limit_s` seconds.

    {} when there is no need to ask (see above; a terminal on one of the `descriptors` tells that we come from one), and
    when it did not answer, which is one line in the log. Cancelled or at the limit, the shell and its group are killed.
    """
    if not should_ask(environ, any(map(_is_terminal, descriptors))):
        return {}
    shell = login_shell(environ)
    found: dict[str, str] | None = None
    with anyio.move_on_after(limit_s) as limit:
        found = await ask_shell(shell, environ)
    if found is None:
        why = f"did not end within {limit_s:g} s" if limit.cancelled_caught else "did not tell"
        log.warning("Servers start with our own PATH: the login shell %s %s", shell, why)
    return found or {}


def should_ask(environ: Mapping[str, str], has_terminal: bool) -> bool:
    """Whether the login shell may know more than we do; see the module's text."""
    if sys.platform == "win32" or has_terminal or environ.get(RESOLVING) or environ.get("TERM_PROGRAM"):
        return False
    return not (environ.get("SHLVL", "0") not in ("", "0") and environ.get("TERM", "") not in _POOR_TERMS)


def login_shell(environ: Mapping[str, str]) -> str:
    """The user's shell: SHELL, else the one in the password file."""
    if environ.get("SHELL"):
        return environ["SHELL"]
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    return "/bin/sh"


async def ask_shell(shell: str, environ: Mapping[str, str]) -> dict[str, str] | None:
    """Run the shell as at a login, with its rc files, and read its environment; None when it does not tell."""
    mark = f"multi-mcp-{secrets.token_hex(8)}"
    async with _started(shell_command(shell, mark), {**environ, RESOLVING: "1"}) as process:
        if process is None or process.stdout is None:
            return None
        said = bytearray()
        async for data in process.stdout:
            said += data
            if f"{mark}{_END}".encode() in said or len(said) > OUTPUT_LARGEST:
                break  # not until its end: what an rc file left running in the background may hold the pipe for ever
        with anyio.move_on_after(EXIT_GRACE_S):
            await process.wait()
    return read_output(bytes(said), mark)


def shell_command(shell: str, mark: str) -> list[str]:
    """Prints the environment between `mark` with _BEGIN and `mark` with _END, in words of sh, fish and csh alike.

    An old `env` without `-0` (macOS 12) is asked again without it. The quotes keep apart what a shell prints of the
    script itself, as for a window's title.
    """
    script = f"echo {mark}''{_BEGIN}; /usr/bin/env -0 || /usr/bin/env; echo {mark}''{_END}"
    # csh takes -l only when it is alone; -i makes it read .cshrc, which csh people set their PATH in.
    return [shell, "-ic" if Path(shell).name in ("csh", "tcsh") else "-ilc", script]


def read_output(said: bytes, mark: str) -> dict[str, str] | None:
    """The variables between the marks, without those of the asking itself; None when they are not both there."""
    rest = os.fsdecode(said).partition(mark + _BEGIN)[2]  # the first one: dash exports it once more, as `_`
    body, ended, _ = rest.partition(mark + _END)
    if not ended:
        return None
    body = body.lstrip("\r\n")
    rows = body.split("\0") if "\0" in body else _NEW_VARIABLE.split(body.rstrip("\n"))
    pairs = (row.partition("=") for row in rows)
    found = {name: value for name, equals, value in pairs if equals and _NAME.fullmatch(name)}
    return {name: value for name, value in found.items() if name not in (RESOLVING, "SHLVL", "PWD", "OLDPWD", "_")}


@asynccontextmanager
async def _started(argv: list[str], env: Mapping[str, str]) -> AsyncIterator[anyio.abc.Process | None]:
    """The process, None when it cannot be started; at the end everything in its group is killed.

    In a session of its own: it can neither read from a terminal nor change one.
    """
    null = subprocess.DEVNULL
    # Shielded: a cancellation between fork and `try` would leave a shell that nobody stops.
    with anyio.CancelScope(shield=True):
        try:
            process = await anyio.open_process(
                argv, stdin=null, stdout=subprocess.PIPE, stderr=null, env=dict(env), start_new_session=True
            )
        except (OSError, ValueError):
            process = None
    if process is None:
        yield None
        return
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                await _hang_up(process)
            _signal(process, signal.SIGKILL)
            await process.wait()
            await process.aclose()


async def _hang_up(process: anyio.abc.Process) -> None:
    """End a shell as a closed terminal does: what its rc files run cleans up behind it.

    Killed, pyenv for one leaves a lock for which every later shell of the user waits a minute.
    """
    _signal(process, signal.SIGHUP)
    with anyio.move_on_after(HANG_UP_S):
        await process.wait()
        while _signal(process, 0):  # noqa: ASYNC110  # the shell goes first; nobody is told when its group is empty
            await anyio.sleep(GROUP_CHECK_S)


def _signal(process: anyio.abc.Process, number: int) -> bool:
    """To all in its group; whether there is any. 0 only asks."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
