"""JSON for the shim, which handles little of it.

It uses the interpreter's own scanner and encoder without the modules around them. The regular expressions of those
modules cost 1 MiB of memory in each shim. Never here: the meaning of messages, large ones (jsonio).
"""

TYPE_CHECKING = False  # typing costs a shim 0.6 MiB
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class _Rules:
    """The scanner's settings, the same as those of json.JSONDecoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def loads(data: bytes) -> "Any":
    """Return the value of a JSON text. Raises ValueError, RecursionError."""
    text = data.decode("utf-8", "surrogatepass").strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # SystemError: its error class is in a module that is not loaded
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def dumps(value: "Any") -> bytes:
    """Return compact JSON in UTF-8."""
    return "".join(_chunks(value, 0)).encode("utf-8", "surrogatepass")


def _refuse(value: object) -> object:
    raise TypeError(f"no JSON: {type(value).__name__}")


_scan: "Callable[[str, int], tuple[Any, int]]"
_chunks: "Callable[[Any, Any], Iterable[str]]"
try:
    from _json import encode_basestring, make_encoder, make_scanner

    _scan = make_scanner(_Rules)  # type: ignore[arg-type]  # it only reads these attributes
    _chunks = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
except (ImportError, TypeError):  # another Python implementation, or a later version
    from json import JSONDecoder, JSONEncoder

    _scan = JSONDecoder().raw_decode
    _chunks = JSONEncoder(separators=(",", ":"), ensure_ascii=False).iterencode
