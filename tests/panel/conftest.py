"""The browser that the panel's tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.panel.scene import browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the backend once per module, so that all its tests use the event loop to which the browser belongs.

    The loop is not shared between modules, because some tests inspect all tasks of their loop.
    """
    return "asyncio"


@pytest.fixture(scope="module")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    """Yield one browser for all tests of a module, because it starts slowly. Scenes share no sessions."""
    async with browser() as started:
        yield started
