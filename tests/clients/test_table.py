"""The table of clients is complete and names its sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trayapp.clients.entry import fault, is_ours, wanted_entry, words_of
from trayapp.clients.table import ALIASES, BY_NAME, CLIENTS, NAME, Client

ROOT = Path(__file__).resolve().parents[2]
PROMISED = (
    "claude-code", "claude-desktop", "codex", "cursor", "vscode", "copilot-cli", "opencode", "antigravity",
    "gemini-cli", "windsurf", "devin", "zed", "cline", "roo", "continue", "jetbrains", "goose", "kiro", "kilo",
    "qwen-code", "lm-studio", "amp", "warp", "crush", "droid", "auggie",
)  # fmt: skip


def test_every_client_that_was_promised_is_there() -> None:
    editions = ("vscode-insiders", "vscodium")
    assert tuple(client.name for client in CLIENTS if client.name not in editions) == PROMISED
    assert set(ALIASES.values()) <= set(BY_NAME)
    assert not set(ALIASES) & set(BY_NAME)


def test_every_row_names_its_source() -> None:
    source = (ROOT / "trayapp" / "clients" / "table.py").read_text(encoding="utf-8")
    blocks = re.split(r"\n    (?:Client\(\n|_vscode\()", source)
    assert len(blocks) == len(CLIENTS) + 1
    for above in blocks[:-1]:
        assert re.search(r"# https://\S+[^\n]*(\n    # [^\n]*)*\Z", above), above[-200:]


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_what_is_wanted_of_a_client_is_right_and_ours(client: Client) -> None:
    command = ["/opt/multi-mcp/multi-mcp", "stdio"]
    entry = wanted_entry(client, command)
    assert words_of(entry) == command
    assert fault(entry, command) == ""
    assert is_ours(NAME, entry)
    assert re.fullmatch(r"[a-z0-9-]+", NAME)
