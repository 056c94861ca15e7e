"""Tests of notifications with a fake server: one for each key, with actions. Without a server, there are none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("the session bus is Linux's", allow_module_level=True)


from tests.tray.bus import NotificationServer, session_bus, until
from tests.tray.icons import plain
from trayapp.tray.linux.bus import SessionBus
from trayapp.tray.linux.notifications import BusNotifications
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import Action, Verb


@pytest.fixture
def server(address: str) -> Iterator[NotificationServer]:
    started = NotificationServer(address)
    yield started
    started.close()


def joined(bus: SessionBus, picture: tuple[int, int, int, int] = (1, 2, 3, 4)) -> BusNotifications:
    notifier = BusNotifications("multi-mcp", plain(picture))
    notifier.join(bus)
    return notifier


@pytest.fixture
def notifier(bus: SessionBus) -> BusNotifications:
    return joined(bus)


def notice(key: str, text: str = "text", *labels: str, **more: Any) -> Notice:
    """Return a notice with a button for each label. The target of a button's action is its label."""
    return Notice(key, "title", text, tuple((label, Action(Verb.SIGN_IN, label)) for label in labels), **more)


def unheard(action: Action) -> None:
    raise AssertionError(f"nobody clicked {action.target}")


@pytest.mark.requirement("tray-notify")
def test_a_notification_is_shown_and_its_action_comes_back(
    notifier: BusNotifications, server: NotificationServer
) -> None:
    chosen: list[str] = []
    assert notifier.show(
        notice("linear", "linear wants you to sign in", "Sign in", "Later"), lambda action: chosen.append(action.target)
    )
    shown = server.shown[1]
    assert (shown["app"], shown["title"], shown["text"]) == ("multi-mcp", "title", "linear wants you to sign in")
    assert shown["actions"] == ["default", "", "0", "Sign in", "1", "Later"]
    server.choose(1, "1")
    server.choose(1, "default")  # a click on the notification itself
    server.choose(99, "1")  # a notification of another program
    until(lambda: chosen == ["Later", "Sign in"])


@pytest.mark.requirement("ask-tray")
def test_where_only_buttons_count_a_click_beside_them_chooses_nothing(
    notifier: BusNotifications, server: NotificationServer
) -> None:
    chosen: list[str] = []
    question = notice("ask", "text", "Allow", "Deny", click=False)
    assert notifier.show(question, lambda action: chosen.append(action.target))
    assert server.shown[1]["actions"] == ["0", "Allow", "1", "Deny"]
    server.choose(1, "default")
    server.choose(1, "1")
    until(lambda: chosen)
    assert chosen == ["Deny"]


@pytest.mark.requirement("tray-notify")
def test_the_same_cause_has_one_notification_and_another_cause_another(
    notifier: BusNotifications, server: NotificationServer
) -> None:
    for text in ("one", "two"):
        assert notifier.show(notice("linear", text), unheard)
    assert notifier.show(notice("github", "three"), unheard)
    assert {number: shown["text"] for number, shown in server.shown.items()} == {1: "two", 2: "three"}


def test_the_action_of_the_newest_text_counts(notifier: BusNotifications, server: NotificationServer) -> None:
    chosen: list[str] = []
    for text in ("old", "new"):
        notifier.show(notice("a", text, text), lambda action: chosen.append(action.target))
    server.choose(1, "0")
    until(lambda: chosen == ["new"])


def test_one_that_was_dismissed_is_not_replaced(notifier: BusNotifications, server: NotificationServer) -> None:
    notifier.show(notice("a", "one"), unheard)
    server.signal("NotificationClosed", "uu", (1, 2))
    notifier.show(notice("b", "two"), unheard)  # waits for a reply, which arrives after the signal
    notifier.show(notice("a", "three"), unheard)
    assert sorted(server.shown) == [1, 2, 3]


def test_an_action_that_notifies_on_the_bus_s_own_thread_hears_so_at_once(
    notifier: BusNotifications, server: NotificationServer
) -> None:
    heard: list[str] = []

    def act(action: Action) -> None:
        try:
            notifier.show(notice("b", "two"), unheard)
        except RuntimeError as error:
            heard.append(str(error))

    notifier.show(notice("a", "one", "X"), act)
    server.choose(1, "0")
    until(lambda: heard == ["the thread that reads the bus must not block on it"])


