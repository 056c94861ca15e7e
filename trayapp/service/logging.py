"""Where the words of gateway and tray themselves are kept: a rotated file each, of bounded size, without secrets.

Never here: what is worth a line.
"""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Mapping
from pathlib import Path

from trayapp.model.logs import GATEWAY_LOG
from trayapp.model.redact import redacted

LOG_BYTES = 2 * 1024 * 1024  # of one file; one older file is kept beside it
LEVEL_VARIABLE = "MULTI_MCP_LOG"  # debug, info, warning or error
LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}
# They stay quiet at every level: their own words hold whole requests.
CHATTY = ("mcp", "httpx2", "httpcore2", "PIL", "Xlib")


def level_of(environ: Mapping[str, str]) -> int:
    """What the user wants logged; info unless said otherwise."""
    return LEVELS.get(environ.get(LEVEL_VARIABLE, "").strip().lower(), logging.INFO)


class RedactingFormatter(logging.Formatter):
    """A line of the log, without secrets and control sequences. What a server said of several lines is indented: it
    must not look like a line of ours."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record)).replace("\n", "\n    ")


class _Rotating(logging.handlers.RotatingFileHandler):
    """A line that cannot be written (disk full, folder gone) is dropped, not told of on stderr line by line."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def start_logging(folder: Path, level: int = logging.INFO, name: str = GATEWAY_LOG) -> None:
    """Send this process's log to `folder`/`name`; a folder that cannot be written leaves only stderr."""
    root = logging.getLogger()
    root.setLevel(level)
    formatter = RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler: logging.Handler
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = _Rotating(folder / name, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
