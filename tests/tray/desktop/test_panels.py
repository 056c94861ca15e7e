"""Tests of the icon on real panels, driven by mouse and over D-Bus, and of a real notification."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

import Xlib.display
import Xlib.protocol.event
import Xlib.X
from jeepney import DBusAddress, Properties
from jeepney.io.blocking import open_dbus_connection
from PIL import Image, ImageChops

from tests.tray.bus import WAIT_S, WATCHER, Item, Watcher, until
from tests.tray.desktop.sample_app import COLORS
from tests.tray.desktop.session import (
    CALM,
    PANEL_HEIGHT,
    SCREEN,
    TINT2_COLOR,
    Box,
    Desktop,
    Panel,
    box_of,
    desktop_session,
    middle,
)

PROJECT = Path(__file__).resolve().parents[3]
PANEL: Box = (0, 0, SCREEN[0], PANEL_HEIGHT)
BELOW: Box = (0, PANEL_HEIGHT + 4, SCREEN[0], SCREEN[1])
LINE_PX = 25  # height of a line in a menu of xfce4-panel with its default theme and DejaVu
ICON_PX = (14, 28)  # smallest and largest size of a disc in a panel of PANEL_HEIGHT


class Tray:
    """The sample app in a desktop session."""

    gnome = False  # in GNOME, a left click opens the menu, and submenus unfold inside it

    def __init__(self, desktop: Desktop, panel_wait_s: float) -> None:
        self.desktop = desktop
        argv = [sys.executable, "-m", "tests.tray.desktop.sample_app", str(panel_wait_s)]
        self.process = desktop.start(argv, PYTHONPATH=str(PROJECT))
        self.log = desktop.home / f"{Path(sys.executable).name}.log"

    def seen(self, color: str) -> Box:
        """Wait until the icon has this color, and return its box on the screen."""
        return self.desktop.until_seen(COLORS[color], PANEL)

    def click(self, color: str, button: int = 1, times: int = 1) -> None:
        """Wait until the icon has this color, and click on it."""
        self.desktop.click(*middle(self.seen(color)), button, times)

    def said(self, text: str) -> int:
        """Return how often the app has printed this line."""
        return self.log.read_text(encoding="utf-8").splitlines().count(text)

    def on_bus(self) -> Item:
        """Wait until the real panel has registered an item, and return it."""
        with open_dbus_connection(self.desktop.bus_address) as connection:
            ask = Properties(DBusAddress("/StatusNotifierWatcher", WATCHER, WATCHER)).get(
                "RegisteredStatusNotifierItems"
            )
            items: list[str] = until(lambda: connection.send_and_get_reply(ask).body[0][1], "the panel knows the icon")
        name, _, path = items[0].partition("/")
        return Item(self.desktop.bus_address, name.rstrip("@"), f"/{path}")


@pytest.fixture(scope="module")
def xfce() -> Iterator[Tray]:
    with desktop_session("xfce4-panel", notifications=True) as desktop:
        yield Tray(desktop, panel_wait_s=600.0)


@pytest.mark.requirement("tray-real-panels")
def test_the_icon_is_on_a_panel_and_a_left_click_is_its_default_action(xfce: Tray) -> None:
    box = xfce.seen("red")
    assert all(ICON_PX[0] <= box[side + 2] - box[side] <= ICON_PX[1] for side in (0, 1)), box
    xfce.desktop.screenshot("xfce-icon")
    xfce.click("red")
    xfce.seen("green")


@pytest.mark.timeout(180)  # Plasma takes 15 s to start on an idle machine and a minute on a busy one
@pytest.mark.requirement("tray-real-panels", "tray-submenus")
@pytest.mark.parametrize("panel", ["xfce4-panel", "lxqt-panel", "plasmashell", "gnome-shell"])
def test_a_submenu_that_came_after_the_first_look_and_changed_is_clicked_by_mouse(panel: Panel) -> None:
    with desktop_session(panel) as desktop:
        tray = Tray(desktop, panel_wait_s=600.0)
        tray.gnome = panel == "gnome-shell"
        background = opened(tray, "red")[0]  # the panel has read a menu without submenus
        desktop.screenshot(f"{panel}-menu")
        close(tray, background)
        tray.click("red", times=2 if tray.gnome else 1)
        desktop.calm()  # moves the mouse off the icon, because Plasma lightens the icon below the mouse
        tray.seen("green")
        header = choose_in_submenu(tray, "green", f"{panel}-submenu")
        tray.seen("blue")
        choose_in_submenu(tray, "blue", f"{panel}-submenu-changed", header)
        tray.seen("yellow")
        background, menu = opened(tray, "yellow")
        until(lambda: first_line(desktop, menu) != header, "the renamed line is shown")
        desktop.screenshot(f"{panel}-renamed")
        close(tray, background)


@pytest.mark.requirement("tray-real-panels")
def test_the_same_menu_is_read_and_clicked_over_the_bus(xfce: Tray) -> None:
    current(xfce)
    item = xfce.on_bus()
    item.click("Turn green")
    xfce.seen("green")
    assert item.texts() == [
        "multi-mcp: 5 of 7 servers ready",
        "---",
        "Turn green",
        "Start at login",
        "Notify",
        "my_servers",
        "my_servers > Turn blue",
    ]
    item.click("my_servers > Turn blue")
    xfce.seen("blue")
    item.close()


@pytest.mark.requirement("tray-real-panels", "tray-notify")
def test_a_notification_is_on_the_screen_and_a_click_on_it_comes_back(xfce: Tray) -> None:
    desktop = xfce.desktop
    before = desktop.calm()
    item = xfce.on_bus()
    item.click("Notify")
    shown = until(lambda: changed(desktop, before), "the notification is on the screen")
    until(lambda: xfce.said("notified: True"))
    desktop.until_seen(COLORS["blue"], BELOW)  # the picture in the notification
    desktop.screenshot("dunst-notification")
    desktop.click(*middle(shown))
    xfce.seen("yellow")
    until(lambda: not changed(desktop, before), "the notification is gone")
    item.close()


@pytest.mark.requirement("tray-panel-late")
def test_a_panel_that_is_started_again_shows_the_icon_again(xfce: Tray) -> None:
    item = xfce.on_bus()
    item.click("Start at login")
    item.close()
    xfce.seen("red")
    xfce.desktop.run("xfce4-panel", "--quit")
    xfce.desktop.until_gone(COLORS["red"], PANEL)
    xfce.desktop.start_panel("xfce4-panel")
    xfce.seen("red")
    assert xfce.said("nobody shows icons") == 0


def opened(tray: Tray, color: str) -> tuple[Image.Image, Box]:
    """Open the menu by mouse. Return the screen before it opened, and the menu's box."""
    tray.seen(color)
    background = tray.desktop.calm()
    tray.click(color, 1 if tray.gnome else 3)
    until(lambda: tall(changed(tray.desktop, background)), "the menu is open")
    return background, still(tray.desktop, background, BELOW)


