"""Tests of preparing a server's start: program, environment, npm packages without npm, and secrets."""

from __future__ import annotations

import errno
import json
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.secrets import no_secrets
from trayapp.auth.vault import Secrets
from trayapp.backends.launch import (
    DEFAULT_VARIABLES,
    HttpLaunch,
    StdioLaunch,
    child_environment,
    is_remote,
    prepare_start,
    secrets_in,
)
from trayapp.config.programs import own_environment
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConnectFailedError, KeyringLockedError, KeyringUnavailableError, MissingVariableError
from trayapp.model.redact import REDACTED, redacted

pytestmark = pytest.mark.anyio

SECRET = "plum tree 4 lantern"
BUNDLE = "/opt/multi-mcp/_internal"

# environment of the frozen program -> the environment that servers get
FROZEN: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"LD_LIBRARY_PATH": BUNDLE}, {}),
    ({"LD_LIBRARY_PATH": BUNDLE, "LD_LIBRARY_PATH_ORIG": "/mine"}, {"LD_LIBRARY_PATH": "/mine"}),
    ({"LD_LIBRARY_PATH": BUNDLE, "LD_LIBRARY_PATH_ORIG": ""}, {}),
    ({"LD_LIBRARY_PATH_ORIG": "/mine"}, {"LD_LIBRARY_PATH": "/mine"}),
    ({"DYLD_LIBRARY_PATH": BUNDLE, "DYLD_FRAMEWORK_PATH": BUNDLE}, {}),
    ({"DYLD_LIBRARY_PATH": BUNDLE, "DYLD_LIBRARY_PATH_ORIG": "/mine"}, {"DYLD_LIBRARY_PATH": "/mine"}),
    ({"_MEIPASS2": BUNDLE, "_PYI_ARCHIVE_FILE": "x", "_PYI_PARENT_PROCESS_LEVEL": "1"}, {}),
    ({"PYINSTALLER_RESET_ENVIRONMENT": "1"}, {}),
    ({"PYTHONHOME": BUNDLE, "VIRTUAL_ENV": f"{BUNDLE}/x"}, {}),
    ({"PYTHONHOME": "/usr", "VIRTUAL_ENV": "/home/me/venv"}, {"PYTHONHOME": "/usr", "VIRTUAL_ENV": "/home/me/venv"}),
    ({"PATH": "/bin", "HOME": "/h", "LD_PRELOAD": "/mine"}, {"PATH": "/bin", "HOME": "/h", "LD_PRELOAD": "/mine"}),
]


@pytest.mark.requirement("env-clean")
@pytest.mark.parametrize(("environ", "expected"), FROZEN)
def test_servers_get_nothing_of_what_a_packaged_program_needs(
    environ: dict[str, str], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(environ)
    assert own_environment(environ) == environ == before  # this program is not packaged
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", BUNDLE, raising=False)
    assert own_environment(environ) == expected


@pytest.mark.requirement("life-folder")
async def test_a_server_without_a_folder_runs_in_the_home_folder_and_never_in_the_gateways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / "home").mkdir()
    (home / "srv").mkdir()
    monkeypatch.chdir("/")
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    folders = {None: home, "srv": home / "srv", "./srv": home / "srv", "~/srv": home / "srv", str(tmp_path): tmp_path}
    for cwd, folder in folders.items():
        launch = await prepare_start(ServerConfig("x", command=sys.executable, cwd=cwd), environ, no_secrets, 0.0)
        assert isinstance(launch, StdioLaunch)
        assert Path(launch.cwd or "/") == folder
    homeless = environ | {"HOME": str(tmp_path / "none")}
    launch = await prepare_start(ServerConfig("x", command=sys.executable), homeless, no_secrets, 0.0)
    assert isinstance(launch, StdioLaunch)
    assert Path(launch.cwd or "/") == Path(tempfile.gettempdir())


@pytest.mark.requirement("env-inherit-off")
def test_without_inheritance_a_server_gets_the_defaults_and_its_own() -> None:
    environ = {**dict.fromkeys(DEFAULT_VARIABLES, "d"), "SECRET": "s", "A": "0"}
    server = ServerConfig("x", command="x", inherit_env=False, env={"A": "1"})
    assert child_environment(server, environ) == {**dict.fromkeys(DEFAULT_VARIABLES, "d"), "A": "1"}


async def test_an_address_is_prepared_as_it_is() -> None:
    launch = await prepare_start(ServerConfig("x", url="https://example.org/mcp"), {}, no_secrets, 0.0)
    assert isinstance(launch, HttpLaunch)


class Stalling(dict[str, str]):
    """An environment that calls `stall` in worker threads, as if the home folder were on a dead network drive."""

    def __init__(self, values: dict[str, str], stall: Callable[[], object]) -> None:
        super().__init__(values)
        self._stall = stall

    def get(self, name: str, default: Any = None) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self._stall()
        return super().get(name, default)


def stale() -> None:
    raise OSError(errno.ESTALE, "Stale file handle")


