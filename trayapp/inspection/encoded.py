"""Decoding of parts of a text that a model can read and a person cannot: base64, hex, escapes and other forms."""

from __future__ import annotations

import base64
import binascii
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator
from itertools import islice

from trayapp.model.late import late

RUN_SHORTEST = 24  # characters of base64 or hex: shorter runs are usually ids
TURNED_SHORTEST = 10  # characters, the length of `<|system|>`: in shorter texts, `turned` is not used
RUNS_MOST = 20  # the most runs of each kind of encoding that are decoded in one text
READ_MOST = 20_000  # characters of a text that are searched for encoded parts

_BASE64 = late(rf"[A-Za-z0-9+/_-]{{{RUN_SHORTEST},}}={{0,2}}")
_HEX = late(rf"(?:[0-9A-Fa-f]{{2}}[ :]?){{{RUN_SHORTEST // 2},}}")
_ESCAPES = late(
    r"(?:\\x[0-9A-Fa-f]{2}|\\u\{?[0-9A-Fa-f]{4,5}\}?|&#x?[0-9A-Fa-f]{2,5};|%[0-9A-Fa-f]{2}[A-Za-z0-9]?){6,}"
)
_ENTITY = late(r"(&#[0-9A-Za-z]{2,8};)")
_ESCAPE = late(r"(\\(?:x|u)\{?[0-9A-Fa-f]{2,5}\}?)")
_BASE32 = late(rf"\b[A-Z2-7]{{{RUN_SHORTEST},}}={{0,6}}")
_WRAPPED = late(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{4,}+\s++){2,}[A-Za-z0-9+/_-]{2,}={0,2}"
)  # base64 with spaces in it. Ordinary words match, too, but rarely decode
_NUMBERS = late(r"(?:\b[0-9]{2,3}\b[ ,;]{1,2}){11,}[0-9]{2,3}|(?:\b[01]{8}[ ,;]{0,2}){9,}")
_UPPER, _LOWER, _DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits


def _kinds(**members: str) -> bytes:
    """Return a table for bytes.translate: the members of each kind become the kind's letter, all other bytes a dot."""
    table = bytearray(b"." * 256)
    for kind, letters in members.items():
        for letter in letters.encode():
            table[letter] = ord(kind)
    return bytes(table)


