"""Answers that not every parser takes: a list without the entries over which it fails, texts that are well-formed.

Never here: which answers are worth that.
"""

from __future__ import annotations

from typing import Any

from trayapp.model.late import late
from trayapp.wire.jsonio import JsonError, loads

_TOKEN = late(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')  # texts whole: brackets in them are none
_LONE = late("[\ud800-\udfff]")
ENTRY_DEPTH = 3  # of an entry in {"result": {"tools": [entry]}}
LEVELS_MOST = 100  # of one entry; serde_json reads 128 of a whole message, pydantic 200


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


def well_formed(value: Any, levels: int = LEVELS_MOST) -> Any:
    """Return a JSON value as strict parsers take it; `value` itself where they do.

    They refuse a whole message for one lone surrogate, or for nesting: the one becomes U+FFFD, the other is cut off.
    """
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        changed = {well_formed(key): well_formed(each, levels - 1) for key, each in value.items()} if levels else {}
        return value if value == changed else changed
    if isinstance(value, list):
        listed = [well_formed(each, levels - 1) for each in value] if levels else []
        return value if value == listed else listed
    return value
