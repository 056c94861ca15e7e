"""A server's stderr as text: UTF-8, or UTF-16 as written by some Windows programs.

Bytes that are not UTF-8 are read as Latin-1. A secret that a program writes so is then recognized, too.
"""

from __future__ import annotations

import codecs

_OTHERWISE_LATIN = "otherwise-latin-1"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class StderrDecoder:
    """Incremental decoder. The first bytes decide the encoding. A character may arrive in two pieces."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._first = b""

    def decode(self, data: bytes, *, final: bool = False) -> str:
        """Return the complete characters of `data` so far."""
        if self._decoder is None:
            self._first += data
            if len(self._first) < 2 and not final:
                return ""
            self._decoder = codecs.getincrementaldecoder(_encoding(self._first))(_OTHERWISE_LATIN)
            data, self._first = self._first, b""
        return self._decoder.decode(data, final)


def _encoding(data: bytes) -> str:
    if data[:2] in _MARKS:
        return _MARKS[data[:2]]
    even, odd = data[::2], data[1::2]
    if odd.count(0) * 2 > len(odd) and 0 not in even:  # most characters of most languages' first lines
        return "utf-16-le"
    return "utf-16-be" if even.count(0) * 2 > len(even) and 0 not in odd else "utf-8"


def _latin(error: UnicodeError) -> tuple[str, int]:
    """Return the undecodable bytes as Latin-1, and where to continue. Half a character at the end is none."""
    assert isinstance(error, UnicodeDecodeError)
    if error.encoding != "utf-8" or error.reason == "unexpected end of data":
        return "\N{REPLACEMENT CHARACTER}", error.end
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_OTHERWISE_LATIN, _latin)