@pytest.mark.skipif(sys.platform == "win32", reason="the programs here are scripts")
class TestNpx:
    """Tests of `npx` commands that bypass npm if its cache has the package."""

    @pytest.fixture
    def environ(self, tmp_path: Path) -> dict[str, str]:
        home = tmp_path.resolve()
        package = home / ".npm" / "_npx" / "abc" / "node_modules" / "demo"
        package.mkdir(parents=True)
        manifest = {"name": "demo", "version": "1.0.0", "bin": "cli.js"}
        (package / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
        (package / "cli.js").touch()
        (home / "bin").mkdir()
        for name in ("node", "npx"):
            (home / "bin" / name).touch(mode=0o755)
        return {"HOME": str(home), "PATH": str(home / "bin"), "MULTI_MCP_HOME": str(home / "ours")}

    @staticmethod
    async def argv(environ: dict[str, str], *args: str, command: str = "npx") -> list[str]:
        """Return the command line prepared for a server, with paths relative to the home folder."""
        server = ServerConfig("x", command=command, args=args, cwd=environ["HOME"])
        launch = await prepare_start(server, environ, no_secrets, 1.0)
        assert isinstance(launch, StdioLaunch)
        return [word.removeprefix(environ["HOME"] + "/") for word in launch.argv]

    async def test_a_cached_package_runs_without_npm(self, environ: dict[str, str]) -> None:
        cli = ".npm/_npx/abc/node_modules/demo/cli.js"
        assert await self.argv(environ, "-y", "demo", "a") == ["bin/node", cli, "a"]
        Path(environ["HOME"], "bin", "npx").unlink()
        assert await self.argv(environ, "-y", "demo") == ["bin/node", cli]

    async def test_what_is_not_cached_runs_as_written(self, environ: dict[str, str]) -> None:
        assert await self.argv(environ, "-y", "other", "a") == ["bin/npx", "-y", "other", "a"]
        assert (await self.argv(environ, "-y", "demo", command=environ["PATH"] + "/npx"))[0] == "bin/npx"

    async def test_looking_that_hangs_or_fails_leaves_it_to_npm(self, environ: dict[str, str]) -> None:
        released = threading.Event()
        try:
            for stall in (released.wait, stale):
                assert (await self.argv(Stalling(environ, stall), "-y", "demo"))[0] == "bin/npx"
        finally:
            released.set()

    @pytest.mark.requirement("path-home-moves-all")
    async def test_the_note_of_a_tag_lies_in_our_own_cache_folder(self, environ: dict[str, str]) -> None:
        assert (await self.argv(environ, "demo@latest"))[0] == "bin/npx"
        assert [path.name for path in Path(environ["MULTI_MCP_HOME"], "cache").iterdir()] == ["npx-tags.json"]
        assert (await self.argv(environ, "demo@latest"))[0] == "bin/node"

    async def test_without_npx_and_without_a_copy_the_program_is_missed(self, environ: dict[str, str]) -> None:
        Path(environ["HOME"], "bin", "npx").unlink()
        server = ServerConfig("x", command="npx", args=("other",))
        with pytest.raises(ConnectFailedError, match="no program npx on the PATH"):
            await prepare_start(server, environ, no_secrets, 0.0)
        with pytest.raises(ConnectFailedError, match=r"no program bin/npx \(ENOENT\)"):
            await prepare_start(ServerConfig("x", command="bin/npx"), environ, no_secrets, 0.0)

    async def test_a_command_line_beside_args_is_said_to_be_one(self, environ: dict[str, str]) -> None:
        for command, hint in (
            ("npx -y", "command: [npx, ...]"),
            ("nothing -y", "Install it"),
            ("nothing", "Install it"),
        ):
            with pytest.raises(ConnectFailedError) as caught:
                await prepare_start(ServerConfig("x", command=command, args=("other",)), environ, no_secrets, 0.0)
            assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://mcp.example.test/mcp", True),
        ("https://${HOST}/mcp", True),
        ("http://[::bad", True),
        ("http://192.168.1.5:80/mcp", True),
        ("http://localhost:8000/mcp", False),
        ("http://LOCALHOST/mcp", False),
        ("http://tool.localhost/mcp", False),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://[::1]:8000/mcp", False),
    ],
)
def test_only_servers_on_other_machines_need_a_route(url: str, remote: bool) -> None:
    assert is_remote(ServerConfig("x", url=url)) is remote


def test_a_process_needs_no_route() -> None:
    assert not is_remote(ServerConfig("x", command="python3"))


# -- secrets ---------------------------------------------------------------------------------------------------------

NEEDS = ServerConfig(
    "x",
    command=sys.executable,
    args=("--key", "${keyring:a}"),
    env={"TOKEN": "${keyring:b}", "OTHER": "${UNSET:-${keyring:c}}", "FALLBACK": "${keyring:d:-none}"},
)


