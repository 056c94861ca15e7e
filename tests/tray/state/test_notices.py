"""Tests of notifications: histories of states, with the notifications that each history causes and their times."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tray.state.test_view import STATES
from tests.tray.states import FILE, changed, problem, running, server
from trayapp.model.child import ChildState
from trayapp.model.lifecycle import State
from trayapp.model.status import ServerStatus, SignInStatus
from trayapp.tray.state import texts
from trayapp.tray.state.notices import CALM_S, DELAYS_S, Notice, NoticeKind, NoticeMemory, due_notices
from trayapp.tray.state.tray_state import Action, Offered, TrayState, Verb, offer_key

C, S = ChildState, State
UP, DOWN, GONE, LOOP = running(server("a")), TrayState(C.RESTARTING), TrayState(C.PAUSED), TrayState(C.CRASH_LOOP)


def failed(name: str = "a", error: str = "It ended", hint: str = "") -> ServerStatus:
    return server(name, S.FAILED, 3, error, hint)


def wants(name: str = "a") -> ServerStatus:
    return server(name, S.NEEDS_AUTH)


def told_in(history: list[tuple[float, TrayState]], end: float = 1000.0) -> list[tuple[float, Notice]]:
    """Return the notices of a history of states, with their times. Like the app, look again after `again_s`."""
    told, again, shown = NoticeMemory(), None, list[tuple[float, Notice]]()
    moments = [*history, (end, history[-1][1])]
    for (begin, state), (until, _) in pairwise(moments):
        at: float | None = begin
        while at is not None and at < until:
            found = due_notices(state, told, at)
            shown += [(at, notice) for notice in found.notices]
            told, again = found.told, found.again_s
            at = at + again if again is not None else None
    return shown


CRASHED = "The gateway stopped unexpectedly and runs again"
F, W, OK = running(failed()), running(wants()), UP
MORE = running(replace(server("a"), auth=SignInStatus(True, wanted="write")))
YAML, ENTRY = problem("The file is not YAML", 12), problem("Neither command nor url", 7, "db")
BAD, BAD_ENTRY = running(server("a"), problems=[YAML]), running(server("a"), problems=[ENTRY])
COMMAND = running(replace(failed(), needs_approval=True))
MANY_FAILED = running(*[failed(f"s{at:02}") for at in range(30)])
TOOLS = {
    number: running(server("a", tools=number), server("b", tools=number), server("c", tools=3)) for number in (0, 3, 5)
}
OFFERED = (
    Offered("gh", "Cursor", "npx -y gh"), Offered("fs", "Zed", "fs ."), Offered("web", "Zed", "https://a.test"),
)  # fmt: skip
FIRST = replace(running(server("sample")), offered=OFFERED)
STALE = running(server("a", tools=3, stale=2), server("b"), server("c"))

# id, history of (second, state), expected notices as (second, kind, title)
ROWS: list[tuple[str, list[tuple[float, TrayState]], list[tuple[float, str, str]]]] = [
    ("nothing-to-tell", [(0, OK)], []),
    ("nothing-of-starting", [(0, TrayState(C.STARTING)), (1, OK)], []),
    # -- failed servers
    ("failed", [(0, OK), (10, F)], [(14, "failed", "a failed")]),
    ("failed-at-the-start", [(0, F)], [(4, "failed", "a failed")]),
    ("blip", [(0, OK), (10, F), (13, OK)], []),
    ("blip-while-connecting", [(0, OK), (10, F), (12, running(server("a", S.CONNECTING))), (13, OK)], []),
    ("once-an-outage", [(0, OK), (10, F), (40, running(server("a", S.CONNECTING))), (45, F), (80, F)],
     [(14, "failed", "a failed")]),
    ("a-reconnect-that-fails-is-the-same-outage", [(0, F), (10, running(server("a", S.IDLE))), (11, F)],
     [(4, "failed", "a failed")]),
    ("the-next-outage", [(0, F), (10, OK), (20, F)], [(4, "failed", "a failed"), (24, "failed", "a failed")]),
    ("switched-off-and-on", [(0, F), (10, running(server("a", S.DISABLED))), (20, F)],
     [(4, "failed", "a failed"), (24, "failed", "a failed")]),
    ("removed-and-added", [(0, F), (10, running()), (20, F)], [(4, "failed", "a failed"), (24, "failed", "a failed")]),
    ("another-reason-is-the-same-outage", [(0, F), (10, running(failed(error="Other words")))],
     [(4, "failed", "a failed")]),
    ("a-new-gateway-with-the-same-failure", [(0, F), (10, DOWN), (12, F)],
     [(4, "failed", "a failed"), (12, "crashed", CRASHED)]),
    ("30-at-once", [(0, MANY_FAILED)], [(4, "failed", "30 servers failed")]),
    ("two-within-the-delay",
     [(0, OK), (10, running(failed("a"), server("b"))), (12, running(failed("a"), failed("b")))],
     [(14, "failed", "2 servers failed")]),
    ("two-apart", [(0, running(failed("a"), server("b"))), (10, running(failed("a"), failed("b")))],
     [(4, "failed", "a failed"), (14, "failed", "b failed")]),
    ("failed-of-a-project", [(0, running(server("db@12ab", S.FAILED, 3, project="/p")))],
     [(4, "failed", "db failed")]),
    # -- sign-in and approval
    ("sign-in", [(0, OK), (10, W)], [(11, "sign-in", "a needs a sign-in")]),
    ("sign-in-once", [(0, W), (10, running(server("a", S.CONNECTING))), (20, W)],
     [(1, "sign-in", "a needs a sign-in")]),
    ("sign-in-again-later", [(0, W), (10, OK), (20, W)],
     [(1, "sign-in", "a needs a sign-in"), (21, "sign-in", "a needs a sign-in")]),
    ("two-sign-ins", [(0, running(wants("a"), wants("b")))], [(1, "sign-in", "a and b need a sign-in")]),
    ("sign-in-quickly-done", [(0, W), (0.5, OK)], []),
    ("sign-in-and-failure", [(0, running(wants("a"), failed("b")))],
     [(1, "sign-in", "a needs a sign-in"), (4, "failed", "b failed")]),
    ("permissions", [(0, OK), (10, MORE), (20, MORE), (30, OK), (40, MORE)],
     [(11, "permissions", "a needs more permissions"), (41, "permissions", "a needs more permissions")]),
    ("permissions-then-signed-out", [(0, MORE), (10, W)],
     [(1, "permissions", "a needs more permissions"), (11, "sign-in", "a needs a sign-in")]),
    ("a-command-of-a-secret",
     [(0, OK), (10, COMMAND), (40, running(server("a", S.CONNECTING))), (41, COMMAND), (50, F)],
     [(11, "command", "a: a command waits for approval"), (54, "failed", "a failed")]),
    ("a-command-of-a-secret-twice", [(0, COMMAND), (10, OK), (20, COMMAND)],
     [(1, "command", "a: a command waits for approval"),
      (21, "command", "a: a command waits for approval")]),
    ("approval", [(0, OK), (10, running(changed("a")))],
     [(11, "approval", "a: changed tools wait for approval")]),
    ("approval-twice", [(0, running(changed("a"))), (10, OK), (20, running(changed("a")))],
     [(1, "approval", "a: changed tools wait for approval"), (21, "approval", "a: changed tools wait for approval")]),
    # -- tools
    ("new-tools", [(0, TOOLS[3]), (10, running(server("a", tools=5), server("b"), server("c")))],
     [(12, "tools", "Tools changed")]),
    ("gone-tools", [(0, TOOLS[3]), (10, STALE)], [(12, "tools", "Tools changed")]),
    ("tools-of-two", [(0, TOOLS[3]), (10, TOOLS[5])], [(12, "tools", "The tools of 2 servers changed")]),
    ("first-discovery", [(0, TOOLS[0]), (10, TOOLS[3])], []),
    ("tools-before-a-new-gateway", [(0, TOOLS[3]), (10, GONE), (20, TOOLS[0]), (30, TOOLS[3])], []),
    ("tools-while-it-was-down", [(0, TOOLS[3]), (10, GONE), (20, TOOLS[5])],
     [(22, "tools", "The tools of 2 servers changed")]),
    ("tools-there-and-back", [(0, TOOLS[3]), (10, TOOLS[5]), (11, TOOLS[3])], []),
    ("tools-told-once", [(0, TOOLS[3]), (10, TOOLS[5]), (20, TOOLS[5]), (30, TOOLS[5])],
     [(12, "tools", "The tools of 2 servers changed")]),
    ("forgotten-tools", [(0, STALE), (10, running(server("a", tools=1), server("b"), server("c")))], []),
    # -- servers.yaml
    ("file-broken", [(0, OK), (10, BAD)], [(10.5, "file", "servers.yaml cannot be used")]),
    ("file-mended", [(0, BAD), (10, OK)],
     [(0.5, "file", "servers.yaml cannot be used"), (10, "file", "servers.yaml is fine again")]),
    ("file-half-written", [(0, OK), (10, BAD), (10.3, OK)], []),
    ("file-broken-elsewhere", [(0, BAD), (10, running(server("a"), problems=[replace(YAML, line=20)]))],
     [(0.5, "file", "servers.yaml cannot be used"), (10.5, "file", "servers.yaml cannot be used")]),
    ("entry-moved-by-the-tools-found-above-it",
     [(0, BAD_ENTRY), (10, running(server("a"), problems=[replace(ENTRY, line=ENTRY.line + 18)]))],
     [(0.5, "file", "db in servers.yaml cannot be used")]),
    ("file-still-broken", [(0, BAD), (10, BAD), (20, running(failed(), problems=[YAML]))],
     [(0.5, "file", "servers.yaml cannot be used"), (24, "failed", "a failed")]),
    ("entry-broken", [(0, BAD_ENTRY)], [(0.5, "file", "db in servers.yaml cannot be used")]),
    ("entry-after-file", [(0, BAD), (10, BAD_ENTRY), (20, OK)],
     [(0.5, "file", "servers.yaml cannot be used"), (10.5, "file", "db in servers.yaml cannot be used"),
      (20, "file", "servers.yaml is fine again")]),
    ("odd-key-is-no-news", [(0, running(problems=[problem("Unknown key", 3, fatal=False)]))], []),
    ("file-broken-over-a-pause", [(0, BAD), (10, GONE), (20, BAD), (30, OK)],
     [(0.5, "file", "servers.yaml cannot be used"), (30, "file", "servers.yaml is fine again")]),
    # -- the gateway
    ("crash", [(0, OK), (10, DOWN), (11, OK)], [(11, "crashed", CRASHED)]),
    ("crashes-in-a-row", [(0, OK), (10, DOWN), (11, OK), (12, DOWN), (13, TrayState(C.STARTING)), (14, DOWN), (15, OK)],
     [(11, "crashed", CRASHED)]),
    ("crash-after-calm", [(0, OK), (10, DOWN), (11, OK), (11 + CALM_S, DOWN), (15 + CALM_S, OK)],
     [(11, "crashed", CRASHED), (15 + CALM_S, "crashed", CRASHED)]),
    ("crash-and-starting", [(0, OK), (10, DOWN), (11, TrayState(C.STARTING)), (14, OK)], [(14, "crashed", CRASHED)]),
    ("crash-that-is-not-mended", [(0, OK), (10, DOWN), (11, TrayState(C.STARTING)), (12, GONE), (90, OK)], []),
    ("hang", [(0, OK), (10, replace(OK, hangs=True)), (20, OK)], [(12, "hangs", "The gateway does not answer")]),
    ("short-hang", [(0, OK), (10, replace(OK, hangs=True)), (11, OK)], []),
    ("hang-and-restart", [(0, OK), (10, replace(OK, hangs=True)), (20, DOWN), (21, OK)],
     [(12, "hangs", "The gateway does not answer"), (21, "crashed", CRASHED)]),
    ("crash-loop", [(0, OK), (10, DOWN), (11, OK), (12, LOOP)],
     [(11, "crashed", CRASHED), (12, "crash-loop", "The gateway keeps crashing")]),
    ("crash-loop-once", [(0, LOOP), (10, replace(LOOP, autostart=True)), (20, TrayState(C.STARTING)), (30, LOOP)],
     [(0, "crash-loop", "The gateway keeps crashing"), (30, "crash-loop", "The gateway keeps crashing")]),
    ("pause-is-no-news", [(0, OK), (10, TrayState(C.STOPPING)), (11, GONE), (20, TrayState(C.STARTING)), (21, OK)], []),
    # -- servers of AI tools
    ("offer", [(0, TrayState(C.STARTING, offered=OFFERED)), (5, replace(running(server("sample")), offered=OFFERED))],
     [(6, "offer", "Cursor and Zed have 3 servers")]),
    ("offer-once", [(0, FIRST), (10, OK), (20, FIRST)], [(1, "offer", "Cursor and Zed have 3 servers")]),
    ("offer-told-by-an-earlier-tray", [(0, replace(FIRST, offer_told=True))], []),
    ("offer-to-somebody-with-servers", [(0, replace(OK, offered=OFFERED))], []),
    ("offer-beside-a-project", [(0, replace(running(server("p@1", project="/p")), offered=OFFERED[:1]))],
     [(1, "offer", "Cursor has 1 server")]),
    # -- the keyring
    ("keyring", [(0, running(keyring="missing")), (10, DOWN), (100, running(keyring="missing"))],
     [(1, "keyring", "Sign-ins are not kept"), (100, "crashed", CRASHED)]),
    ("keyring-locked-and-open", [(0, running(keyring="locked")), (10, running(keyring="available"))],
     [(1, "keyring", "The keyring is locked")]),
    ("keyring-not-needed", [(0, running(keyring=None))], []),
]  # fmt: skip


@pytest.mark.requirement("tray-news")
@pytest.mark.parametrize(("history", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_history_tells_this(history: list[tuple[float, TrayState]], expected: list[tuple[float, str, str]]) -> None:
    shown = [(round(at, 3), notice.key.partition("/")[0], notice.title) for at, notice in told_in(history)]
    assert shown == expected


def test_a_second_failure_stands_beside_the_first_and_the_next_outage_replaces_its_own() -> None:
    both = running(failed("a"), failed("b"))
    second_only = running(server("a"), failed("b"))
    apart = told_in([(0, running(failed("a"), server("b"))), (10, both), (20, second_only), (30, both)])
    assert [notice.title for _, notice in apart] == ["a failed", "b failed", "a failed"]
    first, second, again = (notice.key for _, notice in apart)
    assert (first != second, first == again) == (True, True)
    tools = [running(server("a", tools=3 + a), server("b", tools=3 + b)) for a, b in ((0, 0), (1, 0), (1, 1))]
    first, second = (notice.key for _, notice in told_in([(0, tools[0]), (10, tools[1]), (20, tools[2])]))
    assert first != second


@pytest.mark.parametrize(
    ("first", "both", "title"),
    [
        (W, running(wants("a"), wants("b")), "a and b need a sign-in"),
        (MORE, running(*(replace(server(name), auth=SignInStatus(True, wanted="")) for name in "ab")),
         "a and b need more permissions"),
        (running(changed("a")), running(changed("a"), changed("b")),
         "a and b: changed tools wait for approval"),
    ],
)  # fmt: skip
def test_what_still_asks_for_something_is_named_when_the_next_one_replaces_it(
    first: TrayState, both: TrayState, title: str
) -> None:
    (_, alone), (_, after) = told_in([(0, first), (10, both)])
    assert (alone.key, after.title, len(after.actions)) == (after.key, title, 2)


def test_every_kind_is_in_the_table() -> None:
    assert {kind for _, _, expected in ROWS for _, kind, _ in expected} == set(NoticeKind)
    assert DELAYS_S.keys() == set(NoticeKind)


def only(history: list[tuple[float, TrayState]]) -> Notice:
    [(_, notice)] = told_in(history)
    return notice


# -- texts and buttons -----------------------------------------------------------------------------------------------


def test_a_failed_server_says_why_and_offers_its_log_and_another_try() -> None:
    notice = only([(0, running(failed("db", "Cannot start db: no such program: my-db (ENOENT)", "Is it installed?")))])
    assert notice.text == "no such program: my-db\nIs it installed?", "the reason first: some show one line"
    assert notice.actions == (("Show log", Action(Verb.SHOW_LOG, "db")), ("Reconnect", Action(Verb.RECONNECT, "db")))


def test_many_failed_servers_are_one_notification_with_the_first_reasons() -> None:
    notice = only([(0, MANY_FAILED)])
    assert notice.text == "s00: It ended\ns01: It ended\ns02: It ended\nand 27 more"
    assert notice.actions == (("Reconnect all", Action(Verb.RECONNECT)),)


def test_a_sign_in_is_one_click_away() -> None:
    notice = only([(0, W)])
    assert (notice.text, notice.actions) == (
        "Its tools can be called once you have signed in.",
        (("Sign in", Action(Verb.SIGN_IN, "a")),),
    )
    assert only([(0, running(wants("a"), wants("b")))]).actions == (
        ("Sign in to a", Action(Verb.SIGN_IN, "a")),
        ("Sign in to b", Action(Verb.SIGN_IN, "b")),
    )
    assert len(only([(0, running(*map(wants, "abcdefgh")))]).actions) == texts.BUTTONS


def test_permissions_are_one_click_away() -> None:
    notice = only([(0, MORE)])
    assert (notice.text, notice.actions) == (
        "A call was refused. Sign in again to allow it.",
        (("Sign in again", Action(Verb.SIGN_IN, "a")),),
    )
    two = running(*(replace(server(name), auth=SignInStatus(True, wanted="")) for name in "ab"))
    assert only([(0, two)]).actions == (
        ("Sign in to a", Action(Verb.SIGN_IN, "a")),
        ("Sign in to b", Action(Verb.SIGN_IN, "b")),
    )


def test_a_broken_file_names_the_line_and_opens() -> None:
    notice = only([(0, BAD)])
    assert notice.text == "servers.yaml, line 12: The file is not YAML\nUntil it is fixed, the servers run as before."
    assert notice.actions == (("Open servers.yaml", Action(Verb.OPEN_FILE, FILE)),)
    long = problem("The file is not YAML: mapping values are not allowed here", 3, hint="Look at the line above")
    assert only([(0, running(problems=[long]))]).text.split("\n") == [
        "servers.yaml, line 3: The file is not YAML: mapping values are not allowed here",
        "Look at the line above",
        "Until it is fixed, the servers run as before.",
    ]
    two = only([(0, running(problems=[ENTRY, YAML]))])
    assert two.text == notice.text, "what is said of an entry is about the last good version"
    other = problem("Odd", 9, "github")
    assert only([(0, running(problems=[ENTRY, other]))]).text.split("\n") == [
        "servers.yaml, line 7: db: Neither command nor url",
        "servers.yaml, line 9: github: Odd",
        "All other servers run.",
    ]
    assert only([(0, BAD_ENTRY)]).text == "servers.yaml, line 7: db: Neither command nor url\nAll other servers run."


def test_a_failure_without_words_has_ours() -> None:
    silent = replace(server("a", S.FAILED), error={"title": " \u200b", "hint": ""})
    assert only([(0, running(silent))]).text == "No reason given"


def test_changed_tools_are_counted() -> None:
    changed = running(server("a", tools=5, stale=1), server("b", tools=4), server("c"))
    assert told_in([(0, TOOLS[3]), (10, changed)])[0][1].text == "a: 2 new tools, 1 gone\nb: 1 new tool"
    assert told_in([(0, TOOLS[3]), (10, STALE)])[0][1].text == "a: 2 tools gone"
    assert told_in([(0, STALE), (10, TOOLS[3])])[0][1].text == "a: 2 new tools"


def test_a_crash_loop_offers_retry() -> None:
    notice = only([(0, LOOP)])
    assert notice.urgent, "the user may be away"
    assert notice.actions == (("Retry", Action(Verb.RETRY)), ("Show logs", Action(Verb.SHOW_LOGS)))


# -- properties of every history -------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-texts")
@given(st.lists(st.tuples(st.floats(0.1, 20), STATES), min_size=1, max_size=6))
@settings(max_examples=200)
def test_every_notification_is_short_and_plain_and_a_kind_comes_once_a_moment(
    steps: list[tuple[float, TrayState]],
) -> None:
    at, history = 0.0, list[tuple[float, TrayState]]()
    for gap, state in steps:
        at += gap
        history.append((at, state))
    shown = told_in(history)
    assert len({(at, notice.key) for at, notice in shown}) == len(shown)
    for _, notice in shown:
        assert_fits(notice)


def assert_fits(notice: Notice) -> None:
    short = [notice.title, *[label for label, _ in notice.actions]]
    assert [line for line in short if len(line) > texts.LINE] == []
    lines = [*short, *notice.text.split("\n")]
    assert [line for line in lines if not line or not line.isprintable()] == []
    assert len(notice.title.encode("utf-16-le")) <= 2 * texts.TITLE
    assert len(notice.text.encode("utf-16-le")) <= 2 * texts.BODY
    assert len(notice.actions) <= texts.BUTTONS


@given(STATES, st.floats(0, 1e6))
def test_nothing_is_told_twice_for_a_state_that_stays(state: TrayState, begin: float) -> None:
    shown = told_in([(begin, state)], end=begin + 1000)
    assert len({notice.key for _, notice in shown}) == len(shown)
    assert all(at - begin <= max(DELAYS_S.values()) for at, _ in shown)


def test_a_locked_keyring_is_one_click_away() -> None:
    assert only([(0, running(keyring="locked"))]).actions == (("Unlock", Action(Verb.UNLOCK)),)
    assert only([(0, running(keyring="missing"))]).actions == ()


def test_a_change_that_looks_like_orders_is_told_so() -> None:
    bank = replace(server("bank"), approvals=("pay",), findings=("orders.conceal",))
    notice = only([(0, running(bank))])
    assert notice.title == "bank: a changed tool reads like instructions"
    assert notice.actions == (("Show what changed", Action(Verb.SHOW_CHANGES, "bank")),)


@pytest.mark.requirement("tray-offer")
@pytest.mark.parametrize(("secrets", "verb"), [(0, Verb.TAKE_OVER), (2, Verb.TAKE_OVER_HIDDEN)])
def test_the_first_button_of_an_offer_only_shows_and_the_yes_is_for_what_was_named(secrets: int, verb: Verb) -> None:
    offered = (replace(OFFERED[0], secrets=secrets), *OFFERED[1:])
    ((_, notice),) = told_in([(0, replace(FIRST, offered=offered))])
    assert notice.text.split("\n") == ["gh: npx -y gh", "fs: fs .", "and 1 more", "Nothing starts until you choose."]
    assert [action for _, action in notice.actions] == [
        Action(Verb.SHOW_OFFER), Action(verb, offer_key(offered)), Action(Verb.LEAVE_SERVERS),
    ]  # fmt: skip


def test_what_asks_for_something_is_withdrawn_once_that_is_done() -> None:
    told, over = NoticeMemory(), list[tuple[str, ...]]()
    for at, state in enumerate(
        (running(wants("a"), wants("b")), running(server("a"), wants("b")), UP, F, UP, LOOP, UP)
    ):
        first = due_notices(state, told, at * 100.0)
        told, over = due_notices(state, first.told, at * 100.0 + 50).told, [*over, first.over]  # later than every delay
    assert over == [
        (),
        (),
        (NoticeKind.SIGN_IN,),
        (),
        (),
        (),
        (NoticeKind.CRASH_LOOP,),
    ]  # notices of a past outage are not withdrawn
