"""The packaged tray on a panel, with its gateway. Never here: each item of its menu (tests/tray)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from tests.packaged.running import PackagedTray, packaged_tray
from tests.tools import require
from tests.tray.bus import until
from tests.tray.running import END_S, Panel

READY = "1 of 1 server ready, 3 tools"


@pytest.fixture
def app(home: Path, address: str, panel: Panel, bundle: Path) -> Iterator[PackagedTray]:
    with packaged_tray(home, address, bundle) as made:
        panel.until_header(READY)
        yield made


@pytest.mark.requirement("package-tray", "package-version")
def test_the_icon_registers_and_its_menu_works_to_the_end(app: PackagedTray, panel: Panel) -> None:
    assert panel.item.pixel()[0] > 0
    panel.click("Reconnect all")
    panel.told("Reconnected", "sample")
    panel.click("About")
    panel.told("multi-mcp 0.", "(")
    gateway = app.gateway()
    panel.click("Quit")
    assert app.tray.wait(END_S) == 0
    assert not psutil.pid_exists(gateway)


@pytest.mark.requirement("package-stable", "package-clean-children", "autostart-update")
def test_start_at_login_and_clients_name_the_programs_themselves(app: PackagedTray, panel: Panel) -> None:
    panel.click("Start at login")
    entry = app.user / ".config" / "autostart" / "multi-mcp.desktop"
    until(entry.exists, "the entry is written")
    assert f'"{app.bundle / "multi-mcp-tray"}" "tray" "--autostart"' in entry.read_text()
    app.program("xclip", f"/bin/cat > {app.user}/copied; /usr/bin/env > {app.user}/got")
    panel.click("Connect a client > Copy stdio command")
    panel.told("Copied")
    assert (app.user / "copied").read_text().strip() == f"{app.bundle / 'multi-mcp-shim'} stdio"
    assert "LD_LIBRARY_PATH" not in (app.user / "got").read_text()


@pytest.mark.requirement("package-upgrade")
def test_an_updated_tray_goes_on_as_the_new_one(app: PackagedTray, panel: Panel) -> None:
    gateway, first = app.gateway(), panel.item.bus_name
    os.kill(app.tray.pid, signal.SIGUSR1)
    until(lambda: panel.item.bus_name != first, "the new tray's icon")
    panel.until_header(READY)
    assert app.tray.poll() is None  # the same process to whoever started it
    assert app.gateway() != gateway


@pytest.mark.requirement("autostart", "package-tray")
def test_the_next_login_brings_the_icon_back(app: PackagedTray, panel: Panel) -> None:
    panel.click("Start at login")
    until((app.user / ".config" / "autostart" / "multi-mcp.desktop").exists, "the entry is written")
    first = panel.item.bus_name
    panel.click("Quit")
    assert app.tray.wait(END_S) == 0
    login = {**app.env, "XDG_CONFIG_DIRS": str(app.home / "none")}  # nothing of the machine's own
    subprocess.run([require("dex"), "--autostart", "--environment", "i3"], env=login, check=True, timeout=END_S)
    until(lambda: panel.item.bus_name != first, "an icon after the login")
    panel.until_header(READY)
    panel.click("Quit")
    until(lambda: app.snapshot() is None, "the gateway ends")
