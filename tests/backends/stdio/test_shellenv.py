"""Tests of reading the environment of every installed login shell, with noisy, hanging and broken rc files."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.fixtures.secrets import no_secrets
from tests.patience import stretched
from trayapp.backends.launch import StdioLaunch, prepare_start
from trayapp.backends.stdio import shellenv
from trayapp.backends.stdio.shellenv import (
    RESOLVING,
    Environment,
    ask_shell,
    login_environment,
    login_shell,
    merged,
    read_output,
    shell_command,
    should_ask,
)
from trayapp.model.config import ServerConfig
from trayapp.service.gateway_launch import await_gone

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no login shell"),
]

GENEROUS_S = 30.0  # a shell answers within 20 ms on a quiet machine
CLEANS_UP_S = 3.0  # enough for a busy machine to reach the rc file
SHORT_S = 0.5  # time limit for a shell that never answers
NOISE = "MOTD: multi-mcp = fun; PATH=/wrong"

# shell -> the rc file that an interactive login shell reads, and the text written to it
BOURNE = 'echo "{noise}"; export PATH="$HOME/tool/bin:$PATH"; export NVM_DIR="$HOME/.nvm"; export TOKEN=secret'
FISH = 'echo "{noise}"; set -gx PATH $HOME/tool/bin $PATH; set -gx NVM_DIR $HOME/.nvm; set -gx TOKEN secret'
CSH = 'echo "{noise}"; setenv PATH "$HOME/tool/bin:$PATH"; setenv NVM_DIR "$HOME/.nvm"; setenv TOKEN secret'
SHELLS: dict[str, tuple[str, str]] = {
    "sh": (".profile", BOURNE),
    "dash": (".profile", BOURNE),
    "bash": (".bash_profile", BOURNE),
    "zsh": (".zshrc", BOURNE),
    "ksh": (".profile", BOURNE),
    "fish": (".config/fish/config.fish", FISH),
    "tcsh": (".tcshrc", CSH),
    "csh": (".cshrc", CSH),
}
# A missing shell is not a failure, because machines differ in the shells they have.
INSTALLED = [name for name in SHELLS if shutil.which(name)]


def environ_of(home: Path, shell: str) -> dict[str, str]:
    """Return an environment like one that a desktop session passes to the gateway."""
    return {"HOME": str(home), "SHELL": shell, "PATH": "/usr/bin:/bin", "ours": "kept", "_": "/usr/bin/x"}


def write_rc(home: Path, shell: str, more: str = "") -> None:
    """Write the shell's rc file: noise, a folder on PATH, a toolchain's variable, a secret, and `more`."""
    name, text = SHELLS[shell]
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(noise=NOISE) + f"\n{more}\n", encoding="utf-8")


# Without descriptors, because the tests may run in a terminal but a gateway starts without one.
ask_login = partial(login_environment, descriptors=())


async def asked(home: Path, shell: str, limit_s: float = GENEROUS_S) -> dict[str, str]:
    return await ask_login(environ_of(home, shutil.which(shell) or shell), limit_s)


# -- running the login shell -----------------------------------------------------------------------------------------


@pytest.mark.requirement("env-login-shell")
@pytest.mark.parametrize("shell", INSTALLED)
async def test_the_login_shell_tells_its_environment_whatever_its_rc_file_prints(tmp_path: Path, shell: str) -> None:
    write_rc(tmp_path, shell)
    found = await asked(tmp_path, shell)
    assert found["PATH"].startswith(f"{tmp_path}/tool/bin:")
    assert found["NVM_DIR"] == f"{tmp_path}/.nvm"
    assert RESOLVING not in found


async def test_a_value_of_several_lines_and_odd_bytes_comes_whole(tmp_path: Path) -> None:
    write_rc(tmp_path, "bash", more="export ODD=$'one\\ntwo=2\\n\\xff'")
    assert (await asked(tmp_path, "bash"))["ODD"] == "one\ntwo=2\n\udcff"


async def test_an_rc_file_can_tell_that_it_is_only_asked(tmp_path: Path) -> None:
    write_rc(tmp_path, "bash", more=f'[ -n "${RESOLVING}" ] && export NVM_BIN=/asked')
    assert (await asked(tmp_path, "bash"))["NVM_BIN"] == "/asked"


async def test_what_an_rc_file_leaves_running_is_not_waited_for_and_does_not_stay(tmp_path: Path) -> None:
    write_rc(tmp_path, "bash", more='sleep 1000 & echo $! > "$HOME/pid"')
    with anyio.fail_after(GENEROUS_S):
        assert "NVM_DIR" in await asked(tmp_path, "bash", 1000.0)
    assert await_gone(int((tmp_path / "pid").read_text()), GENEROUS_S)


@pytest.mark.requirement("env-login-shell-bounded")
async def test_a_shell_that_hangs_is_killed_with_its_children_at_the_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_rc(tmp_path, "bash", more='echo $$ > "$HOME/pid"; sleep 1000')
    with caplog.at_level(logging.INFO):
        assert await asked(tmp_path, "bash", SHORT_S) == {}
    (line,) = caplog.messages
    assert "did not end within 0.5 s" in line
    if (tmp_path / "pid").exists():  # on a busy machine, the shell may be killed before it writes the file
        assert await_gone(int((tmp_path / "pid").read_text()), GENEROUS_S)


async def test_what_a_hanging_shell_runs_may_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An rc file like pyenv's can remove its lock. A leftover lock would delay every later shell of the user."""
    (tmp_path / "runs").write_text('trap "rm $HOME/lock" EXIT\ntouch "$HOME/lock" "$HOME/begun"\nsleep 1000 & wait\n')
    write_rc(tmp_path, "bash", more='bash "$HOME/runs"')
    monkeypatch.setattr(shellenv, "HANG_UP_S", stretched(shellenv.HANG_UP_S))
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, the shell would inherit an ignored SIGHUP
    try:
        assert await asked(tmp_path, "bash", stretched(CLEANS_UP_S)) == {}
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert (tmp_path / "begun").exists()
    assert not (tmp_path / "lock").exists()


