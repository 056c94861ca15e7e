"""The text of servers.yaml is read, and each mistake is reported with its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.config.read.text import MAX_BYTES
from trayapp.config.yaml import nodes as compose_module
from trayapp.config.yaml.nodes import MAX_DEPTH, MAX_NODES, compose
from trayapp.config.yaml.splices import outline
from trayapp.model.config import Config, HistorySettings, HttpSettings, Profile, ServerConfig, Settings, ToolSwitch
from trayapp.model.errors import ConfigError, Problem


def read(text: str) -> Config:
    return parse(text, "servers.yaml")


def one(entry: str) -> ServerConfig:
    """Return the server of an entry in flow style. Assert that it has no problems."""
    config = read(f"servers: {{s: {entry}}}")
    assert config.problems == ()
    return config.servers["s"]


def wrong(entry: str) -> Problem:
    """Return the entry's first fatal problem. Assert that the entries around it are read."""
    config = read(f"servers:\n  before: {{command: x}}\n  s: {entry}\n  after: {{url: 'https://x/'}}\n")
    assert list(config.servers) == ["before", "after"]
    return next(problem for problem in config.problems if problem.fatal)


# --- the whole file


def test_a_tab_is_named_where_it_stands() -> None:
    for text in ("servers:\n\ta: {command: x}\n", "servers:\n\t\n  a: {command: x}\n"):
        with pytest.raises(UnparsableError) as raised:
            read(text)
        problem = raised.value.problem
        assert (problem.line, problem.column) == (2, 1)
        assert "a tab" in problem.message
        assert problem.hint == "Indent with spaces"


def test_settings_in_two_spellings_are_the_first_ones() -> None:
    config = read("settings: {defer_above: 3}\nSettings: {defer_above: 4}\n")
    assert config.settings.defer_above == 3
    assert [problem.message for problem in config.problems] == ["Settings is a second spelling of settings (line 1)"]


@pytest.mark.parametrize("limits", ["[a]", "{servers: {a: true}}", "{servers: [a], exclude_tools: {x: y}}"])
def test_a_profile_whose_limits_cannot_be_read_is_left_out_instead_of_showing_everything(limits: str) -> None:
    config = read(f"settings: {{profiles: {{p: {limits}, q: }}}}\n")
    assert config.settings.profiles == {"q": Profile()}
    assert len(config.problems) == 1


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("{command: x, disabled: 'true'}", "Write true without quotes"),
        ("{command: x, connect_timeout: '60'}", "Write 60 without quotes"),
        ("{url: 'https://a/', callback_port: \"80\"}", "Write 80 without quotes"),
        ("{command: x, disabled: 'maybe'}", ""),
        ("{url: 'https://a/', bearer_token_env: '${TOKEN}'}", "Write it as TOKEN"),
        ("{url: 'https://a/', bearer_token_env: '{env:TOKEN}'}", "Write it as TOKEN"),
        ("{url: 'https://a/', bearer_token_env: '$env:TOKEN'}", "Write it as TOKEN"),
        ("{url: 'https://a/', bearer_token_env: '${keyring:a}'}", ""),
        ("{url: 'https://a/', bearer_token_env: eyJhbGciOi.eyJzdWIi.c2ln}", ""),  # the hint repeats no part of a token
        ("npx server", "Write it as {command: ...} or {url: ...}"),
        ("[npx, server]", "Write it as {command: ...} or {url: ...}"),
    ],
)
def test_the_hint_says_how_a_value_would_be_right(entry: str, hint: str) -> None:
    assert wrong(entry).hint == hint


def test_the_least_time_is_said_as_people_write_it() -> None:
    (problem,) = read("settings: {health_interval: 0}").problems
    assert problem.message == "health_interval must be at least 1 s"


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment\n", "---\n", "--- # c\n...\n", "null\n", "\ufeff", "{}", "~"]
)
def test_an_empty_file_is_an_empty_configuration(text: str) -> None:
    assert read(text) == Config()


@pytest.mark.parametrize("text", ["servers:\n", "servers: {}\nsettings:\n", "mcpServers: null\n", "x-own: [1]\n"])
def test_empty_parts_are_fine(text: str) -> None:
    assert read(text) == Config()


