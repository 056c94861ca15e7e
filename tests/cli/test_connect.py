"""`multi-mcp connect` and `disconnect`, and what `doctor` reports about AI tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.persons import Person
from trayapp.service.command_line import shim_command

CURSOR = """\
{
  "mcpServers": {
    "gh": {"command": "gh", "env": {"TOKEN": "ghp_abcdefghijklmnop1234567890"}} // mine
  }
}
"""


@pytest.fixture
def cursor(person: Person) -> Path:
    return person.file(".cursor/mcp.json", CURSOR)


@pytest.mark.requirement("client-round-trip")
def test_connect_shows_the_change_makes_it_and_disconnect_takes_it_back(person: Person, cursor: Path) -> None:
    done = person.says("connect", "cursor")
    assert (done.returncode, done.stderr) == (0, "")
    assert '+    "multi-mcp": {' in done.stdout
    assert "ghp_" not in done.stdout
    assert done.stdout.splitlines()[-1] == "Cursor connected: ~/.cursor/mcp.json (backup: mcp.json.multi-mcp.bak)"
    assert f'"command": "{shim_command()[0]}"' in cursor.read_text()
    assert person.says("connect", "cursor").stdout == "Cursor is already connected (~/.cursor/mcp.json)\n"
    done = person.says("disconnect", "cursor")
    assert done.stdout.splitlines()[-1] == "Cursor disconnected: ~/.cursor/mcp.json (as it was before)"
    assert cursor.read_text() == CURSOR
    assert person.says("disconnect", "cursor").stdout == "Cursor is not connected (~/.cursor/mcp.json)\n"


PROFILES = """\
settings:
  profiles:
    office: {servers: [mail]}
servers:
  mail: {command: mail-server}