async def test_asking_that_is_cancelled_leaves_no_shell(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    write_rc(tmp_path, "bash", more='echo $$ > "$HOME/pid"; sleep 1000')
    with anyio.fail_after(GENEROUS_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked, tmp_path, "bash", 1000.0)
            pid = int(await anyio.to_thread.run_sync((tmp_path / "pid").read_text))
            tasks.cancel_scope.cancel()
    assert await_gone(pid, GENEROUS_S)


@pytest.mark.requirement("env-login-shell-bounded")
@pytest.mark.parametrize("shell", ["/bin/false", "/no/such/shell", "/", "relative", "nul\0"])
async def test_a_shell_that_does_not_tell_is_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, shell: str
) -> None:
    with caplog.at_level(logging.INFO):
        assert await ask_login(environ_of(tmp_path, shell)) == {}
    (line,) = caplog.messages
    assert "did not print its environment" in line


@pytest.mark.parametrize("more", ["exit 0", "exec true", "head -c 9000000 /dev/zero", "kill -9 $$"])
async def test_an_rc_file_that_ends_or_drowns_the_shell_gives_nothing(tmp_path: Path, more: str) -> None:
    write_rc(tmp_path, "bash", more=more)
    with anyio.fail_after(GENEROUS_S):
        assert await ask_shell(shutil.which("bash") or "", environ_of(tmp_path, "bash")) is None


def test_csh_is_not_given_the_login_flag_that_it_takes_alone() -> None:
    assert shell_command("/bin/tcsh", "m")[1] == "-ic"
    assert shell_command("/usr/bin/fish", "m")[1] == "-ilc"


OUTPUTS: list[tuple[str, dict[str, str] | None]] = [
    ("noise Mbegin\nA=1\0B=x=y\0Mend\n", {"A": "1", "B": "x=y"}),
    ("Mbegin\nA=1\0B=two\nlines\0Mend\nMend", {"A": "1", "B": "two\nlines"}),
    ("Mbegin\nA=1\nB=two\nlines\nC=3\nMend\n", {"A": "1", "B": "two\nlines", "C": "3"}),  # an `env` without -0
    ("Mbegin\nA=1\0SHLVL=2\0PWD=/\0OLDPWD=/\0_=Mbegin\0B=2\0Mend", {"A": "1", "B": "2"}),
    ("Mbegin\nA=1\0no equals\0=x\0BASH_FUNC_f%%=() {\0Mend", {"A": "1"}),
    ("title: echo M''begin; echo M''end Mbegin\nA=1\0Mend", {"A": "1"}),
    ("MbeginMend", {}),
    ("Mbegin\nA=1\0", None),
    ("Mend Mbegin", None),
    ("", None),
]


@pytest.mark.parametrize(("said", "expected"), OUTPUTS)
def test_what_stands_between_the_marks_is_read(said: str, expected: dict[str, str] | None) -> None:
    assert read_output(said.encode(), "M") == expected


# -- when to run a shell, and which ----------------------------------------------------------------------------------


WHETHER: list[tuple[dict[str, str], bool, bool]] = [
    ({}, False, True),  # started by autostart, a menu or launchd
    ({}, True, False),
    ({"TERM_PROGRAM": "iTerm.app"}, False, False),
    ({"TERM": "xterm-256color", "SHLVL": "1"}, False, False),  # started from a terminal, then detached
    ({"SHLVL": "1"}, False, True),  # a display manager that starts the session through a login shell
    ({"TERM": "linux", "SHLVL": "1"}, False, True),  # startx
    ({"TERM": "dumb", "SHLVL": "1"}, False, True),
    ({"TERM": "xterm-256color"}, False, True),  # a client that passes on few variables
    ({"TERM": "xterm", "SHLVL": "0"}, False, True),
    ({RESOLVING: "1"}, False, False),  # started by an rc file
]


@pytest.mark.requirement("env-login-shell-skipped")
@pytest.mark.parametrize(("environ", "has_terminal", "expected"), WHETHER)
def test_the_shell_is_asked_unless_we_surely_come_from_a_terminal(
    environ: dict[str, str], has_terminal: bool, expected: bool
) -> None:
    assert should_ask(environ, has_terminal) is expected


