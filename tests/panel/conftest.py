"""The browser that the panel's tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.panel.scene import browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return one event loop for a module's tests: a browser belongs to the loop that started it, and tests of other
    modules look at what runs in theirs.
    """
    return "asyncio"


@pytest.fixture(scope="module")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    """Yield one browser for a module's tests: its start takes longer than most of them. Scenes share no sessions."""
    async with browser() as started:
        yield started
