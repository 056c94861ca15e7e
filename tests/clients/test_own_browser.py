"""Imported servers that drive a browser: each session has its own browser, as in the AI tool."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.clients.conversion import with_own_browser

pytestmark = pytest.mark.requirement("browser-of-each-session")


@pytest.mark.parametrize(
    ("entry", "scope"),
    [
        ({"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}, "session"),
        ({"command": ["npx", "chrome-devtools-mcp"]}, "session"),
        ({"command": "npx", "args": ["@playwright/mcp"], "scope": "shared"}, "shared"),
        ({"command": "npx", "args": ["-y", "my-files-server"]}, None),
        ({"url": "https://a.test/mcp"}, None),
    ],
)
def test_what_is_said_about_the_scope_stays(entry: dict[str, Any], scope: str | None) -> None:
    assert with_own_browser(entry).get("scope") == scope
