"""Tests of real notifications with buttons on real desktops: a mouse click lets the waiting call continue."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from PIL import Image, ImageChops

from tests.tools import require, require_file
from tests.tray.bus import NOTIFICATIONS, until
from tests.tray.desktop.session import PANEL_HEIGHT, SCREEN, Box, Desktop, Panel, desktop_session, middle
from tests.tray.desktop.test_whole_app import PANEL, TOLERANCE, color
from tests.tray.running import TrayApp
from trayapp.service.command_line import own_command, sample_command
from trayapp.tray.state.tray_state import IconKind

XFCE4_NOTIFYD = Path("/usr/share/dbus-1/services/org.xfce.xfce4-notifyd.Notifications.service")
BELOW: Box = (0, PANEL_HEIGHT + 4, *SCREEN)
# The button's position: pixels from the left edge of the notification (from the right edge if negative), and
# pixels above its lower edge. LXQt shows more than three answers as a list, in which the first answer is selected.
ALLOW: dict[Panel, tuple[int, int]] = {"xfce4-panel": (58, 31), "plasmashell": (-46, 19), "lxqt-panel": (-84, 32)}
DENY = (-58, 31)  # the position in Xfce
PANELS = list(ALLOW)
XFCE = PANELS[:1]
BAR = "\u2588" * 10
BAR_PX = 70  # minimum width of the bar, which is wider than the notification's picture
SUBMENU_PX = 320  # an open submenu extends beyond this, but the menu does not
LETTER_PX = 10  # minimum height of a letter
CLICKED_AGAIN_S = 5.0  # time after which a person would click again


def show_notifications(desktop: Desktop, panel: Panel) -> None:
    """Start the desktop's notification server, unless the panel includes one, as Plasma's does."""
    if panel == "xfce4-panel":
        service = require_file(XFCE4_NOTIFYD, "install xfce4-notifyd").read_text(encoding="utf-8")
        desktop.start([next(line for line in service.splitlines() if line.startswith("Exec=")).removeprefix("Exec=")])
    elif panel == "lxqt-panel":
        desktop.start([require("lxqt-notificationd")])
    until(lambda: desktop.owns(NOTIFICATIONS), "there is a notification server")


class Caller:
    """An AI tool that exchanges frames with the shim."""

    def __init__(self, app: TrayApp) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*own_command(), "stdio"], env=app.env, stdin=pipe, stdout=pipe, cwd=app.home)
        self.answers = queue.SimpleQueue[dict[str, Any]]()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "Claude", "version": "1"}}
        self.send(id=1, method="initialize", params=hello)
        assert self.answer()["id"] == 1
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> None:
        """Collect answers until the output ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "id" in (message := json.loads(line)):
                self.answers.put(message)

    def answer(self, within_s: float = 60) -> dict[str, Any]:
        """Wait for the next answer and return it. Raises queue.Empty if there is none within `within_s`."""
        return self.answers.get(timeout=within_s)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Desk:
    """A desktop with a panel, the tray and the gateway, shared by consecutive calls.

    After a failed test, it is replaced by a new one.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self._running: ExitStack | None = None
        self._desktop: Desktop
        self._app: TrayApp
        self._before: Image.Image  # the screen without notifications

    def end(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    @contextmanager
    def asked(self, text: str) -> Iterator[tuple[Desktop, Callable[[], Box], Caller]]:
        """Make a call that waits for the user, and wait for its notification.

        Yield the desktop, a function that returns the notification's box on the screen, and the caller. On a busy
        machine, the notification may stop moving before it has its final place and size.
        """
        try:
            if self._running is None:
                self._start()
            self._before = self._desktop.calm()
            caller = Caller(self._app)
            try:
                caller.send(id=2, method="tools/call", params={"name": "sample_echo", "arguments": {"text": text}})
                self._notification()
                yield self._desktop, self._notification, caller
            finally:
                caller.end()
            until(lambda: self._changed() is None, "the notification is gone")
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        self._running = ExitStack()
        self._desktop = desktop = self._running.enter_context(desktop_session(self.panel))
        show_notifications(desktop, self.panel)
        home = desktop.home / "mm"
        home.mkdir()
        self._app = app = TrayApp(home, desktop.bus_address)
        app.env = {**app.env, **desktop.environ, "HOME": str(app.user), "MULTI_MCP_HOME": str(home)}
        settings = {"expose": "tools", "ask": "all", "http": {"enabled": False}}
        sample = {"sample": {"command": sample_command()}}
        app.file.write_text(json.dumps({"settings": settings, "servers": sample}), encoding="utf-8")
        desktop.start([*own_command(), "tray"], **app.env)
        self._running.callback(app.end)
        until(lambda: "-> running" in app.log(), "the tray is there")

    def _changed(self) -> Box | None:
        return ImageChops.difference(self._before.crop(BELOW), self._desktop.picture().crop(BELOW)).getbbox()

    def _notification(self) -> Box:
        """Wait until the notification is completely drawn, and return its box on the screen."""
        seen: list[Box | None] = []

        def still() -> Box | None:
            seen.append(self._changed())
            last = seen[-1]
            return last if last and last[3] - last[1] > 100 and seen[-8:] == [last] * 8 else None

        left, top, right, bottom = until(still, "the notification is on the screen")
        return left, top + BELOW[1], right, bottom + BELOW[1]


@pytest.fixture(scope="module")
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Yield a desktop with this panel. Tests with the same panel run in succession."""
    made = Desk(request.param)
    yield made
    made.end()


