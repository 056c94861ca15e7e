"""Tests of the `doctor` checks against real folders, sockets and processes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from tests.auth.places import BUS_CONFIG, desk, environment
from tests.cli.running import FakeGateway
from tests.tools import require
from trayapp.auth.os_keyring import KeyringEntries
from trayapp.auth.sealed import SealedFile
from trayapp.config.paths import find_paths
from trayapp.config.store import sample_text
from trayapp.model.errors import StorageError
from trayapp.service import checks
from trayapp.service.checks import CHECKS, gateway, servers, system
from trayapp.service.checks.check import Check, CheckContext, CheckResult, run_checks
from trayapp.service.pause import PAUSE_LOCK, TrayLock
from trayapp.wire.control import KEYRING
from trayapp.wire.rundir import run_dir, socket_path

linux = pytest.mark.skipif(sys.platform != "linux", reason="D-Bus")
posix = pytest.mark.skipif(os.name == "nt", reason="modes, Unix sockets and registries")
SECRET = "hX7q2Lk9ZpR4vT1s"
LONG_AGO = 1_000_000_000.0  # Unix seconds, before any running process started


@pytest.fixture
def world(home: Path) -> CheckContext:
    """Create a minimal environment in a fresh home, and return its context."""
    environ = {"MULTI_MCP_HOME": str(home), "PATH": str(home / "bin"), "HOME": str(home)}
    (home / "bin").mkdir()
    return CheckContext(environ, find_paths(environ), run_dir(environ))


def write_servers(world: CheckContext, text: str) -> None:
    world.paths.config_file.write_text(text, encoding="utf-8")


def program(world: CheckContext, name: str, text: str = "#!/bin/sh\n") -> Path:
    path = Path(world.environ["PATH"], name)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def told(findings: list[CheckResult]) -> list[tuple[str, str]]:
    return [(finding.code, finding.state) for finding in findings]


# -- all checks -------------------------------------------------------------------------------------------------------


def test_every_code_is_stable_and_stands_once() -> None:
    codes = [check.code for check in CHECKS]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and code.count(".") == 1 for code in codes)


CODES = [
    "bus.session",
    "config.parses",
    "config.servers",
    "disk.space",
    "disk.writable",
    "gateway.servers",
    "home.short",
    "keyring.available",
    "log.size",
    "path.programs",
    "port.http",
    "processes.stale",
    "server.command",
    "server.cwd",
    "server.launch",
    "server.variables",
    "socket.answers",
    "socket.mode",
    "tray.host",
    "version.gateway",
    "version.python",
]


@pytest.mark.requirement("doctor-findings")
def test_the_codes_are_those_that_scripts_know() -> None:
    """Scripts depend on these codes, so none may be renamed or removed."""
    sources = [path.read_text(encoding="utf-8") for path in Path(checks.__file__).parent.glob("*.py")]
    groups = "|".join(sorted({code.partition(".")[0] for code in CODES}))
    said = {code for source in sources for code in re.findall(rf'"((?:{groups})\.[a-z]+)"', source)}
    assert said >= set(CODES)


@pytest.mark.requirement("doctor-findings")
def test_a_fresh_home_has_no_problem_and_nothing_is_made_in_it(world: CheckContext, home: Path) -> None:
    findings = run_checks(CHECKS, world, 20.0)
    assert [finding for finding in findings if finding.state == "problem"] == []
    assert {finding.code for finding in findings} >= {"config.parses", "socket.answers", "disk.space", "port.http"}
    assert {path.name for path in home.iterdir()} == {"bin"}


@pytest.mark.requirement("doctor-findings")
def test_a_file_that_cannot_be_read_is_one_problem(world: CheckContext) -> None:
    world.paths.config_file.mkdir()
    findings = run_checks(CHECKS, world, 20.0)
    assert [finding.code for finding in findings if finding.state == "problem"] == ["config.parses"]


@pytest.mark.requirement("doctor-bounded")
def test_a_check_that_hangs_or_fails_stops_no_other(world: CheckContext) -> None:
    release = threading.Event()

    def hangs(world: CheckContext) -> list[CheckResult]:
        release.wait()
        return []

    def refuses(world: CheckContext) -> list[CheckResult]:
        raise PermissionError(13, "Permission denied", "/x")

    def errs(world: CheckContext) -> list[CheckResult]:
        raise StorageError("The disk is full", "Free some space")

    def is_wrong(world: CheckContext) -> list[CheckResult]:
        raise KeyError(SECRET)

    checks = [Check("a.hangs", hangs), Check("b.refuses", refuses), Check("c.errs", errs), Check("d.is", is_wrong)]
    findings = run_checks([*checks, Check("e.fine", system.python_version)], world, 0.2)
    release.set()
    assert [finding.code for finding in findings] == ["a.hangs", "b.refuses", "c.errs", "d.is", "version.python"]
    assert [finding.state for finding in findings] == ["problem"] * 4 + ["ok"]
    assert findings[0].message == "The check did not end within 0.2 s"
    assert findings[1].message == "/x: Permission denied"
    assert (findings[2].message, findings[2].remedy) == ("The disk is full", "Free some space")
    assert SECRET not in findings[3].message
    assert all(finding.remedy for finding in findings[:4])


def test_an_old_python_is_a_problem(world: CheckContext) -> None:
    assert told(system.python_version(replace(world, python=(3, 10, 9)))) == [("version.python", "problem")]
    assert told(system.python_version(replace(world, python=(3, 14, 0)))) == [("version.python", "ok")]


# -- servers.yaml -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("doctor-findings")
def test_a_file_that_does_not_parse_is_told_with_its_line_and_once(world: CheckContext) -> None:
    write_servers(world, "servers:\n  a: {command: x}\n  a: {command: y}\n")
    (finding,) = servers.config_parses(world)
    assert finding.state == "problem"
    assert "line 3" in finding.message
    assert (servers.config_servers(world), servers.launches(world), servers.programs(world)) == ([], [], [])
    assert gateway.http_port(world) == []


def test_wrong_entries_are_problems_and_unknown_keys_are_notes(world: CheckContext) -> None:
    write_servers(world, "servers:\n  a: {}\n  b: {command: x, idle_tiemout: 3}\n")
    assert [finding.state for finding in servers.config_servers(world)] == ["problem", "note"]
    assert [finding.message.split(":")[0] for finding in servers.config_servers(world)] == ["line 2", "line 3"]


@posix
@pytest.mark.requirement("doctor-findings", "doctor-no-values")
def test_what_a_server_lacks_is_told_by_name_and_without_values(world: CheckContext, home: Path) -> None:
    write_servers(
        world,
        """servers:
  good: {command: tool, cwd: "~", env: {A: "${HOME}"}}
  off: {command: none, disabled: true}
  unset: {command: tool, env: {A: "${NO_SUCH}", B: "${KEY}"}}
  folder: {command: tool, cwd: "/nowhere/${KEY}"}
  missing: {command: "missing-${KEY}"}
  path: {command: /nowhere/x}
  plain: {command: ./bin/data, cwd: "~"}
  kept: {command: tool, env: {A: "${keyring:github}"}}
  printed: {command: tool, env: {A: "${cmd:op read op://vault/x}"}}
  web: {url: "https://example.com/${NO_URL}"}
