"""Fixtures for the session bus."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if sys.platform == "linux":
    from tests.tray.bus import Watcher
    from trayapp.tray.linux.bus import SessionBus

    @pytest.fixture
    def bus(address: str) -> Iterator[SessionBus]:
        """Yield a connection to the session bus."""
        opened = SessionBus.open(address)
        yield opened
        opened.close()

    @pytest.fixture
    def session(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """Make a bus the session bus of this process. Return its address."""
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        return address

    @pytest.fixture
    def watcher(address: str) -> Iterator[Watcher]:
        """Yield a panel on the session bus."""
        started = Watcher(address)
        yield started
        started.close()
