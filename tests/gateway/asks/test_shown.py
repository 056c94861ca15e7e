"""Hostile arguments on every surface that shows an ask: no invisible text, no secrets, and no missing end."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest

from tests.tray.states import CALL_ASK, asking, items
from trayapp.cli.call import call_lines
from trayapp.gateway.asks import shown_arguments
from trayapp.model.status import AskStatus
from trayapp.panel.pages import line, shown
from trayapp.tray.state.notices import NoticeMemory, due_notices
from trayapp.tray.state.view import view

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "rm -rf")
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
HOSTILE = {
    "bidirectional": ("a\u202egnp.exe", "<U+202E>"),
    "zero width": ("pay\u200bpal", "<U+200B>"),
    "tags": (f"ok{TAGS}", "<U+E0072>"),
    "blank letters": ("a\u3164\u2800", "<U+3164><U+2800>"),
    "selectors": ("a\ufe0f\u034f", "<U+FE0F><U+034F>"),
    "line separator": ("one\u2028two", "<U+2028>"),
    "surrogate": ("\ud800x", "<U+D800>"),
    "c1 escape": ("\x9b31m", "<U+009B>"),
    "escape": ("\x1b[2J\x1b]8;;http://evil.test\x07", r"\u001b[2J"),
    "carriage return": ("safe\rrm -rf /", r"safe\rrm -rf /"),
    "markup": ('<b>x</b><a href="http://evil.test">&amp;', "<b>x</b>"),
    "mnemonics": ("__a_b_&c", "__a_b_&c"),
    "secret": (SECRET, "[redacted]"),
    "hidden secret": (SECRET[:9] + "\u200b" + SECRET[9:], "[redacted]"),
    "long": ("x" * 900 + "; rm -rf /home", "rf /home"),
    "of a file's length": ("x" * 300_000 + "; rm -rf /home", '/home"'),
    "secret at the end of a file": ("x" * 300_000 + " " + SECRET, "edacted]"),
}


def surfaces(ask: AskStatus) -> dict[str, list[str]]:
    """Return the lines in which each surface shows the arguments of an ask."""
    row = {
        "id": ask.id, "client": ask.client, "server": ask.server, "tool": ask.tool, "class": ask.tool_class,
        "answers": ask.answers, "arguments": [{"name": one.name, "value": one.value} for one in ask.arguments],
    }  # fmt: skip
    (notice,) = due_notices(asking(ask), NoticeMemory(), 0.0).notices
    menu = next(item for item in items(view(asking(ask)).menu) if item.key == f"want/ask/{ask.id}")
    return {
        "command line": list(call_lines(row)),
        "menu": [item.text for item in items(menu.children)],
        "notification": notice.text.split("\n"),
        "panel": [f"{line(one.name)} = {shown(one.value)}" for one in ask.arguments],
    }


@pytest.mark.requirement("ask-shown")
@pytest.mark.parametrize(("given", "marked"), HOSTILE.values(), ids=HOSTILE)
def test_no_surface_hides_anything_of_a_hostile_argument(given: str, marked: str) -> None:
    arguments = tuple(shown_arguments({"text": given}))
    for surface, lines in surfaces(replace(CALL_ASK, arguments=arguments)).items():
        assert any(marked in unescape(one) for one in lines), (surface, lines)
        assert all(one.isprintable() for one in lines), (surface, lines)
        assert SECRET[4:20] not in "".join(lines)


@pytest.mark.requirement("ask-shown")
@pytest.mark.parametrize("name", ["a\u202eb", "\x1b[2J", "\u3164", "__proto__"])
def test_a_hostile_name_of_an_argument_is_marked_on_every_surface(name: str) -> None:
    arguments = tuple(shown_arguments({name: 1}))
    for surface, lines in surfaces(replace(CALL_ASK, arguments=arguments)).items():
        assert any("<U+" in one or "__proto__" in one for one in lines), (surface, lines)
        assert all(one.isprintable() for one in lines), (surface, lines)
