"""Fixtures for the tests of trayapp/wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trayapp.wire.rundir import SOCKET_PATH_LIMIT, socket_folder


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[str]:
    """Yield a runtime folder whose path is too long for a socket. Afterwards, remove the short folder used instead."""
    run = str(tmp_path / ("d" * SOCKET_PATH_LIMIT) / "run")
    yield run
    place = Path(socket_folder(run))
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        place.rmdir()
