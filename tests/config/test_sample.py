"""The first servers.yaml."""

from __future__ import annotations

import pytest

from trayapp.config.read.parse import parse
from trayapp.config.sample import sample_text, with_sample
from trayapp.model.settings import Settings
from trayapp.service.command_line import SAMPLE_VERB

COMMANDS = [
    ["/usr/bin/python3", "-I", "-S", "/opt/trayapp/samples/server.py"],
    ["C:\\Program Files\\multi-mcp\\multi-mcp-shim.exe", "sample-server"],
]


@pytest.mark.requirement("file-first-run")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_sample_names_no_place_and_runs_wherever_this_installation_lies(command: list[str]) -> None:
    config = parse(sample_text(), "servers.yaml")
    assert config.problems == ()
    assert list(config.servers) == ["sample"]
    assert [config.servers["sample"].command, *config.servers["sample"].args] == ["multi-mcp", SAMPLE_VERB]
    server = with_sample(config, command).servers["sample"]
    assert [server.command, *server.args] == command
    assert not server.disabled


@pytest.mark.parametrize(
    ("entry", "is_ours"),
    [
        ("[/usr/lib/multi-mcp/multi-mcp-shim, sample-server]", True),  # as in the first release
        ("[/usr/lib/multi-mcp/multi-mcp, sample-server]", True),
        ("[multi-mcp, sample-server, more]", False),
        ("[other, sample-server]", False),
        ("[multi-mcp, stdio]", False),
    ],
)
def test_the_sample_of_another_installation_is_that_of_this_one(entry: str, is_ours: bool) -> None:
    config = parse(f"servers: {{s: {{command: {entry}}}}}", "f")
    assert (with_sample(config, ["mine"]).servers["s"].command == "mine") == is_ours


def test_the_sample_says_the_defaults() -> None:
    assert parse(sample_text(), "f").settings == Settings()


def test_the_examples_in_the_comments_are_servers_too() -> None:
    text = sample_text()
    head, examples = text.split("    command: multi-mcp sample-server\n")
    live = "\n".join(line.replace("  # ", "  ", 1) for line in examples.splitlines() if not line.startswith("  # A"))
    live = "\n".join(line for line in live.splitlines() if not line.startswith("  Tools are"))
    config = parse(f"{head}    command: multi-mcp sample-server\n{live}\n", "f", exists=lambda path: False)
    assert config.problems == ()
    assert list(config.servers) == ["sample", "files", "docs", "github"]
    assert len(text.splitlines()) <= 45
