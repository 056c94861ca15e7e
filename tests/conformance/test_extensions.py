"""The suite's scenarios of extensions: what passes directly also passes through the gateway, beside a plain server."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.conformance.suite import PASSED, Run, run_server
from tests.e2e.cell import MODERN
from tests.e2e.gateway import gateway_in
from tests.e2e.test_extensions import argv, entries
from tests.fixtures import era_server

SCENARIOS = (
    "sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest",
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
    "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error",
    "tasks-mrtr-composition",
)  # fmt: skip


def run(url: str, folder: Path) -> dict[str, Run]:
    """Run the whole suite in one process, whose start takes most of the time. Return the run of each of SCENARIOS."""
    whole = run_server("next", url, folder, "--suite", "all")
    return {
        name: Run({key: verdict for key, verdict in whole.verdicts.items() if key[0] == name}, {}) for name in SCENARIOS
    }


def counted(runs: dict[str, Run], family: str) -> int:
    """Return how many checks passed in the scenarios of a family (tasks, skills)."""
    verdicts = [verdict for name, run in runs.items() if family in name for verdict in run.verdicts.values()]
    return sum(verdict.status == PASSED for verdict in verdicts)


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return the runs against the server itself."""
    folder = tmp_path_factory.mktemp("servers")
    with Popen(argv(MODERN, folder, "direct", http=True), stdout=PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            return run(f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp", tmp_path_factory.mktemp("direct"))
        finally:
            process.kill()


@pytest.mark.requirement("extensions-suite")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_scenario_of_tasks_and_skills_gives_what_it_gives_direct(
    direct: dict[str, Run], home: Path, tmp_path: Path, transport: str
) -> None:
    folder = tmp_path / "servers"
    folder.mkdir()
    other = [sys.executable, "-I", "-S", str(Path(era_server.__file__)), MODERN, str(tmp_path / "notes")]
    with entries(("ref",), MODERN, folder, transport) as servers, gateway_in(home, forked=True) as gateway:
        http = {"enabled": True, "port": 0, "token": False}
        gateway.write({**servers, "other": {"command": other}}, http=http, tool_prefix="none")
        gateway.start()
        gateway.control("settle")
        through = run(gateway.http_url, tmp_path / "through")
    assert {name: run.wrong() for name, run in direct.items() if run.wrong()} == {}
    assert {name: run.wrong() for name, run in through.items() if run.wrong()} == {}
    for family in ("tasks", "skills"):
        assert counted(through, family) == counted(direct, family) > 40
