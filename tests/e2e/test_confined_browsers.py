"""Servers with a real browser give the same answers with `confine: {sockets: true}` as without `confine`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.confined_servers import BROWSERS, compare
from tests.e2e.test_more_servers import page

__all__ = ["page"]  # a fixture
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("confine-real"), pytest.mark.timeout(180)]


@pytest.mark.parametrize("name", BROWSERS)
async def test_every_tool_answers_confined_as_it_does_without(tmp_path: Path, page: str, name: str) -> None:
    await compare(name, BROWSERS[name], tmp_path / "work", page=page)
