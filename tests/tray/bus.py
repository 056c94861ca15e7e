"""A session bus for tests, and the tray's peers on it: panel, menu reader and notification server.

They use the protocols of panels through jeepney, so no display is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import open_dbus_connection as open_blocking
from jeepney.io.threading import ReceiveStopped, open_dbus_connection

from tests.tools import require
from trayapp.tray.linux.bus import close_connection

WAIT_S = 25.0  # generous for events that are immediate on an idle machine, but short enough for two waits in a test
LOOK_S = 0.01
WATCHER = "org.kde.StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"
NOTIFICATIONS = "org.freedesktop.Notifications"

# A bus that allows everything but starts no services, which keeps the machine's services out of the tests.
CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>{services}
<policy context="default"><allow user="*"/>
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy></busconfig>"""


def until(found: Callable[[], Any], what: str = "") -> Any:
    """Wait until `found` returns a true value, and return it. Fails after WAIT_S."""
    end = time.monotonic() + WAIT_S
    while not (value := found()):
        assert time.monotonic() < end, f"never: {what or found}"
        time.sleep(LOOK_S)
    return value


@contextmanager
def session_bus(
    folder: Path | None = None, services: str = "", environ: dict[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a session bus, and yield its address and process.

    `services`: the configuration of services that it may start, with the environment `environ`.
    """
    place = Path(tempfile.mkdtemp(prefix="mm-bus-", dir="/tmp")) if folder is None else folder
    config = place / "bus.conf"
    config.write_text(CONFIG.format(path=place / "bus", services=services), encoding="utf-8")
    daemon = subprocess.Popen(
        [require("dbus-daemon"), f"--config-file={config}", "--nofork", "--print-address=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ or {"PATH": os.environ["PATH"], "HOME": str(place)},
    )
    assert daemon.stdout is not None
    try:
        yield daemon.stdout.readline().strip(), daemon
    finally:
        daemon.terminate()
        daemon.wait(WAIT_S)
        daemon.stdout.close()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


class Service:
    """A service on the bus that answers calls on a separate thread. Subclasses implement `reply`."""

    bus_name = ""
    path = "/"

    def __init__(self, address: str) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._closed = False
        self.connection = open_dbus_connection(address)
        serial = next(self.connection.outgoing_serial)
        self.connection.send(message_bus.RequestName(self.bus_name), serial=serial)
        while self.connection.receive(timeout=WAIT_S).header.fields.get(HeaderFields.reply_serial) != serial:
            pass
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the bus, like a panel that exits. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self.connection.interrupt()
            self._thread.join(WAIT_S)
            close_connection(self.connection)

    def signal(self, member: str, signature: str, body: tuple[Any, ...]) -> None:
        address = DBusAddress(self.path, interface=self.bus_name)
        self.connection.send(new_signal(address, member, signature, body))

    def reply(self, message: Message, member: str, body: tuple[Any, ...]) -> Message | None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            while True:
                message = self.connection.receive()
                if message.header.message_type is MessageType.method_call:
                    self._answer(message)
        except (ReceiveStopped, OSError):
            return

    def _answer(self, message: Message) -> None:
        member = message.header.fields[HeaderFields.member]
        self.calls.append((member, message.body))
        answer = self.reply(message, member, message.body)
        self.connection.send(answer or new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))


class Watcher(Service):
    """A panel that accepts icons. `items`: the bus name and object path of each icon."""

    bus_name = WATCHER
    path = "/StatusNotifierWatcher"

    def __init__(self, address: str) -> None:
        self.items: list[tuple[str, str]] = []
        self.address = address
        super().__init__(address)

    def reply(self, message: Message, member: str, body: tuple[Any, ...]) -> Message | None:
        if member != "RegisterStatusNotifierItem":
            return None
        sender = message.header.fields[HeaderFields.sender]
        item = (sender, body[0]) if body[0].startswith("/") else (body[0], "/StatusNotifierItem")
        if item not in self.items:
            self.items.append(item)
        return new_method_return(message)

    def item(self) -> Item:
        """Wait until an item is registered, and return it."""
        return Item(self.address, *until(lambda: self.items, "an item is registered")[0])


class CallFailedError(Exception):
    """A D-Bus error reply, with the name of the error."""


class Item:
    """A registered item, with the calls that a panel makes."""

    def __init__(self, address: str, bus_name: str, path: str) -> None:
        self.bus_name, self.path = bus_name, path
        self.address = address
        self.connection = open_blocking(address)

    def close(self) -> None:
        self.connection.close()

    def call(
        self, path: str, interface: str | None, member: str, signature: str | None = None, body: tuple[Any, ...] = ()
    ) -> tuple[Any, ...]:
        """Call a method and return its values. Raises CallFailedError."""
        address = DBusAddress(path, self.bus_name, interface)
        message = new_method_call(address, member, signature, body)
        reply = self.connection.send_and_get_reply(message, timeout=WAIT_S)
        if reply.header.message_type is MessageType.error:
            raise CallFailedError(reply.header.fields[HeaderFields.error_name])
        values: tuple[Any, ...] = reply.body
        return values

    def property(self, name: str) -> Any:
        return self.call(self.path, PROPERTIES, "Get", "ss", (ITEM, name))[0][1]

    def menu(self, member: str, signature: str | None = None, body: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        return self.call(self.property("Menu"), MENU, member, signature, body)

    def layout(self) -> Any:
        """Return the whole menu as (number, properties, children in variants)."""
        return self.menu("GetLayout", "iias", (0, -1, []))[1]

    def lines(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Return (text path, number, properties) for each line of the menu. The text of a separator is "---"."""
        return list(_lines(self.layout(), ()))

    def texts(self) -> list[str]:
        return [text for text, _, _ in self.lines()]

    def number(self, text: str) -> int:
        """Return the number of an entry by its path, such as `Servers > github`."""
        return next(number for known, number, _ in self.lines() if known == text)

    def properties_of(self, text: str) -> dict[str, Any]:
        return next(properties for known, _, properties in self.lines() if known == text)

    def click(self, text: str) -> None:
        self.click_number(self.number(text))

    def click_number(self, number: int) -> None:
        self.menu("Event", "isvu", (number, "clicked", ("i", 0), 0))

    def activate(self) -> None:
        """Click the icon itself."""
        self.call(self.path, ITEM, "Activate", "ii", (0, 0))

    def pixel(self) -> tuple[int, int, int, int]:
        """Return the RGBA color in the middle of the largest pixmap."""
        width, height, data = max(self.property("IconPixmap"))
        at = 4 * (height // 2 * width + width // 2)
        alpha, red, green, blue = data[at : at + 4]
        return red, green, blue, alpha


def _lines(node: Any, above: tuple[str, ...]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for _, (number, properties, children) in node[2]:
        plain = {name: value for name, (_, value) in properties.items()}
        path = (*above, without_mnemonics(plain.get("label", "---")))
        yield " > ".join(path), number, plain
        yield from _lines((number, properties, children), path)


def without_mnemonics(label: str) -> str:
    """Return a label as a panel draws it: "__" becomes "_", and a single "_" is removed (dbus-menu.xml)."""
    return label.replace("__", "\0").replace("_", "").replace("\0", "_")


class NotificationServer(Service):
    """A notification server. `shown`: notifications by number. `can`: capabilities."""

    bus_name = NOTIFICATIONS
    path = "/org/freedesktop/Notifications"

    def __init__(
        self, address: str, can: tuple[str, ...] = ("actions", "body", "body-markup"), name: str = "tests"
    ) -> None:
        self.can, self.name, self.last = can, name, 0
        self.shown: dict[int, dict[str, Any]] = {}
        super().__init__(address)

    def reply(self, message: Message, member: str, body: tuple[Any, ...]) -> Message | None:
        if member == "GetCapabilities":
            return new_method_return(message, "as", (list(self.can),))
        if member == "GetServerInformation":
            return new_method_return(message, "ssss", (self.name, "tests", "1", "1.2"))
        if member == "CloseNotification":
            self.shown.pop(body[0], None)
            self.signal("NotificationClosed", "uu", (body[0], 3))
            return new_method_return(message)
        if member != "Notify":
            return None
        app, replaces, _, title, text, actions, hints, _ = body
        self.last += not replaces
        number = replaces or self.last
        self.shown[number] = {"app": app, "title": title, "text": text, "actions": actions, "hints": hints}
        return new_method_return(message, "u", (number,))

    def choose(self, number: int, action: str) -> None:
        """Report a click on a button of the notification."""
        self.signal("ActionInvoked", "us", (number, action))
