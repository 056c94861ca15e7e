"""The icon as a StatusNotifierItem with a com.canonical.dbusmenu menu, over the session bus.

Rules: freedesktop.org "Status Notifier Item"; libdbusmenu's dbus-menu.xml. Never here: pystray's classes, X.
"""

from trayapp.tray.linux.sni.face import WATCHER, StatusNotifierIcon

__all__ = ["WATCHER", "StatusNotifierIcon"]
