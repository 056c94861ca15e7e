"""The panel's interface to the gateway, and the codes, cookies, and tokens that give access to the panel."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trayapp.service.verb_process import end_verbs

if TYPE_CHECKING:
    from trayapp.config.paths import Paths

CODE_S = 60.0
CODES_MOST = 20
COOKIES_MOST = 50
BYTES = 32

Listen = Callable[[Callable[[], None]], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class PanelHost:
    """The panel's interface to the gateway.

    - `ask`: sends a control request. Raises MultiMcpError or RpcError.
    - `changes`, `calls`, `logs`: add a listener for state changes, recorded calls, or writes to servers' logs. Each
      returns a function that removes the listener.
    - `seen`: returns the number of events so far for `changes`, `calls`, and `logs`.
    - `per_minute`: returns the number of calls in each of the last N minutes.
    - `watched`: returns a context during which the gateway counts the page's user as able to answer questions.
    - `profiles`: returns the names of the profiles in servers.yaml.
    """

    ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
    changes: Listen
    calls: Listen
    logs: Listen
    seen: Callable[[], tuple[int, int, int]]
    per_minute: Callable[[int], Awaitable[list[int]]]
    watched: Callable[[], AbstractContextManager[None]]
    profiles: Callable[[], list[str]]
    access: PanelAccess
    paths: Paths
    environ: Mapping[str, str]


class PanelAccess:
    """The codes and cookies of one gateway.

    `file` keeps the cookies' hashes until the gateway shuts down cleanly. After a crash, the next gateway therefore
    accepts the same cookies. `now` returns the seconds of a monotonic clock.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._now = now
        self._codes: dict[str, float] = {}
        try:
            kept = file.read_text(encoding="ascii").split()[-COOKIES_MOST:]
        except (OSError, ValueError):
            kept = []
        self._cookies: dict[str, None] = dict.fromkeys(kept)

    def code(self) -> str:
        """Return a new code that `redeem` accepts once, within CODE_S."""
        self._codes = {known: until for known, until in self._codes.items() if until > self._now()}
        while len(self._codes) >= CODES_MOST:
            del self._codes[next(iter(self._codes))]
        made = secrets.token_urlsafe(BYTES)
        self._codes[_hash(made)] = self._now() + CODE_S
        return made

    def redeem(self, code: str) -> str | None:
        """Exchange a code for a cookie. Return None if the code is unknown, used, or expired."""
        until = self._codes.pop(_hash(code), None)
        if until is None or until <= self._now():
            return None
        cookie = secrets.token_urlsafe(BYTES)
        self._cookies[_hash(cookie)] = None
        while len(self._cookies) > COOKIES_MOST:
            del self._cookies[next(iter(self._cookies))]
        with suppress(OSError):  # without the file, the user must sign in again after a crash
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
            self._file.write_text("\n".join(self._cookies), encoding="ascii")
        return cookie

    def knows(self, cookie: str) -> bool:
        """True if this gateway, or one before it that crashed, issued the cookie."""
        return _hash(cookie) in self._cookies

    def token(self, cookie: str) -> str:
        """Return the token that a request for a change must send with this cookie."""
        return hmac.new(cookie.encode(), b"multi-mcp panel change", hashlib.sha256).hexdigest()

    def is_token(self, cookie: str, token: str) -> bool:
        """True if the token belongs to the cookie."""
        return hmac.compare_digest(self.token(cookie).encode(), token.encode("utf-8", "replace"))

    def end(self) -> None:
        """Forget all codes and cookies, and delete the file."""
        self._codes.clear()
        self._cookies.clear()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def end_panel(access: PanelAccess) -> None:
    """End access to the panel, then stop the verbs that its pages run. Blocks for at most verb_process.FINISHES_S."""
    access.end()
    end_verbs()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
