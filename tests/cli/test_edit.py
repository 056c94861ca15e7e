"""`multi-mcp enable`, `disable` and `edit`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, FakeGateway, environment, run_cli
from tests.cli.samples import row
from trayapp.cli.edit import fitting
from trayapp.wire.control import LIST, RELOAD

FILE = """\
# mine
servers:
  github:   # the big one
    command: npx -y github
    tools:
      search_code: {enabled: true}
      search_issues: {enabled: true}   # keep
      delete_repo: {enabled: false}
  files: {command: files}
  wrong: {}
"""


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shell scripts, xdg-open and terminals")


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "servers.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.mark.requirement("cli-enable-disable", "file-comments-kept")
def test_a_glob_switches_the_tools_that_the_file_names_and_nothing_else(home: Path, file: Path) -> None:
    done = run_cli(home, "disable", "github/search_*")
    assert done.stdout == "Disabled github/search_code\nDisabled github/search_issues\n"
    changed = FILE.replace("search_code: {enabled: true}", "search_code: {enabled: false}")
    assert file.read_text() == changed.replace("search_issues: {enabled: true}", "search_issues: {enabled: false}")


def test_a_glob_that_fits_nothing_is_read_with_hyphens_and_underscores_alike() -> None:
    known = {"search-code": "gh_search-code", "search_code": "gh_search_code", "list-it": "gh_list-it"}
    assert fitting(known, "search_code") == ["search_code"]
    assert fitting(known, "list_*") == fitting(known, "gh-list-it") == ["list-it"]
    assert fitting(known, "LIST-IT") == fitting(known, "it") == []


@pytest.mark.requirement("cli-enable-disable")
def test_a_server_is_switched_off_and_on_again(home: Path, file: Path) -> None:
    assert run_cli(home, "disable", "files").stdout == "Disabled files\n"
    assert "files: {command: files, disabled: true}" in file.read_text()
    assert json.loads(run_cli(home, "enable", "files", "--json").stdout) == {"enabled": True, "changed": ["files"]}


@pytest.mark.requirement("file-write-tools")
def test_with_write_tools_switched_a_tool_that_is_on_again_leaves_no_line(home: Path) -> None:
    file = home / "servers.yaml"
    before = "settings: {write_tools: switched}\nservers:\n  a:  # mine\n    command: x\n  b: {command: y}\n"
    file.write_text(before, encoding="utf-8")
    rows = [row(name, server=server) for server in "ab" for name in ("read", "write")]
    with FakeGateway(home, {LIST: rows, RELOAD: {"problems": []}}):
        assert run_cli(home, "disable", "a/read").returncode == 0
        assert run_cli(home, "disable", "a/write").returncode == 0
        assert file.read_text(encoding="utf-8").count("{enabled: false}") == 2
        assert run_cli(home, "enable", "a/read").stdout == "Enabled a/read\n"
        assert "read" not in file.read_text(encoding="utf-8")
        assert run_cli(home, "enable", "a/w*").stdout == "Enabled a/write\n"
        assert file.read_text(encoding="utf-8") == before
        assert run_cli(home, "disable", "b/*").returncode == 0
        assert run_cli(home, "enable", "b/*").returncode == 0
        assert file.read_text(encoding="utf-8") == before


@pytest.mark.requirement("file-write-tools", "file-comments-kept")
def test_a_comment_keeps_the_line_of_a_tool_that_is_on_again(home: Path) -> None:
    file = home / "servers.yaml"
    before = (
        "settings: {write_tools: switched}\nservers:\n  a:\n    command: x\n    tools:\n"
        "      read: {enabled: false}  # why\n      write: {enabled: false, ask: true}\n"
    )
    file.write_text(before, encoding="utf-8")
    assert run_cli(home, "enable", "a/*").returncode == 0
    assert file.read_text(encoding="utf-8") == before.replace("false", "true")


@pytest.mark.requirement("cli-enable-disable")
def test_a_running_gateway_is_told_at_once(home: Path, file: Path) -> None:
    with FakeGateway(home, {RELOAD: {"problems": []}}) as gateway:
        run_cli(home, "enable", "github/delete_repo")
    assert gateway.requests == [(LIST, {"server": "github"}), (RELOAD, {})]


def test_tools_that_only_the_gateway_knows_can_be_switched_by_either_name(home: Path, file: Path) -> None:
    rows = [row("read", server="files", exposed_name="files_read"), row("write", server="files")]
    with FakeGateway(home, {LIST: rows, RELOAD: {"problems": []}}):
        done = run_cli(home, "disable", "files/files_r*")
    assert done.stdout == "Disabled files/read\n"
    assert "read: {enabled: false}" in file.read_text()
    assert "write" not in file.read_text()


def test_a_tool_that_is_switched_on_and_hidden_nonetheless_says_where_to_look(home: Path, file: Path) -> None:
    rows = [row("search_code", enabled=False), row("gone", enabled=False, stale=True)]
    with FakeGateway(home, {LIST: rows}):
        done = run_cli(home, "enable", "github/search_code")
    assert done.stdout == "Nothing to change\n"
    assert done.stderr.startswith("Clients still do not see search_code: check include_tools, exclude_tools")


@pytest.mark.parametrize("words", [["enable", "github/search_code"], ["enable", "github"], ["disable", "github/del*"]])
def test_what_is_so_already_is_left_alone(home: Path, file: Path, words: list[str]) -> None:
    with FakeGateway(home, {LIST: []}) as gateway:
        done = run_cli(home, *words)
    assert (done.stdout, done.returncode) == ("Nothing to change\n", 0)
    assert file.read_text() == FILE
    assert RELOAD not in dict(gateway.requests)


@pytest.mark.parametrize(
    ("target", "what", "todo", "code"),
    [
        ("githib", "No server is named githib", "Did you mean github?", 5),
        ("zzz/x", "No server is named zzz", "Known servers: github, files, wrong", 5),
        ("github/serch_code", "No tool of github is named serch_code", "Did you mean search_code?", 1),
        ("github/zzz*", "No tool of github is named zzz*", "See: multi-mcp list github", 1),
        (
            "files/read",
            "No tool of files is named read",
            "Its tools are not known yet; start the gateway first: multi-mcp start",
            1,
        ),
    ],
)
@pytest.mark.requirement("cli-error-lines", "cli-exit-codes")
def test_what_fits_nothing_names_the_nearest(
    home: Path, file: Path, target: str, what: str, todo: str, code: int
) -> None:
    done = run_cli(home, "disable", target)
    assert done.stderr == f"Error: {what}\n{todo}\n"
    assert done.returncode == code
    assert file.read_text() == FILE


@pytest.mark.requirement("cli-exit-codes")
def test_a_file_that_does_not_parse_is_exit_code_3_and_stays_as_it_is(home: Path, file: Path) -> None:
    file.write_text("servers:\n  a: {command: [\n", encoding="utf-8")
    done = run_cli(home, "enable", "a")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 2
    assert f"{file}, line " in done.stderr
    assert file.read_text() == "servers:\n  a: {command: [\n"


def test_without_a_file_the_sample_is_written_first(home: Path) -> None:
    assert run_cli(home, "disable", "sample").stdout == "Disabled sample\n"
    assert "disabled: true" in (home / "servers.yaml").read_text()


@pytest.mark.requirement("cli-enable-disable")
def test_a_switch_holds_in_a_running_gateway_at_once(started: Path) -> None:
    assert run_cli(started, "call", "sample_echo", "text=hi").stdout == "hi\n"
    assert run_cli(started, "disable", "sample/e*").stdout == "Disabled sample/echo\n"
    rows = {found["name"]: found for found in json.loads(run_cli(started, "list", "--json").stdout)}
    assert [rows[name]["enabled"] for name in ("echo", "add")] == [False, True]
    assert run_cli(started, "call", "sample_echo", "text=hi").returncode == 1
    assert run_cli(started, "enable", "sample/echo").returncode == 0
    assert run_cli(started, "call", "sample_echo", "text=hi").stdout == "hi\n"


def test_a_slash_with_no_tool_behind_it_does_not_mean_the_whole_server(home: Path) -> None:
    file = home / "servers.yaml"
    file.write_text("servers: {a: {command: x}}\n", encoding="utf-8")
    done = run_cli(home, "disable", "a/")
    assert (done.returncode, done.stderr) == (2, "Error: a/ has no tool name\nFor the whole server, write: a\n")
    assert file.read_text(encoding="utf-8") == "servers: {a: {command: x}}\n"


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_path_is_printed_and_nothing_written(home: Path) -> None:
    assert run_cli(home, "edit", "--path").stdout == f"{home}/servers.yaml\n"
    assert list(home.iterdir()) == []


def test_the_desktops_program_gets_the_file_and_is_not_waited_for(home: Path) -> None:
    programs, told = home / "bin", home / "told"
    programs.mkdir()
    os.mkfifo(told)
    script(programs / "xdg-open", f'echo "$1" > {told}\nexec sleep 0')
    env = environment(home, DISPLAY=":99", PATH=f"{programs}:{os.environ['PATH']}")
    done = run_cli(home, "edit", env=env)
    assert (done.stdout, done.returncode) == (f"Opened {home}/servers.yaml\n", 0)
    assert told.read_text() == f"{home}/servers.yaml\n"
    assert "sample:" in (home / "servers.yaml").read_text()


def test_where_nothing_can_open_it_the_error_says_where_it_is(home: Path) -> None:
    done = run_cli(home, "edit")
    assert done.stderr == (
        f"Error: No program was found that opens {home}/servers.yaml\nSet EDITOR, or open it yourself\n"
    )
    assert done.returncode == 1


def on_terminal(home: Path, *argv: str, **variables: str) -> tuple[str, int]:
    """Run `multi-mcp ARGV...` on a terminal of its own. Return what it shows and its exit code."""
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        os.execve(PROGRAM[0], [*PROGRAM, *argv], environment(home, **variables))
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux reports that the other end has closed
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_on_a_terminal_the_users_editor_runs_here_with_its_own_arguments(home: Path) -> None:
    editor = script(home / "my editor", 'echo "edits $1 $2"; exit 3')
    shown, code = on_terminal(home, "edit", EDITOR=f"'{editor}' --wait", TERM="dumb")
    assert shown.split() == ["edits", "--wait", f"{home}/servers.yaml"]
    assert code == 3


def test_an_editor_that_does_not_exist_is_an_error_in_two_lines(home: Path) -> None:
    shown, code = on_terminal(home, "edit", VISUAL="/no/such/editor", TERM="dumb")
    assert "Cannot start the editor: /no/such/editor" in shown
    assert "Traceback" not in shown
    assert code == 1
