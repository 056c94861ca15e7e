"""Tests of questions in the tray: the icon, the menu with arguments and answers, and a notification for each."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from tests.tray.state.test_view import clicks
from tests.tray.states import CALL_ASK, asking, items, running, server
from trayapp.gateway.asks import shown_arguments
from trayapp.model.status import AskStatus, ShownArgument
from trayapp.model.text import drawn, width
from trayapp.tray.state.notices import ASKS_SHOWN, NoticeMemory, due_notices
from trayapp.tray.state.texts import LINE
from trayapp.tray.state.tray_state import Action, IconKind, Verb
from trayapp.tray.state.view import view

ANSWERS = [
    ("Allow once", Action(Verb.ALLOW, "3fa2b1")),
    ("Allow for this session", Action(Verb.ALLOW_SESSION, "3fa2b1")),
    ("Always", Action(Verb.ALLOW_ALWAYS, "3fa2b1")),
    ("Deny", Action(Verb.DENY, "3fa2b1")),
]


def menu_rows(ask: AskStatus) -> list[str]:
    """Return the lines of a question's menu that cannot be clicked."""
    entry = next(item for item in items(view(asking(ask)).menu) if item.key == f"want/ask/{ask.id}")
    return [item.text for item in items(entry.children) if not item.enabled]


@pytest.mark.requirement("ask-tray")
def test_the_menu_shows_who_and_what_and_each_answer() -> None:
    state = asking(CALL_ASK)
    assert view(state).icon is IconKind.ATTENTION
    assert "Claude Code wants to call github/delete_repo" in view(state).tooltip
    found = clicks(state)
    ask = "! Allow delete_repo of github ..."
    assert [(label, found[f"{ask} > {label}"]) for label, _ in ANSWERS] == ANSWERS
    shown = "\n".join(found)
    for row in ("Claude Code in /src/site", "destructive, as its server says; 1 argument", 'repo = "a/b"'):
        assert row in shown


@pytest.mark.requirement("ask-tray")
def test_an_ask_is_told_once_with_its_buttons_and_taken_back_when_it_is_over() -> None:
    state = asking(CALL_ASK)
    first = due_notices(state, NoticeMemory(), 0.0)
    (notice,) = first.notices
    assert (notice.key, notice.title, notice.urgent) == ("ask/3fa2b1", "Allow delete_repo of github?", True)
    assert list(notice.actions) == ANSWERS
    assert not notice.click, "a click beside the buttons must allow nothing"
    assert notice.text.split("\n") == ["Claude Code in /src/site", "destructive, as its server says", 'repo = "a/b"']
    assert due_notices(state, first.told, 1.0).notices == ()
    assert due_notices(running(server("a")), first.told, 2.0).over == ("ask/3fa2b1",)


@pytest.mark.requirement("ask-tray")
def test_a_notification_says_when_there_is_more_to_see() -> None:
    long = replace(CALL_ASK, arguments=tuple(ShownArgument(f"a{at}", "x" * 90) for at in range(9)))
    (notice,) = due_notices(asking(long), NoticeMemory(), 0.0).notices
    assert notice.text.endswith("\n6 more arguments: multi-mcp asks")
    assert len(notice.text) <= 255


@pytest.mark.requirement("ask-shown", "ask-tray")
@pytest.mark.parametrize("letter", ["x", "W", "i", " ", "\u5b57", "a/", "\U0001f600"])
@pytest.mark.parametrize("arguments", [1, 3, 40])
@pytest.mark.parametrize("length", [1, 30, 100, 5000])
def test_what_a_notification_says_has_room_on_every_desktop(letter: str, arguments: int, length: int) -> None:
    """A GNOME banner shows 6 lines and Plasma's popup 9, measured with DejaVu Sans."""
    given = shown_arguments({f"a{at}": letter * length for at in range(arguments)})
    for project in ("/src/site", "/home/" + "W" * 200):
        ask = replace(CALL_ASK, arguments=tuple(given), project=project)
        for tool, client in (("delete_repo", "Claude Code"), ("m" * 128, "W" * 64)):
            (notice,) = due_notices(asking(replace(ask, tool=tool, client=client)), NoticeMemory(), 0.0).notices
            rows = notice.text.split("\n")
            for room, lines in ((90, 6), (60, 9)):
                assert sum(len(textwrap.wrap(drawn(row), room)) for row in rows) <= lines
            assert width(notice.title) <= 40
            assert tool[:10] in notice.title + rows[0]
            whole = "characters)..." not in notice.text and notice.text.count(" = ") == arguments
            assert whole != rows[-1].endswith("multi-mcp asks")


