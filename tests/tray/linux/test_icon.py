"""Tests of the icon on Linux: panels that start late, restart or never start, and missing or lost buses or displays."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from tests.tray.bus import WAIT_S, NotificationServer, Watcher, session_bus, until
from tests.tray.icons import GREEN, RED, plain, running
from trayapp.tray.linux.icon import LinuxIcon
from trayapp.tray.linux.notifications import BusNotifications
from trayapp.tray.painter import Menu, MenuItem
from trayapp.tray.state.notices import Notice

AT_ONCE_S = 0.05
LONG_S = 600.0


@pytest.fixture(autouse=True)
def no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove bus and display from the environment. A test creates those that it needs."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)


def menu() -> Menu:
    return Menu(MenuItem("Quit", lambda icon: icon.stop()))


class Said:
    """A callback that counts its calls."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


@pytest.mark.requirement("tray-panel-late")
def test_a_panel_that_starts_later_gets_the_icon_and_nobody_is_told_before_time(session: str) -> None:
    said = Said()
    icon = LinuxIcon("multi-mcp", plain(), "title", menu(), on_no_host=said, panel_wait_s=LONG_S)
    with running(icon):
        until(lambda: icon.visible)
        assert icon.host is None
        watcher = Watcher(session)
        item = watcher.item()
        assert item.texts() == ["Quit"]
        until(lambda: icon.host == "sni")
        item.close()
        watcher.close()
    assert said.times == 0


@pytest.mark.requirement("tray-panel-late")
def test_a_panel_that_starts_again_gets_the_icon_again(session: str) -> None:
    icon = LinuxIcon("multi-mcp", plain(), "title", menu(), panel_wait_s=LONG_S)
    with running(icon):
        for _ in range(3):
            watcher = Watcher(session)
            item = watcher.item()
            assert item.property("Status") == "Active"
            item.close()
            watcher.close()
            until(lambda: icon.host is None)


def test_an_icon_that_is_hidden_is_registered_when_it_is_shown(session: str, watcher: Watcher) -> None:
    icon = LinuxIcon("multi-mcp", plain(), "title", menu())
    thread = threading.Thread(target=icon.run, args=(lambda icon: None,))
    thread.start()
    until(lambda: icon.host == "sni")
    assert watcher.items == []
    icon.visible = True
    watcher.item().close()
    icon.stop()
    thread.join(WAIT_S)


@pytest.mark.requirement("tray-no-host")
def test_without_a_panel_the_app_is_told_once_and_a_later_panel_gets_the_icon(session: str) -> None:
    said, shown = Said(), Said()
    icon = LinuxIcon("multi-mcp", plain(), "title", menu(), on_no_host=said, panel_wait_s=AT_ONCE_S)
    icon.on_host = shown
    with running(icon):
        until(lambda: said.times)
        assert shown.times == 0
        for _ in range(2):
            watcher = Watcher(session)
            watcher.item().close()
            until(lambda: shown.times)
            watcher.close()
            until(lambda: icon.host is None)
    assert (said.times, shown.times) == (1, 1)


@pytest.mark.requirement("tray-no-host")
def test_with_neither_bus_nor_display_the_app_goes_on_and_is_told_at_once() -> None:
    said = Said()
    icon = LinuxIcon("multi-mcp", plain(), "title", menu(), on_no_host=said, panel_wait_s=LONG_S)
    with running(icon) as thread:
        until(lambda: said.times)
        icon.icon, icon.title = plain((1, 2, 3, 4)), "other"
        icon.attention = True
        icon.update_menu()
        assert thread.is_alive()
    assert said.times == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # python-xlib leaves its sockets open
def test_a_display_that_lets_nobody_in_is_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":987")
    said = Said()
    with running(LinuxIcon("multi-mcp", plain(), "title", menu(), on_no_host=said, panel_wait_s=AT_ONCE_S)):
        until(lambda: said.times)
    gc.collect()


@pytest.mark.requirement("tray-no-host")
@pytest.mark.parametrize("named", [True, False], ids=["its address is known", "at systemd's place"])
def test_a_session_bus_that_comes_after_us_gets_icon_menu_and_notifications(
    home: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    if named:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={home / 'bus'}")
    said = Said()
    notifier = BusNotifications("multi-mcp", plain())
    icon = LinuxIcon("multi-mcp", plain(), "title", menu(), on_no_host=said, on_bus=notifier.join, bus_wait_s=AT_ONCE_S)
    with running(icon):
        until(lambda: said.times)
        icon.icon, icon.title, icon.attention = plain(GREEN), "newer", True
        with session_bus(home) as (address, _):
            watcher, server = Watcher(address), NotificationServer(address)
            item = watcher.item()
            assert (item.property("Title"), item.property("Status"), item.pixel()) == ("newer", "NeedsAttention", GREEN)
            assert item.texts() == ["Quit"]
            assert until(lambda: notifier.show(Notice("a", "It is here", "text"), print))
            icon.icon = plain()
            until(lambda: item.pixel() == RED)
            icon.stop()
            for side in (item, watcher, server):
                side.close()
    assert said.times == 1


def test_the_opening_of_the_menu_is_told_and_not_that_of_a_submenu(session: str, watcher: Watcher) -> None:
    told: list[int] = []
    icon = LinuxIcon("multi-mcp", plain(), "title", menu())
    icon.on_open = lambda: told.append(1)
    with running(icon):
        item = watcher.item()
        item.menu("AboutToShow", "i", (item.number("Quit"),))
        item.menu("AboutToShowGroup", "ai", ([item.number("Quit")],))
        item.menu("AboutToShow", "i", (0,))
        item.menu("AboutToShowGroup", "ai", ([0],))
        until(lambda: len(told) == 2)
        item.close()


def test_the_end_of_the_bus_is_the_end_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_bus() as (address, daemon):
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        watcher = Watcher(address)
        icon = LinuxIcon("multi-mcp", plain(), "title", menu())
        thread = threading.Thread(target=icon.run)
        thread.start()
        watcher.item().close()
        daemon.kill()
        thread.join(WAIT_S)
        assert not thread.is_alive()
        icon.icon, icon.title = plain((1, 2, 3, 4)), "nobody sees this"
        watcher.close()


def test_quit_ends_it_from_its_own_menu(session: str, watcher: Watcher) -> None:
    icon = LinuxIcon("multi-mcp", plain(), "title", menu())
    thread = threading.Thread(target=icon.run)
    thread.start()
    item = watcher.item()
    item.click("Quit")
    thread.join(WAIT_S)
    assert not thread.is_alive()
    item.close()
