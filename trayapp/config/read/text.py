"""Decoding of files, and removal of comments and trailing commas from JSON."""

from __future__ import annotations

import re

from trayapp.config.problems import UnparsableError
from trayapp.model.errors import Problem
from trayapp.model.late import late

MAX_BYTES = 10_000_000  # a configuration of 1,000 servers with all their tools takes 2 MB
BOM = "\ufeff"

_STRING = r'"(?:[^"\\\n]|\\.)*"?'
_COMMENT = late(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = late(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
# Characters that are not printable by YAML's definition. A byte order mark is valid only at the start. The pattern for
# all of Unicode takes 4 ms to compile, so ASCII texts have their own pattern.
_UNPRINTABLE_ASCII = re.compile("[^\t\n\r\x20-\x7e]")
_UNPRINTABLE = late("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def decode(data: bytes, file: str, most: int = MAX_BYTES) -> str:
    """Return a file's text, including its byte order mark.

    Raises UnparsableError if the file is over `most` bytes or not UTF-8.
    """
    if len(data) > most:
        raise _too_large(file, most)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnparsableError(Problem(file, line, "The file is not UTF-8 text", "Save it as UTF-8")) from None


def check(text: str, file: str) -> None:
    """Raise UnparsableError for a text that is too large or contains characters not allowed in a configuration."""
    if len(text) > MAX_BYTES:
        raise _too_large(file, MAX_BYTES)
    unprintable = _UNPRINTABLE_ASCII if text.isascii() else _UNPRINTABLE
    bad = unprintable.search(text, 1 if text.startswith(BOM) else 0)
    if bad:
        at = bad.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        message = f"The character U+{ord(bad.group()):04X} is not allowed in this file"
        raise UnparsableError(Problem(file, line, message, "Remove it, or write it as an escape", column))


def _too_large(file: str, most: int) -> UnparsableError:
    message = f"The file is larger than {most // 1_000_000} MB"
    return UnparsableError(Problem(file, 0, message, "Check that it is the right file"))


def without_comments(text: str) -> str:
    """Return a JSON text with blanks in place of comments and trailing commas. Lines and columns stay the same."""
    return _TRAILING_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    """Return a matched string unchanged, and a matched comment or comma as blanks."""
    found = match.group()
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)
