"""Fixtures for every test. Never here: fakes (they lie beside the tests of the room whose Protocol they implement)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import require

__all__ = ["require"]

# A Unix socket's path may have about 104 bytes; macOS's own temporary folder eats half of them.
SHORT_TMP = "/tmp" if os.name == "posix" else None


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the loop that the gateway runs on."""
    return "asyncio"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh, empty MULTI_MCP_HOME with a short path, set for child processes too; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mm-", dir=SHORT_TMP))
    monkeypatch.setenv("MULTI_MCP_HOME", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
