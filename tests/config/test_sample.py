"""The first servers.yaml."""

from __future__ import annotations

import pytest

from trayapp.config.parse import parse
from trayapp.config.sample import sample_text
from trayapp.model.settings import Settings

COMMANDS = [
    ["/usr/bin/python3", "-m", "trayapp.samples"],
    ["C:\\Program Files\\multi-mcp\\python.exe", "-m", "x"],
    ["/home/é 'x'/\"q\"/py: #1", "--flag", "1", "true", "{x}", "", "a,b]"],
]


@pytest.mark.requirement("file-first-run")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_sample_is_read_without_a_problem(command: list[str]) -> None:
    config = parse(sample_text(command), "servers.yaml")
    assert config.problems == ()
    assert list(config.servers) == ["sample"]
    server = config.servers["sample"]
    assert [server.command, *server.args] == command
    assert not server.disabled


def test_the_sample_says_the_defaults() -> None:
    assert parse(sample_text(["x"]), "f").settings == Settings()


def test_the_examples_in_the_comments_are_servers_too() -> None:
    text = sample_text(["x"])
    head, examples = text.split("    command: [x]\n")
    live = "\n".join(line.replace("  # ", "  ", 1) for line in examples.splitlines() if not line.startswith("  # A"))
    live = "\n".join(line for line in live.splitlines() if not line.startswith("  Tools are"))
    config = parse(f"{head}    command: [x]\n{live}\n", "f", exists=lambda path: False)
    assert config.problems == ()
    assert list(config.servers) == ["sample", "files", "docs", "github"]
    assert len(text.splitlines()) <= 45
