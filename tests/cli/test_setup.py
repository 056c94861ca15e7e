"""`multi-mcp setup` imports servers, then connects AI tools. Its undo restores every file."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.persons import Person
from tests.cli.running import run_cli
from tests.clients.machines import file_of, samples, world_in
from trayapp.clients.table import BY_NAME
from trayapp.model.errors import ExitCode
from trayapp.service.command_line import own_command, shim_command

pytestmark = pytest.mark.requirement("setup")

TOOLS = (
    "claude-code", "codex", "cursor", "vscode", "copilot-cli", "opencode", "gemini-cli", "windsurf", "zed", "continue",
    "goose", "kiro", "qwen-code",
)  # fmt: skip


@pytest.fixture
def files(person: Person) -> dict[Path, bytes]:
    """Write the files of thirteen AI tools, each with its own servers. Return their contents by path."""
    found: dict[Path, bytes] = {}
    world = world_in(person.mine)
    for name in TOOLS:
        path = file_of(BY_NAME[name], world)
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = samples(BY_NAME[name])
        path.write_text(texts.get("comments", texts["plain"]), encoding="utf-8")
        found[path] = path.read_bytes()
    return found


def now(files: dict[Path, bytes]) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in files}


def test_what_is_set_up_is_undone_byte_for_byte(person: Person, files: dict[Path, bytes]) -> None:
    done = person.says("setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert [path for path, before in files.items() if path.read_bytes() == before] == []
    states = person.gets("connect")["clients"]
    assert {state["name"] for state in states if state["state"] == "connected"} == set(TOOLS)
    assert "and ask: which MCP servers do you have?" in done.stdout
    assert "connect --all" not in done.stdout  # setup itself connects them
    undone = person.says("setup", "--undo")
    assert undone.returncode == 0, undone.stderr
    assert "--diff" not in undone.stdout  # `setup` has no such option
    assert now(files) == files


ODD: dict[str, Callable[[bytes], bytes]] = {
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no line end at the end": lambda data: data.rstrip(b"\n"),
    "blank lines at the end": lambda data: data + b"\n\n",
    "tabs": lambda data: data.replace(b"  ", b"\t") if data.startswith((b"{", b"//")) else data,
    "spaces at the ends of lines": lambda data: data.replace(b",\n", b", \t\n"),
}


@pytest.mark.parametrize("odd", ODD)
def test_files_of_odd_forms_are_undone_byte_for_byte(person: Person, files: dict[Path, bytes], odd: str) -> None:
    saved = {path: ODD[odd](data) for path, data in files.items()}
    for path, data in saved.items():
        path.write_bytes(data)
    done = person.says("setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert [path for path, data in saved.items() if path.read_bytes() == data] == []
    assert person.says("setup", "--undo").returncode == 0
    assert now(saved) == saved


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes")
def test_links_and_modes_stay(person: Person, files: dict[Path, bytes]) -> None:
    kept = person.mine / "dotfiles"
    kept.mkdir()
    for number, path in enumerate(files):
        path.rename(kept / str(number))
        (kept / str(number)).chmod(0o640)
        path.symlink_to(kept / str(number))
    for flags in (("--yes",), ("--undo",)):
        assert person.says("setup", *flags).returncode == 0
        assert [path for path in files if not path.is_symlink() or path.stat().st_mode & 0o777 != 0o640] == []
    assert now(files) == files


def test_a_file_that_nobody_may_write_is_left_alone_and_the_others_are_set_up(
    person: Person, files: dict[Path, bytes]
) -> None:
    closed = next(path for path in files if path.parent.name == ".cursor")
    closed.chmod(0o444)
    done = person.says("setup", "--yes")
    assert (done.returncode, closed.read_bytes()) == (1, files[closed])
    assert str(closed.name) in done.stderr
    undone = person.says("setup", "--undo")
    assert undone.returncode == 0, undone.stderr
    assert now(files) == files


def test_a_dry_run_shows_all_and_writes_nothing(person: Person, files: dict[Path, bytes]) -> None:
    done = person.says("setup", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert [title for title in ("Claude Code", "Cursor", "Zed") if title not in done.stdout] == []
    assert now(files) == files
    assert not person.servers.exists()


def test_without_a_terminal_it_wants_to_be_told(person: Person) -> None:
    done = person.says("setup")
    assert (done.returncode, "--yes" in done.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
def test_a_person_chooses_servers_and_tools(person: Person) -> None:
    cursor = person.file(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "aa"}, "b": {"command": "bb"}}}')
    codex = person.file(".codex/config.toml", "# mine\n")
    shown = person.answers("setup", typed="\n1\n1\n")
    assert shown.count("Enter all, none, or some of the numbers above") == 1  # the answer to the empty line
    assert "Import 2 servers?" in shown
    assert "Connect 2 AI tools?" in shown
    told = "Importing moves servers from the AI tools' files to servers.yaml. To undo it: multi-mcp setup --undo"
    assert shown.index(told) < shown.index("Import 2 servers?")
    servers = person.servers.read_text(encoding="utf-8")
    assert ("aa" in servers, "bb" in servers) == (True, False)
    assert sum("multi-mcp" in path.read_text(encoding="utf-8") for path in (cursor, codex)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
@pytest.mark.parametrize("answer", ["none\n", "\x04"], ids=["none", "Ctrl-D"])
def test_somebody_who_stops_between_import_and_connect_is_told_that_their_tools_have_no_servers(
    person: Person, answer: str
) -> None:
    person.file(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "aa"}}}')
    shown = person.answers("setup", typed=f"all\n{answer}")
    assert "No AI tool is connected, so your AI tools do not have the imported servers now" in shown
    assert "Put the servers back: multi-mcp setup --undo" in shown
    assert "and ask:" not in shown


def test_the_servers_are_started_and_each_is_named_with_its_tools_or_with_what_is_wrong(person: Person) -> None:
    works = {"command": own_command()[0], "args": [*own_command()[1:], "sample-server"]}
    off = {"command": "aa", "disabled": True}
    servers = {"mine": works, "broken": {"command": "no-such-program"}, "off": off}
    person.file(".cursor/mcp.json", json.dumps({"mcpServers": servers}))
    done = run_cli(person.home, "setup", "--yes", env=person.env)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "mine: 3 tools" in lines
    assert [line for line in lines if line.startswith("broken: Cannot start broken: no program no-such-program")]
    assert [line for line in lines if line.startswith("off: ") and "stays disabled" not in line] == []
    assert "mine: 3 tools" in run_cli(person.home, "setup", "--yes", env=person.env).stdout  # the gateway runs now


@pytest.mark.parametrize("flags", [("--dry-run",), ("--undo",), ("--yes", "--no-start")], ids=" ".join)
def test_nothing_is_started_by(person: Person, flags: tuple[str, ...]) -> None:
    person.file(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "aa"}}}')
    assert run_cli(person.home, "setup", *flags, env=person.env).returncode == 0
    assert run_cli(person.home, "status", env=person.env).returncode == ExitCode.NO_GATEWAY


def test_the_undo_tells_what_it_leaves(person: Person) -> None:
    cursor = person.file(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "aa"}}}')
    assert run_cli(person.home, "setup", "--yes", env=person.env).returncode == 0
    cursor.write_text(cursor.read_text(encoding="utf-8").replace('"mcpServers"', '"more": 1, "mcpServers"'))
    undone = person.says("setup", "--undo").stdout
    left = undone[undone.index("Left in place:") :].splitlines()
    assert json.loads(cursor.read_text(encoding="utf-8")) == {"more": 1, "mcpServers": {"a": {"command": "aa"}}}
    backups = sorted(path.name for path in cursor.parent.iterdir() if path != cursor)
    assert backups
    assert [
        name for name in backups if f"  ~/.cursor/{name} (a backup, as this file has changed since)" not in left
    ] == []
    assert f"  {person.servers.parent} (multi-mcp's own)" in left  # this folder has all of multi-mcp's files
    assert "  the gateway, which still runs; to stop it: multi-mcp stop" in left
    person.says("stop")
    assert "still runs" not in person.says("setup", "--undo").stdout


def test_an_empty_machine_is_told_what_to_do(person: Person) -> None:
    done = person.says("setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"Configure this command as an MCP server in yours: {shlex.join(shim_command())}\n" in done.stdout
