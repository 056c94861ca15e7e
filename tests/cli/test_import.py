"""`multi-mcp import`: servers are shown first, imported after a yes, and moved with a backup."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.persons import Person
from trayapp.cli.import_servers import numbers_of
from trayapp.config.read.parse import parse
from trayapp.model.config import Confine

TOKEN = "ghp_abcdefghijklmnop1234567890abcd"


def saved(person: Person, name: str, servers: dict[str, Any]) -> Path:
    return person.file(name, json.dumps({"mcpServers": servers}, indent=2))


@pytest.fixture
def cursor(person: Person) -> Path:
    return saved(
        person, ".cursor/mcp.json", {"gh": {"command": "gh", "env": {"TOKEN": TOKEN}}, "fs": {"command": "fs"}}
    )


def configured(person: Person) -> dict[str, str]:
    config = parse(person.servers.read_text(), "f")
    return {name: server.command or server.url or "" for name, server in config.servers.items() if name != "sample"}


@pytest.mark.requirement("import-shown")
def test_what_was_found_is_shown_and_nothing_is_written_without_a_yes(person: Person, cursor: Path) -> None:
    before = cursor.read_text()
    done = person.says("import", "--dry-run")
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()[:3]] == [
        ["SERVER", "FROM", "STARTS"], ["gh", "Cursor", "gh"], ["fs", "Cursor", "fs"],
    ]  # fmt: skip
    assert "gh: has 1 secret in clear text" in done.stdout
    done = person.says("import")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Error: Cannot ask for confirmation (no terminal)")
    assert not person.servers.exists()
    assert cursor.read_text() == before
    assert TOKEN not in done.stdout + done.stderr


def test_what_is_switched_off_there_and_what_only_the_user_knows_is_said(person: Person) -> None:
    entries = {"s": {"command": "x", "args": ["${input:my key}"]}, "t": {"command": "y", "enabled": False}}
    person.file(".config/Code/User/mcp.json", json.dumps({"servers": entries}))
    done = person.says("import", "--dry-run")
    assert "s: needs a value that only you know: multi-mcp secret set 'my key'" in done.stdout
    assert "t: is disabled there, and stays disabled" in done.stdout


def test_a_tools_commands_for_secrets_are_shown_and_not_run_and_its_permissions_are_not_taken_over(
    person: Person,
) -> None:
    ran = person.mine / "ran"
    headers = {"Authorization": f"Bearer $(touch {ran})"}
    http = {"type": "http", "url": "https://a.test/mcp", "headers": headers, "oauth_client_secret": TOKEN}
    person.file(".config/crush/crush.json", json.dumps({"mcp": {"s": http | {"oauth_client_id": "i"}}}))
    saved(person, ".cursor/mcp.json", {"t": {"command": "t", "autoApprove": ["a"], "envFile": ".env"}})
    done = person.says("import", "--dry-run")
    assert f"s: runs for a secret: touch {ran} (multi-mcp asks you first); has 1 secret in clear text" in done.stdout
    assert "t: autoApprove is not imported: multi-mcp has its own rules; envFile has no meaning here" in done.stdout
    assert person.says("import", "--yes").returncode == 0
    server = parse(person.servers.read_text(), "f").servers["s"]
    assert server.headers == {"Authorization": f"Bearer ${{cmd:touch {ran}}}"}
    assert (server.client_id, server.client_secret) == ("i", TOKEN)  # there is no keyring
    assert not ran.exists()


@pytest.mark.requirement("import-shown")
def test_a_copy_leaves_the_tools_file_as_it_is(person: Person, cursor: Path) -> None:
    before = cursor.read_text()
    done = person.says("import", "cursor", "--yes")
    assert done.returncode == 0
    assert configured(person) == {"gh": "gh", "fs": "fs"}
    assert cursor.read_text() == before
    again = person.says("import", "--yes")
    assert "gh (already there)" in again.stdout
    assert configured(person) == {"gh": "gh", "fs": "fs"}


@pytest.mark.requirement("import-shown")
def test_a_move_takes_them_out_of_the_tools_file_and_keeps_a_backup(person: Person, cursor: Path) -> None:
    before = cursor.read_text()
    done = person.says("import", "--move", "--yes")
    assert done.returncode == 0, done.stderr
    assert json.loads(cursor.read_text()) == {"mcpServers": {}}
    assert (cursor.parent / "mcp.json.before-import.bak").read_text() == before
    assert "Removed from ~/.cursor/mcp.json (backup: mcp.json.before-import.bak)" in done.stdout
    assert configured(person) == {"gh": "gh", "fs": "fs"}


def test_servers_that_were_copied_before_can_be_moved_later(person: Person, cursor: Path) -> None:
    person.says("import", "--yes")
    assert person.says("import", "--move", "--yes").returncode == 0
    assert json.loads(cursor.read_text()) == {"mcpServers": {}}


def test_servers_of_one_folder_go_into_the_file_of_its_project_which_is_trusted(person: Person) -> None:
    projects = {str(person.folder): {"mcpServers": {"pp": {"command": "p"}}}, "/other": {"mcpServers": {"n": {}}}}
    person.file(".claude.json", json.dumps({"projects": projects}))
    done = person.says("import", "claude-code", "--yes")
    assert "Claude Code (~/src/shop)" in done.stdout
    assert "For sessions in /other: n (run multi-mcp import there)" in done.stdout
    assert (person.folder / ".multi-mcp.yaml").read_text() == "servers:\n  pp:\n    command: p\n"
    assert "sample" not in person.servers.read_text() if person.servers.exists() else True
    assert json.loads(person.says("trust", ".", "--json").stdout)["trusted"] is True


def test_a_project_file_that_cannot_be_edited_holds_up_no_other_server(person: Person, cursor: Path) -> None:
    projects = {str(person.folder): {"mcpServers": {"pp": {"command": "p"}}}}
    person.file(".claude.json", json.dumps({"projects": projects}))
    (person.folder / ".multi-mcp.yaml").write_text("x-own: &a {}\nservers: *a\n", encoding="utf-8")
    done = person.says("import", "--yes")
    assert (done.returncode, configured(person)) == (0, {"gh": "gh", "fs": "fs"})
    assert "pp was not imported: " in done.stderr
    assert person.gets("import", "--undo", "--dry-run")["removed"] == ["fs", "gh"]
    assert person.says("import", "claude-code", "--yes").returncode != 0


def test_what_a_project_file_of_multi_mcp_holds_is_not_imported(person: Person) -> None:
    (person.folder / ".mcp.json").write_text('{"mcpServers": {"m": {"command": "x"}}}', encoding="utf-8")
    assert person.gets("import", "claude-code") == {"servers": [], "problems": [], "moved": []}


def test_our_own_entry_is_not_offered(person: Person, cursor: Path) -> None:
    person.says("connect", "cursor")
    assert [server["name"] for server in person.gets("import")["servers"]] == ["gh", "fs"]


def test_a_first_start_offers_until_there_are_servers_or_a_no(person: Person, cursor: Path) -> None:
    projects = {str(person.folder): {"mcpServers": {"pp": {"command": "p"}}}}
    person.file(".claude.json", json.dumps({"projects": projects}))
    assert [server["name"] for server in person.gets("import", "--first")["servers"]] == ["gh", "fs"]
    assert person.gets("import", "--no-offer") == {"offers": False}
    assert person.gets("import", "--first")["servers"] == []
    assert person.gets("import", "--first", "--yes")["servers"] == []
    assert not person.servers.exists()
    assert [server["name"] for server in person.gets("import")["servers"]] == ["pp", "gh", "fs"]
    (person.home / "clients.json").unlink()
    assert len(person.gets("import", "--first", "--copy", "--yes", "--clear")["servers"]) == 2
    assert configured(person) == {"gh": "gh", "fs": "fs"}
    assert person.gets("import", "--first")["servers"] == []
    assert list(person.folder.iterdir()) == []


def test_json_shows_names_and_no_values(person: Person, cursor: Path) -> None:
    (gh, fs) = person.gets("import")["servers"]
    assert gh == {
        "name": "gh", "client": "cursor", "title": "Cursor", "file": str(cursor), "folder": None,
        "command": ["gh"], "url": None, "env": ["TOKEN"], "headers": [], "known": False,
        "secrets": ["gh.TOKEN"], "left_out": [],
    }  # fmt: skip
    assert fs["secrets"] == []
    assert not person.servers.exists()


def test_a_file_that_cannot_be_read_is_told_and_stops_no_other(person: Person, cursor: Path) -> None:
    person.file(".codeium/windsurf/mcp_config.json", "{")
    done = person.says("import", "--yes")
    assert done.returncode == 0
    assert done.stderr.startswith("~/.codeium/windsurf/mcp_config.json, line 1: Not JSON")
    assert configured(person) == {"gh": "gh", "fs": "fs"}


def test_a_broken_servers_yaml_is_left_alone(person: Person, cursor: Path) -> None:
    person.servers.write_text("servers: [", encoding="utf-8")
    done = person.says("import", "--move", "--yes")
    assert done.returncode == 3
    assert person.servers.read_text() == "servers: ["
    assert "gh" in cursor.read_text()


def test_secrets_go_into_the_keyring_before_the_servers_are_taken_over(person: Person, cursor: Path) -> None:
    person.servers.write_text("settings: {token_store: file}\n", encoding="utf-8")
    person.env["MULTI_MCP_PASSPHRASE"] = "of the tests"
    # Cursor has the same server with the same variable, but a different secret, so they need different names.
    alike = {"gh": {"command": "gh", "env": {"TOKEN": TOKEN[::-1]}}}
    person.file(".claude.json", json.dumps({"projects": {str(person.folder): {"mcpServers": alike}}}))
    done = person.says("import", "--keyring", "--yes")
    assert done.returncode == 0, done.stderr
    texts = [path.read_text() for path in (person.folder / ".multi-mcp.yaml", person.servers)]
    assert [name in text for text, name in zip(texts, ("keyring:gh.TOKEN}", "keyring:gh.TOKEN-2}"), strict=True)] == [
        True, True,
    ]  # fmt: skip
    assert person.says("secret", "list").stdout == "gh.TOKEN\ngh.TOKEN-2\n"
    assert TOKEN not in person.servers.read_text() + done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="macOS and Windows always have a keyring")
def test_without_a_keyring_nothing_is_taken_over_when_it_was_asked_for(person: Person, cursor: Path) -> None:
    person.servers.write_text("settings: {token_store: file}\n", encoding="utf-8")
    done = person.says("import", "--keyring", "--yes")
    assert done.returncode == 1
    assert person.servers.read_text() == "settings: {token_store: file}\n"


def test_a_server_named_as_the_sample_of_a_first_start_gets_another_name(person: Person) -> None:
    person.file(".cursor/mcp.json", '{"mcpServers": {"sample": {"command": "mine"}, "other": {"command": "x"}}}')
    done = person.says("import", "cursor", "--yes")
    assert done.returncode == 0, done.stderr
    text = person.servers.read_text(encoding="utf-8")
    assert all(f"\n  {name}:\n" in text for name in ("sample", "sample-cursor", "other"))


@pytest.mark.requirement("import-own-fate")
@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ('{"command": "x", "args": ["\\ud83d\\ude80", "\U0001f680"]}', ""),
        ('{"command": "x", "env": {"\\ud83d\\ude80": "\\ud83d\\ude80"}, "cwd": "/\\ud83d\\ude80"}', ""),
        ('{"command": "x", "args": ["\\u0000\\u001b\\u007f\\u2028\\ufeff\\uffff"]}', ""),
        ('{"command": "x", "args": ["\\ud83d"]}', "lone surrogate"),
        ('{"command": "x", "env": {"\\ude80": "1"}}', "lone surrogate"),
        ('{"command": "x", "env": {"%s": "1"}}' % ("N" * 1100), "too long"),
        ('{"url": "https://a.test", "headers": {"%s": "1"}}' % ("N" * 1100), "too long"),
        ('{"command": "x", "env": ' + '{"a": ' * 60 + "1" + "}" * 60 + "}", "Windsurf"),
        ('{"command": "${workspaceFolder}/x.js"}', "${workspaceFolder} has no meaning outside a workspace"),
        ('{"command": "node", "args": ["${workspaceFolder}/x.js"]}', "${workspaceFolder}"),
        ('{"command": 5, "args": {"a": 1}}', "args is not a list"),
        ("[]", "not a mapping"),
    ],
)  # fmt: skip
def test_one_odd_entry_stops_no_other_and_is_named_with_its_file(
    person: Person, cursor: Path, odd: str, why: str
) -> None:
    text = f'{{"mcpServers": {{\n"fine": {{"command": "y"}},\n"odd": {odd}}}}}'
    file = person.file(".codeium/windsurf/mcp_config.json", text)
    done = person.says("import", "--move", "--yes")
    assert done.returncode == 0, done.stderr
    assert {"gh": "gh", "fs": "fs", "fine": "y"}.items() <= configured(person).items()
    taken = "odd" in configured(person)
    assert taken is (not why)
    left = list(json.loads(file.read_text())["mcpServers"])
    assert left == ([] if taken else ["odd"])
    if why:
        (line,) = [line for line in done.stderr.splitlines() if "odd" in line]
        assert "mcp_config.json" in line
        assert why in line
        assert person.gets("import")["problems"][0]["server"] == "odd"


@pytest.mark.requirement("import-own-fate")
def test_a_date_in_codexs_file_stops_no_import(person: Person, cursor: Path) -> None:
    person.file(".codex/config.toml", '[mcp_servers.odd]\ncommand = "x"\nenv = {DAY = 2024-01-01}\n')
    done = person.says("import", "--yes")
    assert (done.returncode, configured(person)) == (0, {"gh": "gh", "fs": "fs"})
    assert "config.toml, line 1: odd of Codex: it cannot be written" in done.stderr


@pytest.mark.requirement("import-folder")
def test_a_server_runs_where_its_client_would_run_it(person: Person) -> None:
    entries = {
        "plain": {"command": "x"},
        "dot": {"command": "fs", "args": ["."]},
        "sub": {"command": "x", "cwd": "./srv"},
        "there": {"command": "x", "cwd": "/srv"},
        "web": {"url": "https://a.test/mcp"},
    }
    saved(person, ".gemini/settings.json", entries)
    saved(person, ".config/Claude/claude_desktop_config.json", {"desk": {"command": "d", "args": ["./a"]}})
    done = person.says("import", "--yes")
    assert "dot: has relative paths, so it runs in the folder of each session, as in Gemini CLI" in done.stdout
    config = parse(person.servers.read_text(), "f")
    assert {name: (server.cwd, server.scope) for name, server in config.servers.items() if name != "sample"} == {
        "desk": ("~", "shared"), "plain": ("~", "shared"), "dot": (None, "session"), "sub": ("./srv", "session"),
        "there": ("/srv", "shared"), "web": (None, "shared"),
    }  # fmt: skip
    assert config.problems == ()
    assert {server["known"] for server in person.gets("import")["servers"]} == {True}


def test_of_servers_that_start_alike_the_one_that_is_switched_on_wins_with_its_name(person: Person) -> None:
    saved(person, ".cursor/mcp.json", {"off": {"command": "everything", "disabled": True}})
    saved(person, ".codeium/windsurf/mcp_config.json", {"everything": {"command": "everything"}})
    done = person.says("import", "--move", "--yes")
    assert "off (same as everything)" in done.stdout
    servers = parse(person.servers.read_text(), "f").servers
    assert ("off" in servers, servers["everything"].disabled) == (False, False)


@pytest.mark.requirement("source-asked")
def test_an_unencrypted_address_that_is_imported_is_told(person: Person) -> None:
    saved(person, ".cursor/mcp.json", {"a": {"url": "http://nas.local/mcp"}, "b": {"url": "http://localhost:1/mcp"}})
    done = person.says("import", "--yes")
    assert "a: http:// is not encrypted: others in the server's network can read" in done.stdout
    assert "b: http" not in done.stdout


@pytest.mark.requirement("confine-import")
def test_a_sandbox_of_an_unknown_form_is_kept_and_means_confined(person: Person) -> None:
    saved(
        person,
        ".cursor/mcp.json",
        {"s": {"command": "x", "sandboxEnabled": True, "sandbox": {"fs": ["/src"]}, "dev": 1}},
    )
    done = person.says("import", "--yes")
    assert "s: keeps its sandbox as confine; to see what else it needs: multi-mcp confine s" in done.stdout
    assert "dev has no meaning here" in done.stdout
    text = person.servers.read_text()
    assert "x-sandbox: {fs: [/src]}" in text
    assert "x-sandboxEnabled: true" in text
    assert parse(text, "f").problems == ()
    assert parse(text, "f").servers["s"].confine == Confine()


@pytest.mark.requirement("confine-import")
def test_vs_codes_sandbox_comes_as_confine(person: Person) -> None:
    rules = {
        "filesystem": {"allowWrite": [".", "~/.npm", "~/out"]},
        "network": {"allowedDomains": ["api.example.com", "*.example.org"]},
    }
    path = person.mine / ".config/Code/User/mcp.json"
    path.parent.mkdir(parents=True)
    servers = {
        "own": {"command": "x", "sandboxEnabled": True, "sandbox": rules},
        "beside": {"command": "y", "sandboxEnabled": True},
        "off": {"command": "z", "sandboxEnabled": False},
    }
    path.write_text(json.dumps({"servers": servers, "sandbox": rules}))
    done = person.says("import", "--yes")
    assert done.returncode == 0, done.stderr
    found = parse(person.servers.read_text(), "f").servers
    expected = Confine(write=("~/out",), network=("api.example.com", "*.example.org", "*.npmjs.org"))
    assert (found["own"].confine, found["beside"].confine, found["off"].confine) == (expected, expected, None)
    assert "LESS SAFE" not in done.stdout
    assert "To confine a server's program to its own folders: multi-mcp confine NAME" in done.stdout


@pytest.mark.requirement("import-after-trust")
def test_what_came_with_a_repository_starts_only_after_its_approval(person: Person, cursor: Path) -> None:
    (person.folder / ".cursor").mkdir()
    (person.folder / ".cursor" / "mcp.json").write_text('{"mcpServers": {"evil": {"command": "./evil"}}}')
    done = person.says("import", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Nothing in it starts before you approve it: multi-mcp trust ~/src/shop" in done.stdout
    assert "evil" in (person.folder / ".multi-mcp.yaml").read_text()
    assert json.loads(person.says("trust", ".", "--json").stdout)["trusted"] is False
    assert configured(person) == {"gh": "gh", "fs": "fs"}


@pytest.mark.requirement("import-after-trust")
def test_a_trusted_project_is_a_stranger_again_with_what_a_repository_brought(person: Person) -> None:
    person.says("add", "mine", "--scope", "project", "--", "x")
    assert json.loads(person.says("trust", ".", "--json").stdout)["trusted"] is True
    (person.folder / ".cursor").mkdir()
    (person.folder / ".cursor" / "mcp.json").write_text('{"mcpServers": {"evil": {"command": "./evil"}}}')
    person.says("import", "--yes")
    assert json.loads(person.says("trust", ".", "--json").stdout)["trusted"] is False


@pytest.mark.requirement("import-undo")
def test_an_import_is_undone_with_its_secrets_and_servers(person: Person, cursor: Path) -> None:
    person.servers.write_text("settings: {token_store: file}\nservers:\n  mine: {command: m}\n", encoding="utf-8")
    person.env["MULTI_MCP_PASSPHRASE"] = "of the tests"
    before, mine = cursor.read_text(), person.servers.read_text()
    person.says("import", "--move", "--keyring", "--yes")
    assert (person.says("secret", "list").stdout, cursor.read_text() == before) == ("gh.TOKEN\n", False)
    assert person.gets("import", "--undo", "--dry-run") == {"restored": [str(cursor)], "removed": ["fs", "gh"]}
    done = person.says("import", "--undo")
    assert done.returncode == 0, done.stderr
    assert "~/.cursor/mcp.json has its own servers again (as it was before)" in done.stdout
    assert (cursor.read_text(), person.servers.read_text()) == (before, mine)
    assert person.says("secret", "list").stdout == "No secrets\n"
    assert person.says("import", "--undo").stdout == "No imports to undo\n"


@pytest.mark.requirement("import-undo")
def test_a_server_that_was_changed_since_stays_here(person: Person, cursor: Path) -> None:
    person.says("import", "--move", "--yes")
    person.servers.write_text(person.servers.read_text().replace("command: fs", "command: fs2"), encoding="utf-8")
    done = person.says("import", "--undo")
    assert configured(person) == {"fs": "fs2"}
    assert "fs was changed after its import, so it stays in" in done.stderr


@pytest.mark.requirement("import-undo")
def test_disconnecting_all_gives_the_tools_their_own_servers_again(person: Person, cursor: Path) -> None:
    before = cursor.read_text()
    person.says("import", "--move", "--yes")
    person.says("connect", "--all")
    assert "multi-mcp import --undo" in person.says("disconnect", "cursor").stdout
    person.says("connect", "--all")
    done = person.says("disconnect", "--all")
    assert done.returncode == 0, done.stderr
    assert cursor.read_text() == before
    assert configured(person) == {"gh": "gh", "fs": "fs"}


def test_numbers_choose_what_is_taken_over() -> None:
    assert [numbers_of(word, 5) for word in ("all", "y", "none", "N", "1", "1,3-5", " 2 4 ", "5-5")] == [
        [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [], [], [1], [1, 3, 4, 5], [2, 4], [5],
    ]  # fmt: skip
    assert [numbers_of(word, 5) for word in ("", "0", "6", "3-1", "x", "1-9", "-1", "1,,x")] == [None] * 8


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
@pytest.mark.parametrize(
    ("answers", "taken", "left"),
    [
        ("2\ny\n", {"fs": "fs"}, ["gh"]),
        ("all\nn\nn\n", {"gh": "gh", "fs": "fs"}, ["gh", "fs"]),
        ("none\n", {}, ["gh", "fs"]),
    ],
)
def test_a_person_chooses_by_number(
    person: Person, cursor: Path, answers: str, taken: dict[str, str], left: list[str]
) -> None:
    ran = person.answers("import", "--clear", typed=answers)
    assert "--move" in ran or not taken
    assert (configured(person) if person.servers.exists() else {}) == taken
    assert list(json.loads(cursor.read_text())["mcpServers"]) == left
