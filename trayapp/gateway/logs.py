"""Where the gateway's own words and its servers' stderr are kept: rotated files of bounded size.

Never here: what is worth a line.
"""

from __future__ import annotations

import logging
import logging.handlers
import re
from contextlib import suppress
from pathlib import Path
from typing import IO

from trayapp.catalog.cache import file_name

LOG_BYTES = 2 * 1024 * 1024  # of one file; one older file is kept beside it
GATEWAY_LOG = "gateway.log"
# What stands where a secret may: `Bearer x`, `token=x`, `"api_key": "x"`, long provider keys. Logs lose it.
_SECRET = re.compile(
    r"""(?ix) (bearer\s+|(?:token|secret|password|passwd|api[_-]?key|authorization)["']?\s*[=:]\s*["']?) [^\s"',;&]+"""
    r"""| \b(?:sk|ghp|gho|ghs|xox[abp]|glpat|github_pat)[-_][A-Za-z0-9_-]{10,}"""
)


def redacted(text: str) -> str:
    """`text` without anything that looks like a secret."""
    return _SECRET.sub(lambda found: (found[1] or "") + "[redacted]", text)


class RedactingFormatter(logging.Formatter):
    """A line of gateway.log."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def start_logging(folder: Path, level: int = logging.INFO) -> None:
    """Send this process's log to `folder`/gateway.log; a folder that cannot be written leaves only stderr."""
    root = logging.getLogger()
    root.setLevel(level)
    formatter = RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler: logging.Handler
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            folder / GATEWAY_LOG, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    for chatty in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class StderrFiles:
    """`logs/servers/NAME.log`, one a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _Rotated] = {}

    def sink(self, server: str) -> _Rotated:
        """Takes the bytes of that server's stderr."""
        return self._files.setdefault(server, _Rotated(self._folder / log_name(server)))


def log_name(server: str) -> str:
    """`NAME.log` for plain names; for others a safe name that no other server has."""
    return (
        f"{server}.log" if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", server) else file_name(server).replace(".json", ".log")
    )


class _Rotated:
    """Callable: appends bytes; what cannot be written is dropped, a server must not fail over its own log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def __call__(self, data: bytes) -> None:
        with suppress(OSError):
            file = self._file or self._open()
            file.write(redacted(data.decode(errors="replace")).encode())
            file.flush()
            if file.tell() > LOG_BYTES:
                file.close()
                self._file = None
                self._path.replace(self._path.with_suffix(".log.1"))

    def _open(self) -> IO[bytes]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self._path.open("ab")
        return self._file
