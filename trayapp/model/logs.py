"""What the log files are called, for those who write them and those who show them.

Never here: the log folder (config/paths), writing, reading.
"""

from __future__ import annotations

import hashlib
import re

GATEWAY_LOG = "gateway.log"
TRAY_LOG = "tray.log"
SERVER_LOGS = "servers"  # folder in the log folder: a file for the stderr of each server
OLDER = ".1"  # behind the name of the one older file that is kept

STEM_LONGEST = 80  # characters of a server's name in a file's name, whose limit is 255 bytes
_PLAIN = re.compile(r"[a-z0-9_-]{1,80}")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")  # Windows has no files of these names, whatever their end


def names_server(text: str, server: str) -> bool:
    """True if the server's name stands in the text as a word."""
    return bool(server) and re.search(rf"(?<![\w-]){re.escape(server)}(?![\w-])", text) is not None


def log_name(server: str) -> str:
    """`NAME.log` for plain names; for others a safe name that no other server has, on any file system."""
    if _PLAIN.fullmatch(server) and not _DEVICES.fullmatch(server):
        return f"{server}.log"
    stem = _OUTSIDE.sub(lambda found: f"_{ord(found[0]):x}_", server)[:STEM_LONGEST]
    digest = hashlib.blake2b(server.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return f"{stem}-{digest}.log"
