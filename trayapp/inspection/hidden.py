"""Text that is hidden from people: invisible characters, changed text direction, escape sequences, look-alikes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from trayapp.model.late import late

STEGANOGRAPHY = 8  # invisible characters in one text, anywhere: enough to encode a letter in bits
SELECTOR_RUN = 3  # variation selectors in a row. A normal character takes one
PRIVATE_RUN = 3  # private-use characters in a row. In prose, a font's icons do not directly follow each other
FAR_AWAY = 120  # consecutive spaces or tabs after which nobody expects more text
FAR_BELOW = 30  # consecutive blank lines after which nobody expects more text

_TAG = "\U000e0000-\U000e007f"
_ZERO = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\U0001d173-\U0001d17a"
)
# Emoji flags written with tag characters, such as England's
_FLAG = late("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,6}\U000e007f")
_TAGS = late(f"[{_TAG}]+")
_TAG_LETTERS = {0xE0000 + letter: letter for letter in range(0x20, 0x7F)}
_BIDI = late("[\u202a-\u202e\u2066-\u2069]")
_OVERRIDES = late("[\u202d\u202e]")
_ISOLATES = "\u2066\u2068\u2069"  # programs set these marks around any inserted value, also in text of one direction
_EMPTY = late("[\u202a\u202b\u2066-\u2068][\u202c\u2069]")
_CLOSED_BY = {"\u202a": "\u202c", "\u202b": "\u202c", "\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_RIGHT_TO_LEFT = late("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_INVISIBLE = late(f"[{_ZERO}]+")
# The invisible operators of formulas (U+2061 to U+2064) are allowed between letters
_BETWEEN_LETTERS = late(f"[A-Za-z0-9](?![\u2061-\u2064])[{_ZERO}]+(?=[A-Za-z0-9])")
# Joiners are legitimate in emoji, Persian and Indic scripts. Thai, Lao, Chinese, Japanese and Korean have no joiners.
_JOINED = late(
    "(?<=[^\x00-\u02ff\u0e00-\u0eff\u200b-\u200f\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])[\u200c\u200d]"
)
# A zero-width space marks a possible line break: in scripts without spaces (Thai, Lao, Burmese, Khmer, Tai, Chinese,
# Japanese), and after a stop, a slash or a dash. A word joiner forbids a line break next to a number, a dash or a sign.
# A byte order mark inside a text is the older form of a word joiner, or the beginning of an inserted file. None of
# these characters is repeated. Translated pages may have one or two zero-width spaces between a space and a word.
_WORD_BREAK = late(
    "(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua980-\ua9ff\uaa60-\uaadf"
    f"\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff0f\uff1a-\uff1f])\u200b(?![{_ZERO}])"
)
_LINE_BREAK = late(
    rf"(?<=[.,;:!?…)\]}}/\\\u2013\u2014-])\u200b(?![{_ZERO}])"
    rf"|(?:(?<=[0-9–—/%°§€$£+=-])|(?<=\n))[\u2060\ufeff](?![{_ZERO}])"
    rf"|(?<![{_ZERO}])[\u2060\ufeff](?=[0-9–—/%°§€$£+=-])"
    r"|(?<= )\u200b{1,2}(?=[A-Za-z])"
)
_AFTER_WORD = late("[A-Za-z0-9][\u200c\u200d]")  # a joiner has no use in Latin text
_PRIVATE = late("[\ue000-\uf8ff\U000f0000-\U0010fffd]+")
_APPLE = "\uf8ff"  # Apple's logo, on its keyboards and in its menus: the only private-use character in common prose
_SELECTORS = late(f"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{{SELECTOR_RUN},}}")
_CONTROLS = late("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_ESCAPE = late("\x1b|[\x90\x9b\x9d]")
# Each alternative is tried only at the beginning of a run of spaces or line breaks
_FAR = late(
    rf"\s(?:(?<=[^\S\n])(?<![^\S\n]{{2}})[^\S\n]{{{FAR_AWAY - 1},}}+"
    rf"|(?<=\n)(?<!\n\n)[^\S\n]*+(?:\n[^\S\n]*+){{{FAR_BELOW - 1},}}+)"
)
SUSPECTS = (  # a class of invisible and unprintable characters
    f"[{_TAG}\u202a-\u202e\u2066-\u2069{_ZERO}\ue000-\uf8ff\U000f0000-\U0010fffd\ufe00-\ufe0e\U000e0100-\U000e01ef"
    "\x00-\x08\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_PLAIN = bytes(range(0x20, 0x7F))  # printable ASCII, deleted first so that little is left to check
_SUSPECT = late(f"{SUSPECTS}|\ufe0f{{2}}")  # a single U+FE0F is not suspicious: many emoji end with it

# Letters that can pass for an ASCII letter in a name (from Unicode TR39): Cyrillic, Greek, others
_ALIKE = str.maketrans(
    "аеорсухѕіјһԁԛԝмтквнгАВЕКМНОРСТХЅІЈԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧαονρυικτɡıℓօսոհցքզᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeopcyxsijhdqwmtkbhrABEKMHOPCTXSIJGABEZHIKMNOPTYXaovpuiktgilounhgpqabcdefghijklmnoprstuvwyz",
)

_LETTER = late("[A-Za-z]")
_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
_ASCII = bytes(range(128))
_WORD = late(r"\w+")
_MARKED = late("[\u0300-\u036f](?<=[A-Za-z].)[\u0300-\u036f]*")  # combining marks over, under and through Latin letters
# Boxed letters, and the regional indicators that form flags
_BOXES = "\U0001f130-\U0001f189\U0001f1e6-\U0001f1ff"
_BOXED_LETTERS = late(f"[{_BOXES}]")
_ANOTHER_FORM = late(f"[{_TAG}\u202a-\u202e\u2066-\u2069{_ZERO}{_BOXES}]")
_BOXED = {first + at: 97 + at for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for at in range(26)}


class Hidden(NamedTuple):
    """A way in which a text hides something. `serious`: True if no legitimate text does so. `evidence`: a sentence."""

    code: str
    serious: bool
    evidence: str


def has_suspects(text: bytes) -> bool:
    """Return True if a text in UTF-8 has a character that may be invisible or unprintable."""
    return _SUSPECT.search(text.translate(None, _PLAIN).decode("utf-8", "replace")) is not None


def hidden_in(text: str) -> Iterator[Hidden]:
    """Yield each way in which a text hides something from people."""
    is_plain = text.isascii() and text.isprintable()
    if (len(text) > FAR_BELOW or not is_plain) and _FAR.search(text.strip()):
        yield Hidden("hidden.far-away", False, "It has text after a long run of spaces or blank lines")
    if is_plain or not has_suspects(text.encode("utf-8", "replace")):
        return
    if tags := "".join(_TAGS.findall(_FLAG.sub("", text))):
        words = "".join(chr(ord(letter) - 0xE0000) for letter in tags)
        yield Hidden("hidden.tags", True, f"Its invisible tag characters say: {words}")
    yield from _turned(text)
    yield from _invisible(text)
    if private := [run for run in _PRIVATE.findall(text) if run != _APPLE]:
        count, longest = sum(map(len, private)), max(map(len, private))
        serious = count >= STEGANOGRAPHY and longest >= PRIVATE_RUN
        said = "a private-use character" if count == 1 else f"{count} private-use characters"
        yield Hidden("hidden.private", serious, f"It has {said}, without a standard meaning")
    if run := _SELECTORS.search(text):
        yield Hidden("hidden.selectors", True, f"It has {len(run[0])} variation selectors in a row")
    if _ESCAPE.search(text):
        yield Hidden("hidden.ansi", True, "It has an escape sequence for terminals")
    elif found := _CONTROLS.search(text):
        yield Hidden("hidden.control", True, f"It has the control character U+{ord(found[0]):04X}")


def _turned(text: str) -> Iterator[Hidden]:
    lines = [line for line in text.splitlines() if _BIDI.search(line) is not None]
    if all(map(_is_set_apart, lines)):
        return
    marks = "".join(map("".join, map(_BIDI.findall, lines)))
    serious = _RIGHT_TO_LEFT.search(text) is None or _OVERRIDES.search(text) is not None
    yield Hidden("hidden.bidi", serious, f"It changes the order in which its text is shown (U+{ord(marks[0]):04X})")


def _is_set_apart(line: str) -> bool:
    """Return True if a line's marks only set words apart, as in a text that mixes Arabic or Hebrew with other scripts.

    Each mark must be closed and enclose something. In a line without right-to-left letters, all marks must be isolates,
    and either of one kind or few.
    """
    marks, open_ones = _BIDI.findall(line), list[str]()
    for mark in marks:
        if mark in _CLOSED_BY:
            open_ones.append(_CLOSED_BY[mark])
        elif not open_ones or open_ones.pop() != mark:  # unbalanced, or an override, which is never harmless
            return False
    if open_ones or _EMPTY.search(line) is not None:
        return False
    if _RIGHT_TO_LEFT.search(line) is not None:
        return True
    kinds = set(marks)
    return kinds <= set(_ISOLATES) and (len(kinds) == len(_ISOLATES) - 1 or len(marks) < STEGANOGRAPHY)


def _invisible(text: str) -> Iterator[Hidden]:
    plain = text.replace("\u00ad", "").removeprefix("\ufeff")  # a soft hyphen is invisible by design
    rest = _WORD_BREAK.sub("", _JOINED.sub("", plain))
    breaks = _LINE_BREAK.findall(rest)
    if len(breaks) < STEGANOGRAPHY or len(set(breaks)) == 1:  # several kinds together can encode letters in bits
        rest = _LINE_BREAK.sub("", rest)
    runs = _INVISIBLE.findall(rest)
    if runs:
        many = sum(map(len, runs)) >= STEGANOGRAPHY or max(map(len, runs)) >= SELECTOR_RUN
        serious = many or _BETWEEN_LETTERS.search(rest) is not None or _AFTER_WORD.search(rest) is not None
        kinds = " ".join(sorted(f"U+{ord(letter):04X}" for letter in set("".join(runs)))[:5])
        count = sum(map(len, runs))
        shown = f"{count} invisible character{'s' if count > 1 else ''}"
        yield Hidden("hidden.zero-width", serious, f"It has {shown}: {kinds}")


def bared(text: str) -> str:
    """Return the text as a model reads it: hidden characters removed, look-alikes and tag characters as plain ASCII."""
    return text if text.isascii() else _bared(text)


@lru_cache(maxsize=2)  # a definition's longest text is read twice: for hidden content and for orders
def _bared(text: str) -> str:
    plain = text
    if _ANOTHER_FORM.search(_beyond_ascii(text)) is not None:
        plain = text.translate(_TAG_LETTERS)
        plain = _INVISIBLE.sub("", _BIDI.sub("", plain))
        plain = _BOXED_LETTERS.sub(lambda letter: chr(_BOXED.get(ord(letter[0]), ord(letter[0]))), plain)
    if plain.isascii():
        return plain
    plain = unicodedata.normalize("NFKD", plain)
    plain = folded(plain) if is_mostly_ascii(plain) else _WORD.sub(_folded_if_mixed, plain)
    return unicodedata.normalize("NFC", _MARKED.sub("", plain))


def _folded_if_mixed(word: re.Match[str]) -> str:
    """Return the word with look-alikes replaced if it also has ASCII letters. Otherwise, its script is genuine."""
    return folded(word[0]) if _LETTER.search(word[0]) is not None else word[0]


def is_mostly_ascii(text: str) -> bool:
    """Return True if most letters of a text are ASCII, so that its look-alikes pass for ASCII letters."""
    plain = text.encode("ascii", "ignore")
    letters = len(plain.translate(None, _NO_LETTERS))
    return letters > len(text) - len(plain) or letters > sum(map(str.isalpha, _beyond_ascii(text)))


def _beyond_ascii(text: str) -> str:
    return text.encode("utf-8", "replace").translate(None, _ASCII).decode("utf-8")


def folded(text: str) -> str:
    """Return a text with look-alikes replaced by the ASCII letters that they resemble."""
    return text.translate(_ALIKE)


def ascii_twin(name: str) -> str | None:
    """Return the ASCII name that a name looks like, or None if the name is ASCII itself or looks like no ASCII name."""
    if name.isascii():
        return None
    twin = folded(unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)))
    return twin if twin.isascii() and twin else None
