"""The packaged program, which must be built before the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devtools.package import PACKAGED, is_current
from tests.tools import missing

HOW = "build it with: python3 packaging/dev.py test tests/packaged"


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder with the built packages."""
    if sys.platform != "linux":
        pytest.skip("only Linux's packages are built by the tests")
    if not is_current():
        missing(f"The packaged program was not made of these sources: {HOW}")
    return PACKAGED


@pytest.fixture(scope="session")
def bundle(built: Path) -> Path:
    """Return the folder with the three programs."""
    return built / "work" / "out" / "multi-mcp"


@pytest.fixture(scope="session")
def deb(built: Path) -> Path:
    """Return the path of the Debian package."""
    (path,) = built.glob("*.deb")
    return path
