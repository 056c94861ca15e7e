"""The packaged tray on a real panel, by mouse and keyboard. Never here: what each item of its menu does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from PIL import ImageChops

from tests.packaged.running import PackagedTray
from tests.tray.bus import until
from tests.tray.desktop.session import PANEL_HEIGHT, SCREEN, Box, Desktop, desktop_session, middle
from trayapp.tray.icons import COLOURS
from trayapp.tray.state import IconKind

PANEL: Box = (0, 0, SCREEN[0], PANEL_HEIGHT)
MENU: Box = (0, PANEL_HEIGHT, SCREEN[0] // 2, SCREEN[1])  # far from notifications
TOOLTIP_PX = 100  # it is lower than that, the menu higher
TOLERANCE = 24


def healthy() -> tuple[int, int, int]:
    """The colour of the icon on a panel of which nothing is known."""
    text = COLOURS[IconKind.HEALTHY].either.removeprefix("#")
    red, green, blue = (int(text[at : at + 2], 16) for at in (0, 2, 4))
    return red, green, blue


def open_menu(desktop: Desktop) -> None:
    """By a click of the right button on the icon."""
    before = desktop.calm()
    desktop.click(*middle(desktop.until_seen(healthy(), PANEL, TOLERANCE)), 3)

    def is_open() -> bool:
        box = ImageChops.difference(before.crop(MENU), desktop.picture().crop(MENU)).getbbox()
        return bool(box and box[3] - box[1] > TOOLTIP_PX)

    until(is_open, "the menu is open")


@pytest.mark.requirement("package-tray")
def test_a_real_panel_shows_the_icon_and_its_menu_and_quit_ends_it(bundle: Path) -> None:
    with desktop_session("xfce4-panel") as desktop:
        home = desktop.home / "mm"
        home.mkdir()
        app = PackagedTray(home, desktop.bus_address, bundle)
        app.env = {**app.env, **desktop.environ, "HOME": str(app.user), "MULTI_MCP_HOME": str(home)}
        app.servers("sample", sample={"command": [str(bundle / "multi-mcp-shim"), "sample-server"]})
        tray = desktop.start([str(bundle / "multi-mcp-tray")], **app.env)
        try:
            open_menu(desktop)
            desktop.screenshot("packaged-menu")
            desktop.run("xdotool", "key", "--delay", "60", "Up", "Return")  # the last item
            until(lambda: tray.poll() == 0, "the tray ends")
            assert app.snapshot() is None
        finally:
            desktop.end(tray)
            app.end()
