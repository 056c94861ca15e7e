"""Tests of `multi-mcp doctor`: its output, findings and exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, environment, run_cli
from tests.cli.samples import as_sent, full_snapshot, snapshot
from trayapp import __version__
from trayapp.cli.doctor import fit, lines, total
from trayapp.service.checks.check import CheckResult
from trayapp.service.checks.gateway import SUCCESSION_HINT
from trayapp.wire.control import SNAPSHOT
from trayapp.wire.endpoint import write_endpoint
from trayapp.wire.greeting import read_endpoint
from trayapp.wire.rundir import run_dir

OK = CheckResult("a.b", "ok", "fine")
NOTE = CheckResult("long.code", "note", "something", "do this")
PROBLEM = CheckResult("c.d", "problem", "worse", "do that")


def findings(home: Path, code: str) -> list[dict[str, Any]]:
    """Return the findings of `doctor --json` with that code."""
    return [finding for finding in json.loads(run_cli(home, "doctor", "--json").stdout) if finding["code"] == code]


def test_a_line_a_check_a_remedy_below_it_and_the_sum() -> None:
    assert lines([OK, NOTE, PROBLEM]) == [
        "ok       a.b        fine",
        "note     long.code  something",
        "                    do this",
        "problem  c.d        worse",
        "                    do that",
        "",
        "1 problem, 1 note",
    ]
    assert total([OK]) == "All is well"
    assert "\x1b[31mproblem\x1b[0m" in lines([PROBLEM], colored=True)[0]


def test_foreign_words_are_one_line_without_secrets() -> None:
    shown = fit(CheckResult("a.b", "problem", "x\n\x1b[31mtoken=abc123", "y\nz"))
    assert (shown.message, shown.remedy) == ("x token=[redacted]", "y z")


@pytest.mark.requirement("doctor-findings")
def test_without_a_gateway_all_else_is_told(home: Path) -> None:
    done = run_cli(home, "doctor")
    assert "note     socket.answers" in done.stdout
    assert "Nothing to do: AI tools start the gateway." in done.stdout
    assert done.stderr == ""


@pytest.mark.requirement("doctor-findings", "cli-exit-codes")
def test_a_problem_is_exit_code_1_and_json_has_all_of_it(home: Path) -> None:
    (home / "servers.yaml").write_text("servers:\n  a: [\n", encoding="utf-8")
    done = run_cli(home, "doctor", "--json")
    assert done.returncode == 1
    rows = json.loads(done.stdout)
    assert all(list(row) == ["code", "state", "message", "remedy"] for row in rows)
    assert [row["state"] for row in rows if row["code"] == "config.parses"] == ["problem"]
    assert all(row["remedy"] for row in rows if row["state"] == "problem")


@pytest.mark.requirement("doctor-no-values")
def test_no_value_of_a_variable_is_printed(home: Path) -> None:
    text = 'servers:\n  a: {command: "x${MM_SECRET}", cwd: "/${MM_SECRET}"}\n  b: {command: "/x/${MM_SECRET}"}\n'
    (home / "servers.yaml").write_text(text, encoding="utf-8")
    done = run_cli(home, "doctor", env=environment(home, MM_SECRET="hunter-hunter"))
    assert done.returncode == 1
    assert "hunter-hunter" not in done.stdout + done.stderr


def test_a_running_gateway_is_asked_for_its_version_and_its_servers(home: Path) -> None:
    with FakeGateway(home, {SNAPSHOT: as_sent(full_snapshot())}):
        rows = json.loads(run_cli(home, "doctor", "--json").stdout)
    said = {row["code"]: row for row in rows}
    assert said["socket.answers"]["state"] == "ok"
    assert said["version.gateway"]["state"] == ("ok" if __version__ == "0.1.0" else "problem")
    servers = [(row["state"], row["message"], row["remedy"]) for row in rows if row["code"] == "gateway.servers"]
    assert servers == [
        ("problem", "broken: npx is not installed", "Install node"),
        ("note", "linear needs a sign-in", "Sign in with: multi-mcp auth linear"),
    ]


def test_a_gateway_of_another_version_is_a_problem_with_what_to_do(home: Path) -> None:
    other = as_sent(snapshot())
    other["gateway"]["version"] = "0.0.9"
    with FakeGateway(home, {SNAPSHOT: other}):
        (finding,) = findings(home, "version.gateway")
    assert finding["state"] == "problem"
    assert "0.0.9" in finding["message"]
    assert "multi-mcp stop" in finding["remedy"]


@pytest.mark.requirement("package-upgrade")
def test_a_gateway_from_before_an_update_is_noted_and_when_the_new_one_follows(home: Path) -> None:
    running = as_sent(snapshot())
    running["gateway"] |= {"version": __version__, "pid": os.getpid()}
    with FakeGateway(home, {SNAPSHOT: running}):
        assert findings(home, "version.gateway")[0]["state"] == "ok"
        run = run_dir(environment(home))
        endpoint = read_endpoint(run)
        assert endpoint is not None
        write_endpoint(run, endpoint._replace(started_at=1.0))
        (finding,) = findings(home, "version.gateway")
    assert (finding["state"], finding["remedy"]) == ("note", SUCCESSION_HINT)


def test_a_real_gateway_is_well(started: Path) -> None:
    rows = {row["code"]: row["state"] for row in json.loads(run_cli(started, "doctor", "--json").stdout)}
    codes = ("socket.answers", "socket.mode", "version.gateway", "gateway.servers", "config.parses", "server.launch")
    assert {code: rows[code] for code in codes} == dict.fromkeys(codes, "ok")
    assert rows["processes.stale"] == "ok"
