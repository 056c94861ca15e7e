"""Tests of the fixes to pystray's icons on macOS and Windows, with fakes of both systems."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from trayapp.tray import darwin, windows
from trayapp.tray.app import BalloonNotifications
from trayapp.tray.painter import BaseIcon, Menu, MenuItem
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import Action, Verb


class MainThread:
    """A fake main thread, which runs the calls of AppHelper.callAfter in `turn`."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.handlers: dict[int, Callable[..., None]] = {}

    def call_after(self, work: Callable[..., None], *args: Any) -> None:
        self.waiting.append(lambda: work(*args))

    def catch(self, number: int, handler: Callable[..., None]) -> None:
        self.handlers[number] = handler

    def turn(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


class Thing:
    """A fake AppKit object that records the calls of its methods."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.thickness: Any = lambda: 22.0

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.calls.append((name, *args))
            return self

        return call


class FakeDarwin(BaseIcon):  # type: ignore[misc]
    """A fake pystray._darwin.Icon without AppKit."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.threads: list[str] = []
        self._app, self._status_item, self._bar = Thing(), Thing(), Thing()
        self._icon_image: Any = None
        self._menu_handle: Any = None

    @property
    def _status_bar(self) -> Any:
        return self._bar

    def _touch(self) -> None:
        self.threads.append(threading.current_thread().name)

    def _show(self) -> None:
        self._touch()

    _hide = _update_title = _stop = _show

    def _update_icon(self) -> None:
        self._touch()
        self._icon_image = None
        self._assert_image()

    def _update_menu(self) -> None:
        self._touch()
        callbacks: list[Any] = []
        nsmenu = self._create_menu(self.menu, callbacks)
        self._menu_handle = (nsmenu, callbacks) if nsmenu else None

    def _create_menu(self, descriptors: Any, callbacks: Any) -> Any:
        if not descriptors:
            return None
        tags = []
        for descriptor in descriptors:
            below = self._create_menu(descriptor.submenu, callbacks) if descriptor.submenu else []
            tags += [*below, (descriptor.text, len(callbacks))]
            callbacks.append(self._handler(descriptor))
        return tags

    def _assert_image(self) -> None:
        raise NotImplementedError


@pytest.fixture
def main() -> MainThread:
    return MainThread()


@pytest.fixture
def mac(main: MainThread) -> Any:
    heard: list[Any] = []
    kind = darwin.mended(
        FakeDarwin, main.call_after, main.catch, lambda png, size: (png[:4], size), lambda opened: heard.append(opened)
    )
    kind.heard = heard
    return kind("multi-mcp", Image.new("RGBA", (44, 44)), "title", Menu(MenuItem("a", lambda: None)))


class AppleEvent:
    """A fake Apple event, or a descriptor in an event."""

    def __init__(self, name: int = 0, text: str = "", parts: tuple[AppleEvent, ...] = ()) -> None:
        self.name, self.text, self.parts = name, text, parts

    def eventID(self) -> int:
        return self.name

    def paramDescriptorForKeyword_(self, keyword: int) -> AppleEvent | None:
        return self.parts[0] if keyword == int.from_bytes(b"----", "big") and self.parts else None

    def stringValue(self) -> str:
        return self.text

    def numberOfItems(self) -> int:
        return len(self.parts)

    def descriptorAtIndex_(self, at: int) -> AppleEvent:
        return self.parts[at - 1]  # descriptors are counted from 1

    def coerceToDescriptorType_(self, kind: int) -> AppleEvent | None:
        return self if self.text and kind == int.from_bytes(b"furl", "big") else None

    def fileURLValue(self) -> AppleEvent:
        return self

    def path(self) -> str:
        return self.text


@pytest.mark.requirement("link-registered")
def test_links_and_files_that_macos_opens_are_read_from_its_events() -> None:
    url = AppleEvent(darwin.GET_URL, parts=(AppleEvent(text="multi-mcp://add?what=npm:x"),))
    files = AppleEvent(text="", parts=(AppleEvent(text="/a b/x.mcpb"), AppleEvent(), AppleEvent(text="/y.mcpb")))
    assert darwin.opened_texts(url) == ["multi-mcp://add?what=npm:x"]
    assert darwin.opened_texts(AppleEvent(darwin.OPEN_DOCUMENTS, parts=(files,))) == ["/a b/x.mcpb", "/y.mcpb"]
    assert darwin.opened_texts(AppleEvent(darwin.OPEN_DOCUMENTS)) == []


def test_nothing_of_appkit_is_touched_but_on_the_main_thread(mac: Any, main: MainThread) -> None:
    mac._mark_ready()

    def elsewhere() -> None:
        mac.visible = True
        mac.icon = Image.new("RGBA", (44, 44), "red")
        mac.title = "other"
        mac.menu = Menu(MenuItem("b", lambda: None))
        mac._stop()
        mac.visible = False

    worker = threading.Thread(target=elsewhere, name="a click")
    worker.start()
    worker.join()
    assert mac.threads == []
    main.turn()
    assert set(mac.threads) == {threading.current_thread().name}
    assert len(mac.threads) >= 6


def test_the_picture_keeps_its_pixels_and_has_the_height_of_the_bar(mac: Any, main: MainThread) -> None:
    mac._mark_ready()
    mac.icon = Image.new("RGBA", (44, 44), "red")
    mac.visible = True
    main.turn()
    assert mac._icon_image == (b"\x89PNG", (22.0, 22.0))
    assert ("setImage_", (b"\x89PNG", (22.0, 22.0))) in mac._status_item.calls
    assert not any(name == "setTemplate_" for name, *_ in mac._status_item.calls)


def test_a_click_in_an_old_menu_never_hits_what_took_its_place(mac: Any, main: MainThread) -> None:
    clicks: list[str] = []

    def menu(*names: str) -> Any:
        return Menu(*(MenuItem(name, lambda _icon, item: clicks.append(item.text)) for name in names))

    mac._mark_ready()
    mac.menu = menu("first", "second")
    main.turn()
    open_menu, _ = mac._menu_handle
    for number in range(5):
        mac.menu = menu(f"new {number}", "first", "second")
        main.turn()
    _, callbacks = mac._menu_handle
    for _, tag in open_menu:
        callbacks[tag](mac)
    assert clicks == ["first", "second"]
    for number in range(50):
        mac.menu = menu(f"newer {number}")
        main.turn()
    _, callbacks = mac._menu_handle
    callbacks[open_menu[0][1]](mac)  # the entry is long gone, so nothing happens
    assert clicks == ["first", "second"]
    assert len(callbacks._by_tag) < 50


def test_signals_end_it_through_us(mac: Any, main: MainThread) -> None:
    ended: list[int] = []
    mac.on_signal = lambda: ended.append(1)
    mac._run()
    assert set(main.handlers) == {signal.SIGINT, signal.SIGTERM}
    main.handlers[signal.SIGTERM](signal.SIGTERM)
    assert ended == [1]
    assert mac._app.calls[0] == ("setActivationPolicy_", darwin.ACCESSORY)
    assert mac.heard == [darwin.open_in_panel]
    assert mac._bar.calls[-1][0] == "removeStatusItem_"


def test_elsewhere_it_cannot_be_made() -> None:
    with pytest.raises(NotImplementedError):
        darwin.adapted(FakeDarwin)


# -- Windows -------------------------------------------------------------------------------------------------------


class FakeWin32(BaseIcon):  # type: ignore[misc]
    """A fake pystray._win32.Icon without Windows."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.messages: list[dict[str, Any]] = []
        self.menus: list[str] = []
        self.while_open: Callable[[], None] = lambda: None

    def _update_menu(self) -> None:
        self.menus.append(str(self.menu).strip())

    def _on_notify(self, wparam: int, lparam: int) -> None:
        self.while_open()

    def _message(self, code: int, flags: int, **values: Any) -> None:
        self.messages.append(values)


@pytest.fixture
def win() -> Any:
    return windows.mended(FakeWin32)("multi-mcp", None, "title", Menu(MenuItem("first", lambda: None)))


@pytest.mark.parametrize("text", ["short", "x" * 500, "😀" * 300, "ä" * 400, ""])
def test_texts_are_cut_to_what_the_structures_hold(win: Any, text: str) -> None:
    win._message(1, 2, szTip=text, szInfo=text, szInfoTitle=text, hIcon=7)
    sent = win.messages[0]
    assert sent["hIcon"] == 7
    for name, limit in (("szTip", 127), ("szInfo", 255), ("szInfoTitle", 63)):
        assert len(sent[name].encode("utf-16-le")) // 2 <= limit
        assert text.startswith(sent[name])
        assert sent[name] == text or len(sent[name].encode("utf-16-le")) // 2 >= limit - 1


def test_an_open_menu_is_not_renewed_under_the_user_s_hand(win: Any) -> None:
    win._mark_ready()
    before = len(win.menus)

    def changes() -> None:
        for name in ("second", "third"):
            win.menu = Menu(MenuItem(name, lambda: None))
        assert len(win.menus) == before

    win.while_open = changes
    win._on_notify(0, 0)
    assert win.menus[before:] == ["third"]
    win.menu = Menu(MenuItem("fourth", lambda: None))
    assert win.menus[-1] == "fourth"


def test_the_opening_of_the_menu_is_told(win: Any) -> None:
    told: list[str] = []
    for _ in range(2):
        win._on_notify(0, windows.RIGHT_BUTTON_UP - 1)
        win._on_notify(0, windows.RIGHT_BUTTON_UP)
        win.on_open = lambda: told.append("opened")
    assert told == ["opened"]


def test_an_ampersand_is_no_mark() -> None:
    assert windows.menu_text("R&D && more") == "R&&D &&&& more"


def test_the_size_and_the_color_of_the_taskbar_have_defaults_elsewhere() -> None:
    assert windows.icon_px() > 0
    assert windows.light_taskbar() in (True, False)


class User32:
    """A fake user32. `newer`: what SetProcessDpiAwarenessContext returns, or None without that function."""

    def __init__(self, newer: bool | None) -> None:
        self.asked: list[object] = []
        if newer is not None:
            self.SetProcessDpiAwarenessContext = self._context
        self._newer = newer

    def _context(self, context: int) -> bool | None:
        self.asked.append(context)
        return self._newer

    def SetProcessDPIAware(self) -> None:
        self.asked.append("older")


@pytest.mark.parametrize(("newer", "asked"), [(True, [-4]), (False, [-4, "older"]), (None, ["older"])])
def test_windows_is_told_that_we_draw_in_real_pixels(newer: bool | None, asked: list[object]) -> None:
    windll = Thing()
    windll.user32 = User32(newer)  # type: ignore[attr-defined]
    windows.be_dpi_aware(windll)
    assert windll.user32.asked == asked


def test_a_click_on_a_notification_on_windows_does_what_its_first_button_would(win: Any) -> None:
    clicked = list[Action]()
    win.notify = lambda text, title: None
    speaker = BalloonNotifications(win)
    sign_in = Action(Verb.SIGN_IN, "a")
    assert speaker.show(Notice("k", "t", "x", (("Sign in", sign_in), ("Quit", Action(Verb.QUIT)))), clicked.append)
    win._on_notify(0, windows.BALLOON_CLICK)
    assert clicked == [sign_in]
    speaker.show(Notice("k", "t", "x"), clicked.append)
    win._on_notify(0, windows.BALLOON_CLICK)
    assert clicked == [sign_in], "that one had no button"
