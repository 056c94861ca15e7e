"""The packaged programs from outside: their behavior without Python, and their content."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from devtools.bundle import secrets_of_build
from tests.auth.places import desk
from tests.confinement.test_hostile import needs
from tests.fixtures.odd import until
from tests.packaged.running import Packaged, packaged
from tests.tools import require
from trayapp import __version__
from trayapp.model.config import Confine
from trayapp.service.version import SHORT
from trayapp.wire.control import SNAPSHOT

INSTALLED_MOST = 70 << 20
# Modules that would slow down the start of every session, and a start hook of PyInstaller.
NOT_IN_THE_SHIM = {"asyncio", "inspect", "ssl", "logging", "click", "yaml", "orjson", "mcp", "pyi_rth_inspect"}
# A server that writes its environment to a file and exits.
TELLS = "#!/bin/sh\n/usr/bin/env > {notes}\n"


@pytest.fixture
def here(bundle: Path, home: Path) -> Iterator[Packaged]:
    with packaged(bundle, home) as made:
        yield made


@pytest.mark.requirement("package-runs")
def test_the_demo_passes_without_python_or_node(here: Packaged) -> None:
    done = here.run("demo", "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["name"]: step for step in json.loads(done.stdout)["steps"]}
    assert steps["call_again"]["said"] == "2 + 3 = 5"


@pytest.mark.requirement("package-runs")
def test_a_pattern_is_searched_for(here: Packaged) -> None:
    here.servers({"sample": here.sample})
    done = here.run("search", "^sample_a.d$", "--regex", "--json")
    assert done.returncode == 0, done.stderr
    assert [tool["exposed_name"] for tool in json.loads(done.stdout)] == ["sample_add"]


@pytest.mark.requirement("package-version")
def test_version_and_commit_are_told(here: Packaged, built: Path) -> None:
    commit = (built / "work" / "commit").read_text()[:SHORT]
    assert here.run("--version").stdout == f"multi-mcp {__version__} ({commit})\n"


@pytest.mark.anyio
@pytest.mark.requirement("package-runs", "package-stable")
async def test_the_shim_starts_the_gateway_and_its_session_outlives_it(here: Packaged) -> None:
    here.servers({"sample": here.sample})
    async with here.client() as client:
        assert (await client.call("sample_add", a=2, b=3))["content"][0]["text"] == "5"
        first = here.gateway()
        os.kill(first, signal.SIGKILL)
        await until(lambda: here.gateway() not in (0, first))
        assert (await client.call("sample_add", a=3, b=4))["content"][0]["text"] == "7"


@pytest.mark.anyio
@pytest.mark.requirement("package-runs")
async def test_http_works_on_both_sides(bundle: Path, home: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mm-", dir="/tmp") as other, packaged(bundle, Path(other)) as near:
        near.servers({"sample": near.sample}, http=True)
        assert near.run("start", "--detach").returncode == 0
        url = await until(lambda: near.ask(SNAPSHOT)["gateway"]["http_url"])
        bearer = (Path(other) / "http-token").read_text().strip()
        with packaged(bundle, home) as here:
            here.servers({"far": {"url": url, "headers": {"Authorization": f"Bearer {bearer}"}}})
            async with here.client() as client:
                assert (await client.call("far_sample_add", a=20, b=22))["content"][0]["text"] == "42"


@pytest.mark.anyio
@pytest.mark.requirement("package-runs")
async def test_the_guardian_of_a_packaged_gateway_ends_what_it_left(here: Packaged) -> None:
    here.servers({"sample": here.sample})
    async with here.client() as client:
        await client.call("sample_add", a=2, b=3)
        gateway = psutil.Process(here.gateway())
        await until(lambda: len(gateway.children(recursive=True)) == 1)  # until the guardian has detached
        kin = gateway.children(recursive=True)
        assert [process.cmdline()[1:2] for process in kin] == [["sample-server"]]
    os.kill(here.gateway(), signal.SIGKILL)
    await until(lambda: not any(process.is_running() for process in kin))


@pytest.mark.anyio
@pytest.mark.requirement("package-runs", "confine-life")
@pytest.mark.parametrize("way", ["landlock", "bubblewrap"])
async def test_a_packaged_gateway_confines_without_an_interpreter(bundle: Path, home: Path, way: str) -> None:
    confine = Confine(network=False, sockets=way == "bubblewrap")
    needs(confine)
    path = {"PATH": str(Path(require("bwrap")).parent)} if way == "bubblewrap" else {}
    (home / "work").mkdir()
    with packaged(bundle, home, **path) as here:
        here.servers({"sample": {**here.sample, "cwd": str(home / "work"), "confine": confine.value()}})
        async with here.client() as client:
            assert "5" in str(await client.call("sample_add", a=2, b=3))
        [server] = here.ask(SNAPSHOT)["servers"]
    assert server["confinement"] == {"way": way, "why_open": "", "refused": []}


@pytest.mark.anyio
@pytest.mark.requirement("package-clean-children")
@pytest.mark.parametrize("own", ["", "/opt/mine"])
async def test_servers_get_the_users_environment_and_nothing_of_ours(bundle: Path, home: Path, own: str) -> None:
    program, notes = home / "server.sh", home / "notes"
    program.write_text(TELLS.format(notes=notes))
    program.chmod(0o755)
    users = {"LD_LIBRARY_PATH": own} if own else {}
    with packaged(bundle, home, **users) as here:
        here.servers({"teller": {"command": [str(program)], "lifecycle": "eager"}})
        async with here.client():  # on the way shim -> gateway -> server, each program sets a library path for itself
            await until(notes.exists)
            await until(lambda: "MULTI_MCP_BACKEND" in notes.read_text())
    told = dict(line.split("=", 1) for line in notes.read_text().splitlines() if "=" in line)
    assert told.get("LD_LIBRARY_PATH", "") == own
    assert [name for name in told if name.startswith(("_PYI", "_MEI", "PYINSTALLER", "LD_LIBRARY_PATH_"))] == []
    assert str(bundle) not in "".join(told.values()).replace(str(program), "")


@pytest.mark.requirement("package-runs")
def test_secrets_lie_in_the_real_keyring(bundle: Path, home: Path) -> None:
    require("gnome-keyring-daemon")
    with desk() as session:
        bus = {name: session.environ[name] for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")}
        with packaged(bundle, home, **bus) as here:
            done = here.run("secret", "set", "github", stdin="ghp_of_a_test")
            assert done.returncode == 0, done.stderr
            assert "github" in here.run("secret", "list").stdout
            found = json.loads(here.run("doctor", "--json").stdout)
            text = json.dumps(found)
            assert "Secret" in text or "keyring" in text
    assert "ghp_of_a_test" not in "".join(path.read_text("utf-8", "replace") for path in home.rglob("*.*"))


@pytest.mark.anyio
@pytest.mark.requirement("package-upgrade")
async def test_a_session_survives_that_its_program_is_replaced_under_it(bundle: Path, home: Path, built: Path) -> None:
    place = Path(shutil.copytree(bundle, home / "program", symlinks=True))
    with packaged(place, home) as here:
        here.servers({"sample": here.sample})
        async with here.client() as client:
            assert (await client.call("sample_echo", text="old"))["content"]
            first = here.gateway()
            for name in ("multi-mcp", "multi-mcp-shim"):
                fresh = place / "fresh"
                fresh.write_bytes((place / name).read_bytes()[:4096])  # different bytes at the same offsets
                fresh.chmod(0o755)
                fresh.replace(place / name)
            os.kill(first, signal.SIGTERM)
            await until(lambda: not psutil.pid_exists(first))  # the shim loads modules from its old program
            for name in ("multi-mcp", "multi-mcp-shim"):
                shutil.copy2(bundle / name, place / "fresh")
                (place / "fresh").replace(place / name)
            assert (await client.call("sample_add", a=1, b=1))["content"][0]["text"] == "2"
            assert here.gateway() not in (0, first)


# -- the content of the programs -------------------------------------------------------------------------------------


@pytest.mark.requirement("package-size")
def test_the_folder_stays_within_its_budget(bundle: Path) -> None:
    assert sum(path.lstat().st_size for path in bundle.rglob("*") if path.is_file()) <= INSTALLED_MOST


def modules_of(program: Path) -> dict[str, bytes]:
    """Return the code of a program's modules and start scripts by name."""
    import marshal

    from PyInstaller.archive.readers import CArchiveReader

    archive = CArchiveReader(str(program))
    found = dict.fromkeys(archive.toc, b"")
    (embedded,) = (name for name in archive.toc if name.startswith("PYZ"))
    inner = archive.open_embedded_archive(embedded)
    for name in inner.toc:
        code = inner.extract(name)
        found[name] = marshal.dumps(code) if code else b""
    return found


