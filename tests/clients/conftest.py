"""The temporary folder of these tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Yield a folder, in memory if possible, because these tests save thousands of files."""
    fast = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="mm-", dir=MEMORY if fast else None) as folder:
        yield Path(folder).resolve()