UNPARSABLE = [
    ("servers:\n\ta: {command: x}\n", 2, "YAML"),
    ("servers: {a: {command: x}\n", 2, "YAML"),
    ("a: b: c\n", 1, "YAML"),
    ("servers:\n  a:\n    command: 'x\n", 4, "YAML"),
    ("- a\n- b\n", 1, "must be a mapping"),
    ("hello\n", 1, "must be a mapping"),
    ("servers: [a]\n", 1, "must be a mapping"),
    ("servers: text\n", 1, "must be a mapping"),
    ("settings: {}\nservers: {}\nsettings: {}\n", 3, "settings is written twice"),
    ("servers:\n  a: {command: x}\n  b: {command: x}\n  a: {command: y}\n", 4, "a is written twice (first in line 2)"),
    ("servers:\n  a: {command: x}\nmcpServers:\n  a: {command: x}\n", 4, "a is written twice"),
    ("servers: {}\n---\nservers: {}\n", 2, "second document"),
    ("servers: *nowhere\n", 1, "*nowhere"),
    ("servers: &a\n  x: *a\n", 2, "itself"),
    ("servers:\n  [a, b]: {command: x}\n", 2, "list or a mapping"),
    ("servers:\n  a: {command: x\x00}\n", 2, "U+0000"),
    ("# \x1b[31m\n", 1, "U+001B"),
    ("a: '\ud800'\n", 1, "U+D800"),
    ("a:\n  \ufeffb: 1\n", 2, "U+FEFF"),
    ("<<: 5\n", 1, "merges"),
]


@pytest.mark.requirement("file-broken-goes-on")
@pytest.mark.parametrize(("text", "line", "words"), UNPARSABLE)
def test_an_unusable_file_is_an_error_with_its_place(text: str, line: int, words: str) -> None:
    with pytest.raises(UnparsableError) as caught:
        read(text)
    problem = caught.value.problem
    assert (problem.file, problem.line, problem.fatal, problem.server) == ("servers.yaml", line, True, None)
    assert problem.column > 0
    assert words in problem.message
    assert isinstance(caught.value, ConfigError)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "servers:\n" + "".join(f"{' ' * i}a{i}:\n" for i in range(200)),
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)),
        "x: [" + "a, " * (MAX_NODES + 1) + "]",
        "a" * (MAX_BYTES + 1),
    ],
)
def test_a_hostile_file_is_refused_cheaply(text: str) -> None:
    with pytest.raises(UnparsableError):
        read(text)


def test_nesting_up_to_the_limit_is_read() -> None:
    inside = MAX_DEPTH - 1
    assert compose("a: " + "[" * inside + "]" * inside, "f") is not None


