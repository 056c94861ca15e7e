"""Runs of base64, hex and escapes in a text that decode to words: what a model reads and a person does not.

Pure. Never here: judging the words (orders).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import urllib.parse
from collections.abc import Iterator

from trayapp.model.late import late

RUN_SHORTEST = 24  # characters of base64 or hex: below that is nothing but ids
RUNS_MOST = 20  # of one text that are decoded
READ_MOST = 20_000  # characters of a text that are looked at

_BASE64 = late(rf"[A-Za-z0-9+/_-]{{{RUN_SHORTEST},}}={{0,2}}")
_HEX = late(rf"(?:[0-9A-Fa-f]{{2}}[ :]?){{{RUN_SHORTEST // 2},}}")
_ESCAPES = late(
    r"(?:\\x[0-9A-Fa-f]{2}|\\u\{?[0-9A-Fa-f]{4,5}\}?|&#x?[0-9A-Fa-f]{2,5};|%[0-9A-Fa-f]{2}[A-Za-z0-9]?){6,}"
)
_WORD = late(r"[A-Za-z]{2,}")
_URL = late(r"https?://\S+")


def decoded_in(text: str) -> Iterator[str]:
    """What readable words the encoded runs of a text hold."""
    text = text[:READ_MOST]
    plain = _URL.sub(" ", text)
    for kind, decode in ((_BASE64, _of_base64), (_HEX, _of_hex)):
        for run in _first(kind.findall(plain)):
            if (words := _readable(decode(run))) is not None:
                yield words
    for run in _first([found[0] for found in _ESCAPES.finditer(plain)]):
        if (words := _readable(_of_escapes(run).encode("utf-8", "replace"))) is not None:
            yield words


# Words of orders, as they look by rot13 and backwards
_KEYWORDS = ("ignore", "instruction", "previous", "password", "secret", "do not", "content", "system", "the user")
_BY_ROT13 = tuple(codecs.encode(word, "rot13") for word in _KEYWORDS)
_BACKWARDS = tuple(word[::-1] for word in _KEYWORDS)


def turned(text: str) -> Iterator[str]:
    """The text by rot13, and backwards, where that could hold an order: neither leaves the trace of an encoding."""
    text = text[:READ_MOST].lower()
    if any(word in text for word in _BY_ROT13):
        yield codecs.encode(text, "rot13")
    if any(word in text for word in _BACKWARDS):
        yield text[::-1]


def _first(runs: list[str]) -> list[str]:
    return runs[:RUNS_MOST]


def _of_base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4))
    except (binascii.Error, ValueError):
        return b""


def _of_hex(run: str) -> bytes:
    digits = re.sub("[ :]", "", run)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _of_escapes(run: str) -> str:
    plain = urllib.parse.unquote(html.unescape(run))
    return re.sub(r"\\(?:x|u)\{?([0-9A-Fa-f]{2,5})\}?", lambda found: _letter(int(found[1], 16)), plain)


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
