"""The tray app: its parts put together, from its start to its end.

The main thread belongs to the icon; the supervisor, the redraws and each click have threads of their own. Never here:
what any of them decides.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from trayapp.model.errors import MultiMcpError
from trayapp.service.supervision import CommandKind, Seen
from trayapp.service.supervisor import Supervisor
from trayapp.tray.actions import Actions
from trayapp.tray.desk import Desk
from trayapp.tray.painter import Painter
from trayapp.tray.redraws import Redraws
from trayapp.tray.state.notices import DueNotices, Notice, Told, news
from trayapp.tray.state.state import Action, IconKind, TrayView, Verb
from trayapp.tray.state.view import view

log = logging.getLogger(__name__)

RENEWS = "SIGUSR1"  # of an installer that replaced the program (packaging/linux/postinst)
ENDS = ("SIGTERM", "SIGINT", "SIGHUP")  # the last one: its terminal was closed
LOOK_AGAIN_S = 2.0  # panels tell more than once that a menu opens; a look starts a process, 0.2 s of work
ENDED_BY = "quit"  # the wish of `multi-mcp quit`
ENDS_NOW = "It ends"
UPDATED = "It was updated: the new one goes on in its place"
QUIT_S = 30.0  # the gateway's own end is bounded by half of that


class TrayPlatform(Protocol):
    """What of the tray differs from system to system."""

    def make_icon(self) -> Any:
        """pystray's icon, or one like it. Called once."""

    def picture(self, kind: IconKind) -> Any:
        """What the icon shows for a kind, in the form that it takes."""

    def label(self, text: str) -> str:
        """The text of a menu entry, with what would be a mark in it escaped."""

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """Show it in the place of one with the same key; False when nobody sees it. May block."""

    def withdraw(self, key: str) -> None:
        """Show the one with that key no longer, where that can be."""


class Renewal(Protocol):
    """Whether the program was replaced: of service/installed.Update."""

    def replaced_us(self) -> bool: ...
    def replaced_gateway(self, pid: int) -> bool: ...


