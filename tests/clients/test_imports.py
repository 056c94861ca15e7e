"""Imports: the servers offered and their names, values that are secret, and moving servers out of clients' files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.machines import machine_in, world_in
from trayapp.clients import files
from trayapp.clients.connect import connect
from trayapp.clients.context import (
    ClientsContext,
    ConnectionRecord,
    decline_offer,
    is_offer_declined,
    record_connection,
    recorded_connection,
)
from trayapp.clients.imports import ImportOffer, duplicates, first_offers, move_out, offer_text, offers
from trayapp.clients.secrets import secrets_of, without_secrets
from trayapp.clients.servers import FoundServer, found_servers
from trayapp.clients.table import BY_NAME
from trayapp.config.read.parse import parse
from trayapp.model.config import SAMPLE, Config

CURSOR, CLAUDE = BY_NAME["cursor"], BY_NAME["claude-code"]
TOKEN = "ghp_abcdefghijklmnop1234567890abcd"


def found(name: str, entry: dict[str, Any], client: str = "cursor", folder: Path | None = None) -> FoundServer:
    return FoundServer(BY_NAME[client], Path("f"), ("mcpServers", name), name, entry, folder=folder)


def names(servers: list[FoundServer], text: str = "") -> list[tuple[str, str]]:
    return [(offer.name, offer.known) for offer in offers(servers, {None: parse(text, "f")})]


def test_what_starts_the_same_way_is_offered_once() -> None:
    entry = {"command": "npx", "args": ["x"]}
    both = [found("a", entry), found("b", entry, "claude-code")]
    assert names(both) == [("a", ""), ("a", "a")]
    assert names(both, "servers: {mine: {command: [npx, x], title: T}}") == [("mine", "mine"), ("mine", "mine")]


def test_what_was_taken_over_with_its_secrets_in_the_keyring_is_known_again() -> None:
    one = {"command": "x", "args": ["--token", TOKEN], "env": {"API_KEY": "k3y-of-mine"}}
    text = "servers: {a: %s, a-claude-code: %s}" % (  # noqa: UP031 (braces)
        json.dumps(without_secrets("a", one)),
        json.dumps(without_secrets("a-claude-code", one)),
    )
    other = one | {"env": {"API_KEY": "k3y-of-other"}}
    mine, second, third = found("a", one), found("a", other, "claude-code"), found("a", other, "windsurf")
    assert names([mine], text) == [("a", "a")]
    assert names([mine, found("a", one, "claude-code")], text) == [("a", "a"), ("a", "a")]
    assert names([mine, second], text) == [("a", "a"), ("a-claude-code", "a-claude-code")]
    assert names([mine, third], text) == [
        ("a", "a"),
        ("a-windsurf", ""),
    ]  # different secrets are never treated as equal
    assert names([found("a", one | {"command": "y"})], text) == [("a-cursor", "")]


def test_a_name_that_another_server_has_gets_the_clients_behind_it() -> None:
    text = "servers: {a: {command: other}, a-cursor: {command: third}, wrong: {}}"
    servers = [found("a", {"command": "x"}), found("wrong", {"command": "y"}), found("a/b", {"command": "z"})]
    assert names(servers, text) == [("a-2", ""), ("wrong-cursor", ""), ("a-b", "")]


def test_a_name_that_servers_yaml_would_not_take_is_made_one_that_it_takes() -> None:
    servers = [found("n" * 300, {"command": "x"}), found("n" * 300, {"command": "y"}), found("\t", {"command": "z"})]
    for offer in offers(servers, {None: parse("", "f")}):
        assert parse(json.dumps({"servers": {offer.name: {"command": "x"}}}), "f").problems == ()


def test_a_folders_servers_have_names_of_their_own() -> None:
    folder = Path("/src")
    servers = [found("a", {"command": "x"}), found("a", {"command": "y"}, folder=folder)]
    made = offers(servers, {None: parse("", "f"), folder: parse("", "f")})
    assert [(offer.name, offer.found.folder) for offer in made] == [("a", None), ("a", folder)]


def names_by_client(made: list[ImportOffer]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in made:
        found.setdefault(one.found.client.title, []).append(one.found.name)
    return found


def offered(config: Config | None, world: ClientsContext) -> dict[str, list[str]]:
    return names_by_client(first_offers(config, world))


def test_the_first_start_tells_whose_servers_there_are(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    assert offered(None, world) == {}
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"c": {"command": "z"}}}')
    there = {"Claude Code": ["c"], "Cursor": ["a", "b"]}
    sample = parse(f"servers: {{{SAMPLE}: {{command: sample}}}}", "f")
    assert offered(None, world) == offered(sample, world) == there
    assert offered(parse("servers: {mine: {command: x}}", "f"), world) == {}
    assert offered(parse("servers: {mine: 5}", "f"), world) == {}
    assert offered(parse("settings: {imports: cursor}", "f"), world) == {}


def test_what_two_clients_start_alike_is_offered_once(tmp_path: Path) -> None:
    for name in (".cursor/mcp.json", ".claude.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert offered(None, world_in(tmp_path)) == {"Claude Code": ["a"]}


def test_after_a_no_nothing_is_offered_and_what_is_connected_stays_noted(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"c": {"command": "z"}}}')
    record_connection(world, "cursor", ConnectionRecord(tmp_path / "f"))
    assert not is_offer_declined(world)
    decline_offer(world)
    record_connection(world, "codex", ConnectionRecord(tmp_path / "g", made=True))
    assert is_offer_declined(world)
    assert offered(None, world) == {}
    assert recorded_connection(world, "cursor") == ConnectionRecord(tmp_path / "f")


def test_the_first_words_count() -> None:
    cursor, zed, codex = (ImportOffer(found("a", {}, name), "a") for name in ("cursor", "zed", "codex"))
    assert offer_text([]) == ""
    assert offer_text([cursor]) == "Cursor has 1 server of its own"
    assert offer_text([cursor, zed, codex]) == "Cursor, Zed and Codex have 3 servers of their own"


@pytest.mark.requirement("import-shown")
def test_taking_servers_away_keeps_all_else_and_a_backup(tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    text = (
        '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "x"},\n    "b": {"command": "y"}\n  },\n  "z": 1,\n}\n'
    )
    path.write_text(text)
    servers = found_servers(machine_in(tmp_path)).servers
    assert [move.file for move in move_out(servers[:1])] == [path]
    assert path.read_text() == text.replace('    "a": {"command": "x"},\n', "")
    backup = files.backup_of(path, files.BACKUP_MOVED)
    assert backup.read_text() == text
    backup.chmod(0o644)
    assert move_out(servers[:1]) == []
    assert [move.file for move in move_out(servers)] == [path]
    assert os.name != "posix" or backup.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text().replace("// mine", "").replace("1,", "1")) == {"mcpServers": {}, "z": 1}


@pytest.mark.requirement("import-shown")
@pytest.mark.parametrize(
    ("entry", "hidden", "kept"),
    [
        (
            {"command": "x", "env": {"GITHUB_TOKEN": TOKEN, "LOG": "info", "REF": "${TOKEN}",
                                     "API_KEY": "k3y-of-mine"}},
            {"command": "x", "env": {"GITHUB_TOKEN": "${keyring:s.GITHUB_TOKEN}", "LOG": "info", "REF": "${TOKEN}",
                                     "API_KEY": "${keyring:s.API_KEY}"}},
            {"s.GITHUB_TOKEN": TOKEN, "s.API_KEY": "k3y-of-mine"},
        ),
        (
            {"url": "https://a.test", "headers": {"Authorization": f"Bearer {TOKEN}", "X-Team": "mine"}},
            {"url": "https://a.test", "headers": {"Authorization": "Bearer ${keyring:s.Authorization}",
                                                  "X-Team": "mine"}},
            {"s.Authorization": TOKEN},
        ),
        (
            {"command": "x", "args": ["--api-key", "sekret-1234", f"--token={TOKEN}", "--verbose", TOKEN, "plain"]},
            {"command": "x", "args": ["--api-key", "${keyring:s.api-key}", "--token=${keyring:s.token}", "--verbose",
                                      "${keyring:s.verbose}", "plain"]},
            {"s.api-key": "sekret-1234", "s.token": TOKEN, "s.verbose": TOKEN},
        ),
        (
            {"command": "docker", "args": ["run", "-e", f"GITHUB_TOKEN={TOKEN}", "-e", "API_KEY=k3y-of-mine",
                                           "-e", "LOG=info", "--env", "A_TOKEN", "img"]},
            {"command": "docker", "args": ["run", "-e", "GITHUB_TOKEN=${keyring:s.GITHUB_TOKEN}", "-e",
                                           "API_KEY=${keyring:s.API_KEY}", "-e", "LOG=info", "--env", "A_TOKEN",
                                           "img"]},
            {"s.GITHUB_TOKEN": TOKEN, "s.API_KEY": "k3y-of-mine"},
        ),
        (
            {"command": "npx", "args": ["mcp-remote", "https://a.test/mcp?api_key=k3y-of-mine&x=1", "--header",
                                        f"Authorization: Bearer {TOKEN}", "--header", "X-Api-Key:k3y-of-other"]},
            {"command": "npx", "args": ["mcp-remote", "https://a.test/mcp?api_key=${keyring:s.api_key}&x=1", "--header",
                                        "Authorization: Bearer ${keyring:s.Authorization}", "--header",
                                        "X-Api-Key:${keyring:s.X-Api-Key}"]},
            {"s.api_key": "k3y-of-mine", "s.Authorization": TOKEN, "s.X-Api-Key": "k3y-of-other"},
        ),
        (  # different values never share a name, but equal values may
            {"command": "x", "args": ["--token", "k3y-of-mine", "--token", "k3y-of-other", "--token", "k3y-of-mine"]},
            {"command": "x", "args": ["--token", "${keyring:s.token}", "--token", "${keyring:s.token-2}", "--token",
                                      "${keyring:s.token}"]},
            {"s.token": "k3y-of-mine", "s.token-2": "k3y-of-other"},
        ),
        (
            {"url": "https://a.test/mcp/?exaApiKey=k3y%2Dof-mine&token=${T}&n=1#f", "client_secret": "plain"},
            {"url": "https://a.test/mcp/?exaApiKey=${keyring:s.exaApiKey}&token=${T}&n=1#f",
             "client_secret": "${keyring:s.client_secret}"},
            {"s.exaApiKey": "k3y%2Dof-mine", "s.client_secret": "plain"},
        ),
        (  # some services put the key in the path
            {"url": f"https://a.test/s/{TOKEN}/mcp"},
            {"url": "https://a.test/s/${keyring:s.url}/mcp"},
            {"s.url": TOKEN},
        ),
        ({"command": "x", "args": ["-y", "@scope/pkg"]}, {"command": "x", "args": ["-y", "@scope/pkg"]}, {}),
    ],
)  # fmt: skip
def test_secrets_in_clear_text_are_found_and_can_be_taken_out(
    entry: dict[str, Any], hidden: dict[str, Any], kept: dict[str, str]
) -> None:
    assert {secret.name: secret.value for secret in secrets_of("s", entry)} == kept
    assert without_secrets("s", entry) == hidden
    assert all(value not in repr(secrets_of("s", entry)) for value in kept.values())


def test_clients_that_still_start_what_is_here_too_are_named(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    for name in (".cursor/mcp.json", ".claude.json", ".codeium/windsurf/mcp_config.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    config = parse("servers: {mine: {command: x, cwd: ~}}", "f")
    assert duplicates(config, world) == []
    for client in ("cursor", "claude-code"):
        connect(client, world)
    assert names_by_client(duplicates(config, world)) == {"Claude Code": ["a"], "Cursor": ["a"]}
    move_out(offer.found for offer in duplicates(config, world))
    assert duplicates(config, world) == []
