"""The table of clients: complete, and the README shows what it says.

`python -m tests.clients.test_table` prints the README's table anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trayapp.clients.entry import fault, is_ours, wanted_entry, words_of
from trayapp.clients.table import ALIASES, BY_NAME, CLIENTS, NAME, Client

README = Path(__file__).resolve().parents[2] / "README.md"
PROMISED = (  # PRODUCT 13 and 19
    "claude-code", "claude-desktop", "codex", "cursor", "vscode", "copilot-cli", "opencode", "antigravity",
    "gemini-cli", "windsurf", "devin", "zed", "cline", "roo", "continue", "jetbrains", "goose", "kiro", "kilo",
    "qwen-code", "lm-studio", "amp", "warp", "crush", "droid", "auggie",
)  # fmt: skip
TOKENS = {
    "{home}": "~", "{config}": "~/.config", "{library}": "~/Library/Application Support", "{appdata}": "%APPDATA%",
    "{localappdata}": "%LOCALAPPDATA%",
}  # fmt: skip
SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def path_of(client: Client, platform: str) -> str:
    """Where its file lies as people write it; the last of the templates of a program for Windows is the usual one."""
    templates = [template for template in client.templates(platform) if template.split("}")[0] + "}" in TOKENS]
    usual = templates[-1] if client.name == "claude-desktop" else templates[0]
    for token, word in TOKENS.items():
        usual = usual.replace(token, word)
    return usual.replace("/", "\\") if usual.startswith("%") else usual


def paths_of(client: Client) -> str:
    """All platforms, those that are alike together."""
    by_path: dict[str, list[str]] = {}
    for platform, system in SYSTEMS.items():
        by_path.setdefault(path_of(client, platform), []).append(system)
    if len(by_path) == 1:
        return f"`{next(iter(by_path))}`"
    return "<br>".join(f"{', '.join(systems)}: `{path}`" for path, systems in by_path.items())


def notes_of(client: Client) -> str:
    """What somebody who connects it should know."""
    needs = {"restart": "restart it", "reload": "reload its servers", "no": "nothing"}[client.restart]
    limits = f"; takes {client.max_tools} tools" if client.max_tools else ""
    names = f"; names up to {client.max_name} characters" if client.max_name else ""
    return needs + limits + names


def rows() -> list[str]:
    """The lines of the README's table."""
    head = ["| tool | `connect` | its file | format | HTTP | then |", "|---|---|---|---|---|---|"]
    return head + [
        f"| {client.title} | `{client.name}` | {paths_of(client)} | {client.format} |"
        f" {'yes' if client.http else 'no'} | {notes_of(client)} |"
        for client in CLIENTS
    ]


def test_every_client_that_was_promised_is_there() -> None:
    editions = ("vscode-insiders", "vscodium")
    assert tuple(client.name for client in CLIENTS if client.name not in editions) == PROMISED
    assert set(ALIASES.values()) <= set(BY_NAME)
    assert not set(ALIASES) & set(BY_NAME)


def test_the_readme_shows_the_table() -> None:
    assert "\n".join(rows()) in README.read_text(encoding="utf-8"), "python -m tests.clients.test_table prints it anew"


def test_every_row_names_its_source() -> None:
    source = (README.parent / "trayapp" / "clients" / "table.py").read_text(encoding="utf-8")
    blocks = re.split(r"\n    (?:Client\(\n|_vscode\()", source)
    assert len(blocks) == len(CLIENTS) + 1
    for above in blocks[:-1]:
        assert re.search(r"# https://\S+[^\n]*(\n    # [^\n]*)*\Z", above), above[-200:]


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_what_is_wanted_of_a_client_is_right_and_ours(client: Client) -> None:
    command = ["/opt/multi-mcp/multi-mcp", "stdio"]
    entry = wanted_entry(client, command)
    assert words_of(entry) == command
    assert fault(client, entry, command) == ""
    assert is_ours(NAME, entry)
    assert re.fullmatch(r"[a-z0-9-]+", NAME)


if __name__ == "__main__":
    print("\n".join(rows()))
