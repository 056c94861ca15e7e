"""Who may see the panel: single-use codes, cookies, and the token of each change. Never here: HTTP."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CODE_S = 60.0
CODES_MOST = 20
COOKIES_MOST = 50
BYTES = 32
FILE_NAME = "panel-cookies"


class PanelAccess:
    """Codes and cookies of one gateway. A gateway that was killed and is back knows its cookies by their hashes.

    `file`: keeps the hashes until the gateway ends in order. `now`: seconds of a clock that never goes back.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._now = now
        self._codes: dict[str, float] = {}
        self._cookies: dict[str, None] = dict.fromkeys(self._read())

    def code(self) -> str:
        """Return a code that `redeem` takes once, within CODE_S."""
        self._codes = {known: until for known, until in self._codes.items() if until > self._now()}
        while len(self._codes) >= CODES_MOST:
            del self._codes[next(iter(self._codes))]
        made = secrets.token_urlsafe(BYTES)
        self._codes[_hash(made)] = self._now() + CODE_S
        return made

    def redeem(self, code: str) -> str | None:
        """Return a cookie for a code; None for one that is unknown, used, or too old."""
        until = self._codes.pop(_hash(code), None)
        if until is None or until <= self._now():
            return None
        cookie = secrets.token_urlsafe(BYTES)
        self._cookies[_hash(cookie)] = None
        while len(self._cookies) > COOKIES_MOST:
            del self._cookies[next(iter(self._cookies))]
        self._write()
        return cookie

    def knows(self, cookie: str) -> bool:
        """True if the cookie is one of ours."""
        return _hash(cookie) in self._cookies

    def token(self, cookie: str) -> str:
        """Return the token that a change by the holder of that cookie has to bring."""
        return hmac.new(cookie.encode(), b"multi-mcp panel change", hashlib.sha256).hexdigest()

    def is_token(self, cookie: str, token: str) -> bool:
        """True if that is the token of the cookie's holder."""
        return hmac.compare_digest(self.token(cookie).encode(), token.encode("utf-8", "replace"))

    def end(self) -> None:
        """Forget all cookies: the gateway ends."""
        self._cookies.clear()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _read(self) -> list[str]:
        try:
            return self._file.read_text(encoding="ascii").split()[-COOKIES_MOST:]
        except (OSError, ValueError):
            return []

    def _write(self) -> None:
        with suppress(OSError):  # then a killed gateway asks its pages to sign in again
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
            self._file.write_text("\n".join(self._cookies), encoding="ascii")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
