"""Tests of the icon and its menu as a panel sees them, over a real session bus, without a display."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("StatusNotifierItem is Linux's", allow_module_level=True)

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jeepney import HeaderFields, MatchRule, message_bus
from jeepney.io.blocking import open_dbus_connection

from tests.tray.bus import MENU, CallFailedError, Item, Watcher, until
from tests.tray.icons import GREEN, RED, plain, running
from trayapp.tray.linux.dbusmenu import KIND
from trayapp.tray.linux.icon import LinuxIcon
from trayapp.tray.painter import KeyedItem, Menu, MenuItem


class Shown:
    """A tray whose menu has every kind of entry, and the panel that shows it."""

    def __init__(self, watcher: Watcher) -> None:
        self.done: list[str] = []
        self.at_login = True
        self.servers = ["git_hub", "linear"]
        self.icon = LinuxIcon("multi-mcp", plain(), "2 servers ready\nlinear wants <you> & co", self.menu())
        self.watcher = watcher

    def menu(self) -> Menu:
        return Menu(lambda: self.items())

    def items(self) -> list[MenuItem]:
        servers = [
            KeyedItem(name, f"{name}   connected", Menu(self.action(f"Reconnect {name}"), self.action(f"Log {name}")))
            for name in self.servers
        ]
        return [
            KeyedItem("header", f"multi-mcp: {len(servers)} servers", None, enabled=False),
            Menu.SEPARATOR,
            MenuItem("Servers", Menu(*servers)),
            self.action("Reconnect all", default=True),
            Menu.SEPARATOR,
            MenuItem("Start at login", self.toggle, checked=lambda item: self.at_login),
            self.action("Quit"),
        ]

    def action(self, text: str, **options: Any) -> MenuItem:
        def act() -> None:
            self.done.append(text)

        return MenuItem(text, act, **options)

    def toggle(self) -> None:
        self.at_login = not self.at_login
        self.done.append("Start at login")


@pytest.fixture
def shown(session: str, watcher: Watcher) -> Iterator[Shown]:
    made = Shown(watcher)
    with running(made.icon):
        yield made


@pytest.fixture
def item(shown: Shown) -> Iterator[Item]:
    seen = shown.watcher.item()
    yield seen
    seen.close()


def has_done(shown: Shown, count: int) -> bool:
    return len(shown.done) == count


def says(item: Item, line: str, properties: dict[str, Any]) -> bool:
    return item.properties_of(line) == properties


LINES = [
    "multi-mcp: 2 servers",
    "---",
    "Servers",
    "Servers > git_hub   connected",
    "Servers > git_hub   connected > Reconnect git_hub",
    "Servers > git_hub   connected > Log git_hub",
    "Servers > linear   connected",
    "Servers > linear   connected > Reconnect linear",
    "Servers > linear   connected > Log linear",
    "Reconnect all",
    "---",
    "Start at login",
    "Quit",
]
CLICKABLE = [LINES[4], LINES[5], LINES[7], LINES[8], "Reconnect all", "Start at login", "Quit"]


@pytest.mark.requirement("tray-menu-on-bus")
def test_the_whole_menu_is_read_and_every_item_clicked(shown: Shown, item: Item) -> None:
    assert item.texts() == LINES
    for count, line in enumerate(CLICKABLE, 1):
        item.click(line)
        until(partial(has_done, shown, count))
        assert line.endswith(shown.done[-1])


def test_what_cannot_be_clicked_does_nothing(shown: Shown, item: Item) -> None:
    for line in ("multi-mcp: 2 servers", "---", "Servers", "Servers > linear   connected"):
        item.click(line)
    item.click_number(0)
    item.click_number(-1)
    item.click_number(12345)
    item.menu("Event", "isvu", (item.number("Quit"), "hovered", ("s", ""), 0))
    item.click("Reconnect all")
    until(lambda: shown.done)
    assert shown.done == ["Reconnect all"]


@pytest.mark.requirement("tray-menu-on-bus")
def test_a_check_mark_follows_its_clicks(shown: Shown, item: Item) -> None:
    expected = {"label": "Start at login", "enabled": True, "toggle-type": "checkmark"}
    for state in (1, 0, 1):
        until(partial(says, item, "Start at login", {**expected, "toggle-state": state}))
        item.click("Start at login")


def test_a_click_on_the_icon_itself_is_the_default_item(shown: Shown, item: Item) -> None:
    item.activate()
    until(lambda: shown.done == ["Reconnect all"])
    item.call(item.path, "org.kde.StatusNotifierItem", "SecondaryActivate", "ii", (0, 0))
    until(lambda: shown.done == ["Reconnect all"] * 2)
    for member, signature, body in (
        ("ContextMenu", "ii", (0, 0)),
        ("Scroll", "is", (1, "vertical")),
        ("ProvideXdgActivationToken", "s", ("token",)),
    ):
        assert item.call(item.path, "org.kde.StatusNotifierItem", member, signature, body) == ()


def test_a_click_that_fails_is_logged_and_harms_no_other(
    shown: Shown, item: Item, caplog: pytest.LogCaptureFixture
) -> None:
    clicked: list[int] = []
    shown.icon.menu = Menu(MenuItem("Bad", lambda: 1 / 0), MenuItem("Good", lambda: clicked.append(1)))
    item.click("Bad")
    item.click("Good")
    until(lambda: clicked)
    assert "Unexpected error in a click" in caplog.text


# -- picture, tooltip, status ------------------------------------------------------------------------------------------


def test_what_panels_know_of_the_item(shown: Shown, item: Item) -> None:
    everything = item.call(item.path, "org.freedesktop.DBus.Properties", "GetAll", "s", ("org.kde.StatusNotifierItem",))
    plain_values = {name: value for name, (_, value) in everything[0].items() if "Pixmap" not in name}
    assert plain_values == {
        "Category": "ApplicationStatus",
        "Id": "multi-mcp",
        "Title": "2 servers ready",
        "Status": "Active",
        "WindowId": 0,
        "IconThemePath": "",
        "IconName": "",
        "OverlayIconName": "",
        "AttentionIconName": "",
        "AttentionMovieName": "",
        "IconAccessibleDesc": "2 servers ready",
        "AttentionAccessibleDesc": "2 servers ready",
        "ToolTip": ("", [], "2 servers ready", "linear wants ‹you› + co"),
        "ItemIsMenu": False,
        "Menu": "/StatusNotifierItem/Menu",
    }


def test_the_pixels_change_with_the_state_and_panels_are_told(shown: Shown, item: Item) -> None:
    assert item.pixel() == RED
    heard = signals_of(item, ["NewIcon", "NewTitle", "NewStatus"])
    shown.icon.icon = plain(GREEN)
    assert item.pixel() == GREEN
    shown.icon.title = "other"
    assert item.property("ToolTip")[2:] == ("other", "")
    shown.icon.attention = True
    assert item.property("Status") == "NeedsAttention"
    assert item.property("AttentionIconPixmap") == item.property("IconPixmap")
    shown.icon.visible = False
    assert item.property("Status") == "Passive"
    assert heard(4) == ["NewIcon", "NewTitle", "NewStatus", "NewStatus"]


def test_the_same_picture_again_is_no_news(shown: Shown, item: Item) -> None:
    heard = signals_of(item, ["NewIcon", "LayoutUpdated", "ItemsPropertiesUpdated"])
    shown.icon.icon = plain()
    shown.icon.update_menu()
    shown.icon.icon = plain(GREEN)
    assert heard(1) == ["NewIcon"]


def signals_of(item: Item, members: list[str]) -> Callable[[int], list[str]]:
    """Return a function that waits for the item's next signals with these names, and returns the names."""
    told = told_by(item, members)
    return lambda count: [name for name, _ in islice(told, count)]


