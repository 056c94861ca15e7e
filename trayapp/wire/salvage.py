"""Repair of answers that some parsers reject: dropping list entries that fail, and making strings well-formed.

Never here: which answers to repair.
"""

from __future__ import annotations

from typing import Any

from trayapp.model.late import late
from trayapp.wire.jsonio import JsonError, loads

_TOKEN = late(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')  # strings as a whole: brackets inside them do not count
_LONE = late("[\ud800-\udfff]")
ENTRY_DEPTH = 3  # nesting depth of an entry in {"result": {"tools": [entry]}}
LEVELS_MOST = 100  # of one entry; serde_json accepts 128 in a whole message, pydantic 200


def salvaged(frame: bytes) -> dict[str, Any] | None:
    """Return the message with null in place of each entry that cannot be read; None if that does not help."""
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
    """Return a JSON value that strict parsers accept; `value` itself if they already do.

    They reject a whole message because of one lone surrogate or deep nesting. A lone surrogate becomes U+FFFD, and
    nesting beyond `levels` is cut off.
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
