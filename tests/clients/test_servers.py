"""Conversion of clients' own files to our keys, also as layers below servers.yaml, and what is never converted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.machines import COMMAND, PLATFORMS, file_of, machine_in, world_in
from trayapp.clients.connect import connect, disconnect
from trayapp.clients.entry import is_ours
from trayapp.clients.files import Machine
from trayapp.clients.imports import move_out
from trayapp.clients.servers import ClientLayers, FoundServers, found_servers, read_servers, user_files
from trayapp.clients.table import BY_NAME, CLIENTS, Client
from trayapp.config.layers.overlay import lay_over, overlay, user_pairs
from trayapp.config.layers.project import ProjectFile, TrustStore
from trayapp.config.read.parse import parse
from trayapp.model.config import Config, ServerConfig

pytestmark = pytest.mark.requirement("import-layers")


def saved(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def entries(reading: FoundServers) -> dict[str, dict[str, Any]]:
    return {found.name: found.entry for found in reading.servers}


def read(machine: Machine, client: str, folder: Path | None = None) -> dict[str, dict[str, Any]]:
    return entries(read_servers(BY_NAME[client], machine, folder))


# Servers in the form that each client documents, and the same servers with our keys. {HOME} is the home folder.
CASES: list[tuple[str, str, dict[str, Any] | str, dict[str, Any]]] = [
    (
        "claude-code",
        "stdio",
        {"mcpServers": {"s": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"K": "${K:-d}"}}}},
        {"command": "npx", "args": ["-y", "x"], "env": {"K": "${K:-d}"}},
    ),
    (
        "claude-code",
        "http",
        {
            "mcpServers": {
                "s": {
                    "type": "http",
                    "url": "https://a.test/mcp",
                    "headers": {"A": "Bearer ${T}"},
                    "oauth": {"clientId": "i"},
                }
            }
        },
        {"url": "https://a.test/mcp", "type": "http", "headers": {"A": "Bearer ${T}"}, "client_id": "i"},
    ),
    (
        "claude-desktop",
        "stdio",
        {"mcpServers": {"s": {"command": "uvx", "args": ["x"]}}},
        {"command": "uvx", "args": ["x"]},
    ),
    (
        "codex",
        "stdio",
        (
            "[mcp_servers.s]\n"
            'command = "npx"\n'
            'args = ["x"]\n'
            'env_vars = ["HOME"]\n'
            "enabled = false\n"
            'enabled_tools = ["a"]\n'
        ),
        {"command": "npx", "args": ["x"], "disabled": True, "include_tools": ["a"]},
    ),
    (
        "codex",
        "config-26",
        (
            "[mcp_servers.s]\n"
            'url = "https://r/mcp"\n'
            'bearer_token_env_var = "T"\n'
            'http_headers = {X = "1"}\n'
            'env_http_headers = {Y = "V"}\n'
        ),
        {"url": "https://r/mcp", "auth": "bearer", "bearer_token_env": "T", "headers": {"X": "1", "Y": "$env:V"}},
    ),
    (
        "codex",
        "times",
        ('[mcp_servers.s]\ncommand = "x"\nstartup_timeout_sec = 20\ntool_timeout_sec = 60\n'),
        {"command": "x", "startup_timeout_sec": 20, "tool_timeout_sec": 60},
    ),
    (
        "cursor",
        "stdio",
        {"mcpServers": {"s": {"command": "${userHome}/x", "env": {"K": "${env:K}"}}}},
        {"command": "{HOME}/x", "env": {"K": "${env:K}"}},
    ),
    ("vscode", "config-22", {"servers": {"s": {"type": "stdio", "command": "x"}}}, {"command": "x"}),
    (
        "vscode",
        "inputs",
        {
            "inputs": [
                {"id": "api-key", "type": "promptString", "password": True},
                {"id": "my-zone", "type": "promptString", "default": "eu"},
            ],
            "servers": {
                "s": {
                    "type": "http",
                    "url": "https://a.test",
                    "headers": {"K": "${input:api-key}", "Z": "${input:my-zone}"},
                }
            },
        },
        {"url": "https://a.test", "type": "http", "headers": {"K": "${keyring:api-key}", "Z": "${my_zone:-eu}"}},
    ),
    (
        "copilot-cli",
        "local",
        {"mcpServers": {"s": {"type": "local", "command": "x", "args": [], "tools": ["*"]}}},
        {"command": "x", "args": []},
    ),
    (
        "copilot-cli",
        "some tools",
        {"mcpServers": {"s": {"type": "http", "url": "https://a.test", "tools": ["a"]}}},
        {"url": "https://a.test", "type": "http", "include_tools": ["a"]},
    ),
    (
        "opencode",
        "local",
        {
            "mcp": {
                "s": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"K": "{env:K}"}, "timeout": 5000}
            }
        },
        {"command": "npx", "args": ["-y", "x"], "env": {"K": "{env:K}"}, "connect_timeout": 5},
    ),
    (
        "opencode",
        "remote",
        {"mcp": {"s": {"type": "remote", "url": "https://a.test", "enabled": False, "oauth": False}}},
        {"url": "https://a.test", "auth": "none", "disabled": True},
    ),
    (
        "antigravity",
        "serverUrl",
        {"mcpServers": {"s": {"serverUrl": "https://a.test", "disabledTools": ["d"]}}},
        {"url": "https://a.test", "exclude_tools": ["d"]},
    ),
    (
        "gemini-cli",
        "stdio",
        {
            "mcpServers": {
                "s": {"command": "x", "env": {"K": "$TOKEN", "L": "${L}"}, "timeout": 1500, "includeTools": ["a"]}
            }
        },
        {"command": "x", "env": {"K": "${TOKEN}", "L": "${L}"}, "request_timeout": 1.5, "include_tools": ["a"]},
    ),
    (
        "gemini-cli",
        "httpUrl",
        {"mcpServers": {"s": {"httpUrl": "https://a.test", "trust": True}}},
        {"url": "https://a.test", "type": "http"},
    ),
    (
        "windsurf",
        "config-23",
        {"mcpServers": {"s": {"serverUrl": "https://a.test/sse"}}},
        {"url": "https://a.test/sse"},
    ),
    (
        "zed",
        "now",
        {"context_servers": {"s": {"command": "x", "args": ["a"], "env": {}}}},
        {"command": "x", "args": ["a"]},
    ),
    (
        "zed",
        "older",
        {"context_servers": {"s": {"source": "custom", "command": {"path": "x", "args": ["a"], "env": {"K": "1"}}}}},
        {"command": "x", "args": ["a"], "env": {"K": "1"}},
    ),
    (
        "cline",
        "timeout in seconds",
        {"mcpServers": {"s": {"command": "x", "timeout": 60, "autoApprove": ["a"]}}},
        {"command": "x", "request_timeout": 60},
    ),
    (
        "cline",
        "transport",
        {"mcpServers": {"s": {"transport": {"type": "streamableHttp", "url": "https://a.test"}, "disabled": True}}},
        {"url": "https://a.test", "type": "http", "disabled": True},
    ),
    (
        "roo",
        "streamable-http",
        {
            "mcpServers": {
                "s": {"type": "streamable-http", "url": "https://a.test", "alwaysAllow": [], "disabled": True}
            }
        },
        {"url": "https://a.test", "type": "http", "disabled": True},
    ),
    (
        "continue",
        "a list",
        ("mcpServers:\n  - name: s\n    command: x\n    args: [a]\n    env: {K: '${{ secrets.K }}'}\n"),
        {"command": "x", "args": ["a"], "env": {"K": "${K}"}},
    ),
    (
        "continue",
        "remote",
        (
            "mcpServers:\n"
            "  - name: s\n"
            "    type: streamable-http\n"
            "    url: https://a.test\n"
            "    requestOptions: {headers: {A: b}}\n"
            "    connectionTimeout: 2000\n"
        ),
        {"url": "https://a.test", "type": "http", "headers": {"A": "b"}, "connect_timeout": 2},
    ),
    ("jetbrains", "stdio", {"mcpServers": {"s": {"command": "x"}}}, {"command": "x"}),
    (
        "goose",
        "stdio",
        (
            "extensions:\n"
            "  s: {type: stdio, name: s, cmd: npx, args: [x], envs: {A: b}, env_keys: [K], timeout: 300,"
            " enabled: true, bundled: null}\n"
        ),
        {"command": "npx", "args": ["x"], "env": {"A": "b", "K": "${K}"}, "request_timeout": 300},
    ),
    (
        "goose",
        "http",
        ("extensions:\n  s: {type: streamable_http, name: s, uri: 'https://a.test', headers: {}, enabled: false}\n"),
        {"url": "https://a.test", "type": "http", "disabled": True},
    ),
    (
        "cursor",
        "a command line in one string",
        {"mcpServers": {"s": {"command": "npx -y '@a/b c'", "args": ["d"]}}},
        {"command": "npx", "args": ["-y", "@a/b c", "d"]},
    ),
    (
        "claude-desktop",
        "a path with blanks is one word",
        {"mcpServers": {"s": {"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["-y"]}}},
        {"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["-y"]},
    ),
    (
        "cursor",
        "a client that was registered",
        {
            "mcpServers": {
                "s": {"url": "https://a.test", "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "${env:S}", "scopes": ["r"]}}
            }
        },
        {"url": "https://a.test", "client_id": "i", "client_secret": "${env:S}", "scopes": ["r"]},
    ),
    (
        "claude-code",
        "callback port",
        {"mcpServers": {"s": {"type": "sse", "url": "https://a.test", "oauth": {"clientId": "i", "callbackPort": 80}}}},
        {"type": "sse", "url": "https://a.test", "client_id": "i", "callback_port": 80},
    ),
    (
        "vscode",
        "null unsets",
        {"servers": {"s": {"command": "x", "env": {"A": None, "B": "1"}, "headers": {}, "url": ""}}},
        {"command": "x", "env": {"B": "1"}},
    ),
    (
        "claude-code",
        "both halves, the type says which",
        {
            "mcpServers": {
                "s": {"type": "http", "url": "https://a.test", "command": "x", "args": ["y"], "env": {"A": "b"}}
            }
        },
        {"type": "http", "url": "https://a.test"},
    ),
    (
        "roo",
        "both halves, the other one",
        {"mcpServers": {"s": {"type": "stdio", "url": "https://a.test", "headers": {"A": "b"}, "command": "x"}}},
        {"command": "x"},
    ),
    (
        "copilot-cli",
        "no tools",
        {"mcpServers": {"s": {"command": "x", "tools": []}}},
        {"command": "x", "disabled": True},
    ),
    (
        "codex",
        "approvals",
        '[mcp_servers.s]\ncommand = "x"\n[mcp_servers.s.tools.t]\napproval_mode = "approve"\n',
        {"command": "x"},
    ),
    (
        "cursor",
        "our own spellings",
        {"mcpServers": {"s": {"command": "x", "idleTimeout": 5, "lifecycle": "eager", "bearerTokenEnv": "T"}}},
        {"command": "x", "idle_timeout": 5, "lifecycle": "eager", "bearer_token_env": "T"},
    ),
    (
        "crush",
        "what a shell expands",
        {
            "mcp": {
                "s": {
                    "type": "stdio",
                    "command": "$BIN/x",
                    "args": ["--key=${KEY:?set KEY}", "${ZONE:-$PLACE/eu}", "\\$5", "a $ b"],
                    "env": {"TOK": "$GH_TOKEN", "SUM": "$(echo 'a)' | sha1sum)"},
                    "timeout": 20,
                }
            }
        },
        {
            "command": "${BIN}/x",
            "args": ["--key=${KEY}", "${ZONE:-${PLACE}/eu}", "$5", "a $ b"],
            "env": {"TOK": "${GH_TOKEN}", "SUM": "${cmd:sh -c 'echo '\"'\"'a)'\"'\"' | sha1sum'}"},
            "connect_timeout": 20,
        },
    ),
    (
        "crush",
        "oauth beside the other keys",
        {
            "mcp": {
                "s": {
                    "type": "http",
                    "url": "https://a.test",
                    "oauth": True,
                    "oauth_client_id": "i",
                    "oauth_client_secret": "$(op read 'op://vault/it em')",
                    "oauth_callback_port": 8080,
                }
            }
        },
        {
            "url": "https://a.test",
            "type": "http",
            "auth": "oauth",
            "client_id": "i",
            "client_secret": "${cmd:op read 'op://vault/it em'}",
            "callback_port": 8080,
        },
    ),
    (
        "copilot-cli",
        "a bare name, and a registered client",
        {
            "mcpServers": {
                "s": {
                    "type": "http",
                    "url": "https://a.test",
                    "headers": {"A": "Bearer $T"},
                    "oauthClientId": "i",
                    "auth": {"redirectPort": 9000},
                }
            }
        },
        {
            "url": "https://a.test",
            "type": "http",
            "headers": {"A": "Bearer ${T}"},
            "client_id": "i",
            "callback_port": 9000,
        },
    ),
    (
        "cline",
        "a registered client beside its state",
        {
            "mcpServers": {
                "s": {
                    "transport": {"type": "streamableHttp", "url": "https://a.test"},
                    "oauth": {"tokens": {"access_token": "x"}},
                    "oauthClient": {"clientId": "i", "clientSecret": "c"},
                }
            }
        },
        {"url": "https://a.test", "type": "http", "client_id": "i", "client_secret": "c"},
    ),
    (
        "kiro",
        "scopes beside the other keys",
        {"mcpServers": {"s": {"url": "https://a.test", "oauth": {"clientId": "i"}, "oauthScopes": ["r"]}}},
        {"url": "https://a.test", "client_id": "i", "scopes": ["r"]},
    ),
    (
        "qwen-code",
        "a time for the start alone",
        {"mcpServers": {"s": {"command": "x", "timeout": 9000, "discoveryTimeoutMs": 60000}}},
        {"command": "x", "request_timeout": 9, "connect_timeout": 60},
    ),
    (
        "continue",
        "a key as a bearer token",
        "mcpServers:\n  - {name: s, type: sse, url: 'https://a.test', apiKey: '${{ secrets.K }}'}\n",
        {"url": "https://a.test", "type": "sse", "headers": {"Authorization": "Bearer ${K}"}},
    ),
    (
        "goose",
        "an environment for the headers of a URL",
        (
            "extensions:\n"
            "  s: {type: streamable_http, name: s, uri: 'https://a.test', envs: {A: b}, env_keys: [K],"
            " headers: {X: 'a $A', Y: 'Bearer $K'}}\n"
        ),
        {"url": "https://a.test", "type": "http", "headers": {"X": "a b", "Y": "Bearer ${K}"}},
    ),
]


@pytest.mark.requirement("import-spellings")
@pytest.mark.parametrize(
    ("client", "written", "expected"),
    [row[:1] + row[2:] for row in CASES],
    ids=[f"{row[0]}: {row[1]}" for row in CASES],
)
def test_a_clients_server_is_read_in_our_keys(
    tmp_path: Path, client: str, written: dict[str, Any] | str, expected: dict[str, Any]
) -> None:
    world = world_in(tmp_path)
    text = written if isinstance(written, str) else json.dumps(written)
    file_of(BY_NAME[client], world).write_text(text, encoding="utf-8")
    expected = json.loads(json.dumps(expected).replace("{HOME}", str(tmp_path)))
    assert read(world.machine, client) == {"s": expected}


@pytest.mark.requirement("import-spellings")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_every_client_is_read_on_every_platform(tmp_path: Path, client: Client, platform: str) -> None:
    world = world_in(tmp_path, platform)
    path = file_of(client, world)
    entry = {"command": "x", "args": ["a"]}
    path.write_text(client.family.put("", (*client.holder, "s"), entry, "f"), encoding="utf-8")
    (found,) = read_servers(client, world.machine).servers
    assert (found.name, found.entry, found.file, found.keys) == ("s", entry, path, (*client.holder, "s"))
    assert found.line > 0
    assert found_servers(world.machine).servers == (found,)


@pytest.mark.parametrize("key", ["mcp-servers", "mcp_servers", "mcpServers"])
def test_other_spellings_of_the_key_that_holds_the_servers_are_read(tmp_path: Path, key: str) -> None:
    path = saved(tmp_path, ".cursor/mcp.json", f'// c\n{{"{key}":{{"a":{{"command":"x"}},}},}}')
    (found,) = read_servers(BY_NAME["cursor"], machine_in(tmp_path)).servers
    assert (found.name, found.entry, found.keys, found.line) == ("a", {"command": "x"}, (key, "a"), 2)
    assert [move.file for move in move_out([found])] == [path]
    assert path.read_text() == f'// c\n{{"{key}":{{}},}}'


def test_claude_code_keeps_servers_of_one_folder_in_the_users_file(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    projects = {
        str(folder): {"mcpServers": {"pp": {"command": "p"}}},
        "/other": {"mcpServers": {"no": {"command": "n"}}},
    }
    saved(tmp_path, ".claude.json", json.dumps({"mcpServers": {"mine": {"command": "m"}}, "projects": projects}))
    saved(tmp_path, "src/.mcp.json", '// c\n{"mcpServers": {"theirs": {"command": "x"},},}')
    machine = machine_in(tmp_path)
    assert list(read(machine, "claude-code")) == ["mine"]
    reading = read_servers(BY_NAME["claude-code"], machine, folder)
    assert [(found.name, found.folder) for found in reading.servers] == [
        ("mine", None), ("pp", folder), ("theirs", folder),
    ]  # fmt: skip
    assert reading.servers[1].keys == ("projects", str(folder), "mcpServers", "pp")


def test_a_folders_own_files_are_read_with_that_folder_in_their_variables(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    text = '{"servers": {"v": {"command": "${workspaceFolder}/x", "args": ["${workspaceFolderBasename}${/}"]}}}'
    saved(folder, ".vscode/mcp.json", text)
    machine = machine_in(tmp_path)
    assert read(machine, "vscode", folder) == {"v": {"command": f"{folder}/x", "args": ["src/"]}}
    assert read(machine, "vscode") == {}


@pytest.mark.parametrize("client", ["cursor", "codex", "gemini-cli", "jetbrains"])
def test_in_the_home_folder_the_users_own_file_is_read_once(tmp_path: Path, client: str) -> None:
    machine = machine_in(tmp_path)
    file = user_files(BY_NAME[client], machine)[0]
    file.parent.mkdir(parents=True, exist_ok=True)
    toml = '[mcp_servers.a]\ncommand = "x"\n'
    file.write_text(toml if client == "codex" else '{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    for folder in (machine.home, machine.home / "x" / ".."):
        found = read_servers(BY_NAME[client], machine, folder).servers
        assert [(one.name, one.folder) for one in found] == [("a", None)]


def test_opencode_lays_its_files_over_each_other_mappings_too(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    saved(tmp_path, ".config/opencode/opencode.json",
          '{"mcp": {"s": {"type": "remote", "url": "https://s", "headers": {"G": "1", "S": "g"}}}}')  # fmt: skip
    saved(folder, ".opencode/opencode.json", '{"mcp": {"t": {"type": "remote", "url": "https://t"}}}')
    saved(folder, "opencode.json", '{"mcp": {"s": {"headers": {"P": "1", "S": "p"}}}}')
    machine = machine_in(tmp_path)
    assert read(machine, "opencode", folder)["s"]["headers"] == {"G": "1", "S": "p", "P": "1"}
    assert read(machine, "opencode")["s"]["headers"] == {"G": "1", "S": "g"}
    found, other = read_servers(BY_NAME["opencode"], machine, folder).servers
    assert (other.name, other.file.parent.name) == ("t", ".opencode")
    assert (found.file.parent, [path.name for path, _ in found.also]) == (folder, ["opencode.json"])


def test_opencode_2_keeps_its_servers_one_level_below(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    newer = {"a": {"type": "local", "command": ["x"], "disabled": True, "timeout": {"startup": 2000, "request": 500}}}
    older = {"b": {"type": "local", "command": ["y"]}}  # OpenCode reads both forms
    text = json.dumps({"mcp": {"timeout": {"startup": 1}, "servers": newer} | older}, indent=2)
    path = file_of(BY_NAME["opencode"], world)
    path.write_text(text)
    assert read(world.machine, "opencode") == {
        "a": {"command": "x", "args": [], "disabled": True, "connect_timeout": 2, "request_timeout": 0.5},
        "b": {"command": "y", "args": []},
    }
    assert read_servers(BY_NAME["opencode"], world.machine).problems == ()
    assert connect("opencode", world).changes
    document = json.loads(path.read_text())
    assert document["mcp"]["servers"]["multi-mcp"] == {"type": "local", "command": COMMAND}
    assert not connect("opencode", world).changes
    assert list(read(world.machine, "opencode")) == ["a", "b"]
    disconnect("opencode", world)
    assert path.read_text() == text
    saved(tmp_path, str(path), '{"mcp": {"servers": {"type": "local", "command": ["x"]}}}')  # a server named servers
    assert list(read(world.machine, "opencode")) == ["servers"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ([], "it is not a mapping"),
        ("x", "it is not a mapping"),
        ({}, "it has neither command nor url"),
        ({"args": ["x"]}, "it has neither command nor url"),
        ({"command": "x", "env": 5}, "env is not a mapping"),
        ({"command": ["x"], "args": "a b"}, "args is not a list"),
        ({"url": {"a": 1}}, "its address is not text"),
        ({"command": "x", "env": {"A": "half \ud800"}}, "it contains a lone surrogate"),
    ],
)
def test_a_wrong_entry_is_a_problem_and_leaves_the_others(tmp_path: Path, entry: object, why: str) -> None:
    text = json.dumps({"mcpServers": {"arr": entry, "ok": {"command": "x"}}}, indent=1)
    path = saved(tmp_path, ".cursor/mcp.json", text)
    reading = read_servers(BY_NAME["cursor"], machine_in(tmp_path))
    assert list(entries(reading)) == ["ok"]
    (problem,) = reading.problems
    assert (problem.file, problem.line, problem.server, problem.fatal) == (str(path), 3, "arr", False)
    assert problem.message.startswith("arr of Cursor: ")
    assert problem.message.endswith(why)


def test_numbers_and_names_that_nothing_can_be_done_with_stop_no_reading(tmp_path: Path) -> None:
    servers = '"a": {"command": "x", "timeout": 1e999}, "\\ud800": {"command": "y"}'
    saved(tmp_path, ".cursor/mcp.json", f'{{"mcpServers": {{{servers}}}}}')
    assert read(machine_in(tmp_path), "cursor") == {"a": {"command": "x"}, "?": {"command": "y"}}
    saved(tmp_path, ".config/goose/config.yaml", "extensions:\n  1: {type: stdio, cmd: x, timeout: .inf, 2: 3}\n")
    assert read(machine_in(tmp_path), "goose") == {"1": {"command": "x"}}


def test_a_file_that_cannot_be_read_is_one_problem_with_its_line(tmp_path: Path) -> None:
    path = saved(tmp_path, ".cursor/mcp.json", '{"mcpServers": {\n  "a": }}')
    reading = read_servers(BY_NAME["cursor"], machine_in(tmp_path))
    assert [(problem.file, problem.line) for problem in reading.problems] == [(str(path), 2)]
    assert reading.servers == ()


def test_what_is_part_of_the_program_is_no_server(tmp_path: Path) -> None:
    saved(tmp_path, ".config/goose/config.yaml", "extensions:\n  developer: {type: builtin, name: developer}\n")
    saved(tmp_path, ".config/zed/settings.json", '{"context_servers": {"ext": {"settings": {"a": 1}}}}')
    reading = found_servers(machine_in(tmp_path))
    assert (reading.servers, reading.problems) == ((), ())


def test_keys_that_mean_nothing_here_are_named(tmp_path: Path) -> None:
    saved(
        tmp_path, ".cursor/mcp.json", '{"mcpServers": {"s": {"command": "x", "envFile": ".env", "name": "S", "zz": 1}}}'
    )
    (found,) = read_servers(BY_NAME["cursor"], machine_in(tmp_path)).servers
    assert found.left_out == ("envFile", "zz")


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ("opencode", "{file:~/.key}"), ("windsurf", "${file:/run/key}"), ("crush", "${K:+y}"), ("crush", "\\${K}"),
        ("crush", "${K%/}"), ("crush", "$("), ("crush", "$(echo })"),
    ],
)  # fmt: skip
def test_what_is_read_from_elsewhere_there_is_named(tmp_path: Path, client: str, place: str) -> None:
    world = world_in(tmp_path)
    entry = {"url": "https://a.test", "headers": {"K": place, "L": "${env:L}"}, "alwaysAllow": []}
    file_of(BY_NAME[client], world).write_text(json.dumps({BY_NAME[client].holder[0]: {"s": entry}}))
    (found,) = read_servers(BY_NAME[client], world.machine).servers
    assert found.left_out == (place,)


def test_a_command_that_needs_a_shell_is_named_on_windows(tmp_path: Path) -> None:
    world = world_in(tmp_path, "win32")
    entry = {"type": "stdio", "command": "x", "env": {"A": "$(op read a)", "B": "$(op read a | cut -c 2-)"}}
    file_of(BY_NAME["crush"], world).write_text(json.dumps({"mcp": {"s": entry}}))
    (found,) = read_servers(BY_NAME["crush"], world.machine).servers
    assert found.entry["env"] == {"A": "${cmd:op read a}", "B": "$(op read a | cut -c 2-)"}
    assert found.left_out == ("$(op read a | cut -c 2-)",)


@pytest.mark.parametrize(
    ("client", "more", "beside"),
    [
        ("gemini-cli", {"mcp": {"excluded": ["Off"]}}, {}),
        ("gemini-cli", {"mcp": {"allowed": ["on"], "excluded": []}}, {}),
        ("gemini-cli", {"excludeMCPServers": ["off"]}, {}),
        ("qwen-code", {"mcp": {"excluded": ["o?f*"]}}, {}),
        ("qwen-code", {"mcp": {"allowed": ["o[n]", "*N"], "excluded": []}}, {}),
        ("gemini-cli", {}, {"mcp-server-enablement.json": {"off": {"enabled": False}, "on": {"enabled": True}}}),
        ("copilot-cli", {}, {"settings.json": {"disabledMcpServers": ["off"]}}),
        ("copilot-cli", {}, {"config.json": {"disabledMcpServers": ["off", 5]}, "settings.json": "no json"}),
    ],
)
def test_what_a_client_has_switched_off_elsewhere_stays_off(
    tmp_path: Path, client: str, more: dict[str, Any], beside: dict[str, Any]
) -> None:
    world = world_in(tmp_path)
    path = file_of(BY_NAME[client], world)
    before = ClientLayers(world.machine).signature([client])
    for name, content in beside.items():
        path.with_name(name).write_text(content if isinstance(content, str) else json.dumps(content))
    assert bool(beside) == (ClientLayers(world.machine).signature([client]) != before)
    path.write_text(json.dumps({"mcpServers": {"off": {"command": "x"}, "on": {"command": "y"}}} | more))
    assert read(world.machine, client) == {"off": {"command": "x", "disabled": True}, "on": {"command": "y"}}


def test_claude_code_switches_a_folders_servers_off_beside_them(tmp_path: Path) -> None:
    project = {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}, "disabledMcpServers": ["b", "mine"]}
    content = {"mcpServers": {"mine": {"command": "m"}}, "projects": {str(tmp_path / "src"): project}}
    saved(tmp_path, ".claude.json", json.dumps(content))
    assert read(machine_in(tmp_path), "claude-code", tmp_path / "src") == {
        "mine": {"command": "m"}, "a": {"command": "x"}, "b": {"command": "y", "disabled": True},
    }  # fmt: skip


def test_the_servers_of_vs_codes_profiles_are_read_behind_the_default_ones(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    saved(tmp_path, ".config/Code/User/mcp.json", '{"servers": {"a": {"command": "x"}}}')
    before = ClientLayers(machine).signature(["vscode"])
    path = saved(
        tmp_path,
        ".config/Code/User/profiles/-1f/mcp.json",
        '{"servers": {"a": {"command": "y"}, "b": {"command": "z"}}}',
    )
    assert ClientLayers(machine).signature(["vscode"]) != before
    found = read_servers(BY_NAME["vscode"], machine).servers
    assert [(one.name, one.entry["command"]) for one in found] == [("a", "x"), ("a", "y"), ("b", "z")]
    assert found[2].file == path
    (layer,) = ClientLayers(machine).read(["vscode"], "f")
    assert {name: entry["command"] for name, entry in layer.entries.items()} == {"a": "x", "b": "z"}


@pytest.mark.requirement("import-no-recursion")
@pytest.mark.parametrize(
    ("name", "entry", "ours"),
    [
        ("multi-mcp", {"command": "/opt/multi-mcp/bin/multi-mcp", "args": ["stdio"]}, True),
        ("renamed", {"command": "/opt/multi-mcp/bin/multi-mcp", "args": ["stdio", "--expose", "tools"]}, True),
        ("x", {"command": "python3", "args": ["/src/mm/trayapp/__main__.py", "stdio"]}, True),
        ("x", {"command": ["uvx", "multi-mcp", "stdio"]}, True),
        ("x", {"command": "/usr/lib/multi-mcp/multi-mcp-shim", "args": ["stdio"]}, True),
        ("x", {"command": "/home/me/multi-mcp/multi-mcp-shim"}, True),
        ("x", {"command": "C:\\Users\\me\\AppData\\Local\\Programs\\multi-mcp\\Multi-MCP-Shim.EXE stdio"}, True),
        ("x", {"command": "multi-mcp stdio --expose tools"}, True),
        ("x", {"command": "bash", "args": ["-lc", "exec '/opt/my apps/multi-mcp' stdio"]}, True),
        ("x", {"command": "cmd", "args": ["/c", "multi-mcp", "stdio"]}, True),
        ("x", {"command": "python3", "args": ["-m", "trayapp", "stdio"]}, True),
        ("x", {"command": "python3", "args": ["/src/mm/packaging/dev.py", "run", "stdio"]}, True),
        ("x", {"command": "npx", "args": ["-y", "mcp-remote", "http://localhost:7461/mcp", "--allow-http"]}, True),
        ("x", {"url": "http://127.0.0.1:7461/mcp/"}, True),
        ("x", {"command": "npx", "args": ["-y", "mcp-remote", "https://example.com/mcp"]}, False),
        ("x", {"command": "uv", "args": ["--directory", "/src/multi-mcp", "run", "other", "stdio"]}, False),
        ("x", {"cmd": "C:\\Program Files\\multi-mcp\\multi-mcp.exe", "args": ["stdio"]}, True),
        ("x", {"url": "http://127.0.0.1:7461/mcp"}, True),
        ("multi-mcp", {"serverUrl": "http://localhost:9000/mcp"}, True),
        ("x", {"command": "npx", "args": ["other", "stdio"]}, False),
        ("x", {"command": "multi-mcp", "args": ["demo"]}, False),
        ("x", {"url": "http://127.0.0.1:9000/mcp"}, False),
        ("multi-mcp", {"url": "https://example.com/mcp"}, False),
        ("x", {"url": "http://[/mcp"}, False),
        ("multi-mcp", [], False),
    ],
)
def test_our_own_entry_is_known_by_what_it_starts(name: str, entry: object, ours: bool) -> None:
    assert is_ours(name, entry) is ours


@pytest.mark.requirement("import-no-recursion")
@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_a_connected_client_has_no_server_of_ours_to_import(tmp_path: Path, client: Client) -> None:
    world = world_in(tmp_path)
    file_of(client, world)
    for sign in client.installed:
        world.machine.path(sign).mkdir(parents=True, exist_ok=True)
    connect(client.name, world)
    assert found_servers(world.machine).servers == ()


@pytest.mark.parametrize(
    ("client", "variable", "name"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("cline", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("crush", "CRUSH_GLOBAL_CONFIG", "crush.json"), ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen-code", "QWEN_HOME", "settings.json"), ("goose", "GOOSE_PATH_ROOT", "config/config.yaml"),
    ],
)  # fmt: skip
def test_a_variable_moves_a_clients_file(tmp_path: Path, client: str, variable: str, name: str) -> None:
    moved = tmp_path / "elsewhere"
    machine = machine_in(tmp_path, **{variable: str(moved)})
    text = BY_NAME[client].family.put("", (*BY_NAME[client].holder, "s"), {"command": "x"}, "f")
    saved(moved, name, text)
    assert list(read(machine, client)) == ["s"]
    assert list(read(machine_in(tmp_path), client)) == []


def test_a_variable_names_clines_file(tmp_path: Path) -> None:
    path = saved(tmp_path, "mine.json", '{"mcpServers": {"s": {"command": "x"}}}')
    saved(tmp_path, ".cline/data/settings/cline_mcp_settings.json", '{"mcpServers": {"no": {"command": "x"}}}')
    environ = {"CLINE_MCP_SETTINGS_PATH": str(path), "CLINE_DATA_DIR": str(tmp_path / "elsewhere")}
    assert list(read(machine_in(tmp_path, **environ), "cline")) == ["s"]


def test_each_edition_of_vs_code_is_a_client_and_a_folders_file_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    for edition in ("Code", "Code - Insiders", "VSCodium"):
        saved(tmp_path, f".config/{edition}/User/mcp.json", f'{{"servers": {{"{edition}": {{"command": "x"}}}}}}')
    saved(folder, ".vscode/mcp.json", '{"servers": {"v": {"command": "x"}}}')
    machine = machine_in(tmp_path)
    found = {name: list(read(machine, name, folder)) for name in ("vscode", "vscode-insiders", "vscodium")}
    assert found == {"vscode": ["Code", "v"], "vscode-insiders": ["Code - Insiders"], "vscodium": ["VSCodium"]}


def test_a_home_for_configuration_moves_what_lies_below_it(tmp_path: Path) -> None:
    saved(tmp_path, "conf/goose/config.yaml", "extensions: {s: {type: stdio, cmd: x}}")
    assert list(read(machine_in(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "conf")), "goose")) == ["s"]
    assert list(read(machine_in(tmp_path, XDG_CONFIG_HOME="relative"), "goose")) == []


def test_crushs_configuration_is_below_the_home_folder_on_windows_too(tmp_path: Path) -> None:
    saved(tmp_path, "AppData/Local/crush/crush.json", '{"mcp": {"state": {"type": "stdio", "command": "x"}}}')
    saved(tmp_path, ".config/crush/crush.json", '{"mcp": {"s": {"type": "stdio", "command": "x"}}}')
    assert list(read(machine_in(tmp_path, "win32"), "crush")) == ["s"]


def test_a_server_that_names_its_folder_runs_once_and_one_that_depends_on_the_session_s_in_each(tmp_path: Path) -> None:
    of_folder = {"command": "uv", "args": ["--directory", "/srv/x", "run", "main.py"]}
    cursor(tmp_path, own=of_folder, session={"command": "uv", "args": ["run", "main.py"]})
    found = read(machine_in(tmp_path), "cursor")
    assert [found[name].get("scope") for name in ("own", "session")] == [None, "session"]


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
    config = parse(text, "servers.yaml")
    layers = ClientLayers(machine_in(home)).read(config.settings.imports, "servers.yaml")
    return lay_over(config, layers, "servers.yaml")


def started(config: Config) -> dict[str, str]:
    return {name: server.command or server.url or "" for name, server in config.servers.items()}


@pytest.mark.parametrize(
    ("imports", "expected"),
    [("[cursor, claude-code]", "of-cursor"), ("[claude-code, cursor]", "of-claude"), ("claude", "of-claude")],
)
def test_the_first_listed_that_has_a_name_gives_the_whole_entry(tmp_path: Path, imports: str, expected: str) -> None:
    cursor(tmp_path, same={"command": "of-cursor"}, more={"command": "m"})
    claude(tmp_path, same={"command": "of-claude", "env": {"T": "s"}})
    config = laid(tmp_path, f"settings: {{imports: {imports}}}")
    assert config.servers["same"].command == expected
    assert config.servers["same"].env == ({"T": "s"} if expected == "of-claude" else {})
    assert "more" in config.servers or imports == "claude"


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ({"command": "a"}, "{command: b}", {"command": "b"}),
        ({"command": "cursor", "args": ["1"]}, "{env: {A: '1'}}",
         {"command": "cursor", "args": ("1",), "env": {"A": "1"}}),
        ({"command": "c", "args": ["1"]}, "{url: 'https://z.test'}", {"url": "https://z.test"}),
        ({"url": "https://a.test", "headers": {"Authorization": "s"}}, "{url: 'https://b.test'}",
         {"url": "https://b.test"}),
        ({"url": "https://a.test", "headers": {"A": "s"}}, "{url: 'https://a.test', idle_timeout: 3}",
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


def test_a_projects_file_lies_over_servers_yaml_over_an_import(tmp_path: Path) -> None:
    cursor(tmp_path, x={"command": "one", "args": ["1"]}, y={"command": "two", "args": ["2"]})
    config = laid(tmp_path, "settings: {imports: [cursor]}\nservers: {x: {env: {A: '1'}}}")
    file = ProjectFile(tmp_path / "p" / ".multi-mcp.yaml", b"servers: {x: {title: T}, y: {args: ['3']}}")
    store = TrustStore(tmp_path / "trusted.json")
    store.approve(file)
    trusted = store.check(file)
    assert trusted is not None
    servers = overlay(config, trusted).config.servers
    assert (servers["x"].command, servers["x"].args, servers["x"].env) == ("one", ("1",), {"A": "1"})
    assert (servers["y"].command, servers["y"].args) == ("two", ("3",))
    assert list(user_pairs(config)) == ["x", "y"]


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