""",
    )
    program(world, "tool")
    program(world, "data").chmod(0o644)
    findings = list(servers.launches(replace(world, environ={**world.environ, "KEY": SECRET})))
    assert [(finding.code, finding.state, finding.message) for finding in findings] == [
        ("server.variables", "problem", "unset: Variable NO_SUCH is not set"),
        ("server.cwd", "problem", "folder: there is no folder /nowhere/${KEY}"),
        ("server.command", "problem", "missing: there is no program missing-${KEY} on the PATH"),
        ("server.command", "problem", "path: there is no program /nowhere/x"),
        ("server.command", "problem", "plain: there is no program ./bin/data"),
        ("server.variables", "note", "kept: the secret github in the keyring was not checked"),
        ("server.variables", "note", "printed: the command of a secret was not run: `op read op://vault/x`"),
        ("server.variables", "problem", "web: Variable NO_URL is not set"),
    ]
    assert SECRET not in str(findings)


@posix
def test_servers_that_lack_nothing_are_one_line(world: CheckContext) -> None:
    program(world, "tool")
    write_servers(world, "servers:\n  a: {command: tool}\n  b: {url: https://example.com/mcp}\n")
    assert told(list(servers.launches(world))) == [("server.launch", "ok")]


@pytest.mark.requirement("file-first-run")
@pytest.mark.parametrize("text", [sample_text(), "servers: {s: {command: [/gone/multi-mcp-shim, sample-server]}}"])
def test_the_sample_server_is_there_wherever_multi_mcp_lay_when_the_file_was_written(
    world: CheckContext, text: str
) -> None:
    write_servers(world, text)
    assert told(list(servers.launches(world))) == [("server.launch", "ok")]


@posix
def test_node_and_uvx_are_asked_for_only_where_a_server_needs_them(world: CheckContext) -> None:
    write_servers(world, "servers:\n  a: {command: tool}\n")
    assert servers.programs(world) == []
    write_servers(world, "servers:\n  a: {command: npx -y x}\n  b: {command: uvx y}\n  c: {command: node z}\n")
    assert told(servers.programs(world)) == [("path.node", "problem"), ("path.npx", "problem"), ("path.uvx", "problem")]
    assert all(finding.remedy for finding in servers.programs(world))


@posix
@pytest.mark.requirement("doctor-findings")
def test_one_program_that_is_missing_is_one_finding_and_says_where_there_is_one(
    world: CheckContext, home: Path
) -> None:
    write_servers(world, "servers:\n  a: {command: uvx x}\n  b: {command: uvx y}\n  c: {command: tool}\n")
    program(world, "tool")
    findings = [*servers.launches(world), *servers.programs(world)]
    assert told(findings) == [("path.uvx", "problem")]
    assert "a, b need it" in findings[0].message
    place = home / ".local" / "bin" / "uvx"
    place.parent.mkdir(parents=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    assert "Found at ~/.local/bin/uvx" in servers.programs(world)[0].remedy
    assert servers.lacking(world) == {"a", "b"}


@posix
@pytest.mark.parametrize(("version", "state"), [("v16.20.1", "note"), ("v22.1.0", "ok"), ("", "ok")])
def test_an_old_node_is_a_note(world: CheckContext, version: str, state: str) -> None:
    write_servers(world, "servers:\n  a: {command: node x}\n")
    program(world, "node", f"#!/bin/sh\necho {version}\n")
    assert told(servers.programs(world)) == [("path.node", state)]


# -- the gateway ------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.requirement("path-modes")
def test_modes_that_let_others_in_are_problems(world: CheckContext) -> None:
    run = Path(world.run)
    run.mkdir(mode=0o700)
    assert told(gateway.socket_mode(world)) == [("socket.mode", "ok")]
    run.chmod(0o755)
    (run / "endpoint.json").touch(0o644)
    found = gateway.socket_mode(world)
    assert told(found) == [("socket.mode", "problem")] * 2
    assert [finding.remedy for finding in found] == [
        f"Restrict it with: chmod 700 {run}",
        f"Restrict it with: chmod 600 {run / 'endpoint.json'}",
    ]


@posix
def test_a_deep_home_has_its_socket_elsewhere(world: CheckContext) -> None:
    deep = replace(world, run=f"/tmp/{'x' * 120}/run")
    assert told(gateway.home_short(world)) == [("home.short", "ok")]
    assert told(gateway.home_short(deep)) == [("home.short", "note")]


@contextmanager
def listening(world: CheckContext) -> Iterator[socket.socket]:
    """Listen at the gateway's socket path without ever answering, and yield the socket."""
    Path(world.run).mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(socket_path(world.run))
        sock.listen()
        yield sock


