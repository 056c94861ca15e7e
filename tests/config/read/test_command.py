"""Command lines in a single string, and relative paths among their words."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.config.read.command import is_relative, path_exists, relative_paths, split_command
from trayapp.config.read.parse import parse

POSIX = [
    ("npx -y @upstash/context7-mcp", ["npx", "-y", "@upstash/context7-mcp"]),
    ("  node\t server.js \n", ["node", "server.js"]),
    ("node", ["node"]),
    ('"/opt/My Tools/run" --x', ["/opt/My Tools/run", "--x"]),
    ("/opt/My\\ Tools/run 'a \"b' \"c 'd\" \"e\\\"f\" g\\'h", ["/opt/My Tools/run", "a \"b", "c 'd", 'e"f', "g'h"]),
    ("sh -c '' a\"\"b", ["sh", "-c", "", "ab"]),
    ("x ${A:-b c} {env:D} ${keyring:my key}/e ${F", ["x", "${A:-b c}", "{env:D}", "${keyring:my key}/e", "${F"]),
    ("x ${A:-${B:-c d}} '${E:-f g}'", ["x", "${A:-${B:-c d}}", "${E:-f g}"]),
    ("x '#' #a b", ["x", "#", "#a", "b"]),
    ("x {a b}", ["x", "{a b}"]),
    ("~/bin/x ~", ["~/bin/x", "~"]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("line", "words"), POSIX)
def test_a_line_is_split_as_in_a_shell(line: str, words: list[str]) -> None:
    assert split_command(line, exists=lambda path: False, windows=False) == words


WINDOWS = [
    ("C:\\tools\\run.exe -x C:\\data\\new", ["C:\\tools\\run.exe", "-x", "C:\\data\\new"]),
    (
        '"C:\\Program Files\\node\\node.exe" "C:\\my server.js"',
        ["C:\\Program Files\\node\\node.exe", "C:\\my server.js"],
    ),
    ("\\\\host\\share\\run.exe a", ["\\\\host\\share\\run.exe", "a"]),
    ("%LOCALAPPDATA%\\a\\run.exe -x", ["%LOCALAPPDATA%\\a\\run.exe", "-x"]),
    ('.\\venv\\run.exe "a b"', [".\\venv\\run.exe", "a b"]),
]


@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize(("line", "words"), WINDOWS)
def test_backslashes_of_windows_paths_stay(line: str, words: list[str], windows: bool) -> None:
    assert split_command(line, exists=lambda path: False, windows=windows) == words


def test_on_windows_a_single_quote_is_a_letter() -> None:
    assert split_command("x.cmd it's a\\b", exists=lambda path: False, windows=True) == ["x.cmd", "it's", "a\\b"]


def test_an_existing_path_is_one_word() -> None:
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return path == "/opt/My Tools/run"

    assert split_command("/opt/My Tools/run", exists=exists, windows=False) == ["/opt/My Tools/run"]
    assert split_command("npx", exists=exists, windows=False) == ["npx"]
    assert asked == ["/opt/My Tools/run"]


@pytest.mark.parametrize("line", ["x 'a", 'x "a', "x \"a'"])
def test_a_quote_that_is_never_closed_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="is not closed"):
        split_command(line, exists=lambda path: False, windows=False)


@given(st.lists(st.text(st.characters(exclude_characters="${}", exclude_categories=["Cs"]), min_size=1), min_size=2))
def test_words_joined_for_a_shell_come_back(words: list[str]) -> None:
    assert split_command(shlex.join(["x", *words]), exists=lambda path: False, windows=False) == ["x", *words]


def test_whether_a_path_exists_is_never_an_error(tmp_path: Path) -> None:
    assert path_exists(str(tmp_path))
    assert not path_exists("a\0b")
    assert not path_exists("~nobody-at-all/x")
    assert not path_exists("x" * 100_000)


@pytest.mark.requirement("life-folder")
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
        ("uv --directory /srv/x run main.py", []),
        ("uv run --directory=~/x ./main.py", []),
        ("uv --directory ./x run main.py", ["./x", "main.py"]),
        ("uv run --project /srv/x main.py", ["main.py"]),  # --project sets the environment's project, not the folder
        ("npm --prefix C:/srv/x start", []),
        ("npx -y tool --directory /srv ./x", ["./x"]),  # an option of the server, not of npx
    ],
)
def test_words_that_mean_another_thing_in_another_folder_are_found(line: str, found: list[str]) -> None:
    command, *args = shlex.split(line)
    assert relative_paths(command, args) == found


@pytest.mark.requirement("life-folder")
@pytest.mark.parametrize(("path", "expected"), [(".", True), ("a", True), ("/a", False), ("~", False), ("C:\\", False)])
def test_a_path_is_relative_where_it_begins_nowhere(path: str, expected: bool) -> None:
    assert is_relative(path) is expected


@pytest.mark.requirement("life-folder")
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
