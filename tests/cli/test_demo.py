"""`multi-mcp demo`: complete runs, failures, and leftover processes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run_cli
from trayapp.cli.demo import Demo, DemoFailed, DemoReport, processes_of, temporary_home
from trayapp.config.paths import HOME_VARIABLE


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
    assert done.stdout.endswith("Everything worked, and nothing was left behind.\n")


def test_the_demos_home_is_gone_after_a_failure_too() -> None:
    homes: list[Path] = []

    def fail() -> None:
        with temporary_home() as home:
            homes.append(Path(home))
            raise DemoFailed("on purpose")

    with pytest.raises(DemoFailed):
        fail()
    assert not homes[0].exists()


def test_a_home_nobody_uses_has_no_processes(home: Path) -> None:
    assert list(processes_of(home)) == []


@pytest.mark.skipif(os.name == "nt", reason="sleep is a program of POSIX systems")
@pytest.mark.parametrize(("seconds", "is_left"), [("0.5", False), ("60", True)])
def test_a_process_gets_a_moment_to_end_and_is_named_and_killed_after_it(seconds: str, is_left: bool) -> None:
    late: list[subprocess.Popen[bytes]] = []
    with temporary_home() as folder:
        home = Path(folder)

        class Report(DemoReport):
            def step(self, name: str, *about: Any, **more: Any) -> None:
                if name == "stop":  # a process that outlives the gateway, like the guardian
                    late.append(subprocess.Popen(["sleep", seconds], env={**os.environ, HOME_VARIABLE: str(home)}))

        demo = Demo(home, Report(as_json=True))
        if is_left:
            with pytest.raises(DemoFailed, match="did not end by themselves") as failure:
                demo.run()
            assert all(str(process.pid) in failure.value.title for process in late)
        else:
            demo.run()
    assert [process.wait(5) for process in late] == ([-9, -9] if is_left else [0, 0])
