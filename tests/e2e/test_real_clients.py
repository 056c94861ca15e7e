"""Real AI tools, each in a temporary home: their `mcp list` shows the entry that `connect` wrote.

For their list, some tools start the shim and report a connection. The others only print the entry. None needs an
account.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from devtools.places import NPM_CLIENTS
from tests.cli.running import environment, run_cli
from tests.servers import REMEDY
from tests.tools import node, require_file
from trayapp.config.store import sample_text
from trayapp.service.command_line import shim_command

PATIENCE_S = 50.0
MODULES = NPM_CLIENTS / "node_modules"
# no telemetry and no updates
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
    "GEMINI_TELEMETRY_ENABLED": "false", "TERM": "dumb", "NO_COLOR": "1",
}  # fmt: skip


def native(package: str, name: str) -> list[str]:
    """Return the command of a native program, which npm installs in a package for this platform beside `package`."""
    folder, _, prefix = package.rpartition("/")
    found = [
        path
        for platform in sorted((MODULES / folder).glob(f"{prefix}-*"))
        for path in platform.rglob(name)
        if path.is_file() and os.access(path, os.X_OK)
    ]
    return [str(require_file(found[0] if found else MODULES / folder / name, REMEDY))]


def claude_code() -> list[str]:
    return native("@anthropic-ai/claude-code", "claude")


def gemini_cli() -> list[str]:
    script = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return [node(), str(require_file(script, REMEDY))]


class Person:
    """A user's home directory for the tool under test. `folder` is the working directory."""

    def __init__(self, home: Path, mine: Path) -> None:
        self.home = home
        self.folder = mine / "work"
        self.folder.mkdir(parents=True)
        kept = {name: value for name, value in environment(home).items() if not name.startswith(("XDG_", "CLAUDE"))}
        self.env = kept | QUIET | {"HOME": str(mine), "USERPROFILE": str(mine)}
        (home / "servers.yaml").write_text(sample_text(), encoding="utf-8")

    def connect(self, client: str) -> None:
        done = run_cli(self.home, "connect", client, env=self.env)
        assert done.returncode == 0, done.stderr

    def lists(self, argv: list[str]) -> str:
        """Return the output of `ARGV mcp list`."""
        return self.runs([*argv, "mcp", "list"])

    def runs(self, argv: list[str]) -> str:
        """Run a command and return its stdout and stderr."""
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout + done.stderr


@pytest.fixture
def person(home: Path, tmp_path: Path) -> Iterator[Person]:
    yield Person(home, tmp_path)
    run_cli(home, "stop")


@pytest.mark.requirement("client-real")
def test_claude_code_is_connected(person: Person, tmp_path: Path) -> None:
    argv = claude_code()
    (tmp_path / ".claude").mkdir()
    person.connect("claude-code")
    (line,) = [line for line in person.lists(argv).splitlines() if line.startswith("multi-mcp:")]
    assert " ".join(shim_command()) in line
    assert line.endswith("Connected")


