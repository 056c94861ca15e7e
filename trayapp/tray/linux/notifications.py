"""Notifications over org.freedesktop.Notifications: one per key, with actions if the server supports them.

The specification is "Desktop Notifications" of freedesktop.org.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from html import escape
from itertools import chain
from typing import Any, NamedTuple

from jeepney import HeaderFields, Message

from trayapp.model.text import drawn
from trayapp.tray.icons import Artwork
from trayapp.tray.linux.bus import Body, SessionBus, method_call
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import Action

SERVER = "org.freedesktop.Notifications"
SERVER_PATH = "/org/freedesktop/Notifications"
ANSWER_WAIT_S = 3.0  # limit on an answer: a server that the bus must start first takes a second or two
SERVER_DECIDES = -1  # as expire_timeout: the server decides how long a notification stays
PICTURE_PX = 64
CLICKED = "default"  # the specification's name for a click on the notification itself

# Names of servers with limits that they do not report.
# - LXQt computes the height of a text as if the notification were wider and had no picture. If it must wrap a line, it
#   cuts off the end of the text. It never breaks a long word.
# - GNOME Shell shows the first three buttons.
LXQT, GNOME = "lxqt-notificationd", "gnome-shell"
LINE_OF_LXQT = 46  # in units of half a digit's width (model/text.drawn)
BUTTONS_OF_GNOME = 3

Click = Callable[[Action], object]


class _Server(NamedTuple):
    """A notification server: its name, and the capabilities that it reports."""

    name: str
    capabilities: frozenset[str]


class _ShownNotice(NamedTuple):
    """A notification that was sent to the server. `actions`: the actions, by the ids that the server gets."""

    number: int
    actions: Mapping[str, Action]
    click: Click


class BusNotifications:
    """The notifications of one application. Implements app.NoticeDisplay.

    Do not call its methods on the bus's thread: they wait for answers that this thread reads.
    """

    def __init__(self, app_name: str, picture: Artwork) -> None:
        self._app_name, self._picture = app_name, picture
        self._bus: SessionBus | None = None
        self._owner: str = ""
        self._server: _Server | None = None
        self._shown: dict[str, _ShownNotice] = {}
        self._one_at_a_time = threading.Lock()

    def join(self, bus: SessionBus) -> None:
        """Set the bus. Call this only once. Until then, nothing is shown."""
        bus.follow(SERVER, self._server_is)
        bus.listen(SERVER, SERVER, "ActionInvoked", self._action_invoked)
        bus.listen(SERVER, SERVER, "NotificationClosed", self._closed)
        self._bus = bus

    def show(self, notice: Notice, click: Click) -> bool:
        """Show a notice, replacing the one with the same key. Return False if it is not shown.

        `click` gets the action that the user chooses. It is called on the bus's thread and must not block. If the
        server supports no buttons, they are omitted.
        """
        if self._bus is None:
            return False
        with self._one_at_a_time:
            server = self._server
            if server is None:  # D-Bus may have to start the server first
                can = self._bus.ask(_call("GetCapabilities"), ANSWER_WAIT_S)
                if can is None:
                    return False
                about = self._bus.ask(_call("GetServerInformation"), ANSWER_WAIT_S)
                server = self._server = _Server(about[0] if about else "", frozenset(can[0]))
            actions = {str(at): action for at, (_, action) in enumerate(notice.actions)}
            if notice.click and actions:
                actions[CLICKED] = actions["0"]

            def note(answer: Body) -> None:  # called on the bus's thread: a click may follow immediately
                self._shown[notice.key] = _ShownNotice(answer[0], actions, click)

            body = self._body(notice, server)
            return self._bus.ask(_call("Notify", "susssasa{sv}i", body), ANSWER_WAIT_S, note) is not None

    def withdraw(self, key: str) -> None:
        """Withdraw the notification with that key, if it is still shown."""
        shown = self._shown.pop(key, None)
        if shown is not None and self._bus is not None:
            self._bus.call(_call("CloseNotification", "u", (shown.number,)))

    def _body(self, notice: Notice, server: _Server) -> Body:
        known, can, text = self._shown.get(notice.key), server.capabilities, notice.text
        buttons = [(str(at), label) for at, (label, _) in enumerate(notice.actions)]
        if server.name == GNOME:  # keep the last button, which refuses
            buttons = [*buttons[: BUTTONS_OF_GNOME - 1], *buttons[BUTTONS_OF_GNOME - 1 :][-1:]]
        if buttons and notice.click:  # no label: with one, Xfce would show an additional button
            buttons.insert(0, (CLICKED, ""))
        if server.name == LXQT:
            text = _in_short_lines(text)
        hints: dict[str, tuple[str, Any]] = {
            "urgency": ("y", 2 if notice.urgent else 1),
            "desktop-entry": ("s", self._app_name),
        }
        if server.name != LXQT:
            rgba = self._picture(PICTURE_PX).tobytes()
            # width, height, bytes per row, alpha, bits per sample, samples per pixel
            hints["image-data"] = ("(iiibiiay)", (PICTURE_PX, PICTURE_PX, 4 * PICTURE_PX, True, 8, 4, rgba))
        return (
            self._app_name,
            known.number if known else 0,
            "",
            notice.title,
            escape(text, quote=False) if "body-markup" in can else text,
            list(chain.from_iterable(buttons)) if "actions" in can else [],
            hints,
            SERVER_DECIDES,
        )

    # -- the server's signals, on the bus's thread -----------------------------------------------------------------

    def _server_is(self, owner: str) -> None:
        if owner != self._owner:  # a new server has none of the old server's notifications
            self._owner, self._server = owner, None
            self._shown.clear()

    def _action_invoked(self, message: Message) -> None:
        number, action = message.body
        found = self._by_number(message, number)
        if found is not None and action in found[1].actions:
            found[1].click(found[1].actions[action])

    def _closed(self, message: Message) -> None:
        gone = self._by_number(message, message.body[0])
        if gone is not None:
            self._shown.pop(gone[0], None)

    def _by_number(self, message: Message, number: int) -> tuple[str, _ShownNotice] | None:
        if message.header.fields.get(HeaderFields.sender) != self._owner:
            return None
        return next(((key, shown) for key, shown in list(self._shown.items()) if shown.number == number), None)


def _in_short_lines(text: str) -> str:
    """Return `text`, wrapped into lines that are short enough for LXQt."""
    lines = []
    for line in text.split("\n"):
        while len(drawn(line)) > LINE_OF_LXQT:
            end = next(end for end in range(len(line) - 1, 0, -1) if len(drawn(line[:end])) <= LINE_OF_LXQT)
            end = max(line.rfind(" ", 0, end + 1), 0) or end
            lines.append(line[:end])
            line = line[end:].lstrip(" ")
        lines.append(line)
    return "\n".join(lines)


def _call(member: str, signature: str | None = None, body: Body = ()) -> Message:
    return method_call(SERVER, SERVER_PATH, SERVER, member, signature, body)
