"""The Debian package on a system with essential packages only, for a user without any files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from PIL import ImageChops

from tests.e2e.client import client_of
from tests.packaged.clean_root import CleanRoot, clean_root
from tests.tools import require
from tests.tray.bus import until
from tests.tray.desktop.session import PANEL_HEIGHT, SCREEN, Box, Desktop, desktop_session, middle
from tests.tray.running import END_S
from trayapp.tray.icons import COLORS
from trayapp.tray.state.tray_state import IconKind

PANEL: Box = (0, 0, SCREEN[0], PANEL_HEIGHT)
MENU: Box = (0, PANEL_HEIGHT, SCREEN[0] // 2, SCREEN[1])  # away from the notifications
TOOLTIP_PX = 100  # more than the height of a tooltip, less than that of the menu
TOLERANCE = 24
PROGRAM, TRAY, SHIM = "/usr/bin/multi-mcp", "/usr/lib/multi-mcp/multi-mcp-tray", "/usr/lib/multi-mcp/multi-mcp-shim"
DEB = "/tmp/multi-mcp.deb"  # the path in the root
ENTRY = ".config/autostart/multi-mcp.desktop"


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    with desktop_session("xfce4-panel") as made:
        yield made


@pytest.fixture
def clean(desktop: Desktop, deb: Path, tmp_path: Path) -> Iterator[CleanRoot]:
    """Yield a root with the essential packages and ours. It uses the bus and the screen of the desktop outside."""
    require("dex")
    bus = desktop.bus_address.removeprefix("unix:path=").partition(",")[0]
    with clean_root(tmp_path / "root", bus, DISPLAY=desktop.environ["DISPLAY"]) as made:
        shutil.copy(deb, made.folder / DEB.lstrip("/"))
        made.dpkg("--install", DEB)
        yield made


def healthy() -> tuple[int, int, int]:
    """Return the color of a healthy icon on a panel of unknown color."""
    text = COLORS[IconKind.HEALTHY].either.removeprefix("#")
    red, green, blue = (int(text[at : at + 2], 16) for at in (0, 2, 4))
    return red, green, blue


def open_menu(desktop: Desktop) -> None:
    """Open the menu with a right click on the icon."""
    before = desktop.calm()
    desktop.click(*middle(desktop.until_seen(healthy(), PANEL, TOLERANCE)), 3)

    def is_open() -> bool:
        box = ImageChops.difference(before.crop(MENU), desktop.picture().crop(MENU)).getbbox()
        return bool(box and box[3] - box[1] > TOOLTIP_PX)

    until(is_open, "the menu is open")


def quit_by_menu(desktop: Desktop) -> None:
    """Choose Quit, the menu's last item, with the keyboard."""
    open_menu(desktop)
    desktop.screenshot("packaged-menu")
    desktop.run("xdotool", "key", "--delay", "60", "Up", "Return")


@pytest.mark.anyio
@pytest.mark.timeout(180)  # an installation, an update and a removal on a busy machine
@pytest.mark.requirement("package-clean-root", "package-deb", "package-tray", "package-upgrade", "autostart")
async def test_a_fresh_user_of_a_clean_system_has_it_all_and_after_its_removal_their_files(
    desktop: Desktop, clean: CleanRoot
) -> None:
    for foreign in ("python3", "node"):
        assert not (clean.folder / "usr/bin" / foreign).exists()
    assert "2 + 3 = 5" in clean.run(PROGRAM, "demo").stdout
    assert clean.processes() == []

    tray = desktop.start(clean.command(TRAY))
    clean.run(PROGRAM, "autostart", "on")
    quit_by_menu(desktop)
    assert tray.wait(END_S) == 0
    until(lambda: clean.processes() == [], "what the opened menu had it look at (a process of 0.2 s) has ended, too")

    clean.add("dex")  # runs the autostart entries, as i3's sessions do
    assert desktop.start(clean.command("/usr/bin/dex", "--autostart", "--environment", "i3")).wait(END_S) == 0
    desktop.until_seen(healthy(), PANEL, TOLERANCE)
    async with client_of(clean.command(SHIM, "stdio"), {"PATH": "/usr/bin"}, clean.folder) as client:
        assert (await client.call("sample_add", a=2, b=3))["content"][0]["text"] == "5"
        clean.dpkg("--install", DEB)  # an upgrade while everything runs
        old = [path for path in clean.processes() if "deleted" in path and SHIM not in path]
        assert old == [], "no call meets a gateway that is about to end"
        assert (await client.call("sample_add", a=3, b=4))["content"][0]["text"] == "7"
    until(lambda: clean.processes() and not any("deleted" in path for path in clean.processes()), "all of it is new")
    desktop.until_seen(healthy(), PANEL, TOLERANCE)

    (kept := clean.home / ENTRY).with_name("other.desktop").write_text("[Desktop Entry]\nExec=/usr/bin/other\n")
    assert f'"{TRAY}" "tray" "--autostart"' in kept.read_text()
    clean.dpkg("--remove", "multi-mcp")
    assert clean.processes() == []
    assert not (clean.folder / "usr/lib/multi-mcp").exists()
    assert [path.name for path in kept.parent.iterdir()] == ["other.desktop"]
    assert "sample" in (clean.home / ".config/multi-mcp/servers.yaml").read_text()