@pytest.mark.requirement("ask-questions", "ask-shown")
def test_of_a_page_to_open_the_whole_host_is_shown() -> None:
    host = "accounts.example.com.sign-in.of-another-place.test"
    page = replace(
        CALL_ASK,
        kind="question",
        tool="",
        message="Pay " * 90,
        url=f"https://{host}/{'a' * 300}/end",
        answers=("once", "deny"),
        arguments=(),
    )
    (notice,) = due_notices(asking(page), NoticeMemory(), 0.0).notices
    assert f"https://{host}/a" in notice.text
    assert "(304 characters)" in notice.text
    assert notice.text.endswith("Show all: multi-mcp asks")


@pytest.mark.requirement("ask-shown", "ask-tray")
@pytest.mark.parametrize("letter", ["x", "\u5b57"])
def test_a_long_argument_keeps_its_end_and_says_how_long_it_is(letter: str) -> None:
    value = f'"rm -r {letter * 300}/home"'
    (given,) = shown_arguments({"command": value[1:-1]})
    long = replace(CALL_ASK, arguments=(given,))
    row = next(row for row in menu_rows(long) if row.startswith("command = "))
    assert (width(row) <= LINE, row.startswith('command = "rm -r')) == (True, True)
    assert row.endswith('e"')
    assert f"({len(value)} characters)" in row
    (notice,) = due_notices(asking(long), NoticeMemory(), 0.0).notices
    assert f"({len(value)} characters)... " in notice.text
    assert '/home"' in notice.text


@pytest.mark.requirement("ask-shown", "ask-tray")
def test_the_menu_says_when_there_are_more_arguments_than_lines() -> None:
    many = replace(CALL_ASK, arguments=tuple(ShownArgument(f"a{at}", "1") for at in range(20)))
    rows = menu_rows(many)
    assert (rows[1], rows[-1]) == ("destructive, as its server says; 20 arguments", "Show all: multi-mcp asks")
    assert "Show all: multi-mcp asks" not in menu_rows(CALL_ASK)


@pytest.mark.requirement("ask-tray")
def test_of_many_asks_the_oldest_are_on_the_screen_and_the_next_come_as_they_are_answered() -> None:
    asks = [replace(CALL_ASK, id=str(at)) for at in range(5)]
    first = due_notices(asking(*asks), NoticeMemory(), 0.0)
    assert [notice.key for notice in first.notices] == [f"ask/{at}" for at in range(ASKS_SHOWN)]
    second = due_notices(asking(*asks[1:]), first.told, 1.0)
    assert ([notice.key for notice in second.notices], second.over) == ([f"ask/{ASKS_SHOWN}"], ("ask/0",))


@pytest.mark.requirement("ask-tray")
def test_a_question_with_a_form_cannot_be_accepted_by_a_click_and_one_with_a_page_opens_it() -> None:
    form = replace(CALL_ASK, kind="question", tool="", message="Who are you?", form=True, answers=("once", "deny"))
    (notice,) = due_notices(asking(form), NoticeMemory(), 0.0).notices
    assert notice.actions == (
        ("Answer in the panel", Action(Verb.OPEN_PANEL)),
        ("Decline", Action(Verb.DENY, "3fa2b1")),
    )
    assert "Who are you?" in notice.text
    page = replace(form, form=False, url="https://a.test/pay")
    (notice,) = due_notices(asking(page), NoticeMemory(), 0.0).notices
    assert notice.actions[0] == ("Open the page", Action(Verb.OPEN_ASKED, "3fa2b1"))
    assert "https://a.test/pay" in notice.text
