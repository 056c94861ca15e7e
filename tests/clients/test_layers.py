"""`settings.imports`: layers out of clients' files, laid below servers.yaml and followed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.machines import machine_in
from trayapp.clients.servers import ClientLayers
from trayapp.config.layers.entries import lay_over, user_pairs
from trayapp.config.layers.overlay import overlay
from trayapp.config.layers.project import ProjectFile
from trayapp.config.layers.trust import TrustStore
from trayapp.config.read.entry import EntryContext
from trayapp.config.read.parse import parse
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig

pytestmark = pytest.mark.requirement("import-layers")


def cursor(home: Path, **servers: Any) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def claude(home: Path, **servers: Any) -> Path:
    path = home / ".claude.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def laid(home: Path, text: str) -> Config:
    config = parse(text, "servers.yaml", exists=lambda path: False)
    layers = ClientLayers(machine_in(home)).read(config.settings.imports, "servers.yaml")
    return lay_over(config, layers, exists=lambda path: False)


def started(config: Config) -> dict[str, str]:
    return {name: server.command or server.url or "" for name, server in config.servers.items()}


@pytest.mark.parametrize(
    ("imports", "expected"),
    [("[cursor, claude-code]", "of-cursor"), ("[claude-code, cursor]", "of-claude"), ("claude", "of-claude")],
)
def test_the_first_listed_that_has_a_name_gives_the_whole_entry(tmp_path: Path, imports: str, expected: str) -> None:
    cursor(tmp_path, same={"command": "of-cursor"}, more={"command": "m"})  # config-03, config-04
    claude(tmp_path, same={"command": "of-claude", "env": {"T": "s"}})
    config = laid(tmp_path, f"settings: {{imports: {imports}}}")
    assert config.servers["same"].command == expected
    assert config.servers["same"].env == ({"T": "s"} if expected == "of-claude" else {})
    assert "more" in config.servers or imports == "claude"


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ({"command": "a"}, "{command: b}", {"command": "b"}),  # config-02
        ({"command": "cursor", "args": ["1"]}, "{env: {A: '1'}}",  # config-05
         {"command": "cursor", "args": ("1",), "env": {"A": "1"}}),
        ({"command": "c", "args": ["1"]}, "{url: 'https://z.test'}", {"url": "https://z.test"}),  # config-07
        ({"url": "https://a.test", "headers": {"Authorization": "s"}}, "{url: 'https://b.test'}",  # config-08
         {"url": "https://b.test"}),
        ({"url": "https://a.test", "headers": {"A": "s"}}, "{url: 'https://a.test', idle_timeout: 3}",  # config-09
         {"url": "https://a.test", "headers": {"A": "s"}, "idle_timeout": 3.0}),
        ({"command": "c"}, "{disabled: true}", {"command": "c", "disabled": True}),
        ({"command": "c", "disabled": True}, "{enabled: true}", {"command": "c"}),
        ({"command": "c"}, "", {"command": "c"}),
    ],
)  # fmt: skip
def test_servers_yaml_lies_over_an_import_per_field(
    tmp_path: Path, lower: dict[str, Any], upper: str, expected: dict[str, Any]
) -> None:
    cursor(tmp_path, x=lower)
    config = laid(tmp_path, f"settings: {{imports: [cursor]}}\nservers:\n  x: {upper}\n")
    assert config.servers == {"x": ServerConfig("x", line=3, **expected)}
    assert (config.problems, config.foreign) == ((), {})


def test_what_only_an_import_has_is_foreign_and_keeps_its_place(tmp_path: Path) -> None:
    path = cursor(tmp_path, theirs={"command": "npx -y x", "env": {"N": 5, "B": True}})
    config = laid(tmp_path, "settings: {imports: [cursor]}\nservers: {mine: {command: m}}")
    assert started(config) == {"mine": "m", "theirs": "npx"}
    assert config.servers["theirs"].args == ("-y", "x")
    assert config.servers["theirs"].env == {"N": "5", "B": "true"}
    assert config.foreign == {"theirs": str(path)}


def test_a_wrong_import_is_its_files_problem_and_takes_nothing_from_ours(tmp_path: Path) -> None:
    path = cursor(tmp_path, arr=[], bad={"command": "x", "args": "y"}, ok={"command": "x"})
    config = laid(tmp_path, "settings: {imports: [cursor]}\nservers: {bad: {command: mine}}")
    assert started(config) == {"bad": "mine", "ok": "x"}
    assert {(problem.file, problem.server, problem.fatal) for problem in config.problems} == {
        (str(path), "arr", False), (str(path), "bad", False),
    }  # fmt: skip


def test_an_entry_that_only_an_import_made_whole_is_a_problem_without_it(tmp_path: Path) -> None:
    text = "settings: {imports: [cursor]}\nservers: {x: {title: T}}"
    assert [problem.server for problem in laid(tmp_path, text).problems] == ["x"]
    cursor(tmp_path, x={"command": "c"})
    assert laid(tmp_path, text).problems == ()


def test_an_unknown_name_is_a_problem_with_the_nearest(tmp_path: Path) -> None:
    (problem,) = laid(tmp_path, "settings: {imports: [curser]}").problems
    assert (problem.file, problem.message, problem.hint) == (
        "servers.yaml", "imports: no client is named curser", "Did you mean cursor?",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("settings:\n  imports: curser", 2),
        ("settings:\n  expose: auto\n  imports: [cursor,\n    curser]", 4),
        ("servers: {}\nsettings:\n  imports:\n  - cursor\n  - curser", 5),
        ("x-mine: &i [curser]\nsettings:\n  imports: *i", 1),
    ],
)
def test_an_unknown_name_is_a_problem_of_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert [problem.line for problem in laid(tmp_path, text).problems] == [line]


def test_a_file_that_cannot_be_read_is_a_problem_and_no_more(tmp_path: Path) -> None:
    path = cursor(tmp_path)
    path.write_text("{", encoding="utf-8")
    config = laid(tmp_path, "settings: {imports: [cursor]}\nservers: {mine: {command: m}}")
    assert started(config) == {"mine": "m"}
    assert [(problem.file, problem.line, problem.fatal) for problem in config.problems] == [(str(path), 1, False)]


def test_our_own_entry_is_in_no_layer(tmp_path: Path) -> None:
    cursor(tmp_path, **{"multi-mcp": {"command": "/opt/multi-mcp", "args": ["stdio"]}})
    assert laid(tmp_path, "settings: {imports: [cursor]}").servers == {}


def test_a_projects_file_lies_over_servers_yaml_over_an_import(tmp_path: Path) -> None:  # config-01
    cursor(tmp_path, x={"command": "one", "args": ["1"]}, y={"command": "two", "args": ["2"]})
    config = laid(tmp_path, "settings: {imports: [cursor]}\nservers: {x: {env: {A: '1'}}}")
    file = ProjectFile(tmp_path / "p" / ".multi-mcp.yaml", b"servers: {x: {title: T}, y: {args: ['3']}}")
    store = TrustStore(tmp_path / "trusted.json")
    store.approve(file)
    trusted = store.check(file)
    assert trusted is not None
    servers = overlay(config, trusted, exists=lambda path: False).config.servers
    assert (servers["x"].command, servers["x"].args, servers["x"].env) == ("one", ("1",), {"A": "1"})
    assert (servers["y"].command, servers["y"].args) == ("two", ("3",))
    assert list(user_pairs(config, EntryContext(lambda path: False, windows=False))) == ["x", "y"]


def test_the_signature_changes_with_every_save_of_a_named_file(tmp_path: Path) -> None:
    layers = ClientLayers(machine_in(tmp_path))
    before = layers.signature(["cursor", "nobody"])
    path = cursor(tmp_path, a={"command": "x"})
    after = layers.signature(["cursor", "nobody"])
    assert before != after
    claude(tmp_path, b={"command": "y"})
    assert layers.signature(["cursor", "nobody"]) == after
    os.utime(path, ns=(1, 1))
    assert layers.signature(["cursor", "nobody"]) != after
