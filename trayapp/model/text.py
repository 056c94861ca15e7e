"""Text from other programs, decoded and made safe to show to people, and short texts for counts and times.

Text of a server, a file or a client passes through here before a terminal or a menu shows it.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata

from trayapp.model.late import late

_ESCAPES = late(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colors, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|\Z)"  # OSC, DCS, SOS, PM, APC and their content
    r"|\x9b[0-?]*[ -/]*[@-~]?"  # CSI as one character
    r"|\x1b[ -/]*[0-~]?",  # short escape sequences
    re.DOTALL,
)
# Invisible characters with an effect: other controls, bidirectional overrides, invisible tags
CONTROLS = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Invisible characters that a log does not need (Unicode, Default_Ignorable_Code_Point)
_INVISIBLE = late(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LETTERS = late("[\\t -~\u00a0-\u00ac\u00ae-\u024f]*")  # most texts contain only these, and need no change
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
ELLIPSIS = "..."
_NARROW, _WIDE = frozenset(" fijlrtI.,:;'|!()[]/-"), frozenset("mw@%")


def escape_unprintable(text: str) -> str:
    """Return `text` in one line, its unprintable characters escaped as in JSON."""
    escapes = {"\x7f": "\\u007f"}  # json.dumps does not escape it
    return "".join(one if one.isprintable() else escapes.get(one) or json.dumps(one)[1:-1] for one in text)


def escaped(name: str) -> str:
    """Return a name in safe characters. Any other character becomes `_HEX_` (`my_20_server` for `my server`)."""
    return _UNSAFE.sub(lambda found: f"_{ord(found[0]):x}_", name)


def clean(text: str) -> str:
    """Return `text` without control sequences and invisible controls. Line ends and tabs stay."""
    if text.isprintable():  # it has no control characters to remove
        return text
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    plain = CONTROLS.sub("", plain.replace("\r", "\n"))
    return plain.encode("utf-8", "replace").decode("utf-8")


def visible(text: str) -> str:
    """Return `clean(text)` without any other invisible characters: the text that a reader would see."""
    return text if _LETTERS.fullmatch(text) else _INVISIBLE.sub("", clean(text))


def one_line(text: str) -> str:
    """Return the whole text, cleaned, in one line."""
    return " ".join(clean(text).split())


def without_code(error: str) -> str:
    """Return an error's text for people, without the system's code in parentheses, such as (ENOENT)."""
    return re.sub(r" \(E[A-Z]{3,}\)", "", error)


def first_line(text: str) -> str:
    """Return the first line that is not blank, cleaned, or "" if there is none."""
    return next((line for part in clean(text).splitlines() if (line := " ".join(part.split()))), "")


def width(text: str) -> int:
    """Return the number of terminal columns of a cleaned text."""
    if text.isascii():  # each character takes one column
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def drawn(text: str) -> str:
    """Return `text` with each letter repeated by its width in a proportional font, in units of half a digit's width."""
    return "".join(
        letter
        * (1 if letter in _NARROW else 4 if width(letter) == 2 else 3 if letter in _WIDE or letter.isupper() else 2)
        for letter in text
    )


def shortened(text: str, columns: int) -> str:
    """Return `text` in at most `columns` terminal columns, with an ellipsis in place of its end if it is longer."""
    if text[: columns + 1].isascii():  # each character takes one column
        return text if len(text) <= columns else text[: columns - len(ELLIPSIS)].rstrip() + ELLIPSIS
    taken, end = 0, len(text)
    for at, letter in enumerate(text):  # stop as soon as possible, because the text may be very long
        taken += 1 if letter < "\x80" else width(letter)
        if taken > columns - len(ELLIPSIS):
            end = min(end, at)
        if taken > columns:
            return text[:end].rstrip() + ELLIPSIS
    return text


def count(number: int, thing: str) -> str:
    """Return a number with its noun, such as `1 tool` or `2 tools`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def ago(seconds: float) -> str:
    """Return a time span in its largest fitting unit, such as `12 s`, `3 min`, `5 h` or `2 days`."""
    for limit, size, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


_OTHERWISE_LATIN = "otherwise-latin-1"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class StderrDecoder:
    """An incremental decoder of a server's stderr: UTF-8, or UTF-16 as written by some Windows programs.

    The first bytes decide the encoding. A character may arrive in two pieces. Bytes that are not UTF-8 are read as
    Latin-1, so that secrets in that encoding are recognized, too.
    """

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._first = b""

    def decode(self, data: bytes, *, final: bool = False) -> str:
        """Return the characters that `data` completes. If `final`, an incomplete character is replaced."""
        if self._decoder is None:
            self._first += data
            if len(self._first) < 2 and not final:
                return ""
            data, self._first = self._first, b""
            even, odd, encoding = data[::2], data[1::2], "utf-8"
            if data[:2] in _MARKS:
                encoding = _MARKS[data[:2]]
            elif odd.count(0) * 2 > len(odd) and 0 not in even:  # true for the first lines in most languages
                encoding = "utf-16-le"
            elif even.count(0) * 2 > len(even) and 0 not in odd:
                encoding = "utf-16-be"
            self._decoder = codecs.getincrementaldecoder(encoding)(_OTHERWISE_LATIN)
        return self._decoder.decode(data, final)


def _latin(error: UnicodeError) -> tuple[str, int]:
    """Return undecodable UTF-8 as Latin-1, and where to continue. Invalid UTF-16 or an incomplete end is replaced."""
    assert isinstance(error, UnicodeDecodeError)
    if error.encoding != "utf-8" or error.reason == "unexpected end of data":
        return "\N{REPLACEMENT CHARACTER}", error.end
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_OTHERWISE_LATIN, _latin)
