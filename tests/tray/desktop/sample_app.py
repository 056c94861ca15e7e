"""A program for desktop sessions: an icon with a menu that changes the icon's color.

It prints a line for each event.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageDraw

from trayapp.tray.linux.icon import LinuxIcon
from trayapp.tray.linux.notifications import BusNotifications
from trayapp.tray.painter import KeyedItem, Menu
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import Action, Verb

COLORS = {"red": (230, 30, 30), "green": (30, 200, 30), "blue": (30, 60, 230), "yellow": (230, 220, 20)}
FINE = 4  # the picture is drawn larger by this factor and then reduced, for smooth edges


def say(text: str) -> None:
    print(text, flush=True)


def disc(color: str) -> Callable[[int], Image.Image]:
    def draw(size: int) -> Image.Image:
        picture = Image.new("RGBA", (size * FINE, size * FINE))
        ImageDraw.Draw(picture).ellipse((FINE, FINE, (size - 1) * FINE, (size - 1) * FINE), fill=COLORS[color])
        return picture.resize((size, size))

    return draw


class App:
    """An icon with a menu whose entries change its color."""

    def __init__(self, panel_wait_s: float) -> None:
        self.color = "red"
        self.notifier = BusNotifications("multi-mcp", disc("blue"))
        self.icon: Any = LinuxIcon(
            "multi-mcp",
            disc("red"),
            "5 of 7 servers ready\nlinear & co <b>want</b> a sign-in\nfiles has failed",
            self.menu(),
            on_bus=self.notifier.join,
            on_no_host=lambda: say("nobody shows icons"),
            panel_wait_s=panel_wait_s,
        )

    def menu(self) -> Menu:
        return Menu(
            KeyedItem("header", f"multi-mcp: {self.ready()} of 7 servers ready", None, enabled=False),
            Menu.SEPARATOR,
            KeyedItem("green", "Turn green", self.turn("green"), default=True),
            KeyedItem("login", "Start at login", self.turn("red"), checked=lambda item: True),
            KeyedItem("notify", "Notify", self.notify),
            self.more(),
        )

    def ready(self) -> int:
        """Return a number for an entry whose text must change without changing its width."""
        return 7 if self.color == "yellow" else 5

    def more(self) -> KeyedItem:
        """Return an entry that gets a submenu later, as servers do once the gateway runs. The submenu changes, too."""
        if self.color == "red":
            return KeyedItem("more", "my_servers", None, enabled=False)
        after = "yellow" if self.color == "blue" else "blue"
        return KeyedItem("more", "my_servers", Menu(KeyedItem(after, f"Turn {after}", self.turn(after))))

    def turn(self, color: str) -> Callable[[], None]:
        def act() -> None:
            self.color = color
            self.icon.icon = disc(color)
            self.icon.menu = self.menu()
            self.icon.attention = color == "yellow"
            say(color)

        return act

    def notify(self) -> None:
        """Show a notification on a separate thread, as the app does. Handlers run on the thread that reads the bus."""
        threading.Thread(target=self.show_notification, daemon=True).start()

    def show_notification(self) -> None:
        actions = (("Turn yellow", Action(Verb.SHOW_STATE, "yellow")),)
        notice = Notice("a", "Sign in to linear", "It wants you to <sign in>", actions)
        say(f"notified: {self.notifier.show(notice, self.chosen)}")

    def chosen(self, action: Action) -> None:
        self.turn(action.target)()


if __name__ == "__main__":
    App(float(sys.argv[1])).icon.run()
