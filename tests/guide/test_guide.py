"""The README and the guide explain every key, verb and variable, and all their commands exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections import Counter
from pathlib import Path

import click
import pytest

from devtools import commands, guide
from tests import pictures
from tests.benchmarks.parts import PARTS
from tests.cli.running import run_cli
from tests.e2e.gateway import gateway_in
from tests.patience import stretched
from trayapp.cli.app import program
from trayapp.cli.verbs import PROGRAM, VERBS
from trayapp.clients.table import CLIENTS
from trayapp.config.read.fields import SERVER_KEYS, SETTING_KEYS, TOOL_KEYS
from trayapp.config.read.parse import parse
from trayapp.model.config import HistorySettings, HttpSettings, Profile
from trayapp.service.command_line import own_command
from trayapp.service.guide import page, topics

pytestmark = pytest.mark.requirement("guide")

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "packaging" / "guide").glob("*.md"))]
OWN_VARIABLES = {"MULTI_MCP_BACKEND", "MULTI_MCP_RESOLVING_ENVIRONMENT"}  # set by the program for its children
IN_VENV = ".venv/bin/"
MOST_WORDS = 25  # per sentence of the README
ELSEWHERE = {
    "multi-mcp setup",  # needs answers: tests/cli/test_setup
    "multi-mcp add npm:@modelcontextprotocol/server-memory",  # needs npm's registry: tests/sources
    "multi-mcp panel",  # opens a browser: tests/panel
    "multi-mcp edit",  # opens an editor: tests/cli/test_edit
    "multi-mcp start",  # runs until it is stopped: tests/cli/test_start
    "multi-mcp status --watch",  # runs until it is stopped: tests/cli/test_status
    "multi-mcp tray",  # runs until it is stopped: tests/tray
    "multi-mcp allow 3fa2b1",  # needs a pending call: tests/cli/test_asks
    "multi-mcp deny 3fa2b1",
    "multi-mcp update-check",  # needs the network: tests/service/test_version
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return the part of a page below a heading."""
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def keys_in(text: str) -> Counter[str]:
    """Return how often each key appears in the first column of a table."""
    return Counter(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))


def test_pages_that_the_program_writes_are_as_it_would_write_them_now() -> None:
    for name, text in guide.pages().items():
        assert text_of(guide.GUIDE / name) == text, f"{name}: packaging/dev.py guide writes it again"


def test_every_key_of_a_server_and_every_setting_is_explained_once() -> None:
    text = text_of(guide.GUIDE / "servers-yaml.md")
    of_servers = "".join(section(text, name) for name in (
        "A server that is a program", "A server on the web", "Every server"))  # fmt: skip
    assert keys_in(of_servers) == Counter(SERVER_KEYS)
    assert keys_in(section(text, "Settings")) == Counter(SETTING_KEYS)
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for row, kind in (("http", HttpSettings), ("history", HistorySettings), ("profiles", Profile)):
        assert [key for key in kind._fields if f"`{key}`" not in rows[row]] == []
    assert [key for key in sorted(TOOL_KEYS) if f"`{key}" not in section(text, "Every server")] == []


def test_every_verb_has_a_page() -> None:
    assert re.findall(r"^## (\S+)$", page("verbs"), re.MULTILINE) == list(VERBS)


def test_every_variable_that_the_program_reads_is_explained_once() -> None:
    sources = [text_of(path) for path in (ROOT / "trayapp").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"MULTI_MCP_[A-Z_]*[A-Z]", text)} - OWN_VARIABLES
    explained = re.findall(r"^\| `(MULTI_MCP_[A-Z_]+)` \|", page("install"), re.MULTILINE)
    assert sorted(explained) == sorted(read)


def commands_in(path: Path) -> list[str]:
    """Return the commands in shell blocks and in inline code."""
    text = text_of(path)
    fenced = [line for kind, block in FENCE.findall(text) if kind == "" for line in block.splitlines()]
    inline = re.findall(r"`((?:multi-mcp|(?:.venv/bin/)?python3? )[^`]*)`", FENCE.sub("", text).replace("\n", " "))
    plain = [line.removeprefix("$ ").removeprefix(IN_VENV) for line in [*fenced, *inline]]
    lines = [re.split(r"\s#\s|\s{2,}#", line)[0].strip() for line in plain]
    return [line for line in lines if re.match(r"(multi-mcp|python3?)( |$)", line)]


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "verbs.md"], ids=lambda path: path.name)
def test_every_command_is_one_that_the_program_knows(path: Path) -> None:
    for line in commands_in(path):
        if "VERB" in line:
            continue
        words = shlex.split(line)
        if words[0] == PROGRAM:
            check_verb(words[1:])
        elif words[1] == "-m":
            assert importlib.util.find_spec(words[2]) is not None, line
            parts = words[words.index("--only") + 1].split(",") if "--only" in words else []
            assert [part for part in parts if part not in PARTS] == [], line
        else:
            assert words[1] == "packaging/dev.py", line
            assert words[2] in commands.COMMANDS, line


def check_verb(words: list[str]) -> None:
    """Parse a command line as the program does, without running it."""
    if not words or words[0].startswith("-"):
        assert words in ([], ["--help"], ["--version"]), words
        return
    verb = program.get_command(click.Context(program), words[0]) if isinstance(program, click.Group) else None
    assert verb is not None, words
    if words[1:] != ["--help"]:
        verb.make_context(words[0], words[1:])


def runs_anywhere(line: str) -> bool:
    """True if the line is a command of multi-mcp, has no placeholder and is not listed in ELSEWHERE."""
    return line.startswith(f"{PROGRAM} ") and line not in ELSEWHERE and not re.search(r"\b[A-Z]{3,}\b", line)