# Patterns that match a part of each encoded run, and hardly ever match prose. Searching a text translated with `_kinds`
# takes a tenth of the time of a pattern that visits every character.
_CODED = _kinds(w=_UPPER + _LOWER + _DIGITS + "+/_-")
_LONG = b"w" * RUN_SHORTEST
_CAPITALS = _kinds(c=_UPPER + "234567")
_LONG_CAPITALS = b"c" * RUN_SHORTEST
_HEX_DIGITS = _kinds(h=string.hexdigits, s=" :,;\n\t\r")
_NUMBERED = _kinds(d=_DIGITS, h="abcdefABCDEF", s=" :,;\n\t\r")
_LONG_HEX = b"h" * RUN_SHORTEST
_SPACED_HEX = b"hhs" * (RUN_SHORTEST // 3)
# A row of hexadecimal or decimal numbers that begins with a digit, as the code of each ASCII letter does. Such rows are
# rare in prose.
_ROW = late(rb"d[dh]{1,2}s{1,2}(?:[dh]{2,3}s{1,2}){3}")
_BITS = _kinds(b="01")
# Capitals after a lower-case letter or digit, which are common in base64: in a long run, or in two adjacent pieces
# beside a third
_HUMPS = _kinds(a=_LOWER + _DIGITS, U=_UPPER, w="+/_-", s=" \n\t\r")
_HUMPED_RUN = late(rb"aU[aUw]{%d}" % (RUN_SHORTEST // 2 - 2))
_TWO_PIECES = b"aU[aUw]{0,24}+s{1,30}+[aUw]{0,24}?aU"
_PIECES = late(b"%b[aUw]*+s{1,30}+[aUw]{2}|[aUw]{4}s{1,30}+[aUw]{0,24}?%b" % (_TWO_PIECES, _TWO_PIECES))
_LETTER, _HUMP, _BETWEEN = "[A-Za-z0-9+/_-]", "[a-z0-9][A-Z]", r"(?:[ _]|\\[ntr])+"
_TWO_IN_JSON = f"{_HUMP}{_LETTER}*{_BETWEEN}{_LETTER}*{_HUMP}"
# Two such pieces beside a third, as written in JSON or in a parameter's name
PIECES = f"{_TWO_IN_JSON}{_LETTER}*{_BETWEEN}{_LETTER}{{2}}|{_LETTER}{{4}}{_BETWEEN}{_LETTER}*{_TWO_IN_JSON}"
_PERCENT = late(b"%[0-9A-F]")
_WORD = late(r"[A-Za-z]{2,}")
_URL = late(r"https?://\S+")


def decoded_in(text: str) -> Iterator[str]:
    """Yield the readable text of each encoded run. If that text has encoded runs itself, their text comes first."""
    for words in _decoded_once(_URL.sub(" ", text[:READ_MOST])):
        yield from _decoded_once(words)
        yield words


def _decoded_once(text: str) -> Iterator[str]:
    if len(text) < RUN_SHORTEST:
        return
    signs = _signs(text.encode("utf-8", "replace"))  # this check takes a tenth of the time of a pattern
    for sign, pattern, decode in _KINDS:
        for found in islice(pattern.finditer(text), RUNS_MOST) if sign in signs else ():
            if (words := _readable(decode(found[0]))) is not None:
                yield words


# Words that are typical of orders to ignore or conceal something, and their forms in rot13 and backwards
KEYWORDS = ("ignore", "instruction", "previous", "do not", "system", "the user")
_TURNED_LETTERS = _LOWER[13:] + _LOWER[:13] + _UPPER[13:] + _UPPER[:13]
_ROT13 = bytes.maketrans((_LOWER + _UPPER).encode(), _TURNED_LETTERS.encode())
_BY_ROT13 = tuple(word.encode().translate(_ROT13).decode() for word in KEYWORDS)
_BACKWARDS = tuple(word[::-1] for word in KEYWORDS)
UNREADABLE = (*_BY_ROT13, *_BACKWARDS, "lgnore")


def turned(text: str) -> Iterator[str]:
    """Yield the text backwards, in rot13, and with escapes, leetspeak digits and spaced-out letters resolved.

    A form is yielded only if one of KEYWORDS occurs in it more often than in the text. Any other reveals no order.
    """
    escaped = _has_escapes(text[:READ_MOST].encode("utf-8", "replace"))
    text = text[:READ_MOST].lower()
    ways = [text[::-1]] if any(word in text for word in _BACKWARDS) else []
    if any(word in text for word in _BY_ROT13):  # translated as bytes, in a tenth of the time of the codec
        ways.append(text.encode("utf-8", "replace").translate(_ROT13).decode("utf-8"))
    ways += [_of_escapes(_URL.sub(" ", text)).lower()] if escaped else []
    spelled = _WITH_DIGITS.sub(lambda word: word[0].translate(_LETTERS), text.replace("lgnore", "ignore"))
    if _SPACED.search(spelled) is not None:
        spelled = _SPACED_TOO.sub(lambda word: _NO_LETTER.sub("", word[0]), spelled)
    ways += [spelled] if spelled != text else []
    yield from (way for way in ways if any(way.count(word) > text.count(word) for word in KEYWORDS if word in way))


def may_be_coded(text: bytes) -> bool:
    """Return True if a quick check finds that a text could hold an encoded run."""
    signs = _signs(text)
    return _is_readable_base64(text) if signs == {"base64"} else bool(signs)


def _signs(text: bytes) -> set[str]:
    """Return the kinds of encoding that a text shows signs of."""
    signs = set[str]()
    if _has_escapes(text):
        signs.add("escapes")
    digits = text.translate(_NUMBERED)
    if _ROW.search(digits) is not None:
        pairs = text.translate(_HEX_DIGITS).replace(b"ss", b"s").replace(b"hhh", b"hh")
        if _SPACED_HEX in pairs:
            signs |= {"hex", "numbers"}
    if b"d" * 8 in digits and b"b" * 8 in text.translate(_BITS):
        signs.add("numbers")
    signs |= _signs_in_runs(text)
    if _PIECES.search(text.translate(_HUMPS)) is not None:
        signs.add("pieces")
    return signs


def may_hold_run(data: bytes) -> bool:
    """Return True if a definition as JSON could hold a long run of base64, base32 or hex."""
    signs = _signs_in_runs(data)
    if signs != {"base64"}:
        return bool(signs)
    plain = data  # with spaces for escaped line breaks and tabs: the letter of `\n` or `\t` would join the next run
    for escape in (rb"\n", rb"\t", rb"\r") if b"\\" in data else ():
        plain = plain.replace(escape, b"  ")
    name = plain.replace(b"_", b" ")  # `_` is read as a space in a parameter's name
    return _is_readable_base64(data, plain, name)


def _is_readable_base64(*texts: bytes) -> bool:
    """Return True if a long run in one of the texts decodes to words. Most long runs are just long names."""
    runs = dict.fromkeys(run for text in dict.fromkeys(texts) for run in _long_runs(text))
    return any(_readable(_of_base64(run.decode())) is not None for run in runs)


def _signs_in_runs(text: bytes) -> set[str]:
    signs = set[str]()
    if runs := b".".join(_long_runs(text)):
        if _LONG_HEX in runs.translate(_HEX_DIGITS):
            signs.add("hex")
        if _LONG_CAPITALS in runs.translate(_CAPITALS):
            signs.add("base32")
        if _HUMPED_RUN.search(runs.translate(_HUMPS)) is not None:
            signs.add("base64")
    return signs


def _has_escapes(text: bytes) -> bool:
    if b"\\" in text and (b"\\x" in text or b"\\u" in text):
        return True
    return (b"&" in text and b"&#" in text) or (b"%" in text and _PERCENT.search(text) is not None)


def _long_runs(text: bytes) -> Iterator[bytes]:
    """Yield each run of at least RUN_SHORTEST base64 characters."""
    kinds = text.translate(_CODED)
    begin = kinds.find(_LONG)
    while begin >= 0:
        end = kinds.find(b".", begin)
        end = end if end >= 0 else len(kinds)
        yield text[begin:end]
        begin = kinds.find(_LONG, end)


def may_be_turned(text: bytes) -> bool:
    """Return True if a quick check finds that a text could hold one of the forms that `turned` resolves."""
    low = text.lower()
    for word in _UNREADABLE_BYTES:
        if word in low:
            return True
    if _has_escapes(text):
        return True
    if not low.isascii():  # the middle dot may separate spaced-out letters
        low = low.decode("utf-8", "replace").encode("ascii", "replace")
    kinds = low.translate(_SEPARATED)
    if _DIGIT_INSIDE.search(kinds) is not None:
        plain = low.translate(_LETTERS_OF_DIGITS)
        if any(plain.count(word) > low.count(word) for word in _KEYWORD_BYTES):
            return True
    return _APART.search(kinds) is not None


_UNREADABLE_BYTES = tuple(word.encode() for word in UNREADABLE)
_KEYWORD_BYTES = tuple(word.encode() for word in KEYWORDS)
_LETTERS_OF_DIGITS = bytes.maketrans(b"013457@$", b"oieastas")
_SEPARATED = _kinds(l=_LOWER, d="013457@$")
_DIGIT_INSIDE = late(rb"d(?<=ld)l")  # takes a tenth of the time of a search for b"ldl", because digits are rare
_APART = late(rb"\.l\.{1,2}l\.{1,2}l\.")  # letters of a spaced-out word

_WITH_DIGITS = late(r"(?<![\w@$])(?=[a-z]*[013457@$])(?=[013457@$]*[a-z])[a-z013457@$]{3,}(?![\w@$])")
_LETTERS = str.maketrans("013457@$", "oieastas")
_NO_LETTER = late("[^a-z0-9]")
_SPACED, _SPACED_TOO = (  # a long spaced-out word, and any spaced-out word, which counts if a long one is found
    late(rf"(?<![a-z0-9])(?:[a-z](?:[-._*·|]|  ?)(?! )){{{least},}}[a-z](?![a-z0-9])") for least in (4, 1)
)


_BASE32_DIGITS = str.maketrans(_UPPER + "234567", _DIGITS + _UPPER[:22])


def _of_base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4))
    except (binascii.Error, ValueError):
        return b""


def _of_base32(run: str) -> bytes:
    """Return the bytes of a base32 run without incomplete ones. Takes a tenth of the time of base64.b32decode."""
    digits = run.rstrip("=")
    bits = 5 * len(digits)
    return (int(digits.translate(_BASE32_DIGITS), 32) >> bits % 8).to_bytes(bits // 8, "big")


def _of_numbers(run: str) -> bytes:
    """Return the bytes of a run of decimal or binary numbers, or b"" if a number is above 255."""
    words = re.findall(r"[0-9]+", run)
    base = 2 if all(len(word) == 8 and set(word) <= {"0", "1"} for word in words) else 10
    numbers = [int(word, base) for word in words]
    return bytes(numbers) if max(numbers) < 256 else b""


def _of_escapes(run: str) -> str:
    import html  # takes 2 ms to load, and is rarely needed

    return _replaced(_ESCAPE, _of_escape, urllib.parse.unquote(_replaced(_ENTITY, html.unescape, run)))


def _replaced(kind: re.Pattern[str], decode: Callable[[str], str], text: str) -> str:
    """Return a text with `decode` applied to the matches of `kind` and to the parts between them.

    Equal parts are decoded once. `kind` must consist of a single group, so that `split` also returns its matches.
    """
    parts = kind.split(text)
    decoded = {part: decode(part) for part in set(parts)}
    return "".join(map(decoded.__getitem__, parts))


def _of_escape(part: str) -> str:
    """Return the character of an escape, or "?" if its number is invalid. Any other text is returned unchanged."""
    if (found := _ESCAPE.fullmatch(part)) is None:
        return part
    number = int(found[1].strip("\\xu{}"), 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"


def _readable(data: bytes) -> str | None:
    """Return the bytes as text, or None if they are not at least two readable words."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    clear = text.replace("\n", "").replace("\t", "").isprintable()
    return text if len(text) > 8 and clear and len(_WORD.findall(text)) >= 2 else None


_KINDS = (
    ("base64", _BASE64, _of_base64),
    ("base32", _BASE32, _of_base32),
    ("pieces", _WRAPPED, lambda run: _of_base64("".join(run.split()))),
    ("hex", _HEX, lambda run: bytes.fromhex((digits := re.sub("[ :]", "", run))[: len(digits) // 2 * 2])),
    ("numbers", _NUMBERS, _of_numbers),
    ("escapes", _ESCAPES, lambda run: _of_escapes(run).encode("utf-8", "replace")),
)
