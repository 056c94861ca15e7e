"""Programs inside a project that its servers name: their content is approved with the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trayapp.config.layers.project import read_project
from trayapp.config.layers.trust import TrustStore

pytestmark = pytest.mark.requirement("trust-scripts")


def project(folder: Path, entry: object) -> Path:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"s": entry}}), encoding="utf-8")
    return file


def named(path: Path) -> list[str]:
    file = read_project(path)
    assert file is not None
    return [script.name for script in file.scripts]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "./run"},
        {"command": "bin/../run"},
        {"command": "./run", "cwd": "."},
        {"command": "sh", "args": ["-c", "exec ./run --fast"]},
        {"command": "sh -c 'cat x | ./run'"},
        {"command": "env", "args": ["A=b", "./run"]},
        {"command": "tool", "args": ["--exec=./run"]},
        {"command": "x", "env": {"BASH_ENV": "./run"}},
        {"command": "${NOPE:-./run}"},
        {"command": "${NOPE}./run"},
        {"command": "run", "cwd": "bin/.."},
    ],
)
def test_a_changed_program_makes_the_project_a_stranger_again(tmp_path: Path, entry: object) -> None:
    (tmp_path / "bin").mkdir()
    run = tmp_path / "run"
    run.write_text("#!/bin/sh\necho good\n")
    run.chmod(0o755)
    path = project(tmp_path, entry)
    store = TrustStore(tmp_path / "trusted.json")
    file = read_project(path)
    assert file is not None
    assert os.name == "nt" or [script.name for script in file.scripts] == ["run"]
    store.approve(file)
    assert store.check(file)
    run.write_text("#!/bin/sh\necho evil\n")
    changed = read_project(path)
    assert changed is not None
    assert os.name == "nt" or store.check(changed) is None


@pytest.mark.parametrize(
    ("entry", "files"),
    [
        ({"command": "python3", "args": ["srv/main.py"]}, ["srv/main.py"]),
        ({"command": "python3", "args": ["-m", "srv.main"]}, ["srv/main.py"]),
        ({"command": "python3", "args": ["main.py"], "cwd": "srv"}, ["srv/main.py"]),
        ({"command": "npm", "args": ["run", "mcp"]}, ["package.json"]),
        ({"command": "npx", "args": ["."]}, ["package.json"]),
        ({"command": "make mcp"}, ["Makefile"]),
        ({"command": "docker", "args": ["compose", "run", "x"]}, ["compose.yaml"]),
        ({"command": "docker", "args": ["run", "x"]}, []),
        ({"command": "npx", "args": ["-y", "pkg", "data.db", "conf.json"]}, []),
        ({"command": "node", "args": ["--env-file=.env", "x"]}, [".env"]),
        (
            {"command": "uv run --env-file dev.env.local --with-requirements requirements-dev.txt x"},
            ["dev.env.local", "requirements-dev.txt"],
        ),
        ({"command": "python3", "args": ["-u", "conf.txt", "data.txt"]}, ["conf.txt"]),
        ({"command": "sh -e conf.txt"}, ["conf.txt"]),
        ({"command": "env A=b /usr/bin/python3.11 ./conf.txt"}, ["conf.txt"]),
        ({"command": "python3", "args": ["-m", "srv.main", "conf.txt"]}, ["srv/main.py"]),
        ({"command": "python3 conf.txt", "cwd": "srv"}, ["conf.txt"]),
        ({"command": "srv"}, []),
        ({"url": "https://a.test/srv/main.py"}, []),
    ],
)
def test_programs_are_followed_and_data_is_not(tmp_path: Path, entry: object, files: list[str]) -> None:
    (tmp_path / "srv").mkdir()
    some = ("srv/main.py", "package.json", "Makefile", "compose.yaml", "data.db", "conf.json")
    for name in (*some, "conf.txt", "data.txt", ".env", "dev.env.local", "requirements-dev.txt"):
        (tmp_path / name).write_text("x")
    assert named(project(tmp_path, entry)) == [str(Path(name)) for name in files]


def test_a_program_that_comes_later_counts_and_one_above_the_folder_does_too(tmp_path: Path) -> None:
    (folder := tmp_path / "sub").mkdir()
    path = project(folder, {"command": "python3 ../tool.py late.py"})
    (tmp_path / "tool.py").write_text("x")
    assert named(path) == [str(Path("../tool.py"))]
    (folder / "late.py").write_text("x")
    assert named(path) == [str(Path("../tool.py")), "late.py"]


def test_a_link_is_followed_to_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    (tmp_path / "run.py").symlink_to("a.py")
    path = project(tmp_path, {"command": "python3 run.py"})
    first = read_project(path)
    (tmp_path / "run.py").unlink()
    (tmp_path / "run.py").symlink_to("b.py")
    second = read_project(path)
    assert first is not None
    assert second is not None
    assert first.digest != second.digest
