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
    """Start `multi-mcp ARGV...` in `home`; whatever the test does, nothing that it started runs on."""
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
    """Yield a home with a gateway in the background."""
    done = run_cli(home, "start", "--detach")
    assert done.returncode == 0, done.stderr
    yield home
    run_cli(home, "stop")


@pytest.fixture
def person(home: Path, tmp_path: Path) -> Iterator[Person]:
    """Somebody with a home folder and nothing in it yet; a gateway that they started ends."""
    somebody = Person(home, tmp_path)
    yield somebody
    if (home / "run" / "endpoint.json").exists():
        somebody.says("stop")
