"""Notifications against a server of the tests' own: one a cause, with actions, and in silence without a server."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if sys.platform != "linux":
    pytest.skip("the session bus is Linux's", allow_module_level=True)


from tests.tray.bus import NotificationServer, session_bus, until
from tests.tray.icons import plain
from trayapp.tray.linux.bus import SessionBus
from trayapp.tray.linux.notifications import Notifier


@pytest.fixture
def server(address: str) -> Iterator[NotificationServer]:
    started = NotificationServer(address)
    yield started
    started.close()


@pytest.fixture
def notifier(bus: SessionBus) -> Notifier:
    return Notifier(bus, "multi-mcp")


SIGN_IN = ("linear", "Sign in to linear", "linear wants you to sign in", [("sign-in", "Sign in"), ("later", "Later")])


@pytest.mark.requirement("tray-notify")
def test_a_notification_is_shown_and_its_action_comes_back(notifier: Notifier, server: NotificationServer) -> None:
    chosen: list[str] = []
    assert notifier.notify(*SIGN_IN, chosen.append)
    shown = server.shown[1]
    assert (shown["app"], shown["title"], shown["text"]) == ("multi-mcp", SIGN_IN[1], SIGN_IN[2])
    assert shown["actions"] == ["default", "", "sign-in", "Sign in", "later", "Later"]
    server.choose(1, "later")
    server.choose(1, "default")  # a click on the notification itself
    server.choose(99, "later")  # somebody else's
    until(lambda: chosen == ["later", "sign-in"])


@pytest.mark.requirement("ask-tray")
def test_where_only_buttons_count_a_click_beside_them_chooses_nothing(
    notifier: Notifier, server: NotificationServer
) -> None:
    chosen: list[str] = []
    assert notifier.notify(*SIGN_IN, chosen.append, clickable=False)
    assert server.shown[1]["actions"] == ["sign-in", "Sign in", "later", "Later"]
    server.choose(1, "default")
    server.choose(1, "later")
    until(lambda: chosen[-1:] == ["later"])
    assert chosen == ["", "later"]  # "" is no action: nothing is done


@pytest.mark.requirement("tray-notify")
def test_the_same_cause_has_one_notification_and_another_cause_another(
    notifier: Notifier, server: NotificationServer
) -> None:
    for text in ("one", "two"):
        assert notifier.notify("linear", "title", text)
    assert notifier.notify("github", "title", "three")
    assert {number: shown["text"] for number, shown in server.shown.items()} == {1: "two", 2: "three"}


def test_the_action_of_the_newest_text_counts(notifier: Notifier, server: NotificationServer) -> None:
    chosen: list[str] = []
    notifier.notify("a", "title", "old", [("x", "X")], lambda action: chosen.append("old"))
    notifier.notify("a", "title", "new", [("x", "X")], lambda action: chosen.append("new"))
    server.choose(1, "x")
    until(lambda: chosen == ["new"])


def test_one_that_was_dismissed_is_not_replaced(notifier: Notifier, server: NotificationServer) -> None:
    notifier.notify("a", "title", "one")
    server.signal("NotificationClosed", "uu", (1, 2))
    notifier.notify("b", "title", "two")  # its answer comes after that signal
    notifier.notify("a", "title", "three")
    assert sorted(server.shown) == [1, 2, 3]


def test_an_action_that_notifies_on_the_bus_s_own_thread_hears_so_at_once(
    notifier: Notifier, server: NotificationServer
) -> None:
    heard: list[str] = []

    def act(action: str) -> None:
        try:
            notifier.notify("b", "title", "two")
        except RuntimeError as error:
            heard.append(str(error))

    notifier.notify("a", "title", "one", [("x", "X")], act)
    server.choose(1, "x")
    until(lambda: heard == ["the thread that reads the bus must not block on it"])


def test_what_is_no_longer_true_is_taken_back(notifier: Notifier, server: NotificationServer) -> None:
    notifier.notify("a", "title", "one")
    notifier.close("a")
    notifier.close("never shown")
    until(lambda: not server.shown)


@pytest.mark.parametrize(
    ("can", "text", "actions"),
    [
        (("body", "body-markup", "actions"), "a &lt;b&gt; &amp; c", ["default", "", "x", "X"]),
        (("body",), "a <b> & c", []),
    ],
)
def test_what_the_server_cannot_show_is_not_sent(
    bus: SessionBus, address: str, can: tuple[str, ...], text: str, actions: list[str]
) -> None:
    server = NotificationServer(address, can)
    assert Notifier(bus, "multi-mcp").notify("k", "t", "a <b> & c", [("x", "X")], print)
    assert (server.shown[1]["text"], server.shown[1]["actions"]) == (text, actions)
    server.close()


def test_the_picture_goes_along(bus: SessionBus, server: NotificationServer) -> None:
    picture = plain((1, 2, 3, 4))
    Notifier(bus, "multi-mcp", picture).notify("k", "title", "text", urgent=True)
    hints = server.shown[1]["hints"]
    assert hints["image-data"][1][:6] == (64, 64, 256, True, 8, 4)
    assert hints["image-data"][1][6][:4] == bytes((1, 2, 3, 4))
    assert hints["urgency"] == ("y", 2)
    assert hints["desktop-entry"] == ("s", "multi-mcp")


@pytest.mark.requirement("ask-tray")
def test_where_three_buttons_are_shown_the_last_of_them_refuses(bus: SessionBus, address: str) -> None:
    server = NotificationServer(address, name="gnome-shell")
    answers = [("once", "Allow once"), ("session", "For this session"), ("always", "Always"), ("deny", "Deny")]
    Notifier(bus, "multi-mcp").notify("k", "t", "text", answers, print, clickable=False)
    assert server.shown[1]["actions"] == ["once", "Allow once", "session", "For this session", "deny", "Deny"]
    Notifier(bus, "multi-mcp").notify("k", "t", "text", answers[:1], print, clickable=False)
    assert server.shown[2]["actions"] == ["once", "Allow once"]
    server.close()


@pytest.mark.requirement("ask-shown")
def test_lxqt_gets_lines_that_it_need_not_break_and_no_picture(bus: SessionBus, address: str) -> None:
    server = NotificationServer(address, name="lxqt-notificationd")
    picture = plain((1, 2, 3, 4))
    text = f"short\na line of several words that is too long\n{'0123456789' * 5}\n{'W' * 40}\n"
    Notifier(bus, "multi-mcp", picture).notify("k", "t", text)
    shown = server.shown[1]["text"]
    assert "image-data" not in server.shown[1]["hints"]
    assert [len(line) for line in shown.split("\n")] == [5, 28, 11, 23, 23, 4, 15, 15, 10, 0]
    assert "".join(shown.split()) == "".join(text.split())
    server.close()


def test_a_server_that_starts_again_knows_nothing_of_the_old_ones(
    notifier: Notifier, server: NotificationServer, address: str
) -> None:
    notifier.notify("a", "title", "one")
    notifier.notify("b", "title", "two")
    server.close()
    assert not notifier.notify("a", "title", "nobody there")
    second = NotificationServer(address, ("body",))
    assert notifier.notify("b", "title", "three <")
    assert {number: shown["text"] for number, shown in second.shown.items()} == {1: "three <"}
    second.close()


@pytest.mark.requirement("tray-notify")
def test_without_a_server_or_a_bus_nothing_is_shown_and_nothing_breaks(notifier: Notifier) -> None:
    assert not notifier.notify("a", "title", "text")
    notifier.close("a")
    nowhere = Notifier(None, "multi-mcp")
    assert not nowhere.notify("a", "title", "text")
    nowhere.close("a")


def test_a_bus_that_goes_is_a_notification_that_nobody_shows() -> None:
    with session_bus() as (address, daemon):
        bus, server = SessionBus.open(address), NotificationServer(address)
        notifier = Notifier(bus, "multi-mcp")
        assert notifier.notify("a", "title", "text")
        daemon.kill()
        until(bus.gone.is_set)
        assert not notifier.notify("a", "title", "text")
        notifier.close("a")
        server.close()
        bus.close()
