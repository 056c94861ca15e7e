"""`multi-mcp logs` against real files."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.running import FakeGateway, Launch, run_cli
from tests.cli.samples import as_sent, server, snapshot
from trayapp.cli.logs import LogFile, followed
from trayapp.wire.control import SNAPSHOT

SERVERS = "servers:\n  github: {command: x}\n  my server: {command: x}\n  wrong: {comand: x}\n"


@pytest.fixture
def logs(home: Path) -> Path:
    """Write a servers.yaml with three servers. Return the log folder."""
    (home / "servers.yaml").write_text(SERVERS, encoding="utf-8")
    (home / "logs" / "servers").mkdir(parents=True)
    return home / "logs"


def write(path: Path, *lines: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.mark.requirement("log-shown")
def test_the_last_fifty_lines_of_the_gateway(home: Path, logs: Path) -> None:
    write(logs / "gateway.log", *(f"line {number}" for number in range(70)))
    done = run_cli(home, "logs")
    assert done.stdout.splitlines() == [f"line {number}" for number in range(20, 70)]
    assert (done.returncode, done.stderr) == (0, "")


def test_as_many_lines_of_a_server_as_asked_for(home: Path, logs: Path) -> None:
    write(logs / "servers" / "github.log", "a", "b", "c")
    assert run_cli(home, "logs", "github", "-n", "2").stdout == "b\nc\n"
    assert run_cli(home, "logs", "github", "-n", "0").stdout == ""
    assert run_cli(home, "logs", "github", "-n", "-1").returncode == 2


def test_lines_that_were_set_aside_count_too_and_an_unfinished_one_as_well(home: Path, logs: Path) -> None:
    write(logs / "gateway.log.1", "a", "b")
    write(logs / "gateway.log", "c")
    with (logs / "gateway.log").open("a", encoding="utf-8") as file:
        file.write("d")
    assert run_cli(home, "logs").stdout == "a\nb\nc\nd\n"
    assert run_cli(home, "logs", "-n2").stdout == "c\nd\n"


@pytest.mark.requirement("log-shown", "log-redacted")
def test_nothing_in_a_log_moves_the_cursor_or_tells_a_secret(home: Path, logs: Path) -> None:
    write(logs / "gateway.log", "\x1b[31mred\x1b[0m \x1b]0;title\x07x\u202e", "10%\r20%", "token=abc \xff")
    with (logs / "gateway.log").open("ab") as file:
        file.write(b"\xff\n")
    assert run_cli(home, "logs").stdout == "red x\n10% 20%\ntoken=[redacted] ÿ\n\ufffd\n"


def test_json_has_the_file_and_the_lines(home: Path, logs: Path) -> None:
    write(logs / "servers" / "github.log", 'a "b"')
    shown = json.loads(run_cli(home, "logs", "github", "--json").stdout)
    assert shown == {"server": "github", "file": str(logs / "servers" / "github.log"), "lines": ['a "b"']}


@pytest.mark.parametrize("words", [[], ["github"], ["my server"], ["wrong"]])
def test_no_log_yet_is_said_and_is_no_error(home: Path, logs: Path, words: list[str]) -> None:
    done = run_cli(home, "logs", *words)
    assert done.stderr == f"There is no log of {words[0] if words else 'the gateway'} yet\n"
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(run_cli(home, "logs", *words, "--json").stdout)["lines"] == []


def test_below_a_server_s_own_lines_stand_the_gateway_s_warnings_about_it(home: Path, logs: Path) -> None:
    hang = "4 WARNING pool: github failed its health check"
    write(logs / "gateway.log", "1 INFO pool: github is up", "2 ERROR pool: db failed", hang)
    write(logs / "servers" / "github.log", "hello")
    done = run_cli(home, "logs", "github")
    assert (done.stdout, done.stderr.splitlines()[1:]) == (
        "hello\n", ["The gateway's log has these warnings about it:", hang],
    )  # fmt: skip
    assert json.loads(run_cli(home, "logs", "github", "--json").stdout)["lines"] == ["hello"]


def test_of_a_server_without_a_log_the_lines_of_the_gateway_s_that_name_it_are_shown(home: Path, logs: Path) -> None:
    write(logs / "gateway.log", "Gateway ready", "Cannot start github: no program x", "my-github is another one")
    done = run_cli(home, "logs", "github")
    assert done.stderr == "github has written nothing to its log. The gateway's log has these lines about it:\n"
    assert done.stdout == "Cannot start github: no program x\n"
    assert run_cli(home, "logs", "github", "--json").stdout.count("no program") == 0


@pytest.mark.requirement("cli-exit-codes", "cli-error-lines")
def test_an_unknown_server_is_told_with_the_nearest_name(home: Path, logs: Path) -> None:
    done = run_cli(home, "logs", "githib")
    assert done.stderr.splitlines() == [
        "Error: No server is named githib",
        "Did you mean github?",
    ]
    assert done.returncode == 5


def test_a_server_that_was_removed_or_stands_elsewhere_has_a_log_too(home: Path, logs: Path) -> None:
    write(logs / "servers" / "gone.log", "a")
    assert run_cli(home, "logs", "gone").stdout == "a\n"
    with FakeGateway(home, {SNAPSHOT: as_sent(snapshot(server("imported")))}):
        assert run_cli(home, "logs", "imported").returncode == 0


def test_servers_yaml_is_not_needed_for_a_log_that_exists(home: Path, logs: Path) -> None:
    (home / "servers.yaml").write_text("servers: [", encoding="utf-8")
    write(logs / "gateway.log", "a")
    write(logs / "servers" / "github.log", "b")
    assert run_cli(home, "logs").stdout == "a\n"
    assert run_cli(home, "logs", "github").stdout == "b\n"
    assert run_cli(home, "logs", "other").returncode == 3


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.requirement("log-shown")
def test_followed_until_ctrl_c(home: Path, logs: Path, start_cli: Launch) -> None:
    write(logs / "gateway.log", "a")
    process = start_cli("logs", "-f")
    assert process.stdout is not None
    assert process.stdout.readline() == "a\n"
    write(logs / "gateway.log", "b")
    assert process.stdout.readline() == "b\n"
    (logs / "gateway.log").replace(logs / "gateway.log.1")
    write(logs / "gateway.log", "c")
    assert process.stdout.readline() == "c\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert (out, errors.strip(), process.returncode) == ("", "", 130)


@pytest.mark.skipif(os.name == "nt", reason="pipes end in another way there")
def test_following_ends_without_a_word_when_the_reader_goes_away(home: Path, logs: Path, start_cli: Launch) -> None:
    write(logs / "gateway.log", "a")
    process = start_cli("logs", "-f", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["lines"] == ["a"]
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.wait(20)


# -- reading one log file ----------------------------------------------------------------------------------------


def test_a_line_is_shown_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"a\nhal")
    log = LogFile(path)
    assert log.last(10) == ["a"]
    assert log.unfinished() == ["hal"]
    with path.open("ab") as file:
        file.write(b"f\nb\n")
    assert log.more() == ["half", "b"]
    assert log.more() == []


@pytest.mark.requirement("log-shown")
def test_what_was_written_before_the_file_was_set_aside_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    write(path, "a")
    log = LogFile(path)
    log.last(1)
    write(path, "b")
    path.replace(tmp_path / "x.log.1")
    write(path, "c")
    assert log.more() == ["b", "c"]
    path.replace(tmp_path / "x.log.1")
    assert log.more() == []
    write(path, "d")
    assert log.more() == ["d"]


def test_a_file_that_was_emptied_or_removed_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    write(path, "a", "b")
    log = LogFile(path)
    assert log.last(1) == ["b"]
    path.write_bytes(b"")
    assert log.more() == []
    write(path, "c")
    assert log.more() == ["c"]
    path.unlink()
    assert log.more() == []
    write(path, "d")
    assert log.more() == ["d"]


def test_a_log_that_appears_later_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    log = LogFile(path)
    assert log.last(10) == []
    looks = iter(range(3))

    def wait() -> None:
        if next(looks) == 1:
            write(path, "a")

    assert next(followed(log, wait)) == ["a"]


@pytest.mark.requirement("cli-error-lines")
def test_a_log_that_cannot_be_read_is_an_error(home: Path, logs: Path) -> None:
    (logs / "gateway.log").mkdir()
    done = run_cli(home, "logs")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {logs / 'gateway.log'}: ")
