"""JSON for a process that has little to do with it: by the interpreter's own scanner and encoder, without the modules
around them, whose regular expressions are 1 MiB of memory in each shim.

Never here: what the messages mean, large ones (jsonio).
"""

TYPE_CHECKING = False  # typing costs a shim 0.6 MiB
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class _Rules:
    """What the scanner is told, as by json.JSONDecoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def loads(data: bytes) -> "Any":
    """The value. Raises ValueError, RecursionError."""
    text = data.decode("utf-8", "surrogatepass").strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # the latter: it looks for its error's class in a module that is not loaded
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def dumps(value: "Any") -> bytes:
    """Compact JSON, as UTF-8."""
    return "".join(_chunks(value, 0)).encode("utf-8", "surrogatepass")


def _refuse(value: object) -> object:
    raise TypeError(f"no JSON: {type(value).__name__}")


_scan: "Callable[[str, int], tuple[Any, int]]"
_chunks: "Callable[[Any, Any], Iterable[str]]"
try:
    from _json import encode_basestring, make_encoder, make_scanner

    _scan = make_scanner(_Rules)  # type: ignore[arg-type]  # it reads these attributes of whatever it gets
    _chunks = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
except (ImportError, TypeError):  # another interpreter, or one of later
    from json import JSONDecoder, JSONEncoder

    _scan = JSONDecoder().raw_decode
    _chunks = JSONEncoder(separators=(",", ":"), ensure_ascii=False).iterencode
