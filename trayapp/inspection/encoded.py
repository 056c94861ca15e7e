"""Runs of base64, hex and escapes in a text that decode to words: what a model reads and a person does not.

Pure. Never here: judging the words (orders).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator
from itertools import islice

from trayapp.model.late import late

RUN_SHORTEST = 24  # characters of base64 or hex: below that is nothing but ids
RUNS_MOST = 20  # of one text that are decoded
READ_MOST = 20_000  # characters of a text that are looked at

_BASE64 = late(rf"[A-Za-z0-9+/_-]{{{RUN_SHORTEST},}}={{0,2}}")
_HEX = late(rf"(?:[0-9A-Fa-f]{{2}}[ :]?){{{RUN_SHORTEST // 2},}}")
_ESCAPES = late(
    r"(?:\\x[0-9A-Fa-f]{2}|\\u\{?[0-9A-Fa-f]{4,5}\}?|&#x?[0-9A-Fa-f]{2,5};|%[0-9A-Fa-f]{2}[A-Za-z0-9]?){6,}"
)
_BASE32 = late(rf"\b[A-Z2-7]{{{RUN_SHORTEST},}}={{0,6}}")
_WRAPPED = late(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{4,}+\s++){2,}[A-Za-z0-9+/_-]{2,}={0,2}"
)  # base64 in pieces; words seldom decode
_NUMBERS = late(r"(?:\b[0-9]{2,3}\b[ ,;]{1,2}){11,}[0-9]{2,3}|(?:\b[01]{8}[ ,;]{0,2}){9,}")
ODD_LEAST = 6  # capitals, digits and escapes of a run: it is made of little else
_OF_PROSE = b"abcdefghijklmnopqrstuvwxyz \n.,:'`\"()-_"


def _kinds(**members: str) -> bytes:
    """Return a table for bytes.translate: the members of each kind become its letter, everything else a dot."""
    table = bytearray(b"." * 256)
    for kind, letters in members.items():
        for letter in letters.encode():
            table[letter] = ord(kind)
    return bytes(table)


# What some part of each run looks like, and prose hardly ever. To look through a translated text takes a tenth of the
# time that a pattern takes, which every character has to pass.
_UPPER, _LOWER, _DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
_LETTERS_AND_DIGITS = _kinds(U=_UPPER, a="abcdef", z=_LOWER[6:], d=_DIGITS, s=" ,;:")
_IN_ROWS = (b"ddsdd", b"ddssdd")
_MIXED = (b"aU", b"zU", b"dU", b"UUa", b"UUz", b"UUd", b"da", b"ad", *_IN_ROWS)
_RUNS = (
    (_kinds(w=_UPPER + _LOWER + _DIGITS + "+/_-"), b"w" * RUN_SHORTEST),
    (_kinds(b="01"), b"b" * 8),
    (_kinds(h=string.hexdigits, s=" :"), b"hhs" * 8),
)
_CAPITALS = _kinds(c=_UPPER + "234567")
_HEX_DIGITS = _kinds(h=string.hexdigits + " :")
_ESCAPED_BY = ("\\x", "\\u", "&#")
_PERCENT = late("%[0-9A-F]")
_WORD = late(r"[A-Za-z]{2,}")
_URL = late(r"https?://\S+")


def decoded_in(text: str) -> Iterator[str]:
    """What readable words the encoded runs of a text hold, encoded twice or once."""
    plain = _URL.sub(" ", text[:READ_MOST])
    if not may_be_coded(plain):
        return
    for kind, decode in _possible_kinds(plain):
        for found in islice(kind.finditer(plain), RUNS_MOST):
            if (words := _readable(decode(found[0]))) is not None:
                yield from _once_more(words)
                yield words


def _once_more(words: str) -> Iterator[str]:
    """What is encoded in decoded words."""
    for kind, decode in _possible_kinds(words) if len(words) >= RUN_SHORTEST else ():
        for found in islice(kind.finditer(words), RUNS_MOST):
            if (inner := _readable(decode(found[0]))) is not None:
                yield inner


# Words of orders, as they look by rot13 and backwards
_KEYWORDS = ("ignore", "instruction", "previous", "password", "secret", "do not", "content", "system", "the user")
_BY_ROT13 = tuple(codecs.encode(word, "rot13") for word in _KEYWORDS)
_BACKWARDS = tuple(word[::-1] for word in _KEYWORDS)


def turned(text: str) -> Iterator[str]:
    """Yield the text by rot13, backwards, with digits as letters, and without what stands between single letters.

    Only where it then holds a word of orders more often than before: none of them leaves the trace of an encoding.
    """
    text = text[:READ_MOST].lower()
    ways = [text[::-1]] if any(word in text for word in _BACKWARDS) else []
    ways += [codecs.encode(text, "rot13")] if any(word in text for word in _BY_ROT13) else []
    if _DIGITS_WITHIN.search(text):
        ways.append(_WITH_DIGITS.sub(lambda word: word[0].translate(_LETTERS), text))
    if _SPACED.search(text):
        ways.append(_SPACED.sub(lambda run: re.sub(r"[^a-z0-9]", "", run[0]), text))
    ways.append(text.replace("lgnore", "ignore"))
    yield from (way for way in ways if any(way.count(word) > text.count(word) for word in _KEYWORDS))


def may_be_coded(text: str) -> bool:
    """Whether a text could hold a run, by what is quick to look for."""
    if len(text) < RUN_SHORTEST:
        return False
    plain = text.encode("ascii", "replace")
    if len(text.encode("ascii", "ignore").translate(None, _OF_PROSE)) < ODD_LEAST:
        return False
    kinds = plain.translate(_LETTERS_AND_DIGITS)
    return (
        any(part in kinds for part in _MIXED)
        or any(mark in text for mark in _ESCAPED_BY)
        or any(run in plain.translate(table) for table, run in _RUNS)
        or ("%" in text and _PERCENT.search(text) is not None)
    )


def _possible_kinds(text: str) -> Iterator[tuple[re.Pattern[str], Callable[[str], bytes]]]:
    """Yield the kinds of encoding that a text may hold: a pattern takes ten times as long as a look."""
    plain = text.encode("ascii", "replace")
    kinds = plain.translate(_LETTERS_AND_DIGITS)
    if b"w" * RUN_SHORTEST in plain.translate(_RUNS[0][0]):
        yield _BASE64, _of_base64
        if b"c" * RUN_SHORTEST in plain.translate(_CAPITALS):
            yield _BASE32, _of_base32
    yield _WRAPPED, _of_wrapped
    if b"h" * RUN_SHORTEST in plain.translate(_HEX_DIGITS):
        yield _HEX, _of_hex
    if any(part in kinds for part in _IN_ROWS):
        yield _NUMBERS, _of_numbers
    if "%" in text or any(mark in text for mark in _ESCAPED_BY):
        yield _ESCAPES, _of_escaped


def may_be_turned(text: str) -> bool:
    """Whether a text could hold one of `turned`, by what is quick to look for."""
    low = text[:READ_MOST].lower()
    if any(word in low for word in _UNREADABLE):
        return True
    kinds = low.encode("ascii", "replace").translate(_SEPARATED)
    if b"ldl" in kinds:
        return True
    # "?" is what is not of ASCII, such as the dot in the middle
    return b"l.l.l.l.l" in kinds.replace(b"..", b".") and _SPACED.search(low) is not None


_UNREADABLE = (*_BY_ROT13, *_BACKWARDS, "lgnore")
_SEPARATED = _kinds(l=_LOWER, d="013457@$")

_DIGITS_WITHIN = late(r"[a-z][013457@$][a-z]")
_WITH_DIGITS = late(r"(?<![\w@$])(?=[a-z013457@$]*[a-z])[a-z013457@$]{3,}(?![\w@$])")
_LETTERS = str.maketrans("013457@$", "oieastas")
_SPACED = late(r"(?<![a-z0-9])(?:[a-z](?:[-._*·|]|  ?)(?! )){4,}[a-z](?![a-z0-9])")


def _of_base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4))
    except (binascii.Error, ValueError):
        return b""


def _of_wrapped(run: str) -> bytes:
    return _of_base64("".join(run.split()))


def _of_base32(run: str) -> bytes:
    run = run.rstrip("=")
    try:
        return base64.b32decode(run[: len(run) - (len(run) % 8 in (1, 3, 6))] + "=" * (-len(run) % 8))
    except (binascii.Error, ValueError):
        return b""


def _of_numbers(run: str) -> bytes:
    """Letters by their numbers, in tens or in bits."""
    words = re.findall(r"[0-9]+", run)
    base = 2 if all(len(word) == 8 and set(word) <= {"0", "1"} for word in words) else 10
    numbers = [int(word, base) for word in words]
    return bytes(numbers) if max(numbers) < 256 else b""


def _of_hex(run: str) -> bytes:
    digits = re.sub("[ :]", "", run)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _of_escapes(run: str) -> str:
    plain = urllib.parse.unquote(html.unescape(run))
    return re.sub(r"\\(?:x|u)\{?([0-9A-Fa-f]{2,5})\}?", lambda found: _letter(int(found[1], 16)), plain)


def _of_escaped(run: str) -> bytes:
    return _of_escapes(run).encode("utf-8", "replace")


def _letter(number: int) -> str:
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"


def _readable(data: bytes) -> str | None:
    """The bytes as words; None when they are none."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    clear = sum(letter.isprintable() or letter in "\n\t" for letter in text)
    return text if len(text) > 8 and clear == len(text) and len(_WORD.findall(text)) >= 2 else None
