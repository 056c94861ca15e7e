"""A server's entry is shown as it is written, wherever its name stands elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.panel.server_entry import entry_of

BLOCK = """settings: {}
servers:
  odd:
    command: x
    tools:
      search: {enabled: true}
      # a comment

    env:
      TOKEN: ghp_0123456789abcdef0123456789abcdef0123
  # of search
  search: {command: [a,
    b], tools: {
    odd: {enabled: true}
  }}
  "quo ted": {url: https://x}
  last:
    url: https://y
"""
FLOW = "x: &x {command: z}\nservers: {a: {command: x}, b: {command: y}, c: *x}\n"
MERGED = "x: &x {command: z}\nservers:\n  a: *x\n  b:\n    <<: *x\n    cwd: /\n"


@pytest.mark.requirement("panel-actions")
@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        (BLOCK, "odd", "odd:\n  command: x\n  tools:\n    search: {enabled: true}\n    # a comment\n\n"
                       "  env:\n    TOKEN: [redacted]"),
        (BLOCK, "search", "search: {command: [a,\n  b], tools: {\n  odd: {enabled: true}\n}}"),
        (BLOCK, "quo ted", '"quo ted": {url: https://x}'),
        (BLOCK, "last", "last:\n  url: https://y"),
        (BLOCK, "enabled", ""),
        (FLOW, "a", "a: {command: x}"),
        (FLOW, "b", "b: {command: y}"),
        (MERGED, "a", "a: *x"),
        (MERGED, "b", "b:\n  <<: *x\n  cwd: /"),
        ("", "a", ""),
        ("servers:\n  a: [\n", "a", "# servers.yaml cannot be read now"),
        ("servers:\n  a: {}\n  a: {}\n", "a", "# servers.yaml cannot be read now"),
    ],
)  # fmt: skip
def test_an_entry(tmp_path: Path, text: str, name: str, entry: str) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text(text)
    assert entry_of(file, name) == entry
