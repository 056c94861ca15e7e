"""Relative paths among a server's words, and what servers.yaml is told of them."""

from __future__ import annotations

import shlex

import pytest

from trayapp.config.read.command import is_relative, relative_paths
from trayapp.config.read.parse import parse

pytestmark = pytest.mark.requirement("life-folder")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mcp-server-filesystem .", ["."]),
        ("mcp-server-filesystem .. ./a ../b/c src/", ["..", "./a", "../b/c", "src/"]),
        ("python3 mysrv.py", ["mysrv.py"]),
        ("node dist/index.js --config=conf.json", ["dist/index.js", "--config=conf.json"]),
        ("npx -y mcp-server-sqlite data/x.db", ["data/x.db"]),
        ("docker run -v .:/data --mount type=bind,src=./x,dst=/x image", [".:/data", "type=bind,src=./x,dst=/x"]),
        ("uvx --from ./pkg tool", ["./pkg"]),
        ("./run.sh", ["./run.sh"]),
        ("bin/tool --verbose", ["bin/tool"]),
        (r"'bin\tool.exe' '.\data'", [r"bin\tool.exe", r".\data"]),
        ("tool --env-file .env", [".env"]),
        ("npx -y @modelcontextprotocol/server-filesystem /src ~/src C:/src '${DIR}' '${DIR}/x.py'", []),
        ("npx -y next.js", []),
        ("uvx mcp-server-time --local-timezone=Europe/Berlin", []),
        ("tool owner/repo text/plain https://a.test/x.json a@1.2.3 ... -x --x '*.py' 1.5", []),
        ("docker run -i --rm ghcr.io/a/b:1.2", []),
        ("~/bin/tool x", []),
        ("python3 -m http.server", []),
        ("sh -c 'cd /x && exec tool'", []),
    ],
)
def test_words_that_mean_another_thing_in_another_folder_are_found(line: str, found: list[str]) -> None:
    command, *args = shlex.split(line)
    assert relative_paths(command, args) == found


@pytest.mark.parametrize(("path", "expected"), [(".", True), ("a", True), ("/a", False), ("~", False), ("C:\\", False)])
def test_a_path_is_relative_where_it_begins_nowhere(path: str, expected: bool) -> None:
    assert is_relative(path) is expected


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{command: fs, args: [.]}", ". is relative, and s has no cwd"),
        ("{command: fs .}", ". is relative, and s has no cwd"),
        ("{command: ./run.sh}", "./run.sh is relative"),
        ("{command: fs, cwd: srv}", "cwd: srv is relative to your home folder"),
        ("{command: fs, args: [.], cwd: ~/src}", ""),
        ("{command: fs, args: [.], scope: session}", ""),
        ("{command: fs, args: [/src]}", ""),
    ],
)
def test_servers_yaml_is_told_of_a_path_without_a_folder_and_the_server_runs_on(entry: str, says: str) -> None:
    config = parse(f"servers:\n  s: {entry}\n", "servers.yaml")
    assert list(config.servers) == ["s"]
    told = [(problem.line, problem.server, problem.fatal, bool(problem.hint)) for problem in config.problems]
    assert told == ([(2, "s", False, True)] if says else [])
    assert all(says in problem.message for problem in config.problems)