class Provider(ThreadingHTTPServer):
    """A local model provider that answers every message with one word and records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ProviderHandler)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class ProviderHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def log_message(self, *args: Any) -> None:
        """Discard the log lines."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
        said = {"type": "text", "text": "fine"}
        if not body.get("stream"):
            self._answer("application/json", json.dumps({**message, "content": [said], "stop_reason": "end_turn"}))
            return
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "fine"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._answer("text/event-stream", text)

    def _answer(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.requirement("client-real", "one-tool-summary")
def test_claude_code_that_defers_tools_shows_its_model_the_one_tool_at_once(
    person: Person, tmp_path: Path, provider: Provider
) -> None:
    argv = claude_code()
    (tmp_path / ".claude").mkdir()
    person.connect("claude-code")
    file = person.home / "servers.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("expose: auto ", "expose: search "), encoding="utf-8")
    person.env |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-none"}
    person.env |= {"ENABLE_TOOL_SEARCH": "true", "MCP_CONNECTION_NONBLOCKING": "0"}
    assert run_cli(person.home, "refresh", env=person.env).returncode == 0
    assert "fine" in person.runs([*argv, "-p", "hello", "--model", "claude-sonnet-4-5"])
    request = next(request for request in provider.requests if "ToolSearch" in {t["name"] for t in request["tools"]})
    (ours,) = [tool for tool in request["tools"] if tool["name"] == "mcp__multi-mcp__mcp"]
    assert not ours.get("defer_loading")
    assert "tools of 1 server behind the tool mcp" in json.dumps(request)


@pytest.mark.requirement("client-real")
def test_gemini_cli_is_connected(person: Person, tmp_path: Path) -> None:
    argv = gemini_cli()
    (tmp_path / ".gemini").mkdir()
    trusted = tmp_path / ".gemini" / "trustedFolders.json"
    trusted.write_text(json.dumps({str(person.folder): "TRUST_FOLDER"}), encoding="utf-8")
    person.connect("gemini-cli")
    (line,) = [line for line in person.lists(argv).splitlines() if "multi-mcp:" in line]
    assert line.endswith("Connected")


# Node programs that are small enough to install for every run: the client's folder, its package and its program.
SCRIPTS = {
    "qwen-code": (".qwen", "@qwen-code/qwen-code", "qwen"),
    "auggie": (".augment", "@augmentcode/auggie", "auggie"),
}


@pytest.mark.requirement("client-real")
@pytest.mark.parametrize("client", SCRIPTS)
def test_a_tool_of_node_sees_the_entry(person: Person, tmp_path: Path, client: str) -> None:
    folder, package, program = SCRIPTS[client]
    require_file(MODULES / package / "package.json", REMEDY)
    (tmp_path / folder).mkdir(parents=True)
    person.connect(client)
    said = person.lists([str(require_file(MODULES / ".bin" / program, REMEDY))])
    (line,) = [line for line in said.splitlines() if "multi-mcp" in [word.rstrip(":") for word in line.split()[:2]]]
    assert client != "qwen-code" or line.endswith("Connected"), said


# Native programs for Linux on x64. Per client: its file, the file's content before `connect`, its package, its program,
# and a word that its `mcp list` prints for our entry. The content already has the members that the tool itself would
# add. A client with the word `connected` started the shim and listed its tools. The others start no server for their
# list, so they only show that they read our entry from this file. Factory Droid (294 MB, prints `multi-mcp  stdio`) was
# tried only by hand. Crush is left out, because its npm package only downloads the program.
PROGRAMS = {
    "kilo": (
        ".config/kilo/kilo.jsonc", '{\n\t// mine\n\t"$schema": "https://app.kilo.ai/config.json",\n'
        '\t"permission": { "bash": "ask" }, /* asked */\n}\n',
        "@kilocode/cli", "kilo", "connected",
    ),
    "opencode": (
        ".config/opencode/opencode.jsonc", '{ "$schema": "https://opencode.ai/config.json" } // mine',
        "opencode", "opencode", "connected",
    ),
    "codex": (".codex/config.toml", '# mine\nmodel = "x" # this one\n', "@openai/codex", "codex", "enabled"),
    "copilot-cli": (
        ".copilot/mcp-config.json", '{"mcpServers": {\n}}\n', "@github/copilot", "copilot", "(local)"
    ),
    "amp": (
        ".config/amp/settings.json", '{\n  // mine\n  "amp.notifications.enabled": false\n}', "@ampcode/cli", "amp",
        shim_command()[0],
    ),
}  # fmt: skip


# keeps the programs from fetching models, updates and accounts when they start
ALONE = {
    "HTTPS_PROXY": "http://127.0.0.1:9", "KILO_TELEMETRY_LEVEL": "off",
    **{f"{tool}_DISABLE_{what}": "1" for tool in ("KILO", "OPENCODE") for what in ("MODELS_FETCH", "AUTOUPDATE")},
}  # fmt: skip


@pytest.mark.requirement("client-real")
@pytest.mark.parametrize("client", PROGRAMS)
def test_a_tool_sees_the_entry_until_it_is_taken_back(person: Person, tmp_path: Path, client: str) -> None:
    name, before, package, program, sees = PROGRAMS[client]
    argv = native(package, program)
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(before, encoding="utf-8")
    person.connect(client)
    person.env |= ALONE
    said = person.lists(argv)
    (line,) = [line for line in said.splitlines() if "multi-mcp" in line.split()]
    assert sees in line, said
    done = run_cli(person.home, "disconnect", client, env=person.env)
    assert (done.returncode, file.read_text(encoding="utf-8")) == (0, before), done.stderr