@pytest.mark.requirement("var-keyring")
async def test_secrets_are_fetched_at_once_and_put_into_the_launch() -> None:
    asked: list[tuple[str, ...]] = []

    async def keyring(names: Sequence[str]) -> Secrets:
        asked.append(tuple(names))
        return Secrets({"a": "A", "b": "b-of-the-keyring", "c": "C"})

    launch = await prepare_start(NEEDS, {}, keyring, 0.0)
    assert isinstance(launch, StdioLaunch)
    assert asked == [("a", "b", "c", "d")]
    assert launch.argv[1:] == ("--key", "A")
    assert launch.env == {"TOKEN": "b-of-the-keyring", "OTHER": "C", "FALLBACK": "none"}
    assert "b-of-the-keyring" not in repr(launch)


@pytest.mark.requirement("var-keyring")
async def test_a_missing_secret_is_an_error_by_its_name_that_says_how_to_keep_it() -> None:
    with pytest.raises(MissingVariableError) as caught:
        await prepare_start(NEEDS, {}, no_secrets, 0.0)
    assert caught.value.names == ["keyring:a", "keyring:b", "keyring:c"]
    assert "multi-mcp secret set a" in caught.value.hint


@pytest.mark.requirement("var-keyring")
async def test_a_secret_that_cannot_be_looked_for_says_why() -> None:
    async def keyring(names: Sequence[str]) -> Secrets:
        return Secrets({}, KeyringUnavailableError("The keyring is locked", "Unlock it", "locked"))

    with pytest.raises(KeyringLockedError) as caught:
        await prepare_start(NEEDS, {}, keyring, 0.0)
    assert str(caught.value) == f"{NEEDS.name} cannot be used: The keyring is locked. Unlock it"


@pytest.mark.requirement("var-keyring")
async def test_without_a_keyring_a_missing_secret_can_still_be_set() -> None:
    async def keyring(names: Sequence[str]) -> Secrets:
        return Secrets({}, KeyringUnavailableError("There is no keyring", "Install one", "missing"))

    with pytest.raises(MissingVariableError) as caught:
        await prepare_start(NEEDS, {}, keyring, 0.0)
    assert "multi-mcp secret set a" in caught.value.hint


async def test_a_server_without_secrets_asks_for_none() -> None:
    async def keyring(names: Sequence[str]) -> Secrets:
        raise AssertionError(names)

    await prepare_start(ServerConfig("x", command=sys.executable), {}, keyring, 0.0)


def test_a_server_gets_neither_our_home_nor_our_passphrase() -> None:
    environ = {"MULTI_MCP_HOME": "/h", "MULTI_MCP_PASSPHRASE": "p", "A": "1"}
    assert child_environment(ServerConfig("x", command="y"), environ) == {"A": "1"}
    named = ServerConfig("x", command="y", env={"MULTI_MCP_HOME": "/other"})
    assert child_environment(named, environ) == {"A": "1", "MULTI_MCP_HOME": "/other"}


# -- which values of an entry are secrets (their use is tested in tests/model/test_known_secrets.py) --


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"API_TOKEN": SECRET, "LEVEL": "debug-and-more"}},
        {"env": {"DATABASE_URL": "postgres://me:plum%20tree%204%20lantern@db/x"}},
        {"args": ("--api-key", SECRET, "--level", "debug-and-more")},
        {"args": (f"--password={SECRET}", "--level=debug-and-more")},
        {"headers": {"X-Api-Key": SECRET, "X-Team": "debug-and-more"}},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"Authorization": f"Basic {b64encode(f'me:{SECRET}'.encode()).decode()}"}},
        {"url": "https://a.example/mcp?api_key=plum%20tree%204%20lantern&level=debug-and-more"},
        {"client_secret": SECRET},
    ],
)
def test_what_an_entry_holds_under_the_name_of_a_secret_is_one(entry: dict[str, Any]) -> None:
    server = ServerConfig("one", **entry)
    found = list(secrets_in(server, server.headers))
    assert SECRET in found
    assert "debug-and-more" not in found


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("/home/me/keys/service account.json", False),
        ("~/.aws/credentials", False),
        ("C:\\Users\\me\\key.pem", False),
        ("/mXq8Zt3vN0/pLw72KdE5rY1sGh4", True),
    ],
)
def test_the_path_of_a_file_with_secrets_is_none(value: str, secret: bool) -> None:
    server = ServerConfig("one", env={"APPLICATION_CREDENTIALS": value}, args=("--password", value))
    assert list(secrets_in(server, {})) == ([value, value] if secret else [])


async def test_a_secret_of_the_keyring_and_of_the_environment_is_taken_out_of_every_text() -> None:
    entry = {"STAGE": "${keyring:stage}", "LEVEL": "${MY_TOKEN}", "PLACE": "${WHERE}"}
    server = ServerConfig("one", command="/bin/sh", env=entry, inherit_env=False)
    environ = {"MY_TOKEN": "green-8-elephants", "WHERE": "in-the-garden", "OTHER_TOKEN": "of-somebody-else-1"}

    async def keyring(names: Sequence[str]) -> Secrets:
        return Secrets({"stage": "curtain-up-now"})

    await prepare_start(server, environ, keyring, 0.0)
    assert redacted("curtain-up-now and green-8-elephants") == f"{REDACTED} and {REDACTED}"
    assert redacted("in-the-garden") == "in-the-garden"