def test_a_large_file_names_its_limit() -> None:
    with pytest.raises(UnparsableError, match="10 MB"):
        read(" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("key", ["servers", "mcpServers", "mcp-servers", "mcp_servers"])
def test_servers_have_four_names(key: str) -> None:
    assert list(read(f"{key}:\n  a: {{command: x}}\n").servers) == ["a"]


def test_an_unknown_key_at_the_top_names_the_nearest() -> None:
    (problem,) = read("setings: {}\nserver: {}\n").problems[:1]
    assert (problem.line, problem.fatal, problem.hint) == (1, False, "Did you mean settings?")


def test_json_is_yaml() -> None:
    config = read('{"mcpServers": {"a": {"command": "x", "args": ["-y", "1"], "env": {"A": "1"}}}}')
    assert config.problems == ()
    assert config.servers["a"].args == ("-y", "1")


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    config = read("\ufeffservers:\r\n  a:\r\n    command: x\r\n  b:\r\n    comand: x\r\n")
    assert list(config.servers) == ["a"]
    assert [problem.line for problem in config.problems] == [5]


# --- names


@pytest.mark.parametrize("name", ["on", "yes", "null", "1", "0x10", "1.5", "2001-01-01", "~", "true", "é 😀", "a.b"])
def test_a_name_is_text_whatever_yaml_makes_of_it(name: str) -> None:
    config = read(f"servers:\n  {name}: {{command: x}}\n")
    assert list(config.servers) == [name]
    assert config.servers[name].name == name
    assert config.servers[name].line == 2


@pytest.mark.parametrize("name", ["''", "' '", "a/b", '"a\\nb"', '"a\\u2028"', "x" * 129, '"\\x7f"'])
def test_a_name_that_cannot_be_one_is_a_problem(name: str) -> None:
    config = read(f"servers:\n  {name}: {{command: x}}\n  ok: {{command: x}}\n")
    assert list(config.servers) == ["ok"]
    assert [(problem.line, problem.fatal) for problem in config.problems] == [(2, True)]
    assert config.problems[0].message.isprintable()


# --- one wrong entry


WRONG_ENTRIES = [
    ("[]", ["s"]),
    ("text", ["s"]),
    ("5", ["s"]),
    ("{}", ["command", "url"]),
    ("", ["command", "url"]),
    ("null", ["command", "url"]),
    ("{url: null, command: null}", ["command", "url"]),
    ("{command: c, url: 'https://x'}", ["s", "command", "url"]),
    ("{command: 5}", ["command"]),
    ("{command: true}", ["command"]),
    ("{command: {a: b}}", ["command"]),
    ("{command: ''}", ["command"]),
    ("{command: '  '}", ["command"]),
    ("{command: []}", ["command"]),
    ("{command: [[a]]}", ["command"]),
    ("{command: ['']}", ["command"]),
    ("{command: !own x}", ["command"]),
    ('{command: "npx \'x"}', ["command", "quote"]),
    ("{command: x, args: '-y'}", ["args", "list"]),
    ("{command: x, args: [a, {b: c}]}", ["args", "item 2"]),
    ("{command: x, args: [null]}", ["args", "item 1"]),
    ("{command: x, env: [A=1]}", ["env"]),
    ("{command: x, env: {A: }}", ["env", "A", "no value"]),
    ("{command: x, env: {A: [1]}}", ["env", "A"]),
    ("{command: x, env: {'': a}}", ["env"]),
    ("{command: x, env: {'A=B': a}}", ["env"]),
    ("{command: x, env: {A: 1, A: 2}}", ["env", "A", "twice"]),
    ("{command: x, cwd: 5}", ["cwd"]),
    ("{command: x, disabled: maybe}", ["disabled", "true or false"]),
    ("{command: x, disabled: 1}", ["disabled"]),
    ("{command: x, disabled: 'true'}", ["disabled"]),
    ("{command: x, inherit_env: 0}", ["inherit_env"]),
    ("{command: x, lifecycle: lasy}", ["lifecycle", "keep-alive"]),
    ("{command: x, lifecycle: [lazy]}", ["lifecycle"]),
    ("{command: x, always_on: true, lifecycle: lazy}", ["always_on", "lifecycle"]),
    ("{command: x, always_on: false, lifecycle: keep-alive}", ["always_on", "lifecycle"]),
    ("{command: x, always_on: true, lifecycle: eager}", ["always_on", "lifecycle"]),
    ("{command: x, enabled: true, disabled: true}", ["enabled", "disabled"]),
    ("{command: x, scope: global}", ["scope"]),
    ("{command: x, idle_timeout: -1}", ["idle_timeout", "negative"]),
    ("{command: x, idle_timeout: true}", ["idle_timeout"]),
    ("{command: x, idle_timeout: soon}", ["idle_timeout", "time"]),
    ("{command: x, connect_timeout: 0}", ["connect_timeout"]),
    ("{command: x, connect_timeout: .inf}", ["connect_timeout"]),
    ("{command: x, request_timeout: .nan}", ["request_timeout"]),
    ("{command: x, request_timeout: 1e999}", ["request_timeout"]),
    ("{command: x, request_timeout: 99999999999}", ["request_timeout", "year"]),
    ("{command: x, request_timeout: " + "9" * 5000 + "}", ["request_timeout"]),
    ("{command: x, request_timeout: 1, requestTimeout: 2}", ["requestTimeout", "request_timeout"]),
    ("{command: x, command: y}", ["s", "command", "twice"]),
    ("{command: x, type: http}", ["type", "url"]),
    ("{command: x, type: carrier-pigeon}", ["type"]),
    ("{url: 'https://x', type: stdio}", ["type", "command"]),
    ("{url: not a url}", ["url"]),
    ("{url: 'ftp://x/'}", ["url", "http"]),
    ("{url: 'https://'}", ["url"]),
    ("{url: 'https://user:hush@x/'}", ["url", "headers"]),
    ("{url: 'https://x:99999/'}", ["url"]),
    ("{url: 5}", ["url"]),
    ("{url: 'https://x', headers: [a]}", ["headers"]),
    ("{url: 'https://x', auth: magic}", ["auth"]),
    ("{url: 'https://x', auth: bearer}", ["auth", "bearer_token_env"]),
    ("{command: x, tools: [a]}", ["tools"]),
    ("{command: x, tools: {a: 5}}", ["tools", "a"]),
    ("{command: x, tools: {a: {enabled: 5}}}", ["tools", "a"]),
    ("{command: x, tools: {a: true, a: false}}", ["tools", "a", "twice"]),
    ("{command: x, new_tools: hidden}", ["new_tools"]),
    ("{command: x, include_tools: {a: b}}", ["include_tools"]),
    ("{<<: 5, command: x}", ["merges"]),
    ("{<<: [a], command: x}", ["merges"]),
    ("{[a]: b, command: x}", ["list or a mapping"]),
]


@pytest.mark.requirement("file-one-wrong-entry")
@pytest.mark.parametrize(("entry", "words"), WRONG_ENTRIES)
def test_a_wrong_entry_is_named_and_leaves_the_others(entry: str, words: list[str]) -> None:
    problem = wrong(entry)
    assert (problem.line, problem.server) == (3, "s")
    for word in words:
        assert word in problem.message
    assert "hush" not in problem.message + problem.hint


def test_every_wrong_key_of_an_entry_is_named_with_its_own_line() -> None:
    config = read("servers:\n  s:\n    command: 5\n    args: x\n    env:\n      A: 1\n      B:\n")
    assert [(problem.line, problem.message.split()[0]) for problem in config.problems] == [
        (3, "command"),
        (4, "args"),
        (7, "env"),
    ]
    assert all(problem.column for problem in config.problems)


UNKNOWN = [
    ("comand", "command"),
    ("enviroment", "env"),
    ("life_cycle", "lifecycle"),
    ("idleTimout", "idle_timeout"),
    ("bearerTokn", "bearer_token_env"),
    ("tool", "tools"),
    ("autoApprove", None),
]


@pytest.mark.requirement("file-unknown-key")
@pytest.mark.parametrize(("key", "near"), UNKNOWN)
def test_an_unknown_key_names_the_nearest_and_is_not_fatal(key: str, near: str | None) -> None:
    config = read(f"servers:\n  s:\n    url: https://x/\n    {key}: 5\n")
    assert list(config.servers) == ["s"]
    (problem,) = config.problems
    assert (problem.line, problem.server, problem.fatal) == (4, "s", False)
    assert key in problem.message
    if near and key != "enviroment":
        assert problem.hint == f"Did you mean {near}?"


def test_keys_of_the_other_transport_are_noted() -> None:
    config = read("servers:\n  s: {url: 'https://x', args: [a]}\n  t: {command: x, headers: {A: b}}\n")
    assert list(config.servers) == ["s", "t"]
    assert [(problem.server, problem.fatal) for problem in config.problems] == [("s", False), ("t", False)]


# --- values


COMMANDS: list[tuple[str, list[str]]] = [
    ("{command: npx -y @upstash/context7-mcp}", ["npx", "-y", "@upstash/context7-mcp"]),
    ("{command: [npx, -y, x]}", ["npx", "-y", "x"]),
    ("{command: [npx, -y], args: [x]}", ["npx", "-y", "x"]),
    ("{command: npx -y, args: [x]}", ["npx -y", "x"]),
    ("{command: npx -y, args: []}", ["npx -y"]),
    ("{command: x, args: [1, true, 0x10, 1.50, null-ish, '']}", ["x", "1", "true", "0x10", "1.50", "null-ish", ""]),
    ('{command: "sh -c \'echo a b\' \\"c d\\" e\\\\ f"}', ["sh", "-c", "echo a b", "c d", "e f"]),
]


@pytest.mark.parametrize(("entry", "words"), COMMANDS)
def test_a_command_is_a_string_or_a_list(entry: str, words: list[str]) -> None:
    server = one(entry)
    assert [server.command, *server.args] == words


def test_a_command_that_is_an_existing_path_is_one_word(tmp_path: Path) -> None:
    program = tmp_path / "My Tools"
    program.touch()
    assert one(f"{{command: {program}}}").command == str(program)


def test_environment_values_are_the_text_of_the_file() -> None:
    server = one("{command: x, env: {PORT: 8080, F: true, X: 0x10, N: '', D: 2001-01-01, O: 010, PATH: /opt, on: no}}")
    assert server.env == {
        "PORT": "8080", "F": "true", "X": "0x10", "N": "", "D": "2001-01-01", "O": "010", "PATH": "/opt", "on": "no",
    }  # fmt: skip


VALUES: list[tuple[str, str, Any]] = [
    ("command: x, lifecycle: keep-alive", "lifecycle", "keep-alive"),
    ("command: x, lifecycle: keepAlive", "lifecycle", "keep-alive"),
    ("command: x, lifecycle: lazy_keep_alive", "lifecycle", "lazy-keep-alive"),
    ("command: x, always_on: true", "lifecycle", "keep-alive"),
    ("command: x, alwaysOn: false", "lifecycle", "lazy"),
    ("command: x, always_on: yes, lifecycle: keep-alive", "lifecycle", "keep-alive"),
    ("command: x, enabled: false", "disabled", True),
    ("command: x, enabled: false, disabled: true", "disabled", True),
    ("command: x, disabled: Yes", "disabled", True),
    ("command: x, disabled: ", "disabled", False),
    ("command: x, type: stdio", "type", None),
    ("url: 'https://x', type: streamableHttp", "type", "http"),
    ("url: 'https://x', type: streamable-http", "type", "http"),
    ("url: 'https://x', type: sse", "type", "sse"),
    ("url: 'https://x', transport: sse", "type", "sse"),
    ("url: 'HTTPS://X:80/a?b=c#d'", "url", "HTTPS://X:80/a?b=c#d"),
    ("url: 'http://[::1]:8080/mcp'", "url", "http://[::1]:8080/mcp"),
    ("url: '${BASE}/mcp'", "url", "${BASE}/mcp"),  # checked after its variables are expanded
    ("serverUrl: 'https://x'", "url", "https://x"),
    ("url: 'https://x', bearerTokenEnv: TOK", "bearer_token_env", "TOK"),
    ("url: 'https://x', bearer-token-env: TOK", "bearer_token_env", "TOK"),
    ("url: 'https://x', bearer_token_env_var: TOK", "bearer_token_env", "TOK"),
    ("url: 'https://x', http_headers: {X: 1}", "headers", {"X": "1"}),
    ("url: 'https://x', scopes: a b", "scopes", ("a", "b")),
    ("url: 'https://x', auth: bearer, headers: {authorization: x}", "auth", "bearer"),
    ("command: x, inheritEnv: false", "inherit_env", False),
    ("command: x, idleTimeout: 5", "idle_timeout", 5.0),
    ("command: x, idle-timeout: 0.5", "idle_timeout", 0.5),
    ("command: x, idle_timeout: 30s", "idle_timeout", 0.5),
    ("command: x, idle_timeout: 1h 30m", "idle_timeout", 90.0),
    ("command: x, idleTimeoutMs: 60000", "idle_timeout", 1.0),
    ("command: x, connectTimeoutMs: 1500", "connect_timeout", 1.5),
    ("command: x, startup_timeout_sec: 20", "connect_timeout", 20.0),
    ("command: x, startup_timeout_ms: 20000", "connect_timeout", 20.0),
    ("command: x, tool_timeout_sec: 20", "request_timeout", 20.0),
    ("command: x, requestTimeoutMs: 250", "request_timeout", 0.25),
    ("command: x, request_timeout: 5m", "request_timeout", 300.0),
    ("command: x, request_timeout: '1500 ms'", "request_timeout", 1.5),
    ("command: x, request_timeout: 1_000", "request_timeout", 1000.0),
    ("command: x, request_timeout: 0x10", "request_timeout", 16.0),
    ("command: x, title: 5", "title", "5"),
    ("command: x, cwd: ~/src", "cwd", "~/src"),
    ("command: x, directTools: true", "direct_tools", True),
    ("command: x, direct_tools: [a, on]", "direct_tools", ("a", "on")),
    ("command: x, include_tools: 'a*'", "include_tools", ("a*",)),
    ("command: x, disabledTools: [a]", "exclude_tools", ("a",)),
    ("command: x, expose_resources: off", "expose_resources", False),
    ("command: x, new_tools: disabled", "new_tools", "disabled"),
    ("command: x, scope: session", "scope", "session"),
    ("command: x", "tools", None),
    ("command: x, tools: {}", "tools", {}),
    ("command: x, tools: ", "tools", {}),
    ("command: x, tools: {a: , on: false, c: {enabled: no, stale: yes, description: {x: 5}}}", "tools",
     {"a": ToolSwitch(), "on": ToolSwitch(False), "c": ToolSwitch(False, True)}),
    ("command: x, x-own: {a: 5}", "title", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "hint"), [("enabld", "enabled"), ("disabled", "enabled"), ("Stale", "stale"), ("x", "")]
)
def test_an_unknown_key_of_a_tool_is_a_problem_with_the_nearest_known_one(key: str, hint: str) -> None:
    config = read(f"servers:\n  s:\n    command: x\n    tools:\n      t: {{{key}: true, x-own: 1, description: d}}\n")
    (problem,) = config.problems
    assert (problem.line, problem.server, problem.fatal, problem.message) == (5, "s", False, f"Unknown key {key}")
    assert hint in problem.hint
    assert config.servers["s"].tools == {"t": ToolSwitch()}


@pytest.mark.requirement("file-other-spellings")
@pytest.mark.parametrize(("entry", "field", "value"), VALUES)
def test_a_value_is_read(entry: str, field: str, value: Any) -> None:
    found = getattr(one("{" + entry + "}"), field)
    assert found == value
    assert type(found) is type(value)


def test_anchors_aliases_and_merge_keys_work_in_an_entry() -> None:
    config = read(
        "x-base: &base {command: run, env: {A: 1}, disabled: true}\nx-more: &more {cwd: /b, command: no}\n"
        "servers:\n  a: {<<: *base, disabled: false}\n  b: {<<: [*base, *more], env: &e {B: 2}}\n"
        "  c: {command: x, env: {<<: *e, C: 3}, enabled: true}\n  d: *base\n  e: {<<: *base, enabled: yes}\n"
    )
    assert config.problems == ()
    a, b, c, d, e = config.servers.values()
    assert (a.command, a.env, a.disabled) == ("run", {"A": "1"}, False)
    assert (b.command, b.cwd, b.env, b.disabled) == ("run", "/b", {"B": "2"}, True)
    assert c.env == {"B": "2", "C": "3"}
    assert (d.name, d.command, d.line) == ("d", "run", 7)
    assert e.disabled is False


# --- settings


def test_all_settings_are_read() -> None:
    config = read(
        "settings:\n  expose: search\n  deferAbove: 3\n  tool-prefix: none\n  idle_timeout: 1h\n  health_interval: 5\n"
        "  failureBackoffMs: 1500\n  connect_timeout: 3\n  request_timeout: 4\n  linger: 0\n  result_limit: 0\n"
        "  http: {enabled: no, port: 80}\n  imports: [cursor, claude-code]\n"
        "  profiles:\n    work: {servers: [a], expose: tools, includeTools: 'x*', exclude_tools: [y]}\n    all:\n"
        "  synonyms: {pr: [pull request], ls: list}\n  token_store: file\n"
        "  approve_changes: off\n  update_check: true\n  writeTools: switched\n"
        "  registry: https://mcp.corp.example/v0.1/\n"
        "  history: {arguments: no, keep: 7d, size: 20 MB}\n"
    )
    assert config.problems == ()
    assert config.settings == Settings(
        expose="search", defer_above=3, tool_prefix="none", idle_timeout=60.0, health_interval=5.0,
        failure_backoff=1.5, connect_timeout=3.0, request_timeout=4.0, linger=0.0, result_limit=0,
        http=HttpSettings(False, 80), imports=("cursor", "claude-code"),
        profiles={"work": Profile(("a",), "tools", ("x*",), ("y",)), "all": Profile()},
        synonyms={"pr": ("pull request",), "ls": ("list",)}, token_store="file", approve_changes="off",
        update_check=True, write_tools="switched", registry="https://mcp.corp.example",
        history=HistorySettings(True, False, 7.0, 20_000_000),
    )  # fmt: skip


WRONG_SETTINGS = [
    "history: {size: 1}",
    "history: {size: many}",
    "history: {keep: 0}",
    "history: 3",
    "expose: some",
    "expose: 5",
    "defer_above: -1",
    "defer_above: 1.5",
    "defer_above: true",
    "tool_prefix: long",
    "idle_timeout: -1",
    "health_interval: 0",
    "connect_timeout: 0",
    "linger: later",
    "result_limit: 50KB",
    "http: 5",
    "http: {port: 70000}",
    "http: {prt: 5}",
    "imports: {a: b}",
    "profiles: [a]",
    "profiles: {a: {expose: some}}",
    "synonyms: [a]",
    "token_store: memory",
    "approve_changes: maybe",
    "update_check: often",
    "registry: http://mcp.corp.example",
    "registry: 5",
    "write_tools: some",
    "expsoe: tools",
]


@pytest.mark.parametrize("line", WRONG_SETTINGS)
def test_a_wrong_setting_keeps_its_default_and_is_named(line: str) -> None:
    config = read(f"settings:\n  failure_backoff: 3\n  {line}\nservers: {{a: {{command: x}}}}\n")
    (problem,) = config.problems
    assert (problem.line, problem.fatal, problem.server) == (3, False, None)
    assert problem.hint
    profiles = {"a": Profile()} if line.startswith("profiles: {") else {}
    assert config.settings == Settings(failure_backoff=3.0, profiles=profiles)
    assert list(config.servers) == ["a"]


@pytest.mark.parametrize("text", ["settings: 5\n", "settings: [a]\n", "settings: {linger: 1, linger: 2}\n"])
def test_settings_that_cannot_be_read_leave_the_defaults(text: str) -> None:
    config = read(text + "servers: {a: {command: x}}\n")
    assert config.settings == Settings()
    assert [problem.fatal for problem in config.problems] == [False]
    assert list(config.servers) == ["a"]


# --- properties


def problems_of(text: str) -> tuple[Problem, ...]:
    try:
        return read(text).problems
    except UnparsableError as error:
        return (error.problem,)


WORDS = [
    "servers", "settings", "command", "url", "env", "tools", "args", "<<", ": ", ":", "- ", "&a", "*a", "{", "}", "[",
    "]", ",", "\n", "\n  ", "\n    ", " ", "'", '"', "#", "|", ">", "!", "!!str ", "? ", "---", "...", "%YAML", "\t",
    "5", "true", "null", "https://x", "\ufeff", "\x00", "\r\n", "\u2028", "é", "😀", "${A}", "always_on", "@", "`",
]  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map("".join)))
def test_any_text_is_a_configuration_or_unparsable(text: str) -> None:
    assert all(problem.message.isprintable() for problem in problems_of(text))


plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["5m", "x", "https://x"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
keys = st.sampled_from(
    ["command", "url", "args", "env", "tools", "type", "lifecycle", "timeout", "idle_timeout", "auth", "disabled"]
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.dictionaries(keys, plain), min_size=1))
def test_any_values_leave_a_server_or_a_problem(servers: dict[str, Any]) -> None:
    config = read(yaml.safe_dump({"servers": servers | {"good": {"command": "x"}}}, allow_unicode=True))
    fatal = {problem.server for problem in config.problems if problem.fatal}
    assert set(servers) | {"good"} == set(config.servers) | fatal
    assert not set(config.servers) & fatal
    assert "good" in config.servers


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map("".join)))
def test_both_loaders_say_the_same(text: str) -> None:
    found: list[Any] = []
    for loader in (yaml.SafeLoader, compose_module.Loader):
        try:
            found.append(outline(compose(text, "f", loader)))
        except UnparsableError:
            return  # the loaders refuse different edge cases of YAML
    assert found[0] == found[1]


def test_reading_does_not_load_the_editing_library() -> None:
    code = (
        "import sys, trayapp.config.read.parse; sys.exit('ruamel.yaml' in sys.modules or 'platformdirs' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_entry_whose_command_is_misspelt_is_told_once_what_was_meant() -> None:
    (only,) = problems_of("servers:\n  db:\n    comand: x\n")
    assert (only.message, only.hint) == ("db has neither command nor url", "Did you mean command?")
    assert (only.fatal, only.line) == (True, 3)


def test_a_setting_at_the_top_of_the_file_is_told_where_it_belongs() -> None:
    (only,) = problems_of("profiles:\n  work:\n    servers: [db]\n")
    assert only.hint == "profiles is a setting: write it below settings"


@pytest.mark.parametrize("others", ["command: x", "type: nonsense"])
def test_a_misspelt_command_beside_another_one_or_another_mistake_is_told_too(others: str) -> None:
    found = problems_of(f"servers:\n  db:\n    comand: x\n    {others}\n")
    assert ("Unknown key comand", "Did you mean command?") in [(one.message, one.hint) for one in found]
    assert not any("neither" in one.message for one in found)
