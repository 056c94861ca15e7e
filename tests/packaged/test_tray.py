"""The packaged tray on a panel, with its gateway."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from anyio import to_thread

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from tests.e2e.client import client_of
from tests.packaged.running import PackagedTray, packaged_tray
from tests.tools import require
from tests.tray.bus import until
from tests.tray.desktop.session import start_screen
from tests.tray.linux.test_selection import Reader
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
    panel.click("Servers > sample > Reconnect")  # the server is idle, and "Reconnect all" skips idle servers
    panel.told("Reconnected: sample")
    panel.server.shown.clear()
    panel.click("Reconnect all")
    panel.told("Reconnected: sample")
    panel.click("About")
    panel.told("multi-mcp 0.", "(")
    gateway = app.gateway()
    panel.click("Quit")
    assert app.tray.wait(END_S) == 0
    assert not psutil.pid_exists(gateway)


@pytest.mark.requirement("package-stable", "package-clean-children", "autostart-update")
def test_start_at_login_and_clients_name_the_programs_themselves(
    home: Path, address: str, panel: Panel, bundle: Path
) -> None:
    with packaged_tray(home, address, bundle, WAYLAND_DISPLAY="none") as app:
        panel.click("Start at login")
        entry = app.user / ".config" / "autostart" / "multi-mcp.desktop"
        until(entry.exists, "the entry is written")
        assert f'"{app.bundle / "multi-mcp-tray"}" "tray" "--autostart"' in entry.read_text()
        app.program("wl-copy", f"/bin/cat > {app.user}/copied; /usr/bin/env > {app.user}/got")
        panel.click("AI tools > Copy stdio command")
        panel.told("Copied")
        assert (app.user / "copied").read_text().strip() == f"{app.bundle / 'multi-mcp-shim'} stdio"
        assert "LD_LIBRARY_PATH" not in (app.user / "got").read_text()


@pytest.mark.requirement("package-tray", "tray-actions")
def test_what_is_copied_is_pasted_on_an_x_display(home: Path, address: str, panel: Panel, bundle: Path) -> None:
    with start_screen() as name, packaged_tray(home, address, bundle, DISPLAY=name) as app:
        panel.click("AI tools > Copy stdio command")
        panel.told("Copied")
        reader = Reader(name)
        assert reader.paste("UTF8_STRING").decode() == f"{app.bundle / 'multi-mcp-shim'} stdio"
        reader.display.close()


@pytest.mark.anyio
@pytest.mark.requirement("package-upgrade")
async def test_an_archive_unpacked_over_a_running_program_is_taken_up_by_tray_and_gateway(
    home: Path, address: str, panel: Panel, bundle: Path
) -> None:
    place = home / "program"
    unpack(bundle, place)
    app = PackagedTray(home, address, place)
    app.servers("sample", sample={"command": [str(place / "multi-mcp-shim"), "sample-server"]})
    try:
        async with client_of([str(place / "multi-mcp-shim"), "stdio"], app.env, home) as client:
            assert (await client.call("sample_add", a=1, b=1))["content"][0]["text"] == "2"
            gateway = app.gateway()
            unpack(bundle, place)
            tray = app.start()  # finds the gateway of the old program
            await to_thread.run_sync(app.next_gateway, gateway)
            assert (await client.call("sample_add", a=2, b=3))["content"][0]["text"] == "5"

            await to_thread.run_sync(panel.until_header, READY)
            gateway, first = app.gateway(), panel.item.bus_name
            unpack(bundle, place)
            told, _ = await to_thread.run_sync(lambda: app.start().communicate(timeout=END_S))
            assert "updated" in told
            await to_thread.run_sync(until, lambda: panel.item.bus_name != first, "the new tray's icon")
            await to_thread.run_sync(app.next_gateway, gateway)
            assert (await client.call("sample_add", a=3, b=4))["content"][0]["text"] == "7"
        assert tray.poll() is None  # the first tray's process keeps running
    finally:
        app.end()


def unpack(bundle: Path, place: Path) -> None:
    """Copy the bundle over the folder as `tar` does, which replaces files instead of rewriting them."""
    place.mkdir(exist_ok=True)
    subprocess.run(["cp", "--archive", "--remove-destination", f"{bundle}/.", place], check=True)


@pytest.mark.requirement("autostart", "package-tray")
def test_the_next_login_brings_the_icon_back(app: PackagedTray, panel: Panel) -> None:
    panel.click("Start at login")
    until((app.user / ".config" / "autostart" / "multi-mcp.desktop").exists, "the entry is written")
    first = panel.item.bus_name
    panel.click("Quit")
    assert app.tray.wait(END_S) == 0
    login = {**app.env, "XDG_CONFIG_DIRS": str(app.home / "none")}  # without the machine's autostart entries
    subprocess.run([require("dex"), "--autostart", "--environment", "i3"], env=login, check=True, timeout=END_S)
    until(lambda: panel.item.bus_name != first, "an icon after the login")
    panel.until_header(READY)
    panel.click("Quit")
    until(lambda: app.snapshot() is None, "the gateway ends")
