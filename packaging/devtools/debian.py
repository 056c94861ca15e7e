"""Debian packages that the tests need."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.environment import can_make_venv
from devtools.steps import optional, run, say

# Program or file -> the package that provides it, and what the tests need it for. Programs are looked up on PATH,
# since the developer may have installed them from elsewhere.
PACKAGES = {
    "git": ("git", "the git server works on a real repository"),
    "node": ("nodejs", "runs the npm test servers"),
    "npm": ("npm", "installs the npm test servers"),
    "dbus-daemon": ("dbus-daemon", "a private session bus for the tests"),
    "dbus-run-session": ("dbus-daemon", "a private session bus for the tests"),
    "gnome-keyring-daemon": ("gnome-keyring", "a real keyring"),
    "chromium": ("chromium", "a browser for the panel and for sign-in"),
    "zsh": ("zsh", "a login shell, whose PATH servers must get"),
    "fish": ("fish", "a login shell, whose PATH servers must get"),
    "tcsh": ("tcsh", "a login shell, whose PATH servers must get"),
    "faketime": ("faketime", "sets the clock of single processes"),
    "ip": ("iproute2", "simulates an unplugged network"),
    "bwrap": ("bubblewrap", "confines servers where Landlock is missing"),
    "/usr/lib/systemd/systemd": ("systemd", "runs a gateway as a service"),
    "strace": ("strace", "checks that an idle gateway contacts no network address"),
    "Xvfb": ("xvfb", "a virtual screen that shows the icon"),
    "xdotool": ("xdotool", "moves the mouse on that screen"),
    "xsetroot": ("x11-xserver-utils", "colors that screen"),
    "openbox": ("openbox", "a window manager for panels"),
    "xfce4-panel": ("xfce4-panel", "a panel with StatusNotifierItem support"),
    "xfconf-query": ("xfconf", "settings of that panel"),
    "tint2": ("tint2", "a panel with XEmbed support only"),
    "gnome-shell": ("gnome-shell", "GNOME's panel, whose submenus unfold with an extension"),
    "/usr/share/gnome-shell/extensions/ubuntu-appindicators@ubuntu.com": (
        "gnome-shell-extension-appindicator",
        "tray icons in GNOME",
    ),
    "lxqt-panel": ("lxqt-panel", "panels that read a menu one level at a time and build submenus once"),
    "plasmashell": ("plasma-workspace", "KDE's panel"),
    "kded5": ("kded5", "KDE's watcher of tray icons"),
    "/usr/share/plasma/plasmoids/org.kde.panel": ("plasma-desktop", "KDE's panel"),
    "/usr/share/icons/breeze": ("breeze-icon-theme", "icons of KDE's menus"),
    "dunst": ("dunst", "shows notifications"),
    "lxqt-notificationd": ("lxqt-notificationd", "shows notifications with buttons"),
    "/usr/share/dbus-1/services/org.xfce.xfce4-notifyd.Notifications.service": (
        "xfce4-notifyd",
        "shows notifications as XFCE does",
    ),
    "/usr/lib/postgresql": ("postgresql", "a database for the postgres server"),
    "objdump": ("binutils", "PyInstaller uses it to find a library's dependencies and to strip them"),
    "lintian": ("lintian", "checks the .deb by the rules of Debian's archive"),
    "makepkg": ("makepkg", "reads the recipe for AUR"),
    "ruby": ("ruby", "reads the manifest for Homebrew"),
    "man": ("man-db", "reads the manual page of the .deb"),
    "dex": ("dex", "starts autostart entries as i3 sessions do"),
    "desktop-file-validate": ("desktop-file-utils", "reads the autostart entry as desktops do"),
    "xdg-open": ("xdg-utils", "opens servers.yaml from the menu"),
    "/usr/share/icons/Adwaita": ("adwaita-icon-theme", "the menu's check marks"),
    "/usr/share/fonts/truetype/dejavu": ("fonts-dejavu-core", "a font for pictures of the screen"),
}
# Packages that Ubuntu lacks and that the tests can do without
OF_DEBIAN = {
    "chromium-headless-shell": ("chromium-headless-shell", "Chromium without a window takes less processor time"),
}
QUESTION_TIMEOUT_S = 10.0  # `sudo -n true` never prompts; only a slow directory service can delay it


def ensure_debian_packages() -> None:
    """Install missing packages, as root or with passwordless sudo. Otherwise only list them.

    If the installation fails, CI fails; elsewhere the tests that need them skip.
    """
    missing = _missing()
    if not missing:
        return
    prefix = _administrator() if shutil.which("apt-get") else None
    skipped = "these Debian packages are missing, and the tests that need them skip:"
    say(skipped if prefix is None else "installing Debian packages that the tests need:")
    for package, why in missing.items():
        say(f"  {package}: {why}")
    if prefix is not None:
        with optional("install these packages"):
            _install(prefix, list(missing))


def _missing() -> dict[str, str]:
    known = PACKAGES | OF_DEBIAN if _is_debian() else PACKAGES
    packages = {package: why for thing, (package, why) in known.items() if not _is_there(thing)}
    if not can_make_venv() and sys.prefix == "/usr":
        packages[f"python{sys.version_info.major}.{sys.version_info.minor}-venv"] = "makes .venv"
    return packages


def _is_debian() -> bool:
    try:
        return platform.freedesktop_os_release()["ID"] == "debian"
    except OSError:  # not Linux
        return False


def _is_there(thing: str) -> bool:
    return Path(thing).exists() if thing.startswith("/") else shutil.which(thing) is not None


def _install(prefix: list[str], packages: list[str]) -> None:
    # sudo drops the environment, so `env` sets the variable after it.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run([*apt, "update"])
    run([*apt, "install", "--yes", "--no-install-recommends", *packages])


def _administrator() -> list[str] | None:
    """Return the prefix that runs a command as root: [] for root itself, None without passwordless sudo."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    try:
        answer = subprocess.run([sudo, "-n", "true"], capture_output=True, timeout=QUESTION_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    return [sudo, "-n"] if answer.returncode == 0 else None
