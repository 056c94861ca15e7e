"""A real notification with its buttons on a real desktop: a click with the mouse, and the call that waits goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from PIL import Image, ImageChops

from tests.tools import require, require_file
from tests.tray.bus import NOTIFICATIONS, until
from tests.tray.desktop.session import PANEL_HEIGHT, SCREEN, Box, Desktop, Panel, desktop_session
from tests.tray.running import TrayApp
from trayapp.service.command_line import own_command, sample_command

XFCE4_NOTIFYD = Path("/usr/share/dbus-1/services/org.xfce.xfce4-notifyd.Notifications.service")
BELOW: Box = (0, PANEL_HEIGHT + 4, *SCREEN)
# Where the button is: pixels from the left (or, negative, right) edge of the notification, and above its lower edge.
ALLOW: dict[Panel, tuple[int, int]] = {"xfce4-panel": (58, 31), "plasmashell": (-46, 19), "lxqt-panel": (-84, 32)}
DENY: dict[Panel, tuple[int, int]] = {"xfce4-panel": (-58, 31)}


def show_notifications(desktop: Desktop, panel: Panel) -> None:
    """Start the desktop's own notification server; Plasma's panel is one."""
    if panel == "xfce4-panel":
        service = require_file(XFCE4_NOTIFYD, "install xfce4-notifyd").read_text(encoding="utf-8")
        desktop.start([next(line for line in service.splitlines() if line.startswith("Exec=")).removeprefix("Exec=")])
    elif panel == "lxqt-panel":
        desktop.start([require("lxqt-notificationd")])
    until(lambda: desktop.owns(NOTIFICATIONS), "there is a notification server")


class Caller:
    """An AI tool: the shim, spoken to in frames."""

    def __init__(self, app: TrayApp) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*own_command(), "stdio"], env=app.env, stdin=pipe, stdout=pipe, cwd=app.home)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "Claude", "version": "1"}}
        self.send(id=1, method="initialize", params=hello)
        assert self.answer()["id"] == 1
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while "id" not in (message := json.loads(self.process.stdout.readline())):
            pass
        found: dict[str, Any] = message
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()


def notification(desktop: Desktop, before: Image.Image) -> Box:
    """Where it is, once it is all there."""
    seen: list[Box | None] = []

    def still() -> Box | None:
        seen.append(ImageChops.difference(before.crop(BELOW), desktop.picture().crop(BELOW)).getbbox())
        last = seen[-1]
        return last if last and last[3] - last[1] > 100 and seen[-8:] == [last] * 8 else None

    left, top, right, bottom = until(still, "the notification is on the screen")
    return left, top + BELOW[1], right, bottom + BELOW[1]


@pytest.mark.requirement("ask-click", "tray-real-panels")
@pytest.mark.parametrize(
    ("panel", "buttons", "answer"),
    [
        ("xfce4-panel", ALLOW, "hello"),
        ("xfce4-panel", DENY, "ask_denied"),
        ("plasmashell", ALLOW, "hello"),
        ("lxqt-panel", ALLOW, "hello"),  # more than three answers are a list there, the first one chosen
    ],
)
def test_a_click_on_a_real_notification_s_button_answers_the_call_that_waits(
    panel: Panel, buttons: dict[Panel, tuple[int, int]], answer: str
) -> None:
    with desktop_session(panel) as desktop:
        show_notifications(desktop, panel)
        home = desktop.home / "mm"
        home.mkdir()
        app = TrayApp(home, desktop.bus_address)
        app.env = {**app.env, **desktop.environ, "HOME": str(app.user), "MULTI_MCP_HOME": str(home)}
        settings = {"expose": "tools", "ask": "all", "http": {"enabled": False}}
        sample = {"sample": {"command": sample_command()}}
        app.file.write_text(json.dumps({"settings": settings, "servers": sample}), encoding="utf-8")
        desktop.start([*own_command(), "tray"], **app.env)
        caller: Caller | None = None
        try:
            until(lambda: "-> running" in app.log(), "the tray is there")
            before = desktop.calm()
            caller = Caller(app)
            caller.send(id=2, method="tools/call", params={"name": "sample_echo", "arguments": {"text": "hello"}})
            box = notification(desktop, before)
            desktop.screenshot(f"{panel}-ask")
            across, above = buttons[panel]
            desktop.click((box[0] if across > 0 else box[2]) + across, box[3] - above)
            assert answer in json.dumps(caller.answer())
        finally:
            if caller is not None:
                caller.end()
            app.end()
