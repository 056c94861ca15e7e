"""JSON to and from bytes at orjson's speed, without its losses: large integers and lone surrogates survive.

Never here: what the values mean.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

# orjson reads integers beyond 64 bits as floats. Anything this long takes the slow, exact way.
_LONG_NUMBER = re.compile(rb"[0-9]{16}")


class JsonError(ValueError):
    """Bytes that are not JSON (RFC 8259), or nested deeper than the parser goes."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def loads(data: bytes | bytearray | memoryview) -> Any:
    """The value of a JSON text in UTF-8. Raises JsonError."""
    raw = bytes(data) if not isinstance(data, bytes) else data
    if _LONG_NUMBER.search(raw) is None:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # maybe only a lone surrogate, which JavaScript servers do send
    try:
        return json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from None


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8, keys in their order. Raises TypeError for what JSON cannot hold."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
