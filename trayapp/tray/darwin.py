"""The icon on macOS: pystray's own, with AppKit touched on the main thread only, sharp on Retina, and ended by signals.

AppKit from another thread ends the process since macOS 26 (pystray issue 60). Never here: what is shown.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

ACCESSORY = (
    1  # NSApplicationActivationPolicyAccessory: no Dock icon, no menu bar of its own (LSUIElement does the same)
)
MENUS_KEPT = 8  # an open menu is an old one: its entries must still find what they stand for
MARSHALLED = ("_show", "_hide", "_update_icon", "_update_title", "_update_menu", "_stop")

CallAfter = Callable[..., None]
Signals = Callable[[int, Callable[..., None]], object]
ImageOf = Callable[[bytes, tuple[float, float]], Any]  # a PNG as AppKit has it, and its size in points


class Callbacks:
    """What the tags of menu items stand for: unlike a list, it never gives a tag of an open menu to another item."""

    def __init__(self) -> None:
        self._by_tag: dict[int, Any] = {}
        self._next = 0
        self._menus: list[int] = []

    def begin(self) -> None:
        """A new menu comes; what only very old ones had is forgotten."""
        self._menus.append(self._next)
        if len(self._menus) > MENUS_KEPT:
            first_kept = self._menus.pop(0) and self._menus[0]
            self._by_tag = {tag: callback for tag, callback in self._by_tag.items() if tag >= first_kept}

    def append(self, callback: Any) -> None:
        """The callback of the item with the tag `len(self)`."""
        self._by_tag[self._next] = callback
        self._next += 1

    def __len__(self) -> int:
        return self._next

    def __getitem__(self, tag: int) -> Any:
        return self._by_tag.get(tag, _nothing)


def _nothing(*_: object) -> None:
    """An entry of a menu that is long gone."""


def _native_image(png: bytes, size: tuple[float, float]) -> Any:
    """An ImageOf."""
    import AppKit
    import Foundation

    image = AppKit.NSImage.alloc().initWithData_(Foundation.NSData(png))
    image.setSize_(size)
    return image


def mended(base: Any, call_after: CallAfter, catch: Signals, image_of: ImageOf = _native_image) -> type[Any]:
    """pystray's class made fit. `call_after` runs a function on the main thread; `catch` takes a signal there."""

    class DarwinIcon(base):  # type: ignore[misc]  # pystray has no types
        """See the module."""

        attention = False  # other systems' icons tell their panel by it
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
            self._mark_ready()
            try:
                self._app.run()
            finally:
                self._status_bar.removeStatusItem_(self._status_item)

        def _assert_image(self) -> None:
            """The picture with all its pixels, shown at the bar's height: two pixels a point on Retina."""
            if self._icon_image is not None:
                return
            data = io.BytesIO()
            self._icon.save(data, "png")
            points = self._status_bar.thickness()
            self._icon_image = image_of(data.getvalue(), (points, points))
            self._status_item.button().setImage_(self._icon_image)

        def _create_menu(self, descriptors: Any, callbacks: Any) -> Any:
            """The menus of one update share one run of tags."""
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
        setattr(DarwinIcon, name, _on_main_thread(work, call_after))
    return DarwinIcon


def _on_main_thread(work: Callable[..., None], call_after: CallAfter) -> Callable[..., None]:
    def marshalled(icon: Any, *args: Any) -> None:
        call_after(work, icon, *args)

    return marshalled


def adapted(base: Any) -> type[Any]:
    """The real thing."""
    if sys.platform != "darwin":
        raise NotImplementedError("AppKit is on macOS only")
    from PyObjCTools import AppHelper, MachSignals

    return mended(base, AppHelper.callAfter, MachSignals.signal)