async def test_from_a_terminal_nothing_is_started(tmp_path: Path) -> None:
    write_rc(tmp_path, "bash", more='echo > "$HOME/started"')
    environ = {**environ_of(tmp_path, "/bin/bash"), "TERM_PROGRAM": "x"}
    assert await ask_login(environ) == {}
    assert not (tmp_path / "started").exists()


def test_the_shell_is_that_of_the_environment_or_of_the_password_file() -> None:
    assert login_shell({"SHELL": "/bin/x"}) == "/bin/x"
    assert login_shell({"SHELL": ""}).startswith("/")


# -- merging ---------------------------------------------------------------------------------------------------------


MERGES: list[tuple[dict[str, str], dict[str, str], dict[str, str]]] = [
    ({"PATH": "/a:/b"}, {"PATH": "/n:/b:/c"}, {"PATH": "/n:/b:/c:/a"}),
    ({"PATH": "/a"}, {}, {"PATH": "/a"}),
    ({}, {"PATH": "/n"}, {"PATH": "/n"}),
    ({"PATH": "/a::/a"}, {"PATH": ":/n:"}, {"PATH": "/n:/a"}),  # empty entries mean the working folder and are dropped
    ({}, {}, {}),
    ({}, {"NVM_DIR": "/n", "SDKMAN_DIR": "/s"}, {"NVM_DIR": "/n", "SDKMAN_DIR": "/s"}),
    ({"NVM_DIR": "/mine"}, {"NVM_DIR": "/n"}, {"NVM_DIR": "/mine"}),
    ({"NVM_DIR": ""}, {"NVM_DIR": "/n"}, {"NVM_DIR": ""}),
    ({}, {"HOMEBREW_PREFIX": "/h", "HOMEBREW_GITHUB_API_TOKEN": "t"}, {"HOMEBREW_PREFIX": "/h"}),
    ({}, {"npm_config_prefix": "/p", "npm_config__auth": "t"}, {"npm_config_prefix": "/p"}),
    ({}, {"GITHUB_TOKEN": "t", "LD_PRELOAD": "x", "NODE_OPTIONS": "x", "PYTHONPATH": "x", "PS1": "x"}, {}),
    ({}, {"https_proxy": "http://p", "SSL_CERT_FILE": "/c"}, {"https_proxy": "http://p", "SSL_CERT_FILE": "/c"}),
]


@pytest.mark.requirement("env-login-shell-merge")
@pytest.mark.parametrize(("own", "shell", "expected"), MERGES)
def test_the_shells_path_comes_first_and_little_else_comes_at_all(
    own: dict[str, str], shell: dict[str, str], expected: dict[str, str]
) -> None:
    before = dict(own)
    assert merged(own, shell) == expected
    assert own == before


# -- the gateway's environment ---------------------------------------------------------------------------------------


async def nothing(environ: Mapping[str, str]) -> dict[str, str]:
    return {}


@pytest.mark.requirement("env-login-shell")
async def test_a_server_is_prepared_with_the_path_that_is_found_while_it_waits(tmp_path: Path) -> None:
    program = tmp_path / "tool" / "bin" / "only-there"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    write_rc(tmp_path, "sh")
    environment = Environment(environ_of(tmp_path, "/bin/sh"))
    found: list[object] = []

    async def start() -> None:
        found.append(await prepare_start(ServerConfig("x", command="only-there"), environment, no_secrets, 0.0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await anyio.wait_all_tasks_blocked()
        assert found == []  # the start waits for the shell
        await environment.complete(ask_login)
    (launch,) = found
    assert isinstance(launch, StdioLaunch)
    assert launch.argv == (str(program),)
    assert launch.env["PATH"].startswith(f"{program.parent}:")
    assert launch.env["ours"] == "kept"
    assert "TOKEN" not in launch.env


async def test_an_environment_is_settled_even_where_asking_failed_or_was_cancelled() -> None:
    async def fails(environ: Mapping[str, str]) -> dict[str, str]:
        raise ZeroDivisionError

    environment = Environment({"PATH": "/a"})
    with pytest.raises(ZeroDivisionError):
        await environment.complete(fails)
    with anyio.fail_after(GENEROUS_S):
        await environment.settled()
    assert environment == {"PATH": "/a"}


async def test_an_environment_that_learns_nothing_stays_as_it_is() -> None:
    environment = Environment({"PATH": "/a::/b", "X": "1"})
    await environment.complete(nothing)
    await environment.settled()
    assert environment == {"PATH": "/a::/b", "X": "1"}


@pytest.mark.requirement("env-login-shell")
async def test_no_value_of_the_shell_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_rc(tmp_path, "bash")
    with caplog.at_level(logging.DEBUG):
        await Environment(environ_of(tmp_path, "/bin/bash")).complete(ask_login)
    assert "the login shell's variables" in caplog.text
    assert "secret" not in caplog.text
    assert str(tmp_path) not in caplog.text
