"""An answer with a list in it that no parser takes, without those entries over which it fails.

Never here: which answers are worth that.
"""

from __future__ import annotations

from typing import Any

from trayapp.model.late import late
from trayapp.wire.jsonio import JsonError, loads

_TOKEN = late(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')  # texts whole: brackets in them are none
ENTRY_DEPTH = 3  # of an entry in {"result": {"tools": [entry]}}


def salvaged(frame: bytes) -> dict[str, Any] | None:
    """Return the message with null in the place of each entry that cannot be read; None when that does not help."""
    parts: list[bytes] = []
    depth = start = done = 0
    for token in _TOKEN.finditer(frame):
        text = token[0]
        if text in b"[{":
            start = token.start() if depth == ENTRY_DEPTH else start
            depth += 1
        elif text in b"]}":
            depth -= 1
            if depth == ENTRY_DEPTH and not _is_json(frame[start : token.end()]):
                parts += [frame[done:start], b"null"]
                done = token.end()
    if not parts:
        return None
    try:
        message = loads(b"".join([*parts, frame[done:]]))
    except JsonError:
        return None
    return message if isinstance(message, dict) else None


def _is_json(text: bytes) -> bool:
    try:
        loads(text)
    except JsonError:
        return False
    return True
