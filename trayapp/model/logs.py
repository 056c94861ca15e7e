"""Names of the log files, and of all other files that are named after a server. config/paths names their folders."""

from __future__ import annotations

import hashlib
import re

from trayapp.model.text import escaped

GATEWAY_LOG = "gateway.log"
TRAY_LOG = "tray.log"
SERVER_LOGS = "servers"  # folder in the log folder, with one file for each server's stderr
OLDER = ".1"  # suffix of the previous log file, the only older one

STEM_LONGEST = 80  # characters of a server's name in a file name, whose limit is 255 bytes
_PLAIN = re.compile(r"[a-z0-9_-]{1,80}")
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")  # reserved on Windows, with any extension


def names_server(text: str, server: str) -> bool:
    """Return True if the server's name appears in the text as a word."""
    return bool(server) and re.search(rf"(?<![\w-]){re.escape(server)}(?![\w-])", text) is not None


def warns_about(line: str, server: str) -> bool:
    """Return True if a line of the gateway's log is a warning or an error about this server."""
    return any(level in line for level in (" WARNING ", " ERROR ")) and names_server(line, server)


def log_name(server: str) -> str:
    """Return `NAME.log` for a plain name, or else a name from `file_stem`."""
    if _PLAIN.fullmatch(server) and not _DEVICES.fullmatch(server):
        return f"{server}.log"
    return f"{file_stem(server)}.log"


def file_stem(server: str) -> str:
    """Return a file name without extension, valid for any server name and distinct on case-insensitive file systems."""
    digest = hashlib.blake2b(server.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return f"{escaped(server)[:STEM_LONGEST]}-{digest}"