def told_by(item: Item, members: list[str]) -> Iterator[tuple[str, Any]]:
    """Collect the item's signals with these names from now on. Return an iterator over their names and bodies."""
    connection = open_dbus_connection(item.address)
    connection.send_and_get_reply(message_bus.AddMatch(MatchRule(type="signal", sender=item.bus_name)))

    def told() -> Iterator[tuple[str, Any]]:
        with connection:
            while True:
                message = connection.receive(timeout=5)
                name = message.header.fields.get(HeaderFields.member)
                if name in members:
                    yield name, message.body

    return told()


# -- menus that change -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-menu-steady")
def test_a_click_on_an_old_menu_hits_what_it_showed_or_nothing(shown: Shown, item: Item) -> None:
    old = {text: number for text, number, _ in item.lines()}
    shown.servers = ["another", "linear"]
    shown.icon.update_menu()
    item.click_number(old["Servers > git_hub   connected > Reconnect git_hub"])  # replaced by another entry
    item.click_number(old["Servers > linear   connected > Reconnect linear"])  # moved up
    item.click_number(old["Quit"])
    until(lambda: len(shown.done) == 2)
    assert shown.done == ["Reconnect linear", "Quit"]


@pytest.mark.requirement("tray-menu-steady")
def test_an_item_with_a_key_is_itself_under_another_text(shown: Shown, item: Item) -> None:
    shown.icon.menu = Menu(KeyedItem("git", "git   starting", lambda: shown.done.append("git")))
    number = item.number("git   starting")
    shown.icon.menu = Menu(KeyedItem("git", "git   ready", lambda: shown.done.append("git")))
    assert item.number("git   ready") == number
    item.click_number(number)
    until(lambda: shown.done == ["git"])


