"""The program's version and commit, newer published versions, and updates installed since a process started.

Only a published program checks for newer versions, and only if its user enabled that. The request contains no data
about the user or the machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trayapp import __version__
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import NO_WINDOW, PACKAGE, WHOLE, is_frozen, program

SHORT = 7
_HASH = re.compile(r"[0-9a-f]{7,64}")
LARGEST = 1 << 20  # bytes; an answer usually has about 10,000
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)\s*")
SETTLED_S = 15.0  # an installer may replace our file seconds before the others


def version_text(package: Path = Path(PACKAGE)) -> str:
    """Return the version, with the short commit if it is known: `0.1.0` or `0.1.0 (3de80d5)`."""
    commit = commit_of(package)
    return f"{__version__} ({commit[:SHORT]})" if commit else __version__


def commit_of(package: Path) -> str:
    """Return the commit of a packaged program or of a checkout, or "" if it is unknown."""
    with suppress(OSError, UnicodeDecodeError):
        return _checked((package / "commit").read_text(encoding="ascii"))  # written when a program is packaged
    if not (package.parent / ".git").exists():
        return ""
    import subprocess  # imported late: only a checkout needs it

    argv = ["git", "-C", str(package.parent), "rev-parse", "HEAD"]
    with suppress(OSError):
        return _checked(subprocess.run(argv, capture_output=True, text=True, creationflags=NO_WINDOW).stdout)
    return ""


class Release(NamedTuple):
    """A published version, and the page that announces it."""

    version: str
    url: str


def releases_address(package: Path = Path(PACKAGE)) -> str:
    """Return the https address of the newest release, or "" for an unpublished build, which never checks."""
    with suppress(OSError, UnicodeDecodeError):
        text = (package / "releases").read_text(encoding="ascii").strip()  # written when a program is published
        return text if text.startswith("https://") else ""
    return ""


def newest(address: str) -> Release:
    """Return the newest release from GitHub's REST API. Blocks for at most 10 s per step. Raises MultiMcpError."""
    from trayapp.service.web import WebError, read_json  # imported late: loads the HTTP and TLS libraries

    try:
        found = read_json(address, LARGEST)
        return Release(str(found["tag_name"]).removeprefix("v"), _page(found.get("html_url"), address))
    except WebError as error:
        reason = error.title
    except (KeyError, TypeError) as error:
        reason = type(error).__name__
    raise MultiMcpError(f"Cannot check for a newer version: {reason}", "Try again later")


def is_newer(other: str, mine: str = __version__) -> bool:
    """Return True if `other` is a final version above `mine`. Return False for pre-releases and invalid versions."""
    theirs, ours = _NUMBERS.fullmatch(other), _NUMBERS.match(mine)
    return theirs is not None and ours is not None and _parts(theirs[1]) > _parts(ours[1])


def _checked(text: str) -> str:
    found = _HASH.fullmatch(text.strip())
    return found[0] if found else ""


def _parts(numbers: str) -> tuple[int, ...]:
    parts = [int(part[:9]) for part in numbers.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _page(url: Any, address: str) -> str:
    """Return the page's URL, or "" unless it is https and its host is the host of `address` or a parent domain.

    For example, api.github.com may name a page on github.com.
    """
    if isinstance(url, str) and url.startswith("https://"):
        host, asked = urlsplit(url).hostname or "", urlsplit(address).hostname or ""
        if host and (asked == host or asked.endswith(f".{host}")):
            return url
    return ""


# --- Updates are detected by the time of the installation. Versions are not enough, because a rebuild of the same
# version is a different program.


def installed_at() -> float:
    """Return the Unix time at which the program's file was installed or changed, or 0.0 if it cannot be read."""
    try:  # pip rewrites __init__.py at every installation
        return Path(program(WHOLE) if is_frozen() else f"{PACKAGE}/__init__.py").stat().st_ctime
    except OSError:
        return 0.0


def is_followed(started_at: float, clock: Callable[[], float] = time.time) -> bool:
    """Return True if this program was installed again after `started_at` (Unix seconds), at least SETTLED_S ago."""
    return started_at < installed_at() <= clock() - SETTLED_S


class Update:
    """A detector of updates for this process and its gateway. `run` is the runtime folder.

    An installation time in the future is ignored. It means that the clock was set back, so every new gateway would seem
    outdated.
    """

    def __init__(self, run: str, clock: Callable[[], float] = time.time) -> None:
        self._run = run
        self._clock = clock
        self._since = clock()
        self._checked_pid = 0

    def replaced_this_process(self) -> bool:
        """Return True if the program was installed after this process started."""
        return self._installed_after(self._since)

    def replaced_gateway(self, pid: int) -> bool:
        """Return True if the program was installed after the gateway `pid` started.

        Return False if the previous call was about the same gateway, or if its start time is unknown.
        """
        if pid == self._checked_pid:
            return False
        self._checked_pid = pid
        from trayapp.wire.greeting import read_endpoint  # imported late: `multi-mcp version` does not need it

        endpoint = read_endpoint(self._run)
        if endpoint is None or endpoint.pid != pid or endpoint.started_at <= 0:
            return False
        return self._installed_after(endpoint.started_at)

    def _installed_after(self, started_at: float) -> bool:
        return started_at < installed_at() <= self._clock()