"""


@pytest.mark.requirement("client-entries")
def test_a_profile_has_its_own_entry(person: Person, cursor: Path) -> None:
    (person.home / "servers.yaml").write_text(PROFILES)
    done = person.says("connect", "cursor", "--profile", "office", "--as", "office")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("Cursor connected as office: ~/.cursor/mcp.json")
    assert '"args": [' in cursor.read_text()
    assert '"office"' in cursor.read_text()
    assert person.says("connect", "cursor", "--servers", "mail", "--as", "mail").returncode == 0
    assert person.says("disconnect", "cursor").returncode == 0
    assert cursor.read_text() == CURSOR


@pytest.mark.requirement("client-entries")
def test_one_entry_is_removed_and_the_others_stay(person: Person, cursor: Path) -> None:
    (person.home / "servers.yaml").write_text(PROFILES)
    person.says("connect", "cursor")
    alone = cursor.read_text()
    person.says("connect", "cursor", "--servers", "mail", "--as", "mail")
    both = cursor.read_text()
    shown = person.says("disconnect", "cursor", "--as", "mail", "--dry-run").stdout
    assert shown.endswith("Cursor: entry mail would be removed (~/.cursor/mcp.json). Still there: multi-mcp\n")
    assert cursor.read_text() == both
    assert person.says("disconnect", "cursor", "--as", "mail").returncode == 0
    assert cursor.read_text() == alone
    done = person.says("disconnect", "cursor", "--as", "mail")
    assert (done.returncode, done.stderr) == (2, "Error: Cursor has no multi-mcp entry named mail\nIt has: multi-mcp\n")
    assert person.says("disconnect", "--all", "--as", "mail").stdout == "Nothing to do. See: multi-mcp connect\n"
    assert person.gets("connect")["clients"][0]["state"] == "connected"
    assert person.says("disconnect", "cursor", "--as", "multi-mcp").returncode == 0
    assert cursor.read_text() == CURSOR


@pytest.mark.requirement("client-entries")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--profile", "ofice"], "Error: No profile is named ofice\nDid you mean office?"),
        (["--servers", "mail,nope"], "Error: No server is named nope\nThe servers in servers.yaml: mail"),
        (["--as", "a b"], "Error: a b is not a valid entry name"),
    ],
)
def test_options_that_name_nothing_change_nothing(person: Person, cursor: Path, words: list[str], told: str) -> None:
    (person.home / "servers.yaml").write_text(PROFILES)
    done = person.says("connect", "cursor", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(told)
    assert cursor.read_text() == CURSOR


def test_a_dry_run_changes_nothing(person: Person, cursor: Path) -> None:
    done = person.says("connect", "cursor", "--dry-run")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Cursor would be connected")
    assert '+    "multi-mcp": {' in done.stdout
    assert cursor.read_text() == CURSOR
    assert list(cursor.parent.iterdir()) == [cursor]


def test_all_connects_every_tool_that_is_found_and_one_that_fails_stops_no_other(person: Person, cursor: Path) -> None:
    codex = person.file(".codex/config.toml", 'model = "x"\n')
    zed = person.file(".gemini/settings.json", "{")
    done = person.says("connect", "--all")
    assert done.returncode == 1
    assert '"multi-mcp"' in cursor.read_text()
    assert "[mcp_servers.multi-mcp]" in codex.read_text()
    assert zed.read_text() == "{"
    assert done.stderr.startswith(f"Gemini CLI: {zed}, line 1: Not JSON")
    assert "If Codex is running, restart it" in done.stdout
    assert person.says("disconnect", "--all").returncode == 0
    assert (cursor.read_text(), codex.read_text()) == (CURSOR, 'model = "x"\n')
    assert person.says("disconnect", "--all").stdout == "Nothing to do. See: multi-mcp connect\n"


def test_without_a_name_the_tools_that_are_here_are_shown(person: Person, cursor: Path) -> None:
    assert person.gets("connect") == {
        "clients": [
            {
                "name": "cursor",
                "title": "Cursor",
                "state": "not connected",
                "file": str(cursor),
                "reason": "",
                "max_tools": 40,
                "max_name": 60,
            }
        ]
    }
    person.says("connect", "cursor")
    assert person.says("connect").stdout.split() == [
        "CLIENT",
        "STATE",
        "FILE",
        "cursor",
        "connected",
        "~/.cursor/mcp.json",
        "(takes",
        "at",
        "most",
        "40",
        "tools)",
    ]


def test_no_tool_at_all_is_said(person: Person) -> None:
    assert person.says("connect").stdout.startswith("No known AI tool was found here\n")
    done = person.says("connect", "cursor")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Cursor was not found here\nIts configuration would be ")


@pytest.mark.requirement("cli-error-lines")
@pytest.mark.parametrize("words", [["connect", "curser"], ["disconnect"], ["connect", "cursor", "--all"]])
def test_wrong_words_are_a_usage_error(person: Person, words: list[str]) -> None:
    done = person.says(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 2


def test_json_has_the_state_and_the_difference(person: Person, cursor: Path) -> None:
    (made,) = person.gets("connect", "cursor")["clients"]
    assert (made["state"], made["changed"], made["file"]) == ("connected", True, str(cursor))
    assert any("multi-mcp" in line for line in made["diff"])
    (again,) = person.gets("connect", "cursor")["clients"]
    assert (again["changed"], again["diff"], again["needs"]) == (False, [], "")


def test_an_unparsable_file_is_the_verbs_error_with_line(person: Person) -> None:
    path = person.file(".cursor/mcp.json", '{\n"a": }')
    done = person.says("connect", "cursor", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["title"].startswith(f"{path}, line 2: ")


@pytest.mark.requirement("client-drift")
def test_doctor_says_how_each_tool_stands(person: Person, cursor: Path) -> None:
    def findings() -> list[tuple[str, str, str]]:
        found = json.loads(person.says("doctor", "--json").stdout)
        return [(one["state"], one["message"], one["remedy"]) for one in found if one["code"] == "clients.connected"]

    assert findings() == [
        ("note", "None of these is connected: Cursor", "Connect all of them: multi-mcp connect --all")
    ]
    person.says("connect", "cursor")
    assert findings() == [("ok", f"Cursor: {cursor}", "")]
    cursor.write_text(cursor.read_text().replace(shim_command()[0], "/gone/multi-mcp"), encoding="utf-8")
    ((state, message, remedy),) = findings()
    assert (state, remedy) == ("problem", "Fix it with: multi-mcp connect cursor")
    assert message == f"Cursor: it points to /gone/multi-mcp, which does not exist ({cursor})"
    cursor.write_text("{", encoding="utf-8")
    assert findings()[0][0] == "note"


@pytest.mark.requirement("import-layers")
def test_doctor_sees_servers_yaml_over_its_imports(person: Person) -> None:
    path = person.file(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "/bin/sh"}, "arr": []}}')
    person.servers.write_text("settings: {imports: [cursor]}\nservers: {a: {disabled: true}}\n", encoding="utf-8")
    found = json.loads(person.says("doctor", "--json").stdout)
    assert [(one["state"], one["message"]) for one in found if one["code"].startswith("config.")] == [
        ("ok", f"{person.servers}: 1 server"),
        ("note", f"{path}, line 1: arr of Cursor: it is not a mapping"),
    ]


def test_all_tells_a_line_a_tool_and_the_difference_only_when_asked(person: Person, cursor: Path) -> None:
    person.file(".codex/config.toml", 'model = "x"\n')
    before = cursor.read_text()
    assert "@@" not in person.says("connect", "--all", "--dry-run").stdout
    assert "+[mcp_servers.multi-mcp]" in person.says("connect", "--all", "--dry-run", "--diff").stdout
    done = person.says("connect", "--all")
    assert done.stdout.splitlines() == [
        "Codex connected: ~/.codex/config.toml (backup: config.toml.multi-mcp.bak). If Codex is running, restart it",
        "Cursor connected: ~/.cursor/mcp.json (backup: mcp.json.multi-mcp.bak)",
        "To see each changed line, add --diff",
    ]
    assert len(person.says("disconnect", "--all").stdout.splitlines()) == 3
    assert cursor.read_text() == before


@pytest.mark.requirement("client-foreign-entry")
def test_another_server_of_our_name_is_asked_about(person: Person) -> None:
    text = '{"mcpServers": {"multi-mcp": {"command": "docker", "args": ["run", "x"]}}}'
    file = person.file(".cursor/mcp.json", text)
    done = person.says("connect", "cursor")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1, "Error: Cursor has another server named multi-mcp: docker run x",
    )  # fmt: skip
    assert "multi-mcp connect cursor --replace" in done.stderr
    person.file(".cursor/mcp.json", text.replace("multi-mcp", "b"))
    done = person.says("connect", "cursor", "--as", "b")
    assert "multi-mcp connect cursor --as b --replace" in done.stderr
    person.file(".cursor/mcp.json", text)
    assert person.says("disconnect", "--all").returncode == 0
    assert file.read_text() == text
    if sys.platform != "win32":
        person.answers("connect", "cursor", typed="n\n")
        assert file.read_text() == text
        assert "Replace it?" in person.answers("connect", "cursor", typed="y\n")
        assert "stdio" in file.read_text()
        person.says("disconnect", "cursor")
        assert file.read_text() == text
    assert person.says("connect", "cursor", "--replace").returncode == 0
    assert "stdio" in file.read_text()


@pytest.mark.requirement("client-drift")
def test_an_entry_that_is_switched_off_stays_so_and_doctor_tells(person: Person) -> None:
    entry = {"command": "/old/multi-mcp", "args": ["stdio", "--profile", "office"], "disabled": True}
    file = person.file(".cursor/mcp.json", json.dumps({"mcpServers": {"multi-mcp": entry}}))
    assert "multi-mcp is disabled there, and stays as it is" in person.says("connect", "--all").stdout
    after = json.loads(file.read_text())["mcpServers"]["multi-mcp"]
    assert (after["disabled"], after["args"][-2:]) == (True, ["--profile", "office"])
    assert "connected" in person.says("connect").stdout
    assert "multi-mcp is disabled there" in person.says("doctor").stdout
