"""Foreign text made fit for people's eyes, and the few words of ours for counts and times.

Whatever a server, a file or a client said goes through here before a terminal or a menu shows it (PRODUCT 14).
Never here: printing.
"""

from __future__ import annotations

import re
import unicodedata

from trayapp.model.late import late

_ESCAPES = late(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|\Z)"  # OSC, DCS, SOS, PM, APC and what they carry
    r"|\x9b[0-?]*[ -/]*[@-~]?"  # CSI as one character
    r"|\x1b[ -/]*[0-~]?",  # the short ones
    re.DOTALL,
)
# What draws nothing and yet does something: other controls, bidirectional overrides, invisible tags
CONTROLS = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# What draws nothing and does nothing that is missed in a log (Unicode, Default_Ignorable_Code_Point)
_INVISIBLE = late(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
ELLIPSIS = "..."


def clean(text: str) -> str:
    """`text` without control sequences and invisible controls; line ends and tabs stay."""
    if text.isprintable():  # then it has none of either
        return text
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    plain = CONTROLS.sub("", plain.replace("\r", "\n"))
    return plain.encode("utf-8", "replace").decode("utf-8")


def visible(text: str) -> str:
    """`clean(text)` without whatever else draws nothing: what somebody would read in it."""
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub("", clean(text))


def one_line(text: str) -> str:
    """All of it, cleaned, in one line."""
    return " ".join(clean(text).split())


def first_line(text: str) -> str:
    """The first line that says something, cleaned."""
    return next((line for part in clean(text).splitlines() if (line := " ".join(part.split()))), "")


def width(text: str) -> int:
    """Columns that a cleaned text takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, columns: int) -> str:
    """`text` in at most `columns`, its end replaced by dots where it is longer."""
    taken, end = 0, len(text)
    for at, letter in enumerate(text):  # no farther than needed: the text may be as long as a server likes
        taken += width(letter)
        if taken > columns - len(ELLIPSIS):
            end = min(end, at)
        if taken > columns:
            return text[:end].rstrip() + ELLIPSIS
    return text


def count(number: int, thing: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def ago(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `2 days`."""
    for limit, size, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