@posix
@pytest.mark.requirement("doctor-findings")
def test_a_gateway_that_hangs_is_a_problem(world: CheckContext) -> None:
    with listening(world):
        (finding,) = gateway.socket_answers(world)
    assert (finding.state, finding.message) == ("problem", "The gateway does not answer")


@posix
def test_a_socket_that_was_left_behind_is_a_note(world: CheckContext) -> None:
    assert gateway.socket_answers(world)[0].message == "The gateway is not running"
    with listening(world):
        pass
    (finding,) = gateway.socket_answers(world)
    assert (finding.state, finding.message) == ("note", "The gateway was killed and is not running")


@posix
@pytest.mark.requirement("tray-pause")
def test_while_it_is_paused_nobody_is_told_that_ai_tools_start_it(world: CheckContext) -> None:
    pause = TrayLock(world.run, PAUSE_LOCK)
    pause.hold()
    (finding,) = gateway.socket_answers(world)
    pause.end()
    assert (finding.state, finding.message) == ("note", "multi-mcp is paused: no gateway runs")
    assert finding.remedy.startswith("Choose Resume in the tray menu")


@posix
def test_a_process_that_holds_the_lock_and_does_not_listen_is_named(world: CheckContext) -> None:
    Path(world.run).mkdir(mode=0o700)
    lock = Path(world.run, gateway.LOCK)
    lock.write_text(str(os.getpid()), encoding="ascii")
    assert gateway.socket_answers(world)[0].message == f"The gateway (process {os.getpid()}) is starting"
    os.utime(lock, (LONG_AGO, LONG_AGO))  # this process started later, so another one wrote the lock
    assert gateway.socket_answers(world)[0].message == "The gateway is not running"


