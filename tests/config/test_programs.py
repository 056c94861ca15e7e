"""Detecting command lines that start a server with its own browser."""

from __future__ import annotations

import pytest

from trayapp.config.programs import is_browser

pytestmark = pytest.mark.requirement("browser-of-each-session")


@pytest.mark.parametrize(
    "line",
    [
        "npx @playwright/mcp",
        "npx -y @playwright/mcp@latest --headless",
        "npx -y chrome-devtools-mcp@0.9.0",
        "npx -y @modelcontextprotocol/server-puppeteer",
        "bunx --bun @executeautomation/playwright-mcp-server",
        "node /home/u/x/node_modules/@playwright/mcp/cli.js",
        r"node C:\x\node_modules\@playwright\mcp\cli.js",
        "/home/u/x/node_modules/.bin/mcp-server-playwright --port 1",
        "/usr/local/bin/chrome-devtools-mcp",
        "docker run -i --rm mcr.microsoft.com/playwright/mcp:v1",
        "docker run -i --rm mcp/puppeteer",
        "uvx --from browser-use[cli]==0.2 browser-use --mcp",
    ],
)
def test_known_ones_are_told_by_package_image_program_and_path(line: str) -> None:
    assert is_browser(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem /home/u/playwright",
        "npx -y @browsermcp/mcp",  # attaches to the user's running browser
        "npx -y --package=@playwright/test other",
        "node server.js",
        "uvx mcp-server-git",
        "x",
        "",
    ],
)
def test_others_are_not(line: str) -> None:
    assert not is_browser(line.split())