@pytest.mark.requirement("tray-menu-steady")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_menu_becomes_a_late_click_hits_no_neighbour(
    shown: Shown, item: Item, data: st.DataObject
) -> None:
    names = st.lists(st.sampled_from("abcdefg"), unique=True, min_size=1)
    before, after = data.draw(names), data.draw(names)
    hit: list[str] = []

    def menu_of(texts: list[str]) -> Menu:
        return Menu(*(MenuItem(text, lambda icon, item: hit.append(item.text)) for text in texts))

    shown.icon.menu = menu_of(before)
    seen = item.lines()
    shown.icon.menu = menu_of(after)
    for _, number, _ in seen:
        item.click_number(number)
    flushed = threading.Event()
    shown.icon.menu = Menu(MenuItem("flush", flushed.set))
    item.click("flush")
    assert flushed.wait(5)
    assert hit == [text for text in before if text in after]


@pytest.mark.requirement("tray-threads")
def test_300_updates_from_6_threads_end_in_the_newest_state(shown: Shown, item: Item) -> None:
    count, lock = [0], threading.Lock()

    def items() -> list[MenuItem]:
        return [MenuItem(f"{count[0]} of {place}", None) for place in range(30)]

    def hammer(thread: int) -> None:
        for turn in range(50):
            with lock:
                count[0] += 1
            shown.icon.icon = plain((thread, turn, 0, 255))
            shown.icon.title = f"{thread} {turn}"
            shown.icon.update_menu()

    shown.icon.menu = Menu(items)
    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert len(item.lines()) == 30
        assert item.pixel()[3] == 255
    for thread in threads:
        thread.join()
    assert item.texts() == [f"300 of {place}" for place in range(30)]
    assert item.pixel() == shown.icon.icon(16).getpixel((0, 0))
    assert item.property("Title") == shown.icon.title


def test_a_text_that_waits_for_another_update_holds_up_nobody(shown: Shown, item: Item) -> None:
    read, other_done = threading.Event(), threading.Event()

    def slow(item: object) -> str:
        read.set()
        other_done.wait(5)
        return "old"

    old, new = Menu(MenuItem(slow, None)), Menu(MenuItem("new", None))
    thread = threading.Thread(target=lambda: setattr(shown.icon, "menu", old))
    thread.start()
    assert read.wait(5)
    shown.icon.menu = new
    other_done.set()
    thread.join()
    assert item.texts() == ["new"]


@pytest.mark.requirement("tray-submenus")
def test_what_a_burst_of_changes_ended_in_is_told_once_more(shown: Shown, item: Item) -> None:
    """GNOME's extension lets an older answer overwrite the content of a signal."""
    heard = signals_of(item, ["LayoutUpdated", "ItemsPropertiesUpdated"])
    shown.icon.menu = Menu(KeyedItem("git", "git   starting", None))
    shown.icon.menu = Menu(KeyedItem("git", "git   ready", None))
    assert heard(3) == ["LayoutUpdated", "ItemsPropertiesUpdated", "ItemsPropertiesUpdated"]


