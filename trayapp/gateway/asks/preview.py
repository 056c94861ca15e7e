"""A call's arguments, as shown to a person who decides on it: of bounded size, without secrets, with nothing hidden.

A character that draws nothing is shown as `<U+202E>`. A long value is cut in the middle and shows its length.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any, NamedTuple

from trayapp.model.redact import REDACTED, redacted
from trayapp.model.text import visible

VALUE_LONGEST = 400  # characters of one value
NAME_LONGEST = 80
ALL_LONGEST = 4_000  # of all values
MOST = 40  # arguments
READ_LONGEST = 256 * 1024  # characters that are searched for secrets; in a longer value, at both ends
HEAD_SHARE = 0.65  # of a cut value: the beginning is more informative than the end

# Letters, marks and blanks that draw nothing, or something misleading (Unicode Default_Ignorable_Code_Point, others).
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc") | frozenset(
    chr(code)
    for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
    for code in range(first, last + 1)
)
_UNDRAWN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"))  # general categories


class Shown(NamedTuple):
    """One argument as shown. `value` is JSON with marks for invisible characters; `length` counts the whole value."""

    name: str
    value: str
    length: int = 0


def shown_arguments(arguments: Any) -> list[Shown]:
    """Return the arguments of a call in a form that is safe to show to people."""
    if not isinstance(arguments, dict):
        return [] if arguments is None else [Shown("arguments", *_shown_value("", arguments, VALUE_LONGEST))]
    found, room = list[Shown](), ALL_LONGEST
    for number, (name, value) in enumerate(arguments.items()):
        if number == MOST or room <= 0:
            found.append(Shown("...", f"and {len(arguments) - number} more"))
            break
        found.append(
            Shown(shown_text(str(name), NAME_LONGEST), *_shown_value(str(name), value, min(VALUE_LONGEST, room)))
        )
        room -= len(found[-1].value)
    return found


def shown_text(text: str, longest: int = VALUE_LONGEST) -> str:
    """Return untrusted text on one line, safe to show: secrets removed, invisible characters marked, the middle cut."""
    return _safe("", text, longest)


def marked(text: str) -> str:
    """Return the text with `<U+...>` for each character that draws nothing or changes the writing direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if _is_drawn(letter) else f"<U+{ord(letter):04X}>" for letter in text)


def cut(text: str, longest: int, length: int | None = None) -> str:
    """Return at most about `longest` characters. The middle is replaced by the length (`length`: before marking)."""
    if len(text) <= longest:
        return text
    head = int(longest * HEAD_SHARE)
    return f"{text[:head]} ...({length or len(text):,} characters)... {text[len(text) - (longest - head) :]}"


def _shown_value(name: str, value: Any, longest: int) -> tuple[str, int]:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _safe(f"{json.dumps(name, ensure_ascii=False)}: " if name else "", text, longest), len(text)


def _safe(label: str, text: str, longest: int) -> str:
    """Return `text` in a form that is safe to show. The search for secrets includes `label`: names reveal them."""
    told = label + text[:READ_LONGEST]
    clean = redacted(told)
    if clean != visible(told):  # contains a secret, possibly with hidden characters inside
        hidden = len(told) - len(visible(told))
        shown = clean[len(visible(label)) :] if clean.startswith(visible(label)) else REDACTED
        return cut(shown or REDACTED, longest, len(text)) + (f" <{hidden} hidden characters>" if hidden else "")
    if len(text) > READ_LONGEST:
        head, last = int(longest * HEAD_SHARE), text[-READ_LONGEST:]
        end = marked(last[head - longest :]) if redacted(last) == visible(last) else REDACTED
        return f"{marked(text[:head])} ...({len(text):,} characters)... {end}"
    return cut(marked(text), longest, len(text))


def _is_drawn(letter: str) -> bool:
    return letter == " " or (letter not in _BLANK and unicodedata.category(letter) not in _UNDRAWN)
