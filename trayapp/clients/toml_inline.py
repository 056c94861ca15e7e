"""Edit inline TOML tables, `servers = {a = {...}}`: add, replace and remove members.

toml_file edits the other statements and checks every result. TOML 1.0 allows no line ends in inline tables except
inside of arrays, and no trailing comma.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trayapp.clients.family import Keys
from trayapp.config.yaml.splices import Splice

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{}=,]|[^\"'#\[\]{}=,]+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Member:
    """One `key = value` of an inline table: text[start:end]; `value`: where its value begins.

    `path` is relative to the table.
    """

    path: Keys
    start: int
    value: int
    end: int


def members(text: str, start: int, end: int) -> Iterator[Member]:
    """Yield the members of the table text[start:end], which includes the braces."""
    depth, begin, equals = 0, start + 1, -1
    for token in _TOKEN.finditer(text, start, end):
        word = token[0]
        if depth == 1 and (word == "," or (word == "}" and token.end() == end)):
            if equals >= 0:
                yield _member(text, begin, equals, token.start())
            begin, equals = token.end(), -1
        if word == "=" and depth == 1 and equals < 0:
            equals = token.start()
        depth += (word in "[{") - (word in "]}") if len(word) == 1 else 0


def _member(text: str, begin: int, equals: int, end: int) -> Member:
    start = begin + len(text[begin:equals]) - len(text[begin:equals].lstrip())
    value = equals + 1 + len(text[equals + 1 : end]) - len(text[equals + 1 : end].lstrip())
    return Member(key_path(f"{text[start:equals]}=0"), start, value, begin + len(text[begin:end].rstrip()))


def key_path(words: str) -> Keys:
    """Return the keys of a table header or a pair's left side, as tomllib reads them."""
    inside: Any = tomllib.loads(words)
    path: list[str] = []
    while isinstance(inside, dict) and inside:
        ((key, inside),) = inside.items()
        inside = inside[0] if isinstance(inside, list) else inside
        path.append(key)
    return tuple(path)


def put(text: str, start: int, end: int, path: Keys, key: str, literal: str) -> Splice:
    """Return the splice that puts `literal` at `path` below the table text[start:end]. `key`: the last key in TOML.

    Missing tables on the way are not created: the caller puts a complete table instead.
    """
    found, rest = _towards(text, start, end, path)
    if found is not None and not rest:
        return Splice(found.value, found.end, literal)
    if found is not None and text[found.value] == "{":
        return put(text, found.value, found.end, rest, key, literal)
    there = list(members(text, start, end))
    if there:
        return Splice(there[-1].end, there[-1].end, f", {key} = {literal}")
    return Splice(start, end, f"{{ {key} = {literal} }}")


def drop(text: str, start: int, end: int, path: Keys) -> Splice | None:
    """Return the splice that removes the member at `path` with one comma; None if the member cannot be located."""
    found, rest = _towards(text, start, end, path)
    if found is None:
        return None
    if rest:
        return drop(text, found.value, found.end, rest) if text[found.value] == "{" else None
    there = list(members(text, start, end))
    at = there.index(found)
    if at:
        return Splice(there[at - 1].end, found.end, "")
    return Splice(found.start, there[1].start if len(there) > 1 else found.end, "")


def keys_below(text: str, start: int, end: int, path: Keys) -> Iterator[tuple[str, int]]:
    """Yield the keys of the table at `path`, each with its offset."""
    if not path:
        yield from ((member.path[0], member.start) for member in members(text, start, end))
        return
    found, rest = _towards(text, start, end, path)
    if found is not None and text[found.value] == "{":
        yield from keys_below(text, found.value, found.end, rest)


def _towards(text: str, start: int, end: int, path: Keys) -> tuple[Member | None, Keys]:
    """Return the member at `path` or on the way there (None if there is none), and the remaining keys."""
    for member in members(text, start, end):
        if path[: len(member.path)] == member.path:
            return member, path[len(member.path) :]
    return None, path
