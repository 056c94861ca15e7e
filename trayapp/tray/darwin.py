"""The icon on macOS: pystray's icon with thread safety, sharp pictures on Retina screens, and signal handling.

Since macOS 26, a call to AppKit from any thread but the main one ends the process (pystray issue 60).
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from trayapp.service.command_line import own_command

ACCESSORY = 1  # NSApplicationActivationPolicyAccessory: no Dock icon and no menu bar (LSUIElement does the same)
# codes of Apple events, four letters each (AE.framework, AEDataModel.h)
GET_URL = int.from_bytes(b"GURL", "big")
CORE = int.from_bytes(b"aevt", "big")
OPEN_DOCUMENTS = int.from_bytes(b"odoc", "big")
DIRECT_OBJECT = int.from_bytes(b"----", "big")
FILE_URL = int.from_bytes(b"furl", "big")
MENUS_KEPT = 8  # an open menu may be an older one whose entries still need their callbacks
MARSHALLED = ("_show", "_hide", "_update_icon", "_update_title", "_update_menu", "_stop")

Opened = Callable[[str], object]  # takes a link or the path of a file


class Callbacks:
    """The callbacks of menu items, by tag. Unlike in pystray, a tag of an open menu is never given to another item."""

    def __init__(self) -> None:
        self._by_tag: dict[int, Any] = {}
        self._next = 0
        self._menus: deque[int] = deque(maxlen=MENUS_KEPT)  # the first tag of each kept menu

    def begin(self) -> None:
        """Start a new menu. Drop the callbacks of all but the last MENUS_KEPT menus."""
        self._menus.append(self._next)
        self._by_tag = {tag: callback for tag, callback in self._by_tag.items() if tag >= self._menus[0]}

    def append(self, callback: Any) -> None:
        """Store a callback for the item whose tag is `len(self)`."""
        self._by_tag[self._next] = callback
        self._next += 1

    def __len__(self) -> int:
        return self._next

    def __getitem__(self, tag: int) -> Any:
        return self._by_tag.get(tag, lambda *_: None)  # a click in a menu whose callbacks were dropped


def _native_image(png: bytes, size: tuple[float, float]) -> Any:
    import AppKit
    import Foundation

    image = AppKit.NSImage.alloc().initWithData_(Foundation.NSData(png))
    image.setSize_(size)
    return image


def opened_texts(event: Any) -> list[str]:
    """Return the link of a `get URL` event, or the paths of an `open documents` event, or [] without either."""
    told = event.paramDescriptorForKeyword_(DIRECT_OBJECT)
    if told is None:
        return []
    if event.eventID() == GET_URL:
        return [str(told.stringValue())]
    files = [told.descriptorAtIndex_(at + 1).coerceToDescriptorType_(FILE_URL) for at in range(told.numberOfItems())]
    return [str(file.fileURLValue().path()) for file in files if file is not None]


def open_in_panel(text: str) -> None:
    """Start `multi-mcp panel`, which shows the servers that a link or file would add."""
    subprocess.Popen([*own_command(), "panel", "--", text], stdin=subprocess.DEVNULL)


def _hear_opened(opened: Opened) -> object:
    """Call `opened` for each link and file that macOS opens with this app, as long as the returned object exists."""
    import Foundation

    class AppleEventReceiver(Foundation.NSObject):  # type: ignore[misc]  # PyObjC has no types
        """The receiver of Apple events."""

        def hear_reply_(self, event: Any, reply: Any) -> None:
            for text in opened_texts(event):
                opened(text)

    hearer = AppleEventReceiver.alloc().init()
    manager = Foundation.NSAppleEventManager.sharedAppleEventManager()
    for kind, name in ((GET_URL, GET_URL), (CORE, OPEN_DOCUMENTS)):
        manager.setEventHandler_andSelector_forEventClass_andEventID_(hearer, "hear:reply:", kind, name)
    return hearer


def mended(
    base: Any,
    call_after: Callable[..., None],
    catch: Callable[[int, Callable[..., None]], object],
    image_of: Callable[[bytes, tuple[float, float]], Any] = _native_image,
    hear_opened: Callable[[Opened], object] = _hear_opened,
) -> type[Any]:
    """Return pystray's class with its faults on macOS fixed.

    - `call_after` runs a function on the main thread.
    - `catch` sets the handler of a signal, which also runs on the main thread.
    - `image_of` makes an AppKit image from a PNG and its size in points.
    - `hear_opened` registers a function for links and files; see _hear_opened.
    """

    class DarwinIcon(base):  # type: ignore[misc]  # pystray has no types
        """pystray's icon on macOS, with AppKit called on the main thread only."""

        attention = False  # has an effect only on Linux
        _icon_image: Any
        _menu_handle: Any

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._callbacks = Callbacks()
            self.on_signal: Callable[[], None] = partial(base._stop, self)

        def _run(self) -> None:
            self._app.setActivationPolicy_(ACCESSORY)
            for number in (signal.SIGINT, signal.SIGTERM):
                catch(number, lambda *_: self.on_signal())
            self._hearer = hear_opened(open_in_panel)
            self._mark_ready()
            try:
                self._app.run()
            finally:
                self._status_bar.removeStatusItem_(self._status_item)

        def _assert_image(self) -> None:
            """Set the picture, unless it is set, at the menu bar's height. It keeps all pixels, for Retina screens."""
            if self._icon_image is not None:
                return
            data = io.BytesIO()
            self._icon.save(data, "png")
            points = self._status_bar.thickness()
            self._icon_image = image_of(data.getvalue(), (points, points))
            self._status_item.button().setImage_(self._icon_image)

        def _create_menu(self, descriptors: Any, callbacks: Any) -> Any:
            """Return a native menu. All menus of one update share one sequence of tags."""
            if not isinstance(callbacks, Callbacks):
                callbacks = self._callbacks
            return super()._create_menu(descriptors, callbacks)

        def _build_menu(self) -> None:
            self._callbacks.begin()
            base._update_menu(self)
            if self._menu_handle:
                self._menu_handle = (self._menu_handle[0], self._callbacks)

    for name in MARSHALLED:
        work = DarwinIcon._build_menu if name == "_update_menu" else getattr(base, name)
        setattr(DarwinIcon, name, lambda icon, *args, work=work: call_after(work, icon, *args))
    return DarwinIcon


def adapted(base: Any) -> type[Any]:
    """Return pystray's class, fixed for macOS. Raises NotImplementedError on other systems."""
    if sys.platform != "darwin":
        raise NotImplementedError("AppKit is on macOS only")
    from PyObjCTools import AppHelper, MachSignals

    return mended(base, AppHelper.callAfter, MachSignals.signal)