def choose_in_submenu(tray: Tray, color: str, name: str, expected: Image.Image | None = None) -> Image.Image:
    """Click on the last line of the menu and on the only line of its submenu. Return a picture of the first line.

    With `expected`, first wait for a line like that picture. Plasma's menu gets its size before all of its colors.
    """
    desktop = tray.desktop
    background, menu = opened(tray, color)
    if expected is not None:
        until(lambda: first_line(desktop, menu) == expected, "the first line is as it was")
    desktop.click(menu[0] + 60, menu[3] - (LINE_PX if tray.gnome else LINE_PX // 2))
    beside = (0, menu[3], *SCREEN) if tray.gnome else (menu[2], BELOW[1], *SCREEN)
    until(lambda: wide(difference(desktop.picture(), background, beside)), "the submenu is open")
    submenu = still(desktop, background, beside)
    header = first_line(desktop, menu)  # taken only now, because a menu may have its size before its texts
    desktop.screenshot(name)
    desktop.click(*middle(submenu))
    closed(tray, background)
    return header


def close(tray: Tray, background: Image.Image) -> None:
    """Click beside the menu, and wait until it is closed."""
    tray.desktop.click(SCREEN[0] - 20, SCREEN[1] - 20)
    closed(tray, background)


def closed(tray: Tray, background: Image.Image) -> None:
    """Wait until the menu is closed."""
    until(lambda: not tall(changed(tray.desktop, background)), "the menu is closed")


def first_line(desktop: Desktop, menu: Box) -> Image.Image:
    """Return a picture of the first line of an open menu, without the beginning of its text.

    When Plasma opens a menu, it underlines a letter of each line, which moves the letters after it by a pixel or two.
    A line whose text changes afterwards loses the underline. Our texts are sent again a second after a change
    (MenuService), which may be before or after the menu opens.
    """
    left, top, right, _ = menu
    return desktop.picture().crop((left + (right - left) // 4, top, right, top + LINE_PX + 4))


def current(tray: Tray) -> Box:
    """Wait until the panel shows the icon in any color, and return its box on the screen."""
    box: Box = until(partial(icon_in, tray), "the icon is on the panel")
    return box


def icon_in(tray: Tray) -> Box | None:
    picture = tray.desktop.picture()
    boxes = (box_of(picture, color, PANEL) for color in COLORS.values())
    return next((box for box in boxes if box), None)


def difference(picture: Image.Image, before: Image.Image, within: Box) -> Box | None:
    """Return the bounding box of all changes in this part of the screen, or None if there are none."""
    found: Box | None = ImageChops.difference(picture.crop(within), before.crop(within)).getbbox()
    left, top = within[:2]
    return (found[0] + left, found[1] + top, found[2] + left, found[3] + top) if found else None


def changed(desktop: Desktop, before: Image.Image) -> Box | None:
    """Return the bounding box of all changes below the panel, or None if there are none."""
    return difference(desktop.picture(), before, BELOW)


def still(desktop: Desktop, before: Image.Image, within: Box) -> Box:
    """Wait until no pixel changes any more, because some menus fade or slide in. Return the box around all changes."""
    seen: deque[Image.Image] = deque(maxlen=CALM)

    def same() -> Box | None:
        seen.append(desktop.picture())
        calm = len(seen) == CALM and all(picture == seen[-1] for picture in seen)
        return difference(seen[-1], before, within) if calm else None

    box: Box = until(same, "a menu stands still")
    return box


def tall(box: Box | None) -> Box | None:
    """Return the box if it is tall enough for a menu, rather than the tooltip of the icon below the mouse."""
    return box if box and box[3] - box[1] > 4 * LINE_PX else None


def wide(box: Box | None) -> Box | None:
    """Return the box if it is wide enough for a menu, rather than the shadow of the menu beside it."""
    return box if box and box[2] - box[0] > LINE_PX else None


# -- XEmbed only -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tint2() -> Iterator[Tray]:
    """Start the app before tint2, and yield the app."""
    with desktop_session(None) as desktop:
        tray = Tray(desktop, panel_wait_s=0.2)
        until(lambda: tray.log.exists() and tray.said("nobody shows icons"))
        desktop.start_panel("tint2")
        yield tray


@pytest.mark.requirement("tray-real-panels", "tray-panel-late", "tray-no-host")
def test_a_tray_that_starts_after_us_shows_the_icon_and_takes_clicks(tint2: Tray) -> None:
    tint2.seen("red")
    tint2.desktop.screenshot("tint2-icon")
    tint2.click("red")
    tint2.seen("green")
    assert tint2.said("green") == 1


def test_the_panel_shows_through_around_the_icon(tint2: Tray) -> None:
    left, top, right, bottom = current(tint2)
    picture = tint2.desktop.picture()
    corners = [picture.getpixel(corner) for corner in ((left, top), (right - 1, top), (left, bottom - 1))]
    assert corners == [TINT2_COLOR] * 3


@pytest.mark.requirement("tray-panel-late")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_a_tray_that_is_started_again_shows_the_icon_again(tint2: Tray, sign: signal.Signals) -> None:
    current(tint2)
    tint2.desktop.processes[-1].send_signal(sign)
    tint2.desktop.end(tint2.desktop.processes[-1])
    until(lambda: icon_in(tint2) is None, "the panel is gone")
    tint2.desktop.start_panel("tint2")
    box = current(tint2)
    assert all(ICON_PX[0] <= box[side + 2] - box[side] <= ICON_PX[1] for side in (0, 1)), box


@pytest.mark.requirement("tray-panel-late")
def test_a_better_panel_takes_the_icon_over_and_leaves_it_again(tint2: Tray) -> None:
    box = current(tint2)
    watcher = Watcher(tint2.desktop.bus_address)
    item = watcher.item()
    assert item.texts()[2] == "Turn green"
    until(lambda: tint2.desktop.picture().getpixel(middle(box)) == TINT2_COLOR, "it has left the XEmbed tray")
    item.close()
    watcher.close()
    until(lambda: tint2.desktop.picture().getpixel(middle(box)) != TINT2_COLOR, "it is back")
    assert tint2.said("nobody shows icons") == 1


class DockRequests:
    """An XEmbed tray that owns the selection and counts docking requests (System Tray Protocol)."""

    def __init__(self, display: str) -> None:
        self.asked: list[int] = []
        self._display = Xlib.display.Display(display)
        self._root = self._display.screen().root
        self._window = self._root.create_window(0, 0, 1, 1, 0, Xlib.X.CopyFromParent)
        self._selection = self._display.intern_atom("_NET_SYSTEM_TRAY_S0")

    def announce(self) -> None:
        self._window.set_selection_owner(self._selection, Xlib.X.CurrentTime)
        told = Xlib.protocol.event.ClientMessage(
            window=self._root,
            client_type=self._display.intern_atom("MANAGER"),
            data=(32, (Xlib.X.CurrentTime, self._selection, self._window.id, 0, 0)),
        )
        self._root.send_event(told, event_mask=Xlib.X.StructureNotifyMask)
        self._display.sync()

    def read(self) -> list[int]:
        """Return the windows of all docking requests so far."""
        while self._display.pending_events():
            event = self._display.next_event()
            if event.type == Xlib.X.ClientMessage and event.data[1][1] == 0:  # SYSTEM_TRAY_REQUEST_DOCK
                self.asked.append(event.data[1][2])
        return self.asked

    def close(self) -> None:
        self._display.close()


def test_a_tray_is_asked_once_for_a_place() -> None:
    """The panel trayer loses icons that request docking twice."""
    with desktop_session(None) as desktop:
        tray = DockRequests(desktop.environ["DISPLAY"])
        tray.announce()
        app = Tray(desktop, panel_wait_s=0.1)
        until(tray.read)
        tray.announce()
        watcher = Watcher(desktop.bus_address)  # the X requests of the app are complete once this panel has the icon
        item = watcher.item()
        item.click("Turn green")
        until(lambda: app.said("green"))
        item.close()
        assert len(tray.read()) == 1
        watcher.close()
        tray.close()


def test_without_a_session_bus_the_display_is_the_session() -> None:
    with desktop_session("tint2") as desktop:
        tray = Tray(_without_bus(desktop), panel_wait_s=600.0)
        tray.click("red")
        tray.seen("green")
        desktop.screen.terminate()
        assert tray.process.wait(WAIT_S) == 0, "and its end is the end of the session"


def _without_bus(desktop: Desktop) -> Desktop:
    desktop.environ.pop("DBUS_SESSION_BUS_ADDRESS")
    desktop.environ["XDG_RUNTIME_DIR"] = "/nonexistent"
    return desktop
