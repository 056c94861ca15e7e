"""A connection to the session bus, and a host of icons on it, for the tests that need them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if sys.platform == "linux":
    from tests.tray.bus import Watcher
    from trayapp.tray.linux.bus import SessionBus

    @pytest.fixture
    def bus(address: str) -> Iterator[SessionBus]:
        """Our connection to it."""
        opened = SessionBus.open(address)
        yield opened
        opened.close()

    @pytest.fixture
    def session(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """Return its address, at which an icon of this process finds it."""
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        return address

    @pytest.fixture
    def watcher(address: str) -> Iterator[Watcher]:
        """Yield a panel on it."""
        started = Watcher(address)
        yield started
        started.close()
