"""`multi-mcp demo`, whole. Never here: its parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run_cli
from trayapp.cli.demo import DemoFailed, processes_of, temporary_home


@pytest.mark.requirement("cli-demo")
def test_the_demo_works_and_leaves_nothing_behind(home: Path) -> None:
    done = run_cli(home, "demo", "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["name"]: step for step in json.loads(done.stdout)["steps"]}
    timed = {"initialize_cold", "list", "call_cold", "call_warm", "start_warm", "list_cached", "call_again"}
    assert all(steps[name]["ms"] > 0 for name in timed)
    assert steps["call_again"]["said"] == "2 + 3 = 5"
    assert list(home.iterdir()) == []


def test_the_demo_for_people_fits_80_columns(home: Path) -> None:
    done = run_cli(home, "demo")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert done.stdout.endswith("Everything worked, and nothing is left behind.\n")


def test_the_demos_home_is_gone_after_a_failure_too() -> None:
    homes: list[Path] = []

    def fail() -> None:
        with temporary_home() as home:
            homes.append(home)
            raise DemoFailed("on purpose")

    with pytest.raises(DemoFailed):
        fail()
    assert not homes[0].exists()


def test_a_home_nobody_uses_has_no_processes(home: Path) -> None:
    assert list(processes_of(home)) == []
