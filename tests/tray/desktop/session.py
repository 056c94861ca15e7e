"""A desktop for tests: Xvfb, a session bus, a window manager, a panel and a notification server, all of them real.

Tests that need a screen use it: `with desktop_session("xfce4-panel") as desktop: desktop.start([...])`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import Xlib.display
import Xlib.error
import Xlib.X
from jeepney import DBusAddress, Properties, message_bus, new_method_call
from jeepney.io.blocking import open_dbus_connection
from PIL import Image

from tests.fixtures.ending import end
from tests.tools import require, require_file
from tests.tray.bus import CONFIG, NOTIFICATIONS, WAIT_S, WATCHER, session_bus, until

Panel = Literal["xfce4-panel", "tint2", "lxqt-panel", "plasmashell", "gnome-shell"]
Box = tuple[int, int, int, int]  # left, top, right, bottom, in pixels
SCREEN = (900, 500)
PANEL_HEIGHT = 28
ROOT_COLOR = (0x20, 0x30, 0x40)
SKY: Box = (400, 60, 500, 160)  # a part of Plasma's wallpaper
SCREENSHOTS = Path(__file__).resolve().parents[3] / ".cache" / "screenshots"
SERVICES = Path("/usr/share/dbus-1/services")
END_S = 5.0
ALL_PLANES = 0xFFFFFFFF
CALM = 12  # consecutive equal pictures, about 0.1 s

# A panel along the top that contains only the icons, so that tests find them.
XFCE_PANEL = f"""<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
<property name="configver" type="int" value="2"/>
<property name="panels" type="array"><value type="int" value="1"/>
<property name="panel-1" type="empty">
<property name="position" type="string" value="p=6;x=0;y=0"/><property name="length" type="uint" value="100"/>
<property name="position-locked" type="bool" value="true"/><property name="size" type="uint" value="{PANEL_HEIGHT}"/>
<property name="plugin-ids" type="array"><value type="int" value="1"/></property></property></property>
<property name="plugins" type="empty"><property name="plugin-1" type="string" value="systray">
<property name="square-icons" type="bool" value="true"/></property></property>
</channel>"""

TINT2 = f"""rounded = 0
border_width = 0
background_color = #336699 100
panel_items = S
panel_size = 100% {PANEL_HEIGHT}
panel_position = top center horizontal
panel_background_id = 1
systray_padding = 4 2 4
systray_icon_size = 24
"""
TINT2_COLOR = (0x33, 0x66, 0x99)

LXQT = f"""[General]
__userfile__=true
panels=panel1
[panel1]
plugins=statusnotifier
position=Top
desktop=0
alignment=0
width=100
width-percent=true
panelSize={PANEL_HEIGHT}
iconSize=22
hidable=false
[statusnotifier]
type=statusnotifier
alignment=Left
"""

# A panel that shows all icons. Location 3 is the top of the screen.
PLASMA = """[Containments][1]
activityId=
formfactor=2
immutability=1
lastScreen=0
location=3
plugin=org.kde.panel
[Containments][1][Applets][2]
immutability=1
plugin=org.kde.plasma.systemtray
[Containments][1][Applets][2][Configuration]
SystrayContainmentId=3
[Containments][1][General]
AppletOrder=2
[Containments][3]
activityId=
formfactor=2
immutability=1
lastScreen=0
location=3
plugin=org.kde.plasma.private.systemtray
[Containments][3][General]
extraItems=
showAllItems=true
"""
PLASMA_PANEL = f"""[PlasmaViews][Panel 1][Defaults]
thickness={PANEL_HEIGHT}
"""
KDED = "org.kde.kded5"

# A panel that contains only the icons, with no overview in front of it.
APPINDICATOR = "ubuntu-appindicators@ubuntu.com"
GNOME_EXTENSIONS = Path("/usr/share/gnome-shell/extensions")
GNOME_MODE = {
    "parentMode": "user",
    "hasOverview": False,
    "hasNotifications": False,
    "showWelcomeDialog": False,
    "components": [],
    "enabledExtensions": [APPINDICATOR],
    "panel": {"left": [], "center": [], "right": []},
}
GNOME_SETTINGS = """[org/gnome/desktop/interface]
enable-animations=false
"""

DUNST = r"""[global]
origin = bottom-right
offset = 10x10
width = 300
font = DejaVu Sans 10
markup = full
format = <b>%s</b>\n%b
idle_threshold = 0
mouse_left_click = do_action, close_current
[urgency_normal]
timeout = 0
"""


@dataclass
class Desktop:
    """A running desktop that tests look at and click. `environ`: the environment of programs that the user starts."""

    home: Path
    environ: dict[str, str]
    bus_address: str
    screen: subprocess.Popen[str]
    processes: list[subprocess.Popen[Any]] = field(default_factory=list)
    eye: Any = None  # our connection to the screen, because a program for each picture takes 20 times as long

    def start(self, argv: list[str], **environ: str) -> subprocess.Popen[Any]:
        """Start a program, which ends with the session, and return its process."""
        log = (self.home / f"{Path(argv[0]).name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                argv, env={**self.environ, **environ}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home
            )
        self.processes.append(process)
        return process

    def end(self, process: subprocess.Popen[Any]) -> None:
        """End a program that `start` has started, by force if necessary."""
        _end(process)
        self.processes = [other for other in self.processes if other is not process]

    def run(self, *argv: str) -> bytes:
        """Run a short-lived program and return its output."""
        return subprocess.run(argv, env=self.environ, stdout=subprocess.PIPE, check=True, timeout=WAIT_S).stdout

    def picture(self) -> Image.Image:
        """Return a picture of the screen."""
        if self.eye is None:
            self.eye = Xlib.display.Display(self.environ["DISPLAY"])
        pixels = self.eye.screen().root.get_image(0, 0, *SCREEN, Xlib.X.ZPixmap, ALL_PLANES).data
        return Image.frombytes("RGB", SCREEN, pixels, "raw", "BGRX")

    def screenshot(self, name: str) -> Path:
        """Save a picture of the screen for people to look at, and return its path."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.picture().save(path)
        return path

    def click(self, x: int, y: int, button: int = 1, times: int = 1) -> None:
        """Click at this position with the left (1), middle (2) or right (3) button."""
        self.run("xdotool", "mousemove", str(x), str(y), "click", "--repeat", str(times), str(button))

    def calm(self) -> Image.Image:
        """Move the mouse away from everything, wait until the screen no longer changes, and return a picture of it."""
        self.run("xdotool", "mousemove", str(SCREEN[0] // 2), str(SCREEN[1] // 2))
        last = [self.picture()]

        def same() -> bool:
            last.append(self.picture())
            return len(last) > CALM and all(picture == last[-1] for picture in last[-CALM:])

        until(same, "nothing moves")
        return last[-1]

    def owns(self, name: str) -> bool:
        """True if the name has an owner on the session bus."""
        with open_dbus_connection(self.bus_address) as connection:
            return bool(connection.send_and_get_reply(message_bus.NameHasOwner(name)).body[0])

    def start_panel(self, panel: Panel) -> subprocess.Popen[Any]:
        """Start the panel, wait until it accepts icons, and return its process."""
        if panel == "tint2":
            process = self.start([require("tint2"), "-c", str(_written(self.home / "tint2rc", TINT2))])
            until(lambda: _tray_owner(self.environ["DISPLAY"]), "tint2 is the tray")
        elif panel == "lxqt-panel":
            config = _written(self.home / "lxqt-panel.conf", LXQT)
            process = self.start([require("lxqt-panel"), "-c", str(config)])
            until(lambda: self.owns(WATCHER), "lxqt-panel is the watcher")
        elif panel == "plasmashell":
            _written(self.home / ".config/plasma-org.kde.plasma.desktop-appletsrc", PLASMA)
            _written(self.home / ".config/plasmashellrc", PLASMA_PANEL)
            if not self.owns(WATCHER):
                self._start_kde_watcher()
            process = self.start([require("plasmashell"), "--no-respawn"], QT_QUICK_BACKEND="software")
            until(self._has_host, "plasmashell shows icons")
            self.until_gone(ROOT_COLOR, SKY)  # the wallpaper is drawn last
        elif panel == "gnome-shell":
            process = self._start_gnome()
            until(lambda: self.owns(WATCHER), "GNOME's extension is the watcher")
        else:
            folder = self.home / ".config/xfce4/xfconf/xfce-perchannel-xml"
            _written(folder / "xfce4-panel.xml", XFCE_PANEL)
            process = self.start([require("xfce4-panel"), "--disable-wm-check"])
            until(lambda: self.owns(WATCHER), "xfce4-panel is the watcher")
        return process

    def _start_gnome(self) -> subprocess.Popen[Any]:
        """Start a system bus and GNOME Shell, which needs no window manager. Return the shell's process."""
        require_file(GNOME_EXTENSIONS / APPINDICATOR, "install gnome-shell-extension-appindicator")
        data = self.home / "data"
        _written(data / "gnome-shell/modes/icons.json", json.dumps(GNOME_MODE))
        _written(self.home / ".config/glib-2.0/settings/keyfile", GNOME_SETTINGS)
        _written(self.home / ".local/share/gnome-shell/lock-warning-shown", "")
        bus = self.home / "system-bus"
        config = _written(self.home / "system.conf", CONFIG.format(path=bus, services=""))
        self.start([require("dbus-daemon"), f"--config-file={config}", "--nofork"])
        until(bus.exists, "there is a system bus")
        return self.start(
            [require("gnome-shell"), "--x11", "--sm-disable", "--mode=icons"],
            PATH=str(self.home),  # without programs, because the shell would start ibus-daemon
            DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={bus}",
            XDG_CURRENT_DESKTOP="GNOME",
            XDG_DATA_DIRS=f"{data}:/usr/share",
            GSETTINGS_BACKEND="keyfile",
        )

    def _start_kde_watcher(self) -> None:
        """Start KDE's watcher, a module of kded5 that is loaded automatically only in a full session."""
        self.start([require("kded5")])
        until(lambda: self.owns(KDED), "kded5 is on the bus")
        call = new_method_call(DBusAddress("/kded", KDED, KDED), "loadModule", "s", ("statusnotifierwatcher",))
        with open_dbus_connection(self.bus_address) as connection:
            connection.send_and_get_reply(call, timeout=WAIT_S)
        until(lambda: self.owns(WATCHER), "kded5 is the watcher")

    def _has_host(self) -> bool:
        ask = Properties(DBusAddress("/StatusNotifierWatcher", WATCHER, WATCHER)).get("IsStatusNotifierHostRegistered")
        with open_dbus_connection(self.bus_address) as connection:
            return bool(connection.send_and_get_reply(ask).body[0][1])

    def start_notifications(self) -> subprocess.Popen[Any]:
        """Start dunst, wait until it accepts notifications, and return its process."""
        process = self.start([require("dunst"), "-conf", str(_written(self.home / "dunstrc", DUNST))])
        until(lambda: self.owns(NOTIFICATIONS), "dunst is the notification server")
        return process

    def until_seen(self, color: tuple[int, int, int], within: Box | None = None, tolerance: int = 12) -> Box:
        """Wait until the screen or a part of it has pixels of about this color, and return their bounding box."""
        found: Box = until(lambda: box_of(self.picture(), color, within, tolerance), f"{color} is on the screen")
        return found

    def until_gone(self, color: tuple[int, int, int], within: Box | None = None, tolerance: int = 12) -> None:
        """Wait until no pixel of the screen or a part of it has about this color."""
        until(lambda: not box_of(self.picture(), color, within, tolerance), f"{color} is gone from the screen")


def box_of(
    picture: Image.Image, color: tuple[int, int, int], within: Box | None = None, tolerance: int = 12
) -> Box | None:
    """Return the bounding box of all pixels of about this color, or None if there are none."""
    left, top = (within or (0, 0))[:2]
    part = picture.crop(within) if within else picture
    bands = [
        band.point([255 * (abs(value - wanted) <= tolerance) for value in range(256)])
        for band, wanted in zip(part.split(), color, strict=True)
    ]
    same = Image.merge("RGB", bands).convert("L").point([255 * (value == 255) for value in range(256)])
    found = same.getbbox()
    return (found[0] + left, found[1] + top, found[2] + left, found[3] + top) if found else None


def middle(box: Box) -> tuple[int, int]:
    return (box[0] + box[2]) // 2, (box[1] + box[3]) // 2


@contextmanager
def desktop_session(panel: Panel | None, notifications: bool = False) -> Iterator[Desktop]:
    """Run a desktop with this panel, or without one if it is None, and yield it. End all its processes afterwards."""
    home = Path(tempfile.mkdtemp(prefix="mm-desk-", dir="/tmp"))
    screen, display = _start_screen()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DISPLAY": display,
        "XDG_RUNTIME_DIR": str(home),
        "XDG_CURRENT_DESKTOP": "XFCE",
        "LANG": "C.UTF-8",
        "NO_AT_BRIDGE": "1",
        "GTK_A11Y": "none",
        "GSETTINGS_BACKEND": "memory",
    }
    home.chmod(0o700)
    try:
        with session_bus(home, _startable(home), environ) as (address, _):
            desktop = Desktop(home, {**environ, "DBUS_SESSION_BUS_ADDRESS": address}, address, screen)
            try:
                _furnish(desktop, panel, notifications)
                yield desktop
            finally:
                for process in reversed(desktop.processes.copy()):
                    desktop.end(process)
                if desktop.eye is not None:
                    with suppress(Xlib.error.ConnectionClosedError):
                        desktop.eye.close()
    finally:
        _end(screen)
        shutil.rmtree(home, ignore_errors=True)


def _furnish(desktop: Desktop, panel: Panel | None, notifications: bool) -> None:
    for tool in ("xdotool", "xsetroot"):
        require(tool)
    if panel != "gnome-shell":
        desktop.start([require("openbox")])
    desktop.run("xsetroot", "-solid", "#{:02x}{:02x}{:02x}".format(*ROOT_COLOR))
    if panel is not None:
        desktop.start_panel(panel)
    if notifications:
        desktop.start_notifications()


@contextmanager
def start_screen() -> Iterator[str]:
    """Run a screen without a desktop, and yield its name."""
    screen, name = _start_screen()
    try:
        yield name
    finally:
        _end(screen)


def _start_screen() -> tuple[subprocess.Popen[str], str]:
    size = "{}x{}x24".format(*SCREEN)
    argv = [require("Xvfb"), "-displayfd", "1", "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
    screen = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert screen.stdout is not None
    return screen, f":{screen.stdout.readline().strip()}"


def _end(process: subprocess.Popen[Any]) -> None:
    """End a process, by force if necessary, and close its pipe."""
    end(process, END_S)
    if process.stdout is not None:
        process.stdout.close()


def _startable(home: Path) -> str:
    """Copy the service files that panels need, and return the configuration of a bus that can start only those."""
    folder = home / "services"
    folder.mkdir()
    for service in ("org.xfce.Xfconf.service", "org.kde.ActivityManager.service"):
        if (SERVICES / service).exists():
            shutil.copy(SERVICES / service, folder)
    return f"<servicedir>{folder}</servicedir>"


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _tray_owner(display: str) -> bool:
    connection = Xlib.display.Display(display)
    try:
        return bool(connection.get_selection_owner(connection.intern_atom("_NET_SYSTEM_TRAY_S0")))
    finally:
        connection.close()
