"""Fixtures of the command line's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.persons import Person
from tests.cli.running import Launch, launch, run_cli


@pytest.fixture
def start_cli(home: Path) -> Iterator[Launch]:
    """Yield a function that starts `multi-mcp ARGV...` in `home`. After the test, end everything that it started."""
    started: list[subprocess.Popen[str]] = []

    def start(*argv: str) -> subprocess.Popen[str]:
        started.append(launch(home, *argv))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()
    if (home / "run" / "endpoint.json").exists():
        run_cli(home, "stop")


@pytest.fixture
def started(home: Path) -> Iterator[Path]:
    """Yield a home whose gateway runs in the background."""
    done = run_cli(home, "start", "--detach")
    assert done.returncode == 0, done.stderr
    yield home
    run_cli(home, "stop")


@pytest.fixture
def person(home: Path, tmp_path: Path) -> Iterator[Person]:
    """Yield a person with an empty home. After the test, stop a gateway that the person has started."""
    somebody = Person(home, tmp_path)
    yield somebody
    if (home / "run" / "endpoint.json").exists():
        somebody.says("stop")
