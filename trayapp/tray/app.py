"""The tray app, which connects the parts of the tray and runs them from startup to shutdown.

The icon runs on the main thread. The supervisor, the redraws, and each click have their own threads.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError
from trayapp.model.status import Snapshot
from trayapp.service.autostart import Autostart
from trayapp.service.supervisor import CommandKind, Supervisor, SupervisorView
from trayapp.service.version import Update
from trayapp.tray.actions import Actions
from trayapp.tray.painter import Painter, Redraws
from trayapp.tray.state.notices import DueNotices, Notice, NoticeMemory, due_notices
from trayapp.tray.state.outcomes import NO_HOST
from trayapp.tray.state.tray_state import Action, ClientState, IconKind, Offered, TrayState, TrayView, Verb
from trayapp.tray.state.view import view

log = logging.getLogger(__name__)

RENEWS = "SIGUSR1"  # sent by an installer that replaced the program (packaging/linux/postinst)
ENDS = ("SIGTERM", "SIGINT", "SIGHUP")  # SIGHUP: the terminal was closed
LOOK_AGAIN_S = 2.0  # skip looks within this time: panels report one opening of the menu several times
ENDED_BY = "quit"  # the request that `multi-mcp quit` sends
QUIT_S = 30.0  # limit on ending the gateway, whose own shutdown takes at most half of this


class NoticeDisplay(Protocol):
    """The interface for showing notifications."""

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """Show a notice, replacing the one with the same key. Return False if nothing displays it. May block.

        `click` gets the action that the user chooses.
        """

    def withdraw(self, key: str) -> None:
        """Withdraw the notice with that key if the system supports this."""


class TrayPlatform(NoticeDisplay, Protocol):
    """The parts of the tray that differ between systems."""

    def make_icon(self) -> Any:
        """Return pystray's icon, or one with the same interface. Call this only once."""

    def picture(self, kind: IconKind) -> Any:
        """Return the picture for a kind, in the form that the icon accepts."""

    def label(self, text: str) -> str:
        """Return a menu text in which the characters that the system would interpret are escaped."""


class StateSources:
    """The tray's state, and its sources.

    - `clients`: finds the AI tools. It may block.
    - `servers`: finds servers in the AI tools' files: with `--first` those that multi-mcp lacks, with `--doubled` those
      that it also has. Returns None if it cannot read the files. It may block.
    - `offer_told`: True if a notification already reported servers to import.
    """

    def __init__(
        self,
        autostart: Autostart,
        clients: Callable[[], tuple[ClientState, ...]],
        servers: Callable[[str], tuple[Offered, ...] | None],
        *,
        offer_told: bool,
    ) -> None:
        self._autostart, self._find_clients, self._find_servers = autostart, clients, servers
        self._nothing_to_offer, self._lock = False, threading.Lock()
        is_on = self._start_at_login()
        self._state = TrayState(ChildState.STARTING, clients=None, autostart=is_on, offer_told=offer_told)

    def look_around(self) -> None:
        """Update what no snapshot shows: the AI tools, their servers, and start at login. Blocks."""
        is_on, clients = self._start_at_login(), self._find_clients()
        offered = () if self._nothing_to_offer else self._find_servers("--first")
        self._nothing_to_offer = offered == ()  # after one empty offer, never search again
        doubled = self._find_servers("--doubled") if any(client.connected for client in clients) else ()
        self._change(autostart=is_on, clients=clients, offered=offered or (), doubled=doubled or ())

    def _start_at_login(self) -> bool | None:
        try:
            return self._autostart.entry.is_on()
        except MultiMcpError as error:
            log.warning("%s", error)
            return None

    def see(self, seen: SupervisorView) -> bool:
        """Store the supervisor's view. Return True if the state of the gateway's process changed."""
        now = state_of(seen)
        before = self._change(child=now.child, snapshot=now.snapshot, error=now.error, hangs=now.hangs)
        return (before.child, before.hangs) != (now.child, now.hangs)

    def _change(self, **changes: Any) -> TrayState:
        """Replace fields of the state. Return the previous state."""
        with self._lock:
            before, self._state = self._state, replace(self._state, **changes)
        return before

    def state(self) -> TrayState:
        """Return the current state."""
        return self._state


