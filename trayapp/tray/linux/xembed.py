"""The icon in trays that support only XEmbed (i3bar, tint2, polybar): pystray's xorg backend with four additions.

These are clicks, docking in a tray that starts later, a transparent background, and an orderly end when the display
closes. Import this module only if there is an X display: pystray opens it on import.

The specifications are "System Tray Protocol" and "XEmbed" of freedesktop.org.
"""

from __future__ import annotations

import collections
import logging
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import Xlib.error
import Xlib.X
from PIL import Image
from pystray import _xorg

from trayapp.tray.icons import Artwork

log = logging.getLogger(__name__)
EVENTS = Xlib.X.ExposureMask | Xlib.X.StructureNotifyMask | Xlib.X.ButtonPressMask
CLICKS = (1, 3)  # left and right: there is no menu for the right button
ALL_PLANES = 0xFFFFFFFF
DEPTH = 24  # bits per pixel at which the background can be read and mixed; in memory a pixel takes BYTES_A_PIXEL
DEEP = 32  # bits per pixel, with alpha
BYTES_A_PIXEL = 4
WAKES = 4096  # wake-up bytes to read in one call; each job writes one
X_ERRORS = (Xlib.error.XError, Xlib.error.ConnectionClosedError, _xorg.XError, OSError)


class DockedIcon(_xorg.Icon):  # type: ignore[misc]  # pystray has no types
    """An icon in an XEmbed tray, without a menu.

    - `on_click`: called on the thread that reads the display.
    - `on_docked`: called on that thread with True if a tray shows the icon, False if not.
    - `on_gone`: called on that thread when the display has closed.

    All methods and properties of pystray may be used from any thread. They do not wait for the display.

    The class is broad because pystray's interface is.
    """

    _systray_manager: Any
    _window: Any

    def __init__(
        self,
        name: str,
        artwork: Artwork,
        title: str,
        on_click: Callable[[], None],
        on_docked: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        self._jobs: collections.deque[Callable[[], None]] = collections.deque()
        self._on_click, self._on_docked, self._on_gone = on_click, on_docked, on_gone
        self._told = self._stopping = False
        self._waking = threading.Lock()
        super().__init__(name, artwork, name)
        self._display.set_error_handler(lambda error, request: log.debug("X refused: %r", error))
        self._title = title
        self._message_handlers[Xlib.X.ClientMessage] = self._on_message

    def start(self) -> None:
        """Start the thread that reads the display. The icon appears once it is made `visible`."""
        self._woken, self._wake = os.pipe()
        self._running = True
        threading.Thread(target=self._run, name="xembed", daemon=True).start()

    def stop(self) -> None:
        """Remove the icon and end its thread, without waiting for either."""
        if self._running:
            self._stop()

    def _rewrite_implementation(self, *methods: Callable[[], None]) -> None:
        """Make these methods queue their calls for the display's thread.

        pystray's own version waits for that thread, and hangs if the thread has ended. Only that thread may use the
        display: once the display has closed, python-xlib blocks all other threads.
        """
        self._manager = self._display.intern_atom("MANAGER")

        def queue(method: Callable[[], None]) -> None:
            self._jobs.append(method)
            with self._waking:
                if self._running:
                    os.write(self._wake, b"\0")

        for method in methods:
            setattr(self, method.__name__, partial(queue, method))

    def _on_message(self, event: Any) -> None:
        if event.client_type == self._manager and event.data[1][1] == self._net_system_tray_sx:
            if self._systray_manager is not None and self._systray_manager.id != event.data[1][2]:
                self._systray_manager = None  # another tray is now the owner
            self._dock_window()

    def _run(self) -> None:
        gone = False
        try:
            self._mainloop()
        except X_ERRORS as error:
            log.info("The display is gone: %s", repr(error))
            gone = True
        except Exception:  # the boundary to python-xlib: the app continues without the icon
            log.exception("Lost the icon in the XEmbed tray")
        with self._waking:
            self._running = False
            os.close(self._wake)
        os.close(self._woken)
        with suppress(*X_ERRORS):
            self._display.close()
        self._tell(False)
        if gone:
            self._on_gone()

    def _mainloop(self) -> None:
        """Run jobs and handle events until stop() was called and the icon is gone."""
        while True:
            self._display.flush()
            # Check this last: flushing may also read events, and the socket would not report these again.
            if not self._jobs and not self._display.pending_events():
                if self._woken in select.select([self._display, self._woken], [], [])[0]:
                    os.read(self._woken, WAKES)
                continue
            if self._jobs:
                self._jobs.popleft()()
                continue
            event = self._display.next_event()
            if event.type != Xlib.X.DestroyNotify or event.window.id != self._window.id:
                self._message_handlers.get(event.type, lambda event: None)(event)
            elif self._stopping:
                return
            else:  # our window was destroyed with a tray that was killed
                self._systray_manager = None
                self._window = self._create_window()
                self._gc = self._window.create_gc()
                if self._visible:
                    self._show()

    def __del__(self) -> None:
        """Do nothing: pystray's own version waits for a thread."""

    def _stop(self) -> None:
        self._stopping = True
        super()._stop()

    def _create_window(self) -> Any:
        # The root window gets an event when a tray starts (System Tray Protocol), so polling is not needed.
        self._display.screen().root.change_attributes(event_mask=Xlib.X.StructureNotifyMask)
        window = super()._create_window()
        window.change_attributes(event_mask=EVENTS)
        self._deep = False
        return window

    def _show(self) -> None:
        self._update_title()
        self._dock_window()

    def _update_title(self) -> None:
        # pystray's own version fails on characters outside Latin-1.
        utf8 = self._display.intern_atom("UTF8_STRING")
        self._window.change_property(self._display.intern_atom("_NET_WM_NAME"), utf8, 8, self.title.encode())
        self._window.set_wm_name(self.title.encode("ascii", "replace").decode())

    def _update_icon(self) -> None:
        self._icon_data = None
        self._icon_valid = True
        if self._systray_manager is None:
            self._dock_window()
        else:
            self._draw()

    def _dock_window(self) -> None:
        if self._systray_manager is not None:
            return  # trayer drops icons that request docking twice
        manager = self._get_systray_manager()
        if manager is not None and not self._deep and (visual := self._deep_visual(manager)):
            self._window.destroy()
            root = self._display.screen().root
            self._window = root.create_window(  # with alpha: these trays blend icons with their background
                *(-1, -1, 1, 1, 0, DEEP),
                visual=visual,
                colormap=root.create_colormap(visual, Xlib.X.AllocNone),
                background_pixel=0,
                border_pixel=0,  # required: the default is the parent's, which has another depth
                event_mask=EVENTS,
            )
            self._deep, mapped = True, [self._XEMBED_VERSION, self._XEMBED_MAPPED]
            self._window.set_wm_class(f"{self.name}SystemTrayIcon", self.name)
            self._window.change_property(self._xembed_info, self._xembed_info, 32, mapped)
            self._gc = self._window.create_gc()
            self._update_title()
        super()._dock_window()
        self._tell(self._systray_manager is not None)

    def _deep_visual(self, manager: Any) -> int:
        """Return the visual with alpha that the tray requires of icons, or 0 without one or if we cannot draw in it."""
        wanted = manager.get_full_property(self._display.intern_atom("_NET_SYSTEM_TRAY_VISUAL"), Xlib.X.AnyPropertyType)
        depths = self._display.screen().allowed_depths
        deep = {visual.visual_id for depth in depths if depth.depth == DEEP for visual in depth.visuals}
        is_ours = self._display.display.info.image_byte_order == Xlib.X.LSBFirst
        return wanted.value[0] if wanted and is_ours and wanted.value[0] in deep else 0

    def _on_destroy_notify(self, event: Any) -> None:
        if self._systray_manager is not None and event.window.id == self._systray_manager.id:
            self._systray_manager = None
            self._dock_window()

    def _tell(self, docked: bool) -> None:
        if docked != self._told:
            self._told = docked
            self._on_docked(docked)

    def _on_button_press(self, event: Any) -> None:
        if event.detail in CLICKS:
            self._on_click()

    def _draw(self) -> None:
        try:
            size = self._window.get_geometry()
            if self._deep:
                picture = self._on(Image.new("RGBA", (size.width, size.height)))
                rows = self._display.display.info.max_request_length * 4 // (size.width * BYTES_A_PIXEL) - 1
                for top in range(0, size.height, max(1, rows)):
                    part = picture.crop((0, top, size.width, min(size.height, top + rows)))
                    data = part.convert("RGBa").tobytes("raw", "BGRa")
                    self._window.put_image(self._gc, 0, top, *part.size, Xlib.X.ZPixmap, DEEP, 0, data)
            else:
                picture = self._on(self._background(size.width, size.height))
                picture.tostring = picture.tobytes  # python-xlib still uses the old name
                self._window.put_pil_image(self._gc, 0, 0, picture)
        except Xlib.error.BadDrawable:
            return  # hidden meanwhile
        self._display.flush()

    def _on(self, background: Any) -> Any:
        """Draw the icon in the middle of `background`, and return `background`."""
        side = min(background.size)
        icon = self._icon(side)
        place = tuple((length - side) // 2 for length in background.size)
        if background.mode == "RGBA":
            background.alpha_composite(icon, place)
        else:
            background.paste(icon, place, icon)
        return background

    def _background(self, width: int, height: int) -> Any:
        """Return the tray's background, which X draws for windows with the background ParentRelative.

        X cannot do this if the depths of the tray and our window differ. The result is then black. Call this only after
        docking: otherwise X refuses to dock the window.
        """
        try:
            with _xorg.display_manager(self._display):
                self._window.change_attributes(background_pixmap=Xlib.X.ParentRelative)
                self._window.clear_area(0, 0, width, height, False)
                raw = self._window.get_image(0, 0, width, height, Xlib.X.ZPixmap, ALL_PLANES)
        except (_xorg.XError, Xlib.error.XError) as error:
            log.debug("Cannot read the tray's background: %r", error)
            return Image.new("RGB", (width, height))
        if raw.depth != DEPTH or len(raw.data) != width * height * BYTES_A_PIXEL:
            return Image.new("RGB", (width, height))
        return Image.frombytes("RGB", (width, height), raw.data, "raw", "BGRX")
