"""The icon on Linux. It uses StatusNotifierItem if a panel supports this, otherwise XEmbed, and waits for either."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from trayapp.tray.linux.bus import SessionBus, connect
from trayapp.tray.linux.sni import StatusNotifierIcon
from trayapp.tray.painter import BaseIcon, Menu

log = logging.getLogger(__name__)
# Time between two checks for a missing session bus, which may appear during a login. In a container, it may never
# appear, but a check costs only one system call.
BUS_WAIT_S = 10.0
Kind = Literal["sni", "xembed"]
# At login, the panel may start after the tray. Wait this long for it before trying XEmbed, or before telling the user
# that nothing shows the icon.
PANEL_WAIT_S = 10.0
STARTED_WAIT_S = 3.0  # replaces PANEL_WAIT_S if the tray was not started at login
DOCK_WAIT_S = 1.0  # time for an XEmbed tray to accept the icon before the user is told that nothing shows it


class SearchStep(NamedTuple):
    """The next step of the search.

    - `way`: the kind of host to use, or None if there is no host yet
    - `nobody`: True if it is time to tell the user that nothing shows the icon, unless something does
    - `wait_s`: the seconds until the next step if nothing happens earlier, or None to wait without limit
    """

    way: Kind | None
    nobody: bool
    wait_s: float | None


class HostSearch:
    """A search for a kind of host, based on which hosts exist and how long there has been none. It does no I/O.

    `bus`: True if there is a session bus. `display`: True if there is an X display for XEmbed. `now`: the seconds of a
    monotonic clock.
    """

    def __init__(self, bus: bool, display: bool, now: float, panel_wait_s: float = PANEL_WAIT_S) -> None:
        self._display = display
        self._alone_since = now
        self._watcher = False
        # Try XEmbed once no better host can be expected. If nothing can ever show icons, report that immediately.
        self._xembed_after_s = panel_wait_s if bus else 0.0
        self._told_after_s = panel_wait_s + DOCK_WAIT_S if bus or display else 0.0

    def step(self, watcher: bool, now: float) -> SearchStep:
        """Return the next step. `watcher`: True if a panel supports StatusNotifierItem."""
        if self._watcher and not watcher:  # the panel is probably restarting, which takes some seconds
            self._alone_since = now
            self._xembed_after_s, self._told_after_s = PANEL_WAIT_S, PANEL_WAIT_S + DOCK_WAIT_S
        self._watcher = watcher
        if watcher:
            return SearchStep("sni", False, None)
        alone_s = now - self._alone_since
        way: Kind | None = "xembed" if self._display and alone_s >= self._xembed_after_s else None
        left = [mark - alone_s for mark in (self._xembed_after_s, self._told_after_s) if mark > alone_s]
        return SearchStep(way, alone_s >= self._told_after_s, min(left, default=None))


def may_have_xembed(environ: Mapping[str, str]) -> bool:
    """True if an XEmbed tray may exist and can be looked for.

    Under Wayland, return False: panels there support StatusNotifierItem, and looking for XEmbed would start Xwayland.
    """
    return bool(environ.get("DISPLAY")) and not environ.get("WAYLAND_DISPLAY")


class LinuxIcon(BaseIcon):  # type: ignore[misc]  # pystray has no types
    """pystray's interface, over any host that shows icons.

    - `icon`: a function from size to picture (icons.Artwork).
    - `on_bus`: gets the session bus that run() connected to. Without a bus, run() looks for one every `bus_wait_s`.
    - `on_no_host`: called at most once, on its own thread, if nothing shows the icon within `panel_wait_s` +
      DOCK_WAIT_S of the start, or within PANEL_WAIT_S + DOCK_WAIT_S of the end of a panel. If nothing can ever show
      it, the call comes immediately.

    run() continues without a host. It ends after stop(), or at logout, when the bus or, without a bus, the display
    ends. Handlers of the menu run on the thread of the bus or the display, and must not block.

    The class is broad because pystray's interface is.
    """

    on_open: Callable[[], None] | None = None  # called when the menu opens; like all handlers, it must not block
    on_host: Callable[[], None] | None = None  # called on its own thread if a host appears after `on_no_host`
    on_bare_click: Callable[[], None] | None = None  # called for a click in an XEmbed tray, where the icon has no menu

    def __init__(
        self,
        *args: Any,
        on_no_host: Callable[[], None] | None = None,
        panel_wait_s: float = PANEL_WAIT_S,
        on_bus: Callable[[SessionBus], None] | None = None,
        bus_wait_s: float = BUS_WAIT_S,
    ) -> None:
        super().__init__(*args)
        self._on_no_host, self._on_bus = on_no_host, on_bus
        self._panel_wait_s, self._bus_wait_s = panel_wait_s, bus_wait_s
        self._bus: SessionBus | None = None
        self._sni: StatusNotifierIcon | None = None
        self._xembed: Any = None
        self._attention = self._watcher = self._docked = self._ended = False
        self._changed = threading.Condition()

    @property
    def host(self) -> Kind | None:
        """Return the kind of host that shows the icon now, or None."""
        return "sni" if self._watcher else "xembed" if self._docked else None

    @property
    def attention(self) -> bool:
        """True if panels should not hide the icon among the unimportant ones."""
        return self._attention

    @attention.setter
    def attention(self, wanted: bool) -> None:
        self._attention = wanted
        if self._sni is not None:
            self._sni.attention(wanted)

    # -- called by pystray -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._find_bus(quietly=False)
            self._mark_ready()
            display = may_have_xembed(os.environ)
            search = HostSearch(self._bus is not None, display, time.monotonic(), self._panel_wait_s)
            is_told = False
            while not self._ended:
                seen = (self._watcher, self._docked)
                step = search.step(seen[0], time.monotonic())
                self._take(step.way)
                if step.nobody and self.host is None and self._on_no_host is not None:
                    said, self._on_no_host, is_told = self._on_no_host, None, True
                    threading.Thread(target=said, name="no host", daemon=True).start()
                elif is_told and self.host is not None and self.on_host is not None:
                    is_told = False
                    threading.Thread(target=self.on_host, name="host", daemon=True).start()
                wait_s = step.wait_s
                if self._bus is None:  # a bus may appear: a login is in progress
                    wait_s = min(wait_s or self._bus_wait_s, self._bus_wait_s)
                with self._changed:
                    self._changed.wait_for(partial(self._differs, seen), wait_s)
                if self._bus is None and not self._ended:
                    self._find_late_bus()
        finally:
            self._take(None)
            if self._bus is not None:  # the panel then removes the icon
                self._bus.close()

    def _differs(self, seen: tuple[bool, bool]) -> bool:
        return self._ended or (self._watcher, self._docked) != seen

    def _stop(self) -> None:
        self._end()

    def _show(self) -> None:
        self._visible = True  # pystray sets it only after this call, but a host found during the call needs it
        if self._sni is not None:
            self._sni.title(self.title)
            self._sni.attention(self._attention)
            self._sni.show(True)
        if (docked := self._xembed) is not None:
            docked.visible = True

    def _hide(self) -> None:
        if self._sni is not None:
            self._sni.show(False)
        if (docked := self._xembed) is not None:
            docked.visible = False

    def _update_icon(self) -> None:
        self._icon_valid = True
        if self._sni is not None:
            self._sni.picture(self._icon)
        if (docked := self._xembed) is not None:
            docked.icon = self._icon

    def _update_title(self) -> None:
        if self._sni is not None:
            self._sni.title(self.title)
        if (docked := self._xembed) is not None:
            docked.title = self.title

    def _update_menu(self) -> None:
        if self._sni is not None:
            self._sni.menu(self._menu)

    def _opened(self) -> None:
        if self.on_open is not None:
            _handle(self.on_open)

    def _find_bus(self, quietly: bool) -> None:
        """Connect to the session bus if there is one, and put the icon on it. `quietly`: as in connect()."""
        self._bus = connect(quietly)
        if self._bus is None:
            return
        if self._on_bus is not None:
            self._on_bus(self._bus)
        self._bus.on_gone(self._end)
        self._sni = StatusNotifierIcon(
            self._bus,
            self.name,
            Menu.SEPARATOR,
            partial(_handle, self),
            lambda item: _handle(self._handler(item)),
            self._watcher_is,
            self._opened,
        )

    def _find_late_bus(self) -> None:
        """Look for a bus again. If there is one now, show the icon, title, and menu there."""
        self._find_bus(quietly=True)
        shown = None
        while self._sni is not None and shown is not self._icon:  # repeated if the icon changed in the meantime
            shown = self._icon
            self._update_icon()
            self._update_menu()
            if self._visible:
                self._show()

    def _watcher_is(self, there: bool) -> None:
        with self._changed:
            self._watcher = there
            self._changed.notify_all()

    def _docked_is(self, docked: bool) -> None:
        with self._changed:
            self._docked = docked
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, kind: Kind | None) -> None:
        if kind == "xembed" and self._xembed is None:

            def bare_clicked() -> None:
                _handle(self.on_bare_click or self)

            def gone() -> None:
                if self._bus is None:
                    self._end()  # without a bus, nothing else reports the end of the session

            try:
                from trayapp.tray.linux import xembed  # opens the display

                made = xembed.DockedIcon(self.name, self._icon, self.title, bare_clicked, self._docked_is, gone)
            except Exception as error:  # noqa: BLE001 (the boundary of a library that can raise anything)
                log.info("No X display: %s", repr(error))  # repr: a kept error would keep the attempt's sockets open
                return
            made.start()  # the icon docks once there is a tray
            self._xembed = made
            # The icon, title, or visibility may have changed during construction.
            made.icon, made.title, made.visible = self._icon, self.title, self._visible
        elif kind != "xembed" and self._xembed is not None:
            docked, self._xembed = self._xembed, None
            docked.stop()
            self._docked_is(False)


def _handle(handler: Callable[[], object]) -> None:
    """Call a handler, which must not block, and log its errors. Runs on the thread of the bus or the display."""
    try:
        handler()
    except Exception:  # the boundary of a click: the thread must continue
        log.exception("Unexpected error in a click")