@posix
def test_a_holder_that_has_had_its_time_is_a_problem(world: CheckContext) -> None:
    Path(world.run).mkdir(mode=0o700)
    lock = Path(world.run, gateway.LOCK)
    lock.write_text("1", encoding="ascii")  # process 1 is older than the lock
    past = time.time() - gateway.STARTING_S - 1
    os.utime(lock, (past, past))
    (finding,) = gateway.socket_answers(world)
    assert (finding.state, finding.message) == ("problem", "The gateway (process 1) runs but does not listen")


def test_a_port_that_somebody_else_has_is_a_note(world: CheckContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_servers(world, f"settings: {{http: {{port: {port}}}}}\n")
        assert told(gateway.http_port(world)) == [("port.http", "note")]
    assert told(gateway.http_port(world)) == [("port.http", "ok")]
    write_servers(world, "settings: {http: {enabled: false}}\n")
    assert gateway.http_port(world)[0].message == "HTTP is switched off"


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can act as another user")
@pytest.mark.requirement("doctor-findings", "http-token-port")
def test_a_port_that_another_user_holds_is_a_problem_and_names_the_user(world: CheckContext) -> None:
    script = (
        "import os, socket; os.setuid(65534); s = socket.create_server(('', 0)); print(s.getsockname()[1], flush=1)"
    )
    argv = [sys.executable, "-c", f"{script}; input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        port = int(other.stdout.readline())
        write_servers(world, f"settings: {{http: {{port: {port}}}}}\n")
        (finding,) = gateway.http_port(world)
        other.stdin.write(b"\n")
        other.stdin.close()
    assert (finding.state, finding.code) == ("problem", "port.http")
    assert f"Port {port} is held by a program of another user (nobody, uid 65534)" in finding.message
    assert "token" in finding.remedy


@posix
@pytest.mark.requirement("doctor-findings")
def test_processes_that_a_dead_gateway_left_are_named(world: CheckContext) -> None:
    run = Path(world.run)
    run.mkdir(mode=0o700)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gone:
        assert gone.stdin is not None
        gone.stdin.close()
        gone.wait()
    registry = run / f"backends-{gone.pid}.tsv"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as left:
        registry.write_text(f"{left.pid}\t123\tmark\n999999999\t1\tx\nrubbish\n", encoding="utf-8")
        (finding,) = gateway.stale_processes(world)
        assert finding.state == "problem"
        assert finding.message == f"An earlier gateway left 1 server process running: {left.pid}"
        os.utime(registry, (LONG_AGO, LONG_AGO))  # the process started later, so it only reuses the ID
        assert told(gateway.stale_processes(world)) == [("processes.stale", "note")]
        assert left.stdin is not None
        left.stdin.close()
    registry.unlink()
    (run / f"backends-{os.getpid()}.tsv").touch()  # belongs to a running gateway
    assert told(gateway.stale_processes(world)) == [("processes.stale", "ok")]


# -- the disk ---------------------------------------------------------------------------------------------------------


def test_folders_that_can_be_written_are_tried_and_left_as_they_were(world: CheckContext, home: Path) -> None:
    world.paths.cache_dir.mkdir()
    assert told(system.writable(world)) == [("disk.writable", "ok")]
    assert list(world.paths.cache_dir.iterdir()) == []
    assert told(system.space(world)) == [("disk.space", "ok")]


def test_a_file_in_a_folders_place_is_a_problem(world: CheckContext) -> None:
    world.paths.log_dir.touch()
    (finding,) = system.writable(world)
    assert (finding.state, finding.message) == ("problem", f"{world.paths.log_dir} is not a folder")


def test_a_place_that_keeps_two_folders_from_being_made_is_one_finding(world: CheckContext, home: Path) -> None:
    place = home / "file"
    place.touch()
    paths = world.paths._replace(cache_dir=place / "cache", log_dir=place / "logs")
    assert [one.message for one in system.writable(replace(world, paths=paths))] == [f"{place} is not a folder"]


@posix
def test_a_folder_that_cannot_be_written_says_if_the_whole_disk_is_read_only(
    world: CheckContext, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "Permission denied" in system.writable(world)[0].message
    facts = os.statvfs(home)
    read_only = SimpleNamespace(f_flag=facts.f_flag | os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    assert "Read-only file system" in system.writable(world)[0].message


def test_the_size_of_the_logs_is_told(world: CheckContext) -> None:
    assert system.log_size(world)[0].message.endswith("take 0.0 MB")
    (world.paths.log_dir / "servers").mkdir(parents=True)
    (world.paths.log_dir / "servers" / "a.log").write_bytes(b"x" * 1_500_000)
    assert system.log_size(world)[0].message.endswith("take 1.5 MB")
    with (world.paths.log_dir / "huge.log").open("wb") as file:
        file.truncate(system.LOGS_LARGE + 1)
    assert told(system.log_size(world)) == [("log.size", "note")]


# -- the desktop ------------------------------------------------------------------------------------------------------


def test_without_a_bus_there_is_neither_keyring_nor_tray_and_that_is_no_problem(world: CheckContext) -> None:
    here = replace(world, platform="linux")
    found = [*system.session_bus(here), *system.keyring(here), *system.tray_host(here)]
    assert told(found) == [("bus.session", "note"), ("keyring.available", "note"), ("tray.host", "note")]
    assert all(finding.remedy for finding in found)
    assert system.NO_KEYRING in found[1].message


def test_on_x_an_old_tray_may_show_an_icon_without_a_menu(world: CheckContext) -> None:
    here = replace(world, platform="linux", environ={**world.environ, "DISPLAY": ":0"})
    assert "XEmbed" in system.tray_host(here)[0].message
    wayland = replace(here, environ={**here.environ, "WAYLAND_DISPLAY": "wayland-0"})
    assert "XEmbed" not in system.tray_host(wayland)[0].message


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_have_their_own(world: CheckContext, platform: str) -> None:
    there = replace(world, platform=platform)
    found = [*system.session_bus(there), *system.keyring(there), *system.tray_host(there)]
    assert [finding.state for finding in found] == ["ok", "ok"]


@linux
def test_a_bus_that_does_not_answer_is_not_checked(world: CheckContext) -> None:
    here = replace(world, platform="linux", environ={**world.environ, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"})
    assert system.keyring(here)[0].message.startswith("Not checked")
    assert system.tray_host(here)[0].message.startswith("Not checked")


ASKED = """
import os, sys
from trayapp.config.paths import find_paths
from trayapp.service.checks import system
from trayapp.service.checks.check import CheckContext
world = CheckContext(dict(os.environ), find_paths(os.environ), "/nowhere", "linux")
print(*(finding.state for look in (system.session_bus, system.keyring, system.tray_host) for finding in look(world)))
print(system._has_owner(world.environ, "org.freedesktop.DBus"))
"""
SERVICE = "[D-BUS Service]\nName=org.freedesktop.secrets\nExec=/bin/false\n"


@linux
@pytest.mark.parametrize("installed", [True, False])
def test_a_real_bus_is_asked(home: Path, installed: bool) -> None:
    session = require("dbus-run-session")
    services = home / "data" / "dbus-1" / "services"
    services.mkdir(parents=True)
    if installed:
        (services / "org.freedesktop.secrets.service").write_text(SERVICE, encoding="utf-8")
    config = home / "bus.conf"  # offers only the test's service files, not those of the machine
    config.write_text(BUS_CONFIG.format(folder=home, more=f"<servicedir>{services}</servicedir>"), encoding="utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MULTI_MCP_HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_DATA_DIRS": str(home / "none"),
        "XDG_RUNTIME_DIR": str(home),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    done = subprocess.run(
        [session, f"--config-file={config}", "--", sys.executable, "-c", ASKED],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines() == [f"ok {'ok' if installed else 'note'} note", "True"]


@posix
@pytest.mark.requirement("vault-states")
def test_a_locked_keyring_is_told_from_an_open_one(world: CheckContext) -> None:
    with desk() as session:
        here = replace(world, platform="linux", environ=session.environ)
        with environment(session.environ):
            KeyringEntries("multi-mcp-tests").set("key", "x")
        assert told(system.keyring(here)) == [("keyring.available", "ok")]
        session.stop_keyring()
        session.start_keyring(password="")
        (finding,) = system.keyring(here)
        assert (finding.state, "locked" in finding.message) == ("note", True)


@posix
@pytest.mark.requirement("doctor-asks-gateway")
@pytest.mark.parametrize(
    ("error", "state", "says"),
    [
        (None, "ok", "can store"),
        ({"title": "The keyring is locked", "hint": "Unlock it"}, "note", "The keyring is locked"),
    ],
)
def test_of_a_running_gateway_the_keyring_is_told_as_it_has_it_and_not_as_our_environment_does(
    world: CheckContext, home: Path, error: dict[str, str] | None, state: str, says: str
) -> None:
    with FakeGateway(home, {KEYRING: {"keyring": "locked" if error else "available", "error": error}}) as gateway:
        (finding,) = system.keyring(replace(world, platform="linux", environ={}))
    assert (finding.state, says in finding.message) == (state, True)
    assert gateway.requests == [(KEYRING, {})]  # requests no unlock dialog


@pytest.mark.parametrize(
    ("environ", "platform", "state"),
    [({"MULTI_MCP_PASSPHRASE": "p"}, "linux", "ok"), ({}, "darwin", "ok"), ({}, "linux", "note")],
)
def test_the_encrypted_file_is_told_with_what_opens_it(
    world: CheckContext, environ: dict[str, str], platform: str, state: str
) -> None:
    write_servers(world, "settings: {token_store: file}\n")
    here = replace(world, platform=platform, environ={"PATH": world.environ.get("PATH", ""), **environ})
    (finding,) = system.keyring(here)
    assert (finding.state, "token_store: file" in finding.message) == (state, True)


SEALED = '{"form": "f", "key": "%s", "salt": "", "sealed": ""}'


@pytest.mark.requirement("doctor-findings")
@pytest.mark.parametrize(
    ("store", "content", "passphrase", "state", "says"),
    [
        ("keyring", SEALED % "keyring", "", "note", "are not used"),
        ("file", SEALED % "keyring", "", "ok", "is used"),
        ("file", "", "p", "ok", "is used"),
        ("file", "", "q", "note", "does not open"),
        ("file", SEALED % "passphrase", "", "note", "with a passphrase"),
        ("file", SEALED % "keyring", "p", "note", "without a passphrase"),
        ("file", "{", "", "problem", "is damaged"),
        ("file", "[]", "", "problem", "is damaged"),
    ],
)
def test_a_file_of_secrets_that_is_not_used_or_does_not_open_is_told(
    world: CheckContext, store: str, content: str, passphrase: str, state: str, says: str
) -> None:
    write_servers(world, f"settings: {{token_store: {store}}}\n")
    here = replace(world, environ={**world.environ, "MULTI_MCP_PASSPHRASE": passphrase})
    assert system.sealed_file(here) == []
    path = here.paths.config_file.with_name("secrets.sealed")
    SealedFile(path, "p").write("a", "b")
    if content:
        path.write_text(content)
    (finding,) = system.sealed_file(here)
    assert (finding.state, says in finding.message, bool(finding.remedy)) == (state, True, state != "ok")


@pytest.mark.requirement("doctor-findings")
def test_tools_that_wait_for_an_approval_are_a_note() -> None:
    found = gateway._of_approvals({"name": "gh", "approvals": ["a", "b"]})
    assert (found.code, found.state) == ("gateway.approvals", "note")
    assert ("2 tools of gh" in found.message, found.remedy) == (True, "Review with: multi-mcp approve gh")
    one = gateway._of_approvals({"name": "gh", "approvals": ["a"]})
    assert one.message == "1 tool of gh changed, or looks suspicious, and waits for approval: a"


@pytest.mark.requirement("browser-of-each-session")
def test_a_browser_that_all_sessions_share_is_noted(world: CheckContext) -> None:
    program(world, "chrome-devtools-mcp")
    write_servers(world, "servers: {web: {command: chrome-devtools-mcp}}")
    (found,) = servers.launches(world)
    assert (found.code, found.state) == ("server.browser", "note")
    assert "scope: session" in found.remedy
    write_servers(world, "servers: {web: {command: chrome-devtools-mcp, scope: session}}")
    assert told(list(servers.launches(world))) == [("server.launch", "ok")]


@pytest.mark.requirement("lock-said")
def test_a_package_that_is_not_locked_is_noted(world: CheckContext) -> None:
    program(world, "bunx")
    write_servers(world, "servers: {a: {command: bunx demo}}")
    (found,) = servers.launches(world)
    assert (found.code, found.state) == ("server.lock", "note")
    assert found.message == "a: not locked: bunx runs the newest release at each start"
    assert found.remedy == "To pin one release, write: npx -y PACKAGE"
    write_servers(world, "servers: {a: {command: bunx demo, lock: false}}")
    assert told(list(servers.launches(world))) == [("server.launch", "ok")]


@pytest.mark.requirement("confine-or-not")
def test_a_server_that_cannot_be_confined_is_a_problem_with_its_reason(
    world: CheckContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trayapp.confinement import start
    from trayapp.service.checks.system import available

    def refuse(network: object, sockets: bool) -> NoReturn:
        raise start.NoMechanismError("no Landlock here", "Install bubblewrap")

    monkeypatch.setattr(start, "choose_mechanism", lambda network, sockets: "bubblewrap" if sockets else "landlock")
    assert [(one.state, one.message) for one in available(world)] == [
        ("ok", "Servers can be confined with landlock (with bubblewrap if sockets: true is set)")
    ]
    monkeypatch.setattr(
        start, "choose_mechanism", lambda network, sockets: refuse(network, sockets) if sockets else "landlock"
    )
    assert [(one.state, one.message) for one in available(world)] == [
        ("ok", "Servers can be confined with landlock, but not if sockets: true is set: no Landlock here")
    ]
    monkeypatch.setattr(start, "choose_mechanism", refuse)
    assert [one.state for one in available(world)] == ["note"]
    write_servers(world, "settings: {confine: true}\nservers:\n  a: {command: x}\n  b: {command: x, confine: try}\n")
    assert [(one.state, one.message) for one in available(world)] == [
        ("problem", "a cannot be confined and does not start: no Landlock here"),
        ("problem", "b runs unconfined: no Landlock here"),
    ]


def test_an_unreadable_setting_confines_every_server(world: CheckContext) -> None:
    from trayapp.config.read.parse import parse
    from trayapp.model.config import Confine

    config = parse("settings: {confine: {reed: [/x]}}\nservers: {a: {command: x}}\n", "f")
    assert config.settings.confine == Confine()
    assert "Until it is corrected, every server is confined" in config.problems[0].hint
