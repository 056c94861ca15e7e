"""Whether there is a newer version: the one question that a published program may ask, when its user switched that on.

Nothing of the user or the machine is sent. Never here: when it is asked, how it is told.
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

ADDRESS_FILE = "releases"  # beside the package's modules, written when a program is published: who may be asked
LARGEST = 1 << 20  # bytes; an answer has some ten thousand
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)\s*")


@dataclass(frozen=True, slots=True)
class Release:
    """A published version, and the page that tells of it."""

    version: str
    url: str


def releases_address(package: Path = Path(PACKAGE)) -> str:
    """The https address that this very program may ask; "" of one that nobody published: then nobody is asked."""
    with suppress(OSError, UnicodeDecodeError):
        text = (package / ADDRESS_FILE).read_text(encoding="ascii").strip()
        return text if text.startswith("https://") else ""
    return ""


def newest(address: str) -> Release:
    """What is the newest release, as GitHub's REST API says it ("Get the latest release"). Blocks, at most 10 s a step.

    Raises MultiMcpError.
    """
    try:
        found = read_json(address, LARGEST)
        return Release(str(found["tag_name"]).removeprefix("v"), _page(found.get("html_url"), address))
    except WebError as error:
        reason = error.title
    except (KeyError, TypeError) as error:
        reason = type(error).__name__
    raise MultiMcpError(f"Newer versions cannot be asked for: {reason}", "Try again later")


def is_newer(other: str, mine: str = __version__) -> bool:
    """Whether `other` is a finished version above `mine`; one that is no version, or a trial of one, is not."""
    theirs, ours = _NUMBERS.fullmatch(other), _NUMBERS.match(mine)
    return theirs is not None and ours is not None and _parts(theirs[1]) > _parts(ours[1])


def _parts(numbers: str) -> tuple[int, ...]:
    parts = [int(part[:9]) for part in numbers.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _page(url: Any, address: str) -> str:
    """Only a page of the same house, or one above it (api.github.com, github.com), is shown to a user."""
    if isinstance(url, str) and url.startswith("https://"):
        host, asked = urlsplit(url).hostname or "", urlsplit(address).hostname or ""
        if host and (asked == host or asked.endswith(f".{host}")):
            return url
    return ""
