"""The gateway as the panel sees it, and who may use the panel: single-use codes, cookies, and tokens for changes."""

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
    """The gateway as the panel sees it.

    - `ask`: run a control request. Raises MultiMcpError, RpcError.
    - `changes`, `calls`, `logs`: call a listener after each state change, after calls were recorded, or after servers
      wrote to their logs. Each returns a function that removes the listener.
    - `seen`: return how many state changes there were, and how often calls were recorded and logs were written.
    - `per_minute`: given N, return the number of calls in each of the last N minutes.
    - `watched`: while its context lasts, count one more person who can answer questions.
    - `profiles`: return the names of the profiles in servers.yaml.
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

    `file` keeps the hashes of the cookies until the gateway shuts down cleanly. A gateway that starts after a crash
    still accepts them. `now` returns the seconds of a monotonic clock.
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
        with suppress(OSError):  # without the file, pages must sign in again after a crash of the gateway
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
            self._file.write_text("\n".join(self._cookies), encoding="ascii")
        return cookie

    def knows(self, cookie: str) -> bool:
        """Return True if this gateway, or a crashed one before it, issued the cookie."""
        return _hash(cookie) in self._cookies

    def token(self, cookie: str) -> str:
        """Return the token that a change must send together with this cookie."""
        return hmac.new(cookie.encode(), b"multi-mcp panel change", hashlib.sha256).hexdigest()

    def is_token(self, cookie: str, token: str) -> bool:
        """Return True if the token belongs to the cookie."""
        return hmac.compare_digest(self.token(cookie).encode(), token.encode("utf-8", "replace"))

    def end(self) -> None:
        """Forget all codes and cookies, and delete the file."""
        self._codes.clear()
        self._cookies.clear()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def end_panel(access: PanelAccess) -> None:
    """End the access to the panel, then the verbs that its pages run. Blocks for at most FINISHES_S (verb_process)."""
    access.end()
    end_verbs()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
