"""Debian packages that the tests need. Never here: anything that Python or npm can install without an administrator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.environment import can_make_venv
from devtools.steps import StepFailed, in_ci, run, say

# program, or file -> the package that brings it; asked for by program, because a person may have it from elsewhere
PACKAGES = {
    "git": "git",  # mcp-server-git works on a real repository
    "node": "nodejs",  # runs the npm test servers
    "npm": "npm",  # installs them
    "dbus-daemon": "dbus-daemon",  # a bus of the tests' own: wake after sleep, what doctor asks of the session
    "dbus-run-session": "dbus-daemon",
    "dbus-send": "dbus-bin",
    "gnome-keyring-daemon": "gnome-keyring",  # a real keyring, on that bus
    "chromium": "chromium",  # looks at the page that a sign-in ends with
    "zsh": "zsh",  # shells whose PATH a server must see
    "fish": "fish",
    "tcsh": "tcsh",
    "faketime": "faketime",  # sets the clock of single processes
    "ip": "iproute2",  # a network whose cable can be pulled
    "bwrap": "bubblewrap",  # confines servers where Landlock does not reach
    "strace": "strace",  # sees that an idle gateway names no address of any network
    "Xvfb": "xvfb",  # the screen on which the icon is looked at and clicked
    "xdotool": "xdotool",  # the mouse
    "xsetroot": "x11-xserver-utils",
    "openbox": "openbox",
    "xfce4-panel": "xfce4-panel",  # a panel that speaks StatusNotifierItem
    "xfconf-query": "xfconf",  # its settings
    "tint2": "tint2",  # a panel that knows only XEmbed
    "gnome-shell": "gnome-shell",  # a panel whose menus unfold their submenus, by an extension
    "/usr/share/gnome-shell/extensions/ubuntu-appindicators@ubuntu.com": "gnome-shell-extension-appindicator",
    "lxqt-panel": "lxqt-panel",  # panels that read the menu level by level, and build submenus once
    "plasmashell": "plasma-workspace",
    "kded5": "kded5",
    "/usr/share/plasma/plasmoids/org.kde.panel": "plasma-desktop",
    "/usr/share/icons/breeze": "breeze-icon-theme",
    "dunst": "dunst",  # shows notifications
    "lxqt-notificationd": "lxqt-notificationd",  # shows them with buttons
    "/usr/share/dbus-1/services/org.xfce.xfce4-notifyd.Notifications.service": "xfce4-notifyd",  # so does this
    "objdump": "binutils",  # PyInstaller asks with it which libraries a library needs, and strips them
    "lintian": "lintian",  # reads the .deb as Debian's archive does
    "man": "man-db",
    "dex": "dex",  # starts what is to start at login, as i3's sessions do
    "desktop-file-validate": "desktop-file-utils",  # reads the entry for start at login as desktops do
    "xdg-open": "xdg-utils",  # opens servers.yaml from the menu
    "/usr/share/icons/Adwaita": "adwaita-icon-theme",  # the menu's check marks
    "/usr/share/fonts/truetype/dejavu": "fonts-dejavu-core",
}
QUESTION_TIMEOUT_S = 10.0  # `sudo -n true` asks nobody; a slow directory service is all that it may wait for


def ensure_debian_packages() -> None:
    """Install what is missing, as root or with password-free sudo; elsewhere do nothing. On CI a failure is raised."""
    missing = _missing()
    if not missing:
        return
    prefix = _administrator()
    if prefix is None or shutil.which("apt-get") is None:
        say(f"not installed: {', '.join(missing)}; the tests that need them skip")
        return
    say(f"installing Debian packages: {' '.join(missing)}")
    try:
        _install(prefix, missing)
    except StepFailed as failure:
        if in_ci():
            raise
        say(f"they could not be installed ({failure}); the tests that need them skip")


def _missing() -> list[str]:
    packages = [package for thing, package in PACKAGES.items() if not _is_there(thing)]
    if not can_make_venv() and sys.prefix == "/usr":
        packages.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    return packages


def _is_there(thing: str) -> bool:
    return Path(thing).exists() if thing.startswith("/") else shutil.which(thing) is not None


def _install(prefix: list[str], packages: list[str]) -> None:
    # sudo drops the environment, so the variable is set on its far side.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run([*apt, "update"])
    run([*apt, "install", "--yes", "--no-install-recommends", *packages])


def _administrator() -> list[str] | None:
    """The prefix that makes a command run as root: empty for root itself, None where there is no way without asking."""
    if not hasattr(os, "geteuid"):
        return None
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    try:
        answer = subprocess.run([sudo, "-n", "true"], capture_output=True, timeout=QUESTION_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    return [sudo, "-n"] if answer.returncode == 0 else None