def state_of(seen: SupervisorView) -> TrayState:
    """Return the supervisor's view as a TrayState. If its snapshot cannot be read, `error` has the reason instead."""
    state = TrayState(child=seen.state, error=seen.error, hangs=seen.hangs)
    try:
        return replace(state, snapshot=Snapshot.from_json(seen.snapshot) if seen.snapshot is not None else None)
    except MultiMcpError as error:
        return replace(state, error=error.title)


class App:
    """The running tray: its icon, supervisor, redraws, clicks and notifications.

    `clock`: returns the seconds of a monotonic clock. `replacement`: detects updates of the program.

    The class is broad because every event arrives here.
    """

    def __init__(
        self, sources: StateSources, face: TrayPlatform, clock: Callable[[], float], replacement: Update
    ) -> None:
        self._sources, self._face, self._clock, self._replacement = sources, face, clock, replacement
        self._actions: Actions
        self._supervisor: Supervisor
        self._told, self._notices_lock = NoticeMemory(), threading.Lock()
        self._busy, self._busy_lock = set[Action](), threading.Lock()
        self._looked_at = -LOOK_AGAIN_S
        self.is_replaced = False  # True if the newly installed program must start once this tray has ended
        self._icon = face.make_icon()
        self._icon.on_signal = self.quit_soon  # for systems whose event loop blocks Python's signal handlers
        self._icon.on_host = partial(face.withdraw, NO_HOST)
        self._icon.on_open = self.opened  # called only where the system reports that the menu opens
        self._icon.on_bare_click = partial(self.click, Action(Verb.SHOW_STATE))
        self._painter = Painter(self._icon, face.picture, self.click, face.label)
        self._redraws = Redraws(self._draw)
        self._painter.render(view(sources.state()))

    def join(self, actions: Actions, supervisor: Supervisor) -> None:
        """Set the parts that could only be built after this app."""
        self._actions, self._supervisor = actions, supervisor

    def run(self) -> None:
        """Run the tray until Quit, a signal, or the end of the desktop session. Call this on the main thread."""
        self._hear_signals()
        self._icon.run(self._begin)
        self._redraws.close()
        self._end_gateway()

    def _begin(self, icon: Any) -> None:
        icon.visible = True
        self._supervisor.start()
        self._redraws.start()
        self._looked_at = self._clock()
        self._sources.look_around()
        self._redraws.request()

    def _hear_signals(self) -> None:
        """Handle signals on a separate thread: the main thread may be blocked, and a signal would not wake it."""
        for name in (*ENDS, RENEWS):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda number, frame: None)
        hears, tells = socket.socketpair()
        tells.setblocking(False)
        signal.set_wakeup_fd(tells.detach(), warn_on_full_buffer=False)

        def obey() -> None:
            while number := hears.recv(1):
                if number[0] == getattr(signal, RENEWS, None):
                    self._renew()
                else:
                    log.info("Received signal %d. Ending the tray", number[0])
                    self.quit_soon()

        threading.Thread(target=obey, name="signals", daemon=True).start()

    def _renew(self) -> None:
        log.info("The program was replaced. Ending the tray and starting the new one")
        self.is_replaced = True
        self.quit_soon()

    def quit_soon(self) -> None:
        """Run `quit` on a new thread, without waiting. May be called on any thread."""
        threading.Thread(target=self.quit, name="quit", daemon=True).start()

    def quit(self) -> None:
        """Stop the gateway unless the user started it, then end the icon. Do not call this on the main thread."""
        try:
            self._end_gateway()
        finally:
            self._icon.stop()

    def _end_gateway(self) -> None:
        if not self._supervisor.join(0):
            self._supervisor.command(CommandKind.QUIT, QUIT_S)
            self._supervisor.join(QUIT_S)

    def saw(self, seen: SupervisorView) -> None:
        """Store the supervisor's view, and redraw. Restart the gateway if an update replaced its program.

        Notifications about the state of the process are checked here: a redraw might miss a state that ends soon.
        """
        if self._sources.see(seen):
            self._tell()
        self._redraws.request()
        if seen.snapshot and self._replacement.replaced_gateway(seen.snapshot["gateway"]["pid"]):
            threading.Thread(target=self._renew_gateway, name="renew gateway", daemon=True).start()

    def _renew_gateway(self) -> None:
        """Restart a gateway that runs an old program, even one the user started. Shims keep the AI tools' sessions."""
        log.info("The gateway runs a program that was replaced. Restarting it")
        try:
            self._supervisor.command(CommandKind.RESTART)
        except MultiMcpError as error:
            log.warning("Cannot restart the old gateway: %s", error)

    def looked_around(self) -> None:
        """Update what no snapshot shows, such as the AI tools, and redraw. Blocks."""
        self._sources.look_around()
        self._redraws.request()

    def opened(self) -> None:
        """Call `looked_around` on another thread, unless it was called within the last LOOK_AGAIN_S."""
        if self._clock() - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = self._clock()
            threading.Thread(target=self.looked_around, name="look around", daemon=True).start()

    def click(self, action: Action) -> None:
        """Carry out an action on its own thread, unless the same action is still running.

        A sign-in may start again, because the user may have closed its page by mistake.
        """
        with self._busy_lock:
            if action in self._busy and action.verb is not Verb.SIGN_IN:
                return
            self._busy.add(action)

        def do() -> None:
            try:
                notice = self._actions.do(action)
                if notice is not None:
                    self.show(notice)
            finally:
                with self._busy_lock:
                    self._busy.discard(action)

        threading.Thread(target=do, name=f"click {action.verb}", daemon=True).start()

    def shown(self) -> TrayView:
        """Return the view of the current state."""
        return view(self._sources.state())

    def _draw(self) -> float | None:
        self._painter.render(self.shown())
        return self._tell().again_s

    def _tell(self) -> DueNotices:
        """Show and withdraw the due notifications on another thread, because this may be slow. Return what is due."""
        with self._notices_lock:
            fresh = due_notices(self._sources.state(), self._told, self._clock())
            self._told = fresh.told

        def show_all() -> None:
            for key in fresh.over:
                self._face.withdraw(key)
            for notice in fresh.notices:
                self.show(notice)

        if fresh.notices or fresh.over:
            threading.Thread(target=show_all, name="notices", daemon=True).start()
        return fresh

    def show(self, notice: Notice) -> None:
        """Show a notification, and log it in case nothing displays it."""
        seen = self._face.show(notice, self.click)
        log.info("Notification%s: %s | %s", "" if seen else " (no tray host)", notice.title, notice.text)

    def second_start(self, request: str) -> str:
        """Answer a request from a second `multi-mcp`. Return the text for it to print.

        The request `quit` ends this tray. After an update, any other request replaces this program with the new
        version. Without an update, the state is shown in a notification and returned.
        """
        if request == ENDED_BY:
            self.quit_soon()
            return "The tray is ending"
        if self._replacement.replaced_this_process():
            self._renew()
            return "The program was updated. The new version takes over"
        self.click(Action(Verb.SHOW_STATE))
        return self.shown().summary


class BalloonNotifications:
    """Notifications as balloons of the icon, without buttons (Windows and macOS).

    On Windows, a click on the balloon carries out the notice's first action if the notice allows such a click.
    """

    def __init__(self, icon: Any) -> None:
        self._icon = icon

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """Show a notice. Return False if the system refuses it."""
        action = notice.actions[0][1] if notice.actions and notice.click else None
        self._icon.on_balloon = partial(click, action) if action else None
        try:
            self._icon.notify(notice.text, notice.title)
        except Exception:  # the boundary to pystray, which can raise anything
            log.exception("Cannot show a notification")
            return False
        return True

    def withdraw(self, key: str) -> None:
        """Do nothing: balloons disappear by themselves."""
