"""Check for a newer version. Only a published program asks, and only if its user enabled that.

No data of the user or the machine is sent.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trayapp import __version__
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import PACKAGE
from trayapp.service.web import WebError, read_json

ADDRESS_FILE = "releases"  # beside the package's modules, written when a program is published: the address to ask
LARGEST = 1 << 20  # bytes; an answer has about ten thousand
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)\s*")


@dataclass(frozen=True, slots=True)
class Release:
    """A published version, and the page that announces it."""

    version: str
    url: str


def releases_address(package: Path = Path(PACKAGE)) -> str:
    """Return the https address that this program asks for releases; "" if it was not published: then it asks nobody."""
    with suppress(OSError, UnicodeDecodeError):
        text = (package / ADDRESS_FILE).read_text(encoding="ascii").strip()
        return text if text.startswith("https://") else ""
    return ""


def newest(address: str) -> Release:
    """Return the newest release, from GitHub's REST API ("Get the latest release"). Blocks, at most 10 s for each step.

    Raises MultiMcpError.
    """
    try:
        found = read_json(address, LARGEST)
        return Release(str(found["tag_name"]).removeprefix("v"), _page(found.get("html_url"), address))
    except WebError as error:
        reason = error.title
    except (KeyError, TypeError) as error:
        reason = type(error).__name__
    raise MultiMcpError(f"Cannot check for a newer version: {reason}", "Try again later")


def is_newer(other: str, mine: str = __version__) -> bool:
    """Return True if `other` is a final version above `mine`. A pre-release, or text that is no version, is not."""
    theirs, ours = _NUMBERS.fullmatch(other), _NUMBERS.match(mine)
    return theirs is not None and ours is not None and _parts(theirs[1]) > _parts(ours[1])


def _parts(numbers: str) -> tuple[int, ...]:
    parts = [int(part[:9]) for part in numbers.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _page(url: Any, address: str) -> str:
    """Return the page's URL if it is https and its host is that of `address` or a parent domain of it; else "".

    For example, api.github.com may name a page on github.com.
    """
    if isinstance(url, str) and url.startswith("https://"):
        host, asked = urlsplit(url).hostname or "", urlsplit(address).hostname or ""
        if host and (asked == host or asked.endswith(f".{host}")):
            return url
    return ""
