"""JSON to and from bytes, nearly as fast as orjson but lossless: large integers and lone surrogates survive.

`dumps` writes every value that `loads` returns, without loss. `salvaged` replaces the unreadable entries of a message
with null, and `well_formed` repairs values that strict parsers reject.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from typing import Any

import orjson

from trayapp.model.late import late

MAX_DEPTH = 1024  # orjson's own limit; the slow path must not accept more, nor depend on the caller's stack depth

# orjson reads integers beyond 64 bits as floats. 18 digits always fit; anything longer takes the slow, exact path.
# Looking for such a number in every byte costs half as much as a parse, and a regular expression five times as much. A
# run of 19 digits leaves at least two digits in a row if only every ninth byte is read, and four with every fourth. So
# these samples are checked first.
_SAMPLES = ((4, b"d" * 4), (1, b"d" * 19))
_DIGITS = bytes(ord("d") if chr(byte).isdecimal() and byte < 128 else ord(" ") for byte in range(256))


_recursion = threading.Lock()  # held while the interpreter's recursion limit is raised


class JsonError(ValueError):
    """Raised for bytes that are not JSON (RFC 8259), nesting beyond MAX_DEPTH, or a number too large for a double."""


def loads(data: bytes | bytearray | memoryview) -> Any:
    """Return the value of a JSON text in UTF-8. Raises JsonError."""
    raw = bytes(data)  # costs nothing if it already is `bytes`
    if raw[::9].translate(_DIGITS).find(b"dd") < 0 or not all(
        digits in raw[::step].translate(_DIGITS) for step, digits in _SAMPLES
    ):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # perhaps only a lone surrogate, which JavaScript servers may send
    try:
        text = raw.decode("utf-8", "surrogatepass").removeprefix("\ufeff")  # RFC 8259, 8.1: a BOM may be ignored
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from None
    if _deeper_than(value, MAX_DEPTH):
        raise JsonError("nested too deeply")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    """Return a number as a float. Raises ValueError for infinity.

    1e400 is JSON, but a double holds it as infinity, which would be written as null.
    """
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large for a double")
    return number


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        nested = (outer for outer in level if isinstance(outer, dict | list))
        level = [inner for outer in nested for inner in (outer.values() if isinstance(outer, dict) else outer)]
        if not level:
            return False
    return any(isinstance(outer, dict | list) for outer in level)


def dumps(value: Any) -> bytes:
    """Return compact JSON in UTF-8, with keys in insertion order. Raises TypeError for values that JSON cannot hold.

    Floats must be finite: orjson silently writes others as null. The nesting must not exceed MAX_DEPTH by much.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a large integer, a lone surrogate, or more than orjson's 254 levels
        pass
    with _recursion:  # json.dumps recurses for each level, so the depth that it reaches depends on the caller's stack
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + 2 * MAX_DEPTH)
        try:
            return json.dumps(value, separators=(",", ":")).encode()
        finally:
            sys.setrecursionlimit(limit)


def member_at(value: Any, *path: str) -> Any:
    """Return the member at `path` in nested objects; None if it is absent."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# --- repair of answers that some parsers reject

_TOKEN = late(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')  # match strings as a whole, since brackets inside them do not count
_LONE = late("[\ud800-\udfff]")
ENTRY_DEPTH = 3  # nesting depth of an entry in {"result": {"tools": [entry]}}
LEVELS_MOST = 100  # levels of one entry; the limits for a whole message are 128 in serde_json and 200 in pydantic


def salvaged(frame: bytes) -> dict[str, Any] | None:
    """Return a frame's message with null in place of each entry that cannot be read; None if that does not help."""
    parts: list[bytes] = []
    depth = start = done = 0
    for token in _TOKEN.finditer(frame):
        text = token[0]
        if text in b"[{":
            start = token.start() if depth == ENTRY_DEPTH else start
            depth += 1
        elif text in b"]}":
            depth -= 1
            if depth == ENTRY_DEPTH and not _is_json(frame[start : token.end()]):
                parts += [frame[done:start], b"null"]
                done = token.end()
    if not parts:
        return None
    try:
        message = loads(b"".join([*parts, frame[done:]]))
    except JsonError:
        return None
    return message if isinstance(message, dict) else None


def _is_json(text: bytes) -> bool:
    try:
        loads(text)
    except JsonError:
        return False
    return True


def well_formed(value: Any, levels: int = LEVELS_MOST) -> Any:
    """Return `value` in a form that strict parsers accept, or `value` itself if they already do.

    Such parsers reject a whole message because of one lone surrogate or deep nesting. A lone surrogate becomes U+FFFD,
    and nesting beyond `levels` is cut off.
    """
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        changed = {well_formed(key): well_formed(each, levels - 1) for key, each in value.items()} if levels else {}
        return value if value == changed else changed
    if isinstance(value, list):
        listed = [well_formed(each, levels - 1) for each in value] if levels else []
        return value if value == listed else listed
    return value
