"""Known MCP servers that launch their own browser. Two sessions that share one would act on each other's pages.

Servers that attach to the user's own browser are not listed: there is only one such browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PACKAGES = frozenset({
    # npm
    "@angiejones/mcp-selenium", "@automatalabs/mcp-server-playwright", "@browserbasehq/mcp",
    "@browserbasehq/mcp-server-browserbase", "@executeautomation/playwright-mcp-server", "@hisma/server-puppeteer",
    "@modelcontextprotocol/server-puppeteer", "@mozilla/firefox-devtools-mcp", "@playwright/mcp",
    "better-playwright-mcp", "chrome-devtools-mcp", "concurrent-browser-mcp", "firefox-devtools-mcp",
    "puppeteer-mcp-server",
    # PyPI
    "browser-use", "browser-use-mcp-server", "mcp-browser-use", "mcp-playwright", "mcp-selenium",
    "mcp-server-browser-use", "playwright-mcp",
    # Docker
    "mcp/playwright", "mcp/puppeteer", "mcr.microsoft.com/playwright/mcp",
    # programs of these packages
    "mcp-server-playwright", "mcp-server-puppeteer", "playwright-mcp-server",
})  # fmt: skip
WHY = "It drives a browser, which sessions would share"

_VERSION = re.compile(r"(?<=.)(?:@|==|:(?=[^/]*\Z)|\[).*\Z", re.DOTALL)  # version of npm, PyPI or an image; extras
_INSTALLED = re.compile(r".*[/\\]node_modules[/\\](?:\.bin[/\\])?((?:@[^/\\]+[/\\])?[^/\\]+)(?:[/\\].*)?", re.DOTALL)


def is_browser(words: Iterable[str]) -> bool:
    """Return True if a command line starts a listed server, by package, image, program or a path inside the package."""
    return any(_package(word) in PACKAGES for word in words if not word.startswith("-"))


def _package(word: str) -> str:
    installed = _INSTALLED.fullmatch(word)
    if installed is not None:
        return installed[1].replace("\\", "/").lower().removesuffix(".cmd")
    if word.startswith(("/", "~", ".")) or "\\" in word:
        return re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe").removesuffix(".cmd")
    return _VERSION.sub("", word).lower()