def test_what_is_no_longer_true_is_taken_back(notifier: BusNotifications, server: NotificationServer) -> None:
    notifier.show(notice("a", "one"), unheard)
    notifier.withdraw("a")
    notifier.withdraw("never shown")
    until(lambda: not server.shown)


@pytest.mark.parametrize(
    ("can", "text", "actions"),
    [
        (("body", "body-markup", "actions"), "a &lt;b&gt; &amp; c", ["default", "", "0", "X"]),
        (("body",), "a <b> & c", []),
    ],
)
def test_what_the_server_cannot_show_is_not_sent(
    bus: SessionBus, address: str, can: tuple[str, ...], text: str, actions: list[str]
) -> None:
    server = NotificationServer(address, can)
    assert joined(bus).show(notice("k", "a <b> & c", "X"), unheard)
    assert (server.shown[1]["text"], server.shown[1]["actions"]) == (text, actions)
    server.close()


def test_the_picture_goes_along(bus: SessionBus, server: NotificationServer) -> None:
    joined(bus, (4, 3, 2, 1)).show(notice("k", urgent=True), unheard)
    hints = server.shown[1]["hints"]
    assert hints["image-data"][1][:6] == (64, 64, 256, True, 8, 4)
    assert hints["image-data"][1][6][:4] == bytes((4, 3, 2, 1))
    assert hints["urgency"] == ("y", 2)
    assert hints["desktop-entry"] == ("s", "multi-mcp")


@pytest.mark.requirement("ask-tray")
def test_where_three_buttons_are_shown_the_last_of_them_refuses(bus: SessionBus, address: str) -> None:
    server, chosen = NotificationServer(address, name="gnome-shell"), list[str]()
    ask = notice("k", "text", "Allow once", "For this session", "Always", "Deny", click=False)
    joined(bus).show(ask, lambda action: chosen.append(action.target))
    assert server.shown[1]["actions"] == ["0", "Allow once", "1", "For this session", "3", "Deny"]
    server.choose(1, "3")
    until(lambda: chosen == ["Deny"])
    joined(bus).show(notice("k", "text", "Allow once", click=False), unheard)
    assert server.shown[2]["actions"] == ["0", "Allow once"]
    server.close()


@pytest.mark.requirement("ask-shown")
def test_lxqt_gets_lines_that_it_need_not_break_and_no_picture(bus: SessionBus, address: str) -> None:
    server = NotificationServer(address, name="lxqt-notificationd")
    text = f"short\na line of several words that is too long\n{'0123456789' * 5}\n{'W' * 40}\n"
    joined(bus).show(notice("k", text), unheard)
    shown = server.shown[1]["text"]
    assert "image-data" not in server.shown[1]["hints"]
    assert [len(line) for line in shown.split("\n")] == [5, 28, 11, 23, 23, 4, 15, 15, 10, 0]
    assert "".join(shown.split()) == "".join(text.split())
    server.close()


def test_a_server_that_starts_again_knows_nothing_of_the_old_ones(
    notifier: BusNotifications, server: NotificationServer, address: str
) -> None:
    notifier.show(notice("a", "one"), unheard)
    notifier.show(notice("b", "two"), unheard)
    server.close()
    assert not notifier.show(notice("a", "nobody there"), unheard)
    second = NotificationServer(address, ("body",))
    assert notifier.show(notice("b", "three <"), unheard)
    assert {number: shown["text"] for number, shown in second.shown.items()} == {1: "three <"}
    second.close()


@pytest.mark.requirement("tray-notify")
def test_without_a_server_or_a_bus_nothing_is_shown_and_nothing_breaks(notifier: BusNotifications) -> None:
    for display in (notifier, BusNotifications("multi-mcp", plain())):
        assert not display.show(notice("a"), unheard)
        display.withdraw("a")


def test_a_bus_that_goes_is_a_notification_that_nobody_shows() -> None:
    with session_bus() as (address, daemon):
        bus, server = SessionBus.open(address), NotificationServer(address)
        notifier = joined(bus)
        assert notifier.show(notice("a"), unheard)
        daemon.kill()
        until(bus.gone.is_set)
        assert not notifier.show(notice("a"), unheard)
        notifier.withdraw("a")
        server.close()
        bus.close()
