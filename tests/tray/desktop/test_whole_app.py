"""Tests of the whole tray on real panels with a real gateway, used by mouse and keyboard."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from PIL import ImageChops

from tests.tools import require
from tests.tray.bus import until
from tests.tray.desktop.session import PANEL_HEIGHT, SCREEN, Box, Desktop, Panel, desktop_session, middle
from tests.tray.running import TrayApp
from trayapp.service.command_line import own_command
from trayapp.tray.icons import COLORS
from trayapp.tray.state.tray_state import IconKind

PANEL: Box = (0, 0, SCREEN[0], PANEL_HEIGHT)
MENU: Box = (0, PANEL_HEIGHT, SCREEN[0] // 2, SCREEN[1])  # the half of the screen without notifications
TOOLTIP_PX = 100  # more than the height of a tooltip, less than that of the menu
TOLERANCE = 24  # the color of an XEmbed icon is mixed with the background


def color(kind: IconKind) -> tuple[int, int, int]:
    """Return the color of an icon of this kind on a panel of unknown color."""
    text = COLORS[kind].either.removeprefix("#")
    red, green, blue = (int(text[at : at + 2], 16) for at in (0, 2, 4))
    return red, green, blue


class TrayOnDesktop:
    """A tray on a real desktop, and its user."""

    def __init__(self, desktop: Desktop) -> None:
        self.desktop = desktop
        home = desktop.home / "mm"
        home.mkdir()
        self.app = TrayApp(home, desktop.bus_address)
        self.app.env = {**self.app.env, **desktop.environ, "HOME": str(self.app.user), "MULTI_MCP_HOME": str(home)}
        self._fake_editor()
        self.app.servers("sample", "other")
        desktop.start([*own_command(), "tray"], **self.app.env)

    def _fake_editor(self) -> None:
        """Install a fake editor that opens YAML files for the desktop and records its arguments."""
        require("xdg-open")
        (self.app.user / "bin" / "xdg-open").unlink()
        self.app.program("fake-editor", f'echo "$1" >> {self.app.user}/opened')
        entry = f"[Desktop Entry]\nType=Application\nName=Editor\nExec={self.app.user}/bin/fake-editor %f\n"
        for path, text in (
            (".local/share/applications/editor.desktop", entry),
            (".config/mimeapps.list", "[Default Applications]\n" + YAML),
        ):
            (self.app.user / path).parent.mkdir(parents=True, exist_ok=True)
            (self.app.user / path).write_text(text, encoding="utf-8")

    def icon(self, kind: IconKind) -> Box:
        """Wait until the panel shows an icon of this kind, and return its box on the screen."""
        return self.desktop.until_seen(color(kind), PANEL, TOLERANCE)

    def gone(self, kind: IconKind) -> None:
        self.desktop.until_gone(color(kind), PANEL, TOLERANCE)

    def choose(self, *keys: str) -> None:
        """Open the menu by mouse, and press these keys."""
        before = self.desktop.calm()
        self.desktop.click(*middle(self.icon(IconKind.HEALTHY)), 3)

        def is_open() -> bool:
            """True if the menu is open. On a busy machine, the tooltip is shown first."""
            box = ImageChops.difference(before.crop(MENU), self.desktop.picture().crop(MENU)).getbbox()
            return bool(box and box[3] - box[1] > TOOLTIP_PX)

        until(is_open, "the menu is open")
        self.desktop.screenshot("app-menu")
        self.desktop.run("xdotool", "key", "--delay", "60", *keys)

    def notified(self, name: str) -> None:
        """Wait for a notification on the screen, outside the panel and the menu."""
        corner = (SCREEN[0] // 2, SCREEN[1] // 2, *SCREEN)

        def colors() -> int:
            return len(self.desktop.picture().crop(corner).getcolors(1 << 20) or ())

        until(lambda: colors() > 2, "a notification is on the screen")
        self.desktop.screenshot(name)


YAML = "application/yaml=editor.desktop\napplication/x-yaml=editor.desktop\ntext/plain=editor.desktop\n"


@contextmanager
def seen_on(panel: Panel) -> Iterator[TrayOnDesktop]:
    with desktop_session(panel, notifications=True) as desktop:
        seen = TrayOnDesktop(desktop)
        try:
            yield seen
        finally:
            for process in desktop.processes.copy():
                if process.args[1:2] == own_command()[1:2]:  # type: ignore[index]
                    desktop.end(process)
            seen.app.end()


@pytest.fixture(scope="module")
def xfce() -> Iterator[TrayOnDesktop]:
    with seen_on("xfce4-panel") as seen:
        seen.icon(IconKind.HEALTHY)
        yield seen


@pytest.mark.requirement("tray-real")
def test_reconnect_all_in_the_menu_reconnects_every_server_in_use_and_a_notification_says_so(
    xfce: TrayOnDesktop,
) -> None:
    xfce.app.ask("reconnect", server="sample")
    xfce.choose("Down", "Down", "Down", "Down", "Return")  # Reconnect all is the fourth entry

    def states() -> list[str]:
        snapshot = xfce.app.snapshot()
        return [row["state"] for row in snapshot["servers"]] if snapshot else []

    until(lambda: states() == ["connected", "idle"], "the one that sleeps goes on sleeping")
    xfce.notified("app-reconnected")


@pytest.mark.requirement("tray-real")
def test_open_servers_yaml_in_the_menu_opens_it_with_the_desktop_s_own_opener(xfce: TrayOnDesktop) -> None:
    xfce.choose(*["Down"] * 7, "Return")  # Open servers.yaml is the seventh entry
    until(lambda: xfce.app.opened() == [str(xfce.app.file)], "the editor has it")


@pytest.mark.requirement("tray-real", "tray-restart")
def test_the_icon_tells_of_a_dead_gateway_and_of_the_next_one(xfce: TrayOnDesktop) -> None:
    before = xfce.app.gateway()
    os.kill(before, signal.SIGSTOP)
    xfce.icon(IconKind.DOWN)
    xfce.gone(IconKind.HEALTHY)
    xfce.desktop.screenshot("app-hung")
    os.kill(before, signal.SIGKILL)
    xfce.app.next_gateway(before)
    xfce.icon(IconKind.HEALTHY)


@pytest.mark.requirement("tray-real")
def test_on_a_panel_that_knows_only_xembed_the_icon_is_there_and_a_click_shows_the_state() -> None:
    with seen_on("tint2") as seen:
        seen.desktop.click(*middle(seen.icon(IconKind.HEALTHY)))
        seen.notified("app-tint2")
        seen.app.file.write_text("servers: [")
        seen.icon(IconKind.DEGRADED)
        seen.gone(IconKind.HEALTHY)
