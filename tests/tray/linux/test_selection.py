"""Tests of copying text on an X display without an external program."""

from __future__ import annotations

import sys
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("X displays are Linux's", allow_module_level=True)

import Xlib.display
import Xlib.X

from tests.tray.bus import until
from tests.tray.desktop.session import start_screen
from trayapp.tray.linux.selection import SELECTION, own_selection


class Reader:
    """An X client that pastes the selection."""

    def __init__(self, name: str) -> None:
        self.display = Xlib.display.Display(name)
        self.window = self.display.screen().root.create_window(0, 0, 1, 1, 0, Xlib.X.CopyFromParent)

    def paste(self, target: str) -> Any:
        """Return the selection in this type, or None if its owner does not offer the type."""
        atom = self.display.intern_atom
        self.window.convert_selection(atom(SELECTION), atom(target), atom("PASTED"), Xlib.X.CurrentTime)
        while (event := self.display.next_event()).type != Xlib.X.SelectionNotify:
            pass
        if event.property == Xlib.X.NONE:
            return None
        return self.window.get_full_property(event.property, Xlib.X.AnyPropertyType).value

    def names(self) -> set[str]:
        return {self.display.get_atom_name(atom) for atom in self.paste("TARGETS")}

    def take(self) -> None:
        """Take over the selection, as a program that copies something else does."""
        self.window.set_selection_owner(self.display.intern_atom(SELECTION), Xlib.X.CurrentTime)
        self.display.sync()


@pytest.mark.requirement("tray-actions")
def test_what_is_copied_is_pasted_until_somebody_else_copies() -> None:
    with start_screen() as name:
        assert own_selection("one", {"DISPLAY": name})
        assert own_selection("multi-mcp stdio ä", {"DISPLAY": name}), "the newer one takes its place"
        reader = Reader(name)
        assert reader.paste("UTF8_STRING") == "multi-mcp stdio ä".encode()
        assert {"TARGETS", "UTF8_STRING", "text/plain"} <= reader.names()
        assert reader.paste("image/png") is None
        reader.take()
        until(lambda: reader.display.get_selection_owner(reader.display.intern_atom(SELECTION)) == reader.window)
        reader.display.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # python-xlib leaves sockets open
def test_without_a_display_nothing_is_copied() -> None:
    assert not own_selection("x", {})
    assert not own_selection("x", {"DISPLAY": ":987"})
    assert not own_selection("x" * 300_000, {"DISPLAY": ":0"})
