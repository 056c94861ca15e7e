"""`ask` in servers.yaml: all spellings are read, mistakes are reported with lines, and edits change nothing else."""

from __future__ import annotations

import pytest

from trayapp.config.edits import set_tools_enabled
from trayapp.config.read.parse import parse
from trayapp.model.config import AskMode

FILE = """\
settings:
  ask: destructive   # mine
servers:
  a:
    command: x
    ask: writes
    tools:
      d: {enabled: true, ask: true}  # careful
      f: true
      g:
"""


@pytest.mark.requirement("ask-edits")
@pytest.mark.parametrize(
    ("written", "mode"),
    [("off", "off"), ("no", "off"), ("false", "off"), ("true", "all"), ("yes", "all"), ("Writes", "writes")],
)
def test_each_spelling_is_read_in_all_three_places(written: str, mode: AskMode) -> None:
    said = f"ask: {written}"
    text = f"settings: {{{said}}}\nservers: {{a: {{command: x, {said}, tools: {{t: {{{said}}}}}}}}}"
    config = parse(text, "servers.yaml")
    server = config.servers["a"]
    assert config.problems == ()
    assert (config.settings.ask, server.ask, server.tools and server.tools["t"].ask) == (mode, mode, mode)


@pytest.mark.requirement("ask-edits")
def test_wrong_words_are_problems_with_their_line() -> None:
    text = (
        "settings:\n  ask: write\n  ask_timeout: 0\nservers:\n  a:\n    command: x\n    tools:\n      t: {ask: maybe}\n"
    )
    problems = [(one.line, one.message, one.hint) for one in parse(text, "servers.yaml").problems]
    words = "must be one of auto, off, destructive, writes, all"
    assert problems == [
        (2, f"ask {words}", "Did you mean writes?"),
        (3, "ask_timeout must be more than 0", "The default applies"),
        (8, f"tools t: ask {words}", "Write it as {ask: true}"),
    ]


@pytest.mark.requirement("ask-edits")
@pytest.mark.parametrize(
    ("tool", "before", "after"),
    [
        ("d", "{enabled: true, ask: true}", "{enabled: false, ask: true}"),
        ("f", "f: true", "f: false"),
        ("g", "g:\n", "g: {enabled: false}\n"),
        ("new", "      g:\n", "      g:\n      new: {enabled: false}\n"),
    ],
)
def test_switching_a_tool_keeps_every_ask(tool: str, before: str, after: str) -> None:
    assert set_tools_enabled(FILE, "a", [tool], False) == FILE.replace(before, after, 1)
