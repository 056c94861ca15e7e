"""Waiting for a gateway's start and for a process's end. Never here: the verbs (tests/cli/test_start)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trayapp.model.errors import NoGatewayError
from trayapp.service.gateway_launch import await_gone, await_ready, pauses, start_detached
from trayapp.wire.control import STOP, ControlClient
from trayapp.wire.rundir import run_dir


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
