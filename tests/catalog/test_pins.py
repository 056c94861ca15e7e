"""The files of what was approved. Never here: what an approval does (tests/gateway/test_approvals)."""

from __future__ import annotations

import json
from pathlib import Path

from trayapp.catalog.cache import file_name
from trayapp.catalog.inspect import Finding
from trayapp.catalog.pins import Pin, definition_hash, load, pinned, save

TOOL = {"name": "echo", "description": "Zoë says \ud83d", "inputSchema": {"type": "object"}, "icons": [{"src": "x"}]}
FOUND = (Finding("orders.conceal", "high", "description", "do not tell"),)


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    tools = {"echo": Pin(definition_hash(TOOL), pinned(TOOL)), "odd": Pin("0", pinned({"name": "odd"}), False, FOUND)}
    save(tmp_path, "s", tools)
    known = load(tmp_path, "s")
    assert (known.known, known.tools) == (True, tools)
    assert known.tools["echo"].definition == {key: TOOL[key] for key in ("name", "description", "inputSchema")}


def test_a_file_of_the_first_form_is_read(tmp_path: Path) -> None:
    pin = {"hash": definition_hash(TOOL), "definition": TOOL, "approved": True, "findings": []}
    text = json.dumps({"version": 1, "server": "s", "tools": {"echo": pin}})
    (tmp_path / file_name("s")).write_text(text, encoding="utf-8")
    assert load(tmp_path, "s").tools == {"echo": Pin(definition_hash(TOOL), pinned(TOOL))}


def test_a_definition_that_cannot_be_read_is_like_no_other() -> None:
    assert [Pin("0", text).definition for text in ("{", "[1]", "\ud800", "")] == [{}] * 4