def menu_right(before: Image.Image, after: Image.Image) -> int:
    """Return the right edge of the menu in the half of the screen without notifications, or 0 if it is closed."""
    half = (0, PANEL_HEIGHT, SCREEN[0] // 2, SCREEN[1])
    box = ImageChops.difference(before.crop(half), after.crop(half)).getbbox()
    return box[2] if box else 0


def bar_height(picture: Image.Image) -> int:
    """Return the largest number of adjacent pixel rows with a dark section as wide as the bar."""
    dark = picture.convert("L").point([level < 110 for level in range(256)])
    wide, best, rows = bytes([1]) * BAR_PX, 0, 0
    for top in range(dark.height):
        rows = rows + 1 if wide in dark.crop((0, top, dark.width, top + 1)).tobytes() else 0
        best = max(best, rows)
    return best


def click(desk: Desk, button: tuple[int, int]) -> str:
    """Make a call, click this button of its notification, and return the answer as JSON."""
    with desk.asked("hello") as (desktop, find, caller):
        across, above = button

        def clicked() -> str | None:
            box = find()
            desktop.screenshot(f"{desk.panel}-ask")
            desktop.click((box[0] if across > 0 else box[2]) + across, box[3] - above)
            try:
                return json.dumps(caller.answer(CLICKED_AGAIN_S))
            except queue.Empty:  # missed, because the notification was still growing
                return None

        answer: str = until(clicked, "the call goes on")
        return answer


@pytest.mark.requirement("ask-click", "tray-real-panels")
@pytest.mark.parametrize("desk", PANELS, indirect=True)
def test_a_click_on_a_real_notification_s_button_lets_the_call_go_on(desk: Desk) -> None:
    assert "hello" in click(desk, ALLOW[desk.panel])


@pytest.mark.requirement("ask-click", "tray-real-panels")
@pytest.mark.parametrize("desk", XFCE, indirect=True)
def test_a_click_on_a_real_notification_s_button_denies_the_call(desk: Desk) -> None:
    assert "ask_denied" in click(desk, DENY)


@pytest.mark.requirement("ask-shown", "tray-real-panels")
@pytest.mark.parametrize("desk", PANELS, indirect=True)
def test_a_real_notification_shows_the_end_of_the_last_argument(desk: Desk) -> None:
    """The argument is the longest that is not cut. It ends in a solid bar, which can be found on the screen."""
    with desk.asked(f"{'delete all of this and that ' * 2}{BAR}") as (desktop, find, _):
        until(lambda: bar_height(desktop.picture().crop(find())) >= LETTER_PX, "all of it is drawn")
        desktop.screenshot(f"{desk.panel}-long-ask")


@pytest.mark.requirement("ask-tray", "tray-real-panels")
@pytest.mark.parametrize("desk", XFCE, indirect=True)
@pytest.mark.parametrize(("keys", "answer"), [((), "hello"), (("Down",) * 3, "ask_denied")])
def test_the_menu_on_a_real_panel_answers_the_call_that_waits(desk: Desk, keys: tuple[str, ...], answer: str) -> None:
    with desk.asked("hello") as (desktop, _, caller):
        icon = desktop.until_seen(color(IconKind.ATTENTION), PANEL, TOLERANCE)
        before = desktop.picture()
        desktop.click(*middle(icon), 3)
        until(lambda: menu_right(before, desktop.picture()), "the menu is open")
        desktop.run("xdotool", "key", "--delay", "200", "Down", "Down", "Right")  # passes the state and opens the entry
        until(lambda: menu_right(before, desktop.picture()) > SUBMENU_PX, "the submenu is open")
        desktop.screenshot("xfce4-panel-ask-menu")
        desktop.run("xdotool", "key", "--delay", "200", *keys, "Return")
        assert answer in json.dumps(caller.answer())
        desktop.until_gone(color(IconKind.ATTENTION), PANEL, TOLERANCE)