@pytest.mark.timeout(stretched(120.0))
def test_every_command_that_needs_nothing_else_runs(home: Path) -> None:
    pages = [path for path in PAGES if path.name != "verbs.md"]
    lines = list(dict.fromkeys(line for path in pages for line in filter(runs_anywhere, commands_in(path))))
    assert len(lines) >= 30
    (home / ".cursor").mkdir()  # `connect cursor` needs Cursor's folder
    with gateway_in(home) as gateway:
        sample = {"command": [*own_command(), "sample-server"]}
        gateway.write({"sample": sample, "github": sample}, profiles={"office": {"servers": ["sample"]}})
        gateway.start()
        env = {**gateway.env, "HOME": str(home), "USERPROFILE": str(home)}
        for line in lines:
            done = run_cli(home, *shlex.split(line)[1:], env=env)
            assert done.returncode == 0 or line == "multi-mcp doctor", (line, done.stderr)  # `doctor` may find problems
            assert "Error" not in done.stderr, (line, done.stderr)
            shown = text_of(README).partition(f"\n$ {IN_VENV}{line}\n")[2].partition("\n")[0]
            assert shown in done.stdout, line


def test_every_servers_yaml_that_is_shown_can_be_read() -> None:
    found = [(path.name, block) for path in PAGES for kind, block in FENCE.findall(text_of(path)) if kind == "yaml"]
    assert len(found) >= 2
    for name, block in found:
        config = parse(block, name)
        assert config.problems == (), (name, config.problems)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)|!\[[^]]*\]\(([^)]+)\)|src(?:set)?=\"([^\"]+)\"", text_of(path))
    targets = [next(filter(None, found)) for found in links]
    assert [link for link in targets if "://" not in link and not (path.parent / link).exists()] == []


def test_the_readme_is_short_and_so_are_its_sentences() -> None:
    text = FENCE.sub("", text_of(README))
    assert len(text_of(README).splitlines()) <= 135
    prose = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#", "<")))
    prose = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", prose)
    sentences = [" ".join(part.split()) for part in re.split(r"[.?!](?:\s|\*|$)|\n\n|^- ", prose, flags=re.MULTILINE)]
    assert [sentence for sentence in sentences if len(sentence.split()) > MOST_WORDS] == []


def test_the_readme_counts_every_ai_tool_of_the_guide() -> None:
    found = re.search(r"## Works with\n\n(.*) and \[(\d+) more AI tools\]", text_of(README))
    assert found is not None
    named = found[1].split(", ")
    assert [name for name in named if not any(client.title.startswith(name) for client in CLIENTS)] == []
    assert len(named) + int(found[2]) == len(CLIENTS)


def measured(heading: str, row: str) -> dict[str, str]:
    """Return the figures of a row in BENCHMARKS.md by column."""
    head: list[str] = []
    for line in section(text_of(ROOT / "packaging" / "BENCHMARKS.md"), heading).splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("|  | "):
            head = cells
        elif line.startswith(f"| {row}"):
            return dict(zip(head, cells[1:], strict=False))
    raise LookupError(row)


def test_the_readme_tells_the_figures_that_were_measured() -> None:
    text = text_of(README)
    memory = measured("Many clients", "5 clients, 10 real servers: memory")
    tokens = measured("Lists and search", "10 real servers, 92 tools: listed")
    call = measured("Calls", "call 100 B, p50")
    lists = measured("Starts", "gateway runs, 10 servers, 300 tools")
    assert f"{memory['ours']} MiB instead of {memory['direct']} for five AI tools with ten servers" in text
    assert f"**{tokens['ours, expose: search']} tokens** of" in text
    assert f"instead of {tokens['ours, expose: tools']} for those servers' 92 tools" in text
    assert f"a call takes {float(call['ours']) - float(call['direct']):.2f} ms longer" in text
    assert f"300 tools are listed in {float(lists['ours']):.0f} ms" in text


@pytest.mark.parametrize(
    ("start", "stdio", "http"),
    [
        ("multi-mcp", "ours", "ours, HTTP"),
        ("mcp-hub", "mcp-hub, supergateway", "mcp-hub, SSE"),
        ("mcp-proxy (PyPI)", "mcp-proxy (PyPI), bridge", "mcp-proxy (PyPI), HTTP"),
        ("mcp-proxy (npm)", "mcp-proxy (npm), bridge", "mcp-proxy (npm), HTTP"),
        ("fastmcp", "fastmcp", "fastmcp, HTTP"),
    ],
)
def test_the_readme_compares_what_was_measured(start: str, stdio: str, http: str) -> None:
    rows = [line for line in text_of(README).splitlines() if re.match(rf"\| {re.escape(start)}[^`]* ms", line)]
    found = [float(figure.replace(",", "")) for figure in re.findall(r"([\d.,]+) (?:ms|MiB)", rows[0])]
    rows_of = ("call 100 B, p50", "nothing runs, 1 server, 10 tools", "1 client, 1 server, 10 tools: memory without")
    call, start_up, memory = (measured("Beside other gateways", row) for row in rows_of)
    wanted = [call[stdio], call[http], start_up[stdio], memory[stdio]]
    assert found == [pytest.approx(float(figure.replace(",", "")), rel=0.02) for figure in wanted]


def test_no_picture_is_older_than_what_it_shows() -> None:
    assert pictures.stale() == [], "packaging/dev.py pictures makes them again"


def test_no_picture_loads_anything() -> None:
    drawings = (ROOT / "assets").rglob("*.svg")
    assert [path.name for path in drawings if re.search(r"url\(.?http|href=.http|<script", text_of(path))] == []


def test_topics_begin_with_what_a_newcomer_reads() -> None:
    assert list(topics())[:3] == ["install", "ai-tools", "servers-yaml"]
    assert all(title and not title.startswith("#") for title in topics().values())
