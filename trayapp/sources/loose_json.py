"""Read objects that are almost JSON, as pages, word processors and other languages write them.

Only these deviations are accepted:
- Quotes may be single or curly. They may be missing around a key and around a placeholder.
- Commas may be missing, repeated, or replaced by semicolons.
- The outer braces and the last closing brackets may be missing.
- A key may be followed by `=`. Comments count as spaces. A Windows path may have single backslashes.
- Words of other languages (`True`, `None`, `nil`) are values. `process.env.NAME` is read as `${NAME}`.
- Brackets of any form that contain keys are an object, all others a list (Lua, Nix).
- `...` for something that the author left out is ignored, except after RUN_WORDS, where it replaces a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

DEEPEST = 50  # levels of nested brackets
ELLIPSIS = "..."
RUN_WORDS = ("run", "exec", "dlx", "x", "--")  # words after which a command names the program that it starts
_TOKEN = re.compile(
    r"""(?xs)
    (?P<blank>[\s,;\ufeff]+|//[^\n]*|/\*.*?\*/|\#[^\n]*|--[^\n]*)
    | (?P<left_out>\(?(?:\.{3}|\u2026)[^\n{}\[\]"]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'
        |[\u201c\u201d\u201e\u201f][^\u201c\u201d"\n]*[\u201c\u201d\u201f"])
    | (?P<open>[{\[]) | (?P<close>[}\]]) | (?P<colon>[:=])
    | (?P<word><[^<>\n]{1,80}>|[\w$@-][\w$@.+/|-]*!?)
    | (?P<other>.)
    """
)
_DRIVE = re.compile(r"[A-Za-z]:\\(?!\\)")  # a Windows path whose backslashes were not doubled
_ENVIRONMENT = re.compile(r"process\.env\.([A-Za-z_]\w*)!?")
_PLACEHOLDER = re.compile(r"<.*>|[A-Z][A-Z0-9]*_[A-Z0-9_]+|\w+(?:\|\w+)+")  # unquoted by mistake
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None, "nil": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _Name(str):
    """An unquoted identifier. It is valid as a key. As a value, it is a variable that only a program could resolve."""


def read_loosely(text: str) -> dict[str, Any]:
    """Parse an object in loose JSON, whose outer brackets may be missing. Raises ValueError."""
    tokens = ((str(found.lastgroup), found[0]) for found in _TOKEN.finditer(text))
    useful = ((kind, token) for kind, token in tokens if kind != "blank")
    opening = next(useful)[1] if text[:1] in ("{", "[") else ""
    found = _inside(useful, opening, DEEPEST)
    if any(kind != "close" for kind, _ in useful):
        raise ValueError("there is text after the object")
    if not isinstance(found, dict):
        raise ValueError("it is a list, not an object")
    return found


def _inside(tokens: Iterator[tuple[str, str]], opening: str, levels: int) -> dict[str, Any] | list[Any]:
    """Return the object or list up to the closing bracket, nested at most `levels` deep. Raises ValueError."""
    if not levels:
        raise ValueError("it is nested too deeply")
    keyed: dict[str, Any] = {}
    listed: list[Any] = []
    key: str | None = None  # a key whose value is still missing
    for kind, token in tokens:
        if kind == "close":
            break
        if kind == "left_out":
            key = None
            listed += [ELLIPSIS] if listed and listed[-1] in RUN_WORDS else []
        elif kind == "colon":
            if key is not None or not listed or not isinstance(listed[-1], str):
                raise ValueError(f"there is no key before {token}")
            key = listed.pop()
        elif kind == "other":
            raise ValueError(f"{token} is out of place")
        else:
            value = _inside(tokens, token, levels - 1) if kind == "open" else _READERS[kind](token)
            if key is None:
                listed.append(value)
            else:
                keyed[key], key = value, None
    if key is not None or (keyed and listed):
        raise ValueError(f"{key or listed[0]} has no value")
    if name := next((word for word in [*keyed.values(), *listed] if isinstance(word, _Name)), None):
        raise ValueError(f"{name} is not quoted, so it is an identifier, not a value")
    return listed if listed or (opening == "[" and not keyed) else keyed


def _unquoted(token: str) -> str:
    inner = token[1:-1]
    if _DRIVE.match(inner) or "\\" not in inner:
        return inner

    def character(found: re.Match[str]) -> str:
        escape = found[1]
        plain = escape if escape in "\"'\\/" else f"\\{escape}"
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPES.get(escape, plain)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|[\s\S])", character, inner)


def _plain(token: str) -> Any:
    """Return the value of a word without quotes: a number, true, false, null, a reference to a variable, or a text."""
    if variable := _ENVIRONMENT.fullmatch(token):
        return f"${{{variable[1]}}}"
    if _NUMBER.fullmatch(token):
        return float(token) if "." in token else int(token)
    return _WORDS.get(token, token if _PLACEHOLDER.fullmatch(token) else _Name(token))


_READERS: dict[str, Callable[[str], Any]] = {"text": _unquoted, "word": _plain}
