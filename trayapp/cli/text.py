"""Making untrusted text safe for a terminal (model/text), and formats for terminals only: JSON, sizes in bytes.

Never here: printing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from trayapp.model.text import CONTROLS, ago, clean, count, first_line, one_line, shortened, width

__all__ = [
    "ago",
    "byte_size",
    "clean",
    "count",
    "escape_unprintable",
    "first_line",
    "json_text",
    "one_line",
    "shortened",
    "width",
]

_UNSAFE_JSON = re.compile(f"{CONTROLS.pattern}|[\u2028\u2029\ud800-\udfff]")


def escape_unprintable(text: str) -> str:
    """Return a whole text in one line, with escapes for characters that a terminal would not print."""
    return "".join(letter if letter.isprintable() else _escape_of(letter) for letter in text)


def _escape_of(letter: str) -> str:
    return json.dumps(letter)[1:-1] if letter != "\x7f" else "\\u007f"


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return readable JSON that is safe on a terminal: invisible characters are escaped."""
    return _UNSAFE_JSON.sub(_escape, json.dumps(value, indent=indent, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def byte_size(number: int) -> str:
    """Return a size in words: `800 bytes`, `12 kB`, `3.4 MB`."""
    if number < 1000:
        return count(number, "byte")
    return f"{number / 1000:.0f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"