@pytest.mark.requirement("package-runs")
def test_the_shim_holds_nothing_that_its_start_would_pay_for(bundle: Path) -> None:
    assert set(modules_of(bundle / "multi-mcp-shim")) & NOT_IN_THE_SHIM == set()


@pytest.mark.requirement("package-tray")
def test_the_tray_holds_nothing_of_the_gateway(bundle: Path) -> None:
    held = modules_of(bundle / "multi-mcp-tray")
    assert [name for name in held if name.startswith(("mcp", "trayapp.gateway", "trayapp.backends", "keyring"))] == []


@pytest.mark.requirement("package-no-trace")
def test_nothing_names_a_folder_of_the_machine_that_built_it(bundle: Path) -> None:
    secrets = secrets_of_build(Path(sys.executable))
    assert secrets
    named = [name for name, data in all_of(bundle) if any(secret in data for secret in secrets)]
    assert named == []


def all_of(bundle: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file, archive member and program module."""
    for path in bundle.rglob("*"):
        if path.is_file():
            yield path.name, path.read_bytes()
        if path.suffix == ".zip":
            packed = zipfile.ZipFile(path)
            yield from ((f"{path.name}: {name}", packed.read(name)) for name in packed.namelist())
    for path in bundle.glob("multi-mcp*"):
        yield from ((f"{path.name}: {name}", code) for name, code in modules_of(path).items())