@pytest.mark.requirement("tray-submenus")
def test_what_is_told_once_more_does_not_say_of_what_kind_an_item_is(shown: Shown, item: Item) -> None:
    """GNOME's extension closes an open submenu when a signal reports again that the entry is a submenu."""
    number = item.number("Servers")
    heard = told_by(item, ["ItemsPropertiesUpdated"])
    shown.servers = ["another"]
    shown.icon.update_menu()
    repeated = next(told for told in (dict(body[0]) for _, body in heard) if number in told)
    assert repeated[number] == {"label": ("s", "Servers"), "enabled": ("b", True)}
    assert not [name for properties in repeated.values() for name in properties if name in KIND]


@pytest.mark.requirement("tray-submenus")
def test_a_panel_that_opens_a_submenu_is_told_whether_it_changed_since_it_was_read(shown: Shown, item: Item) -> None:
    """KDE drops the first signal after a menu opens. At the next opening, it reads the menus that AboutToShow names."""
    number = item.number("Servers")  # reads the whole menu
    assert item.menu("AboutToShow", "i", (number,)) == (False,)
    shown.servers = ["another"]
    shown.icon.update_menu()
    assert item.menu("AboutToShow", "i", (number,)) == (True,)
    assert item.menu("AboutToShowGroup", "ai", ([0, number],)) == ([number], [])
    item.menu("GetLayout", "iias", (0, 1, []))  # reads only the level above the submenu
    assert item.menu("AboutToShow", "i", (number,)) == (True,)
    item.menu("GetLayout", "iias", (number, 1, []))
    assert item.menu("AboutToShow", "i", (number,)) == (False,)


# -- requests of panels ------------------------------------------------------------------------------------------------


def test_parts_of_the_menu_may_be_asked_for(item: Item) -> None:
    servers = item.number("Servers")
    _, (number, properties, children) = item.menu("GetLayout", "iias", (servers, 1, ["label"]))
    assert (number, properties) == (servers, {"label": ("s", "Servers")})
    assert [child[1][1:] for child in children] == [
        ({"label": ("s", "git__hub   connected")}, []),
        ({"label": ("s", "linear   connected")}, []),
    ]
    assert item.menu("GetLayout", "iias", (0, 0, []))[1] == (0, {"children-display": ("s", "submenu")}, [])
    assert item.menu("GetProperty", "is", (servers, "label")) == (("s", "Servers"),)
    group = item.menu("GetGroupProperties", "aias", ([servers, 999], ["label"]))
    assert group == ([(servers, {"label": ("s", "Servers")})],)
    assert len(item.menu("GetGroupProperties", "aias", ([], []))[0]) == len(LINES) + 1


def test_panels_may_say_that_they_show_the_menu_and_click_in_groups(shown: Shown, item: Item) -> None:
    quit_number = item.number("Quit")
    assert item.menu("AboutToShow", "i", (0,)) == (False,)
    assert item.menu("AboutToShowGroup", "ai", ([0, quit_number, 999],)) == ([], [999])
    events = [(quit_number, "clicked", ("i", 0), 0), (999, "clicked", ("i", 0), 0)]
    assert item.menu("EventGroup", "a(isvu)", (events,)) == ([999],)
    until(lambda: shown.done == ["Quit"])


@pytest.mark.parametrize(
    ("member", "signature", "body"),
    [
        ("GetLayout", "iias", (999, -1, [])),
        ("GetProperty", "is", (999, "label")),
        ("GetProperty", "is", (0, "nonsense")),
        ("AboutToShow", "i", (999,)),
        ("EventGroup", "a(isvu)", ([(999, "clicked", ("i", 0), 0)],)),
        ("GetLayout", "i", (0,)),
    ],
)
def test_questions_about_nothing_are_errors(item: Item, member: str, signature: str, body: tuple[Any, ...]) -> None:
    with pytest.raises(CallFailedError, match="InvalidArgs"):
        item.menu(member, signature, body)


def test_the_menu_tells_its_version(item: Item) -> None:
    told = item.call(item.property("Menu"), "org.freedesktop.DBus.Properties", "GetAll", "s", (MENU,))[0]
    assert told == {
        "Version": ("u", 3),
        "TextDirection": ("s", "ltr"),
        "Status": ("s", "normal"),
        "IconThemePath": ("as", []),
    }
