"""Tests of starting a gateway by fork and exec, as a shim does, and of waiting for its start and its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trayapp.model.errors import NoGatewayError
from trayapp.service.gateway_launch import CANNOT_RUN, await_gone, await_ready, pauses, start_detached
from trayapp.wire.control import STOP, ControlClient
from trayapp.wire.rundir import run_dir

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there a gateway is started as everybody does it")

# Like the shim, this process has no threads. It starts the command in its arguments, and then a second program
# that the system reaps. It prints both exit codes.
STARTS = """
import os, sys, time
from trayapp.service.gateway_launch import fork_detached, reap_automatically
for closed in os.environ.get("CLOSED", "").split():
    os.close(int(closed))
child = fork_detached(sys.argv[1:], {"SAID": "hello"})
while child.poll() is None:
    time.sleep(0.005)
reap_automatically(True)
forgotten = fork_detached([sys.executable, "-c", "raise SystemExit(5)"], {})
while forgotten.poll() is None:
    time.sleep(0.005)
print(child.poll(), forgotten.poll())
"""
TELLS = """
import json, os, sys
facts = {
    "folder": os.getcwd(), "leads": os.getsid(0) == os.getpid(), "said": os.environ.get("SAID"),
    "null": [os.fstat(fd).st_rdev == os.stat(os.devnull).st_rdev for fd in (0, 1, 2)],
    "open": [fd for fd in (int(sys.argv[2]),) if os.path.exists(f"/dev/fd/{fd}")],
}
with open(sys.argv[1], "w") as file:
    json.dump(facts, file)
raise SystemExit(4)
"""


def started(argv: list[str], inherited: tuple[int, ...] = (), closed: str = "") -> str:
    """Run STARTS with a command, and return the exit codes that it prints."""
    env = {**os.environ, "CLOSED": closed}
    run = subprocess.run(
        [sys.executable, "-c", STARTS, *argv], pass_fds=inherited, capture_output=True, text=True, check=True, env=env
    )
    return run.stdout.strip()


@pytest.mark.parametrize("closed", ["", "2", "0 2"])
def test_it_has_a_session_of_its_own_and_holds_nothing_that_was_open(tmp_path: Path, closed: str) -> None:
    """The child leads its session, and its standard streams are open even if those of its parent are closed."""
    facts, (reader, writer) = tmp_path / "facts", os.pipe()
    try:
        codes = started([sys.executable, "-c", TELLS, str(facts), str(writer)], inherited=(writer,), closed=closed)
    finally:
        os.close(reader)
        os.close(writer)
    assert codes == "4 0"  # the system reaped the second process, so its exit code is lost
    expected = {"folder": "/", "leads": True, "said": "hello", "null": [True, True, True], "open": []}
    assert json.loads(facts.read_text(encoding="utf-8")) == expected


def test_a_program_that_cannot_run_is_told_apart(tmp_path: Path) -> None:
    assert started([str(tmp_path / "nothing")]).split()[0] == str(CANNOT_RUN)


def test_a_gateway_that_nobody_started_is_not_waited_for_longer_than_told(home: Path) -> None:
    with pytest.raises(NoGatewayError, match="did not answer within 0 s"):
        await_ready(run_dir(os.environ), 0.0)


def test_a_process_that_died_ends_the_wait_with_the_last_lines_of_its_log(home: Path) -> None:
    log = home / "gateway.log"
    log.write_text("first\nsecond\nthird\nfourth\n", encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
        with pytest.raises(NoGatewayError, match=r"exit code 3\): second \| third \| fourth"):
            await_ready(run_dir(os.environ), process=process, log_file=log)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, which has no room for a file, is Linux's")
def test_a_process_that_died_on_a_full_disk_without_a_log_says_that_it_is_full(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"]) as process:
        process.wait()
        with pytest.raises(NoGatewayError, match="the disk is full"):
            await_ready(run_dir(os.environ), process=process, log_file=Path("/proc/gateway.log"))
        with pytest.raises(NoGatewayError, match=r"\(exit code 1\)"):
            await_ready(run_dir(os.environ), process=process, log_file=home / "gateway.log")


@pytest.mark.requirement("path-home-moves-all")
def test_a_detached_gateway_has_a_session_of_its_own_and_a_relative_home_stays_where_it_was(home: Path) -> None:
    relative = os.path.relpath(home)
    process = start_detached({**os.environ, "MULTI_MCP_HOME": relative}, linger=False)
    run = run_dir(os.environ)
    await_ready(run, process=process)
    if sys.platform != "win32":
        assert os.getsid(process.pid) == process.pid
    with ControlClient(run) as client:
        client.call(STOP)
    process.wait(20)
    assert {path.name for path in home.iterdir()} >= {"servers.yaml", "logs", "run"}


def test_the_end_of_a_process_is_seen_even_before_it_is_reaped() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not await_gone(process.pid, 0.0)
        assert process.stdin is not None
        process.stdin.close()
        assert await_gone(process.pid, 20.0)
        process.wait()
    assert await_gone(process.pid, 0.0)


def test_pauses_come_once_at_least() -> None:
    assert len(list(pauses(0.0))) == 1
