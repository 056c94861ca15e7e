"""The logs of gateway and tray: a rotated file for each, of bounded size, without secrets."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Mapping
from pathlib import Path

from trayapp.config.files import make_folder
from trayapp.model.logs import GATEWAY_LOG
from trayapp.model.redact import redacted

LOG_BYTES = 2 * 1024 * 1024  # for one file; one older file is kept beside it
LEVEL_VARIABLE = "MULTI_MCP_LOG"  # debug, info, warning or error
LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}
# Libraries that log only warnings at every level: their messages hold whole requests.
CHATTY = ("mcp", "httpx2", "httpcore2", "PIL", "Xlib")


def level_of(environ: Mapping[str, str]) -> int:
    """Return the log level that the user set, info by default."""
    return LEVELS.get(environ.get(LEVEL_VARIABLE, "").strip().lower(), logging.INFO)


class RedactingFormatter(logging.Formatter):
    """Formats a record without secrets and control sequences.

    Further lines of a message are indented, so that a server's text cannot look like a log line of ours.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record)).replace("\n", "\n    ")


class _Rotating(logging.handlers.RotatingFileHandler):
    """A rotating file that silently drops a line that cannot be written (disk full, folder gone)."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def start_logging(folder: Path, level: int = logging.INFO, name: str = GATEWAY_LOG) -> None:
    """Send this process's log to `folder`/`name`, or to stderr if the folder cannot be written."""
    root = logging.getLogger()
    root.setLevel(level)
    formatter = RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler: logging.Handler
    try:
        make_folder(folder)
        handler = _Rotating(folder / name, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
