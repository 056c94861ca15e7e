"""Access tokens of HTTP clients: one for each port, in files beside servers.yaml.

An AI tool sends its token to whatever listens at the address in its file. If another user's program took that port
first, it has the token, which must then be useless elsewhere and later.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from trayapp.gateway.process.permissions import close_to_others
from trayapp.wire.lock import FileLock, hold

log = logging.getLogger(__name__)

TOKEN_BYTES = 32
TOKEN_NAME = "http-token"  # for the configured port; for another one with `-PORT` appended


class ClientTokens:
    """Token files in one folder. A token begins with the port that it was made for. Gateways with separate runtime
    folders may share this folder: each locks its token's file while it listens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: int | None = None  # an open descriptor

    def name(self, port: int, wanted: int) -> str:
        """Return the name of the file with the token of a port. `wanted`: the configured port."""
        return TOKEN_NAME if wanted in (0, port) else f"{TOKEN_NAME}-{port}"

    def take(self, port: int, wanted: int, exposed: Iterable[int]) -> str:
        """Return the token of the port at which the gateway listens now: the same after every start. Blocks.

        `exposed`: ports at which another user's program may have read a token; these tokens are revoked. So are the
        tokens of ports that no running gateway uses any more. If the token cannot be stored, each start makes a new
        one.
        """
        self.release()
        name = self.name(port, wanted)
        ended = [self._folder / self.name(one, wanted) for one in exposed]
        others = [one for one in sorted(self._folder.glob(f"{TOKEN_NAME}-*")) if one.name != name]
        left = [one for one in others if _is_of_a_port(one) and not FileLock(str(self._folder), one.name).is_held()]
        for old in (*ended, *left):
            with suppress(OSError):
                old.unlink()
                log.warning("The token in %s is no longer valid: no gateway has its port", old)
        path = self._folder / name
        token = _known(path, port) or _made(path, port)
        self._held = hold(path)
        return token

    def release(self) -> None:
        """Release the token: the gateway no longer listens there."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _is_of_a_port(path: Path) -> bool:
    """True if a gateway made the file: a user may keep a copy beside it."""
    return path.name.removeprefix(f"{TOKEN_NAME}-").isdecimal()


def _known(path: Path, port: int) -> str | None:
    try:
        known = path.read_text(encoding="ascii").strip()
        if len(known) >= TOKEN_BYTES and is_for(known, port) and not close_to_others([path]):
            return known  # others know the token in a linked file or another user's
    except (OSError, ValueError):
        pass
    return None


def is_for(token: str, port: int) -> bool:
    """True if a token was made for that port, or before tokens named their port."""
    made_for, dot, _ = token.partition(".")
    return made_for == str(port) if dot else True


def _made(path: Path, port: int) -> str:
    token = f"{port}.{secrets.token_urlsafe(TOKEN_BYTES)}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(token + "\n", encoding="ascii")
    except OSError as error:
        log.warning("HTTP clients need a new token after each start: cannot write %s: %s", path, error.strerror)
    return token
