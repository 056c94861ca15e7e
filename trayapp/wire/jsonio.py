"""JSON to and from bytes at orjson's speed, without its losses: large integers and lone surrogates survive.

What `loads` gives, `dumps` can write again, equal in value, whatever it is. Never here: what the values mean.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

MAX_DEPTH = 1024  # orjson's own; the slow way must not be more generous, nor depend on the stack beneath it

# orjson reads integers beyond 64 bits as floats; 18 digits always fit. Anything longer takes the slow, exact way.
# Looking at every byte for such a number costs half the parse (with a pattern, five times the parse). Of 19 digits
# every ninth byte hits two, every fourth four: those are looked at first, and in most texts that is all.
_SAMPLES = ((4, b"d" * 4), (1, b"d" * 19))
_DIGITS = bytes(ord("d") if chr(byte).isdecimal() and byte < 128 else ord(" ") for byte in range(256))


class JsonError(ValueError):
    """Bytes that are not JSON (RFC 8259), nested deeper than MAX_DEPTH, or with a number beyond a double's range."""


def loads(data: bytes | bytearray | memoryview) -> Any:
    """The value of a JSON text in UTF-8. Raises JsonError."""
    raw = bytes(data) if not isinstance(data, bytes) else data
    if raw[::9].translate(_DIGITS).find(b"dd") < 0 or not _may_hold_a_long_number(raw):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # maybe only a lone surrogate, which JavaScript servers do send
    return _loads_exactly(raw)


def _may_hold_a_long_number(raw: bytes) -> bool:
    """Whether there are so many digits in a row, in a number or in a text."""
    return all(digits in raw[::step].translate(_DIGITS) for step, digits in _SAMPLES)


def _loads_exactly(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8", "surrogatepass").removeprefix("\ufeff")  # RFC 8259, 8.1: a mark may be ignored
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from None
    if _deeper_than(value, MAX_DEPTH):
        raise JsonError("nested too deep")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    """1e400 is JSON, but a double would hold it as infinity, and that is written as null."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large for a double")
    return number


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return False
    return any(isinstance(outer, dict | list) for outer in level)


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8, keys in their order. Raises TypeError for what JSON cannot hold.

    Floats have to be finite: orjson writes others as null, without a word.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a large integer, a lone surrogate, or more than orjson's 254 levels
        try:
            return _json(value).encode()
        except RecursionError:
            return _deep_json(value).encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class _Written(str):
    """Text that is JSON already."""


def _deep_json(value: Any) -> str:
    """As `_json` without recursion: how deep that goes depends on the stack on which it is called."""
    parts: list[str] = []
    todo = [value]  # the next piece last
    while todo:
        piece = todo.pop()
        if isinstance(piece, _Written):
            parts.append(piece)
        else:
            todo += reversed(_pieces(piece))
    return "".join(parts)


def _pieces(value: Any) -> list[Any]:
    """A value as text and inner values, in their order."""
    if isinstance(value, dict):
        ends = "{}"
        inner = [piece for name, item in value.items() for piece in (_Written(f",{_json(name)}:"), item)]
    elif isinstance(value, list | tuple):
        ends = "[]"
        inner = [piece for item in value for piece in (_Written(","), item)]
    else:
        return [_Written(_json(value))]
    if inner:
        inner[0] = _Written(inner[0][1:])
    return [_Written(ends[0]), *inner, _Written(ends[1])]