class App:
    """One tray. `clock`: seconds of a steady clock.

    It is broad because each event of the system ends here.
    """

    def __init__(
        self,
        desk: Desk,
        face: TrayPlatform,
        clock: Callable[[], float],
        renewal: Renewal,
    ) -> None:
        self._desk = desk
        self._face = face
        self._clock = clock
        self._renewal = renewal
        self._actions: Actions
        self._supervisor: Supervisor
        self._told = Told()
        self._news_lock = threading.Lock()
        self._busy: set[Action] = set()
        self._busy_lock = threading.Lock()
        self._looked_at = -LOOK_AGAIN_S
        self.is_replaced = False  # whether another tray is to follow this one
        self._icon = face.make_icon()
        self._icon.on_signal = self.quit_soon  # where the system's own loop keeps Python's handlers from running
        self._icon.on_open = self.opened  # where the panel tells of it
        self._painter = Painter(self._icon, face.picture, self.click, face.label)
        self._redraws = Redraws(self._draw)
        self._painter.render(view(desk.state()))

    def join(self, actions: Actions, supervisor: Supervisor) -> None:
        """The parts that need this one to exist."""
        self._actions = actions
        self._supervisor = supervisor

    # -- the life of the app -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Be the tray until Quit, a signal, or the end of the desktop's session. On the main thread."""
        self._hear_signals()
        self._icon.run(self._begin)
        self._redraws.close()
        self._end_gateway()

    def _begin(self, icon: Any) -> None:
        icon.visible = True
        self._supervisor.start()
        self._redraws.start()
        self._looked_at = self._clock()
        self._desk.look_around()
        self._redraws.wanted()

    def _hear_signals(self) -> None:
        """On a thread of its own: one that comes just as the main thread goes to sleep would wake nobody there."""
        for name in (*ENDS, RENEWS):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda number, frame: None)
        hears, tells = socket.socketpair()
        tells.setblocking(False)
        signal.set_wakeup_fd(tells.detach(), warn_on_full_buffer=False)
        threading.Thread(target=self._obey, args=(hears,), name="signals", daemon=True).start()

    def _obey(self, hears: socket.socket) -> None:
        while number := hears.recv(1):
            if number[0] == getattr(signal, RENEWS, None):
                self._renew()
            else:
                log.info("Signal %d: the tray ends", number[0])
                self.quit_soon()

    def _renew(self) -> None:
        log.info("The program was replaced: the tray ends, and the new one starts")
        self.is_replaced = True
        self.quit_soon()

    def quit_soon(self) -> None:
        """As `quit`, from any thread."""
        threading.Thread(target=self.quit, name="quit", daemon=True).start()

    def quit(self) -> None:
        """Stop the gateway that we started, then end. From any thread but the main one."""
        try:
            self._end_gateway()
        finally:
            self._icon.stop()

    def _end_gateway(self) -> None:
        if not self._supervisor.join(0):
            self._supervisor.command(CommandKind.QUIT, QUIT_S)
            self._supervisor.join(QUIT_S)

    # -- what comes in -------------------------------------------------------------------------------------------

    def saw(self, seen: Seen) -> None:
        """From the supervisor. A state that lasts too short to be drawn is told all the same."""
        if self._desk.see(seen):
            self._tell()
        self._redraws.wanted()
        if seen.snapshot and self._renewal.replaced_gateway(seen.snapshot["gateway"]["pid"]):
            threading.Thread(target=self._renew_gateway, name="renew gateway", daemon=True).start()

    def _renew_gateway(self) -> None:
        """One of before an update makes room, whoever started it; AI tools keep their sessions by their shims."""
        log.info("The gateway is of a program that was replaced: another one follows")
        try:
            self._supervisor.command(CommandKind.RESTART)
        except MultiMcpError as error:
            log.warning("It does not make room: %s", error)

    def looked_around(self) -> None:
        """A click changed what no snapshot tells."""
        self._desk.look_around()
        self._redraws.wanted()

    def opened(self) -> None:
        """The menu is opened: what no snapshot tells is read again while the user reads, unless it just was."""
        if self._clock() - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = self._clock()
            threading.Thread(target=self.looked_around, name="look around", daemon=True).start()

    def click(self, action: Action) -> None:
        """Do it on a thread of its own; the same thing that is still under way is not begun again.

        But for a sign-in: who closed the browser's page by mistake clicks again.
        """
        with self._busy_lock:
            if action in self._busy and action.verb is not Verb.SIGN_IN:
                return
            self._busy.add(action)
        threading.Thread(target=self._do, args=(action,), name=f"click {action.verb}", daemon=True).start()

    def _do(self, action: Action) -> None:
        try:
            notice = self._actions.do(action)
            if notice is not None:
                self.show(notice)
        finally:
            with self._busy_lock:
                self._busy.discard(action)

    # -- what goes out -------------------------------------------------------------------------------------------

    def shown(self) -> TrayView:
        """What there is to see now."""
        return view(self._desk.state())

    def _draw(self) -> float | None:
        self._painter.render(self.shown())
        return self._tell().again_s

    def _tell(self) -> DueNotices:
        """Notifications that the state calls for, shown off this thread: a notification server may be slow."""
        with self._news_lock:
            fresh = news(self._desk.state(), self._told, self._clock())
            self._told = fresh.told
        if fresh.notices or fresh.over:
            threading.Thread(target=self._show_all, args=(fresh,), name="news", daemon=True).start()
        return fresh

    def _show_all(self, fresh: DueNotices) -> None:
        for key in fresh.over:
            self._face.withdraw(key)
        for notice in fresh.notices:
            self.show(notice)

    def show(self, notice: Notice) -> None:
        """Show a notification, and keep it in the log: there may be nobody who shows any."""
        seen = self._face.show(notice, self.click)
        log.info("Notification%s: %s | %s", "" if seen else " (nobody shows it)", notice.title, notice.text)

    def second_start(self, wish: str) -> str:
        """A second `multi-mcp`: show where we are, and let it say so; after an update, let the new one go on.

        `multi-mcp quit` wishes that this one ends.
        """
        if wish == ENDED_BY:
            self.quit_soon()
            return ENDS_NOW
        if self._renewal.replaced_us():
            self._renew()
            return UPDATED
        self.click(Action(Verb.SHOW_STATE))
        return self.shown().summary


class Speaker(Protocol):
    """A way to notify."""

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """See Face."""
        ...

    def withdraw(self, key: str) -> None:
        """See Face."""


class OverBus:
    """Notifications over D-Bus (trayapp.tray.linux.notifications)."""

    def __init__(self, notifier: Any) -> None:
        self._notifier = notifier

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """See Face."""
        actions = {str(number): action for number, (_, action) in enumerate(notice.actions)}
        labels = [(str(number), label) for number, (label, _) in enumerate(notice.actions)]
        chosen = partial(_choose, actions, click)
        return bool(
            self._notifier.notify(
                notice.key,
                notice.title,
                notice.text,
                labels,
                chosen if labels else None,
                notice.urgent,
                clickable=notice.click,
            )
        )

    def withdraw(self, key: str) -> None:
        """See Face."""
        self._notifier.close(key)


def _choose(actions: dict[str, Action], click: Callable[[Action], None], chosen: str) -> None:
    if chosen in actions:
        click(actions[chosen])


class ByIcon:
    """Notifications as the icon's own balloons (Windows, macOS): they have no buttons.

    On Windows a click on the one that is shown does what its first button would.
    """

    def __init__(self, icon: Any) -> None:
        self._icon = icon

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """See Face."""
        action = notice.actions[0][1] if notice.actions and notice.click else None
        self._icon.on_balloon = partial(click, action) if action else None
        try:
            self._icon.notify(notice.text, notice.title)
        except Exception:  # the boundary to pystray and the system below it: the log has the words
            log.exception("A notification could not be shown")
            return False
        return True

    def withdraw(self, key: str) -> None:
        """They go by themselves."""
