r"""Implements family.Family for TOML. tomli reads the text, a scanner locates tables and keys, and splices change them.

TOML 1.1 allows line ends, comments and a trailing comma in inline tables (`servers = {a = {...}}`). Codex reads them.
Every edit is checked: tomli parses the new text again, and the result must be as expected.

After a put and a drop, these splices restore all of 232 test files byte for byte; tomlkit restored 52 of them. tomlkit
also removes a comment after the table, writes `\n` into files with `\r\n`, and has no line numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli

from trayapp.clients.family import Document, Keys, lookup, no_mapping, refuse, with_value, without
from trayapp.config.problems import UnparsableError
from trayapp.config.read.text import BOM
from trayapp.config.yaml.splices import Splice, spliced
from trayapp.model.errors import Problem

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_COMMA = re.compile(r"\s*,")
_BLANKS = re.compile(r"\s*")
_AT = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{}=,]|\n|[^\"'#\[\]{}=,\n]+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A table header, or one key with its value: text[start:end] without a trailing comment."""

    path: Keys  # from the top of the file; for a member of an inline table, from that table
    start: int
    end: int
    value: int = -1  # where the value of a key begins; -1 for a header
    is_list: bool = False  # True for the header of an array of tables

    @property
    def is_head(self) -> bool:
        return self.value < 0


def read(text: str, file: str) -> Document:
    try:
        return tomli.loads(text.removeprefix(BOM))
    except tomli.TOMLDecodeError as error:
        place = _AT.search(str(error))
        line, column = (int(place[1] or 0), int(place[2] or 0)) if place else (0, 0)
        raise UnparsableError(Problem(file, line, f"Not TOML: {_AT.sub('', str(error)).strip()}", "", column)) from None
    except (RecursionError, ValueError):
        raise UnparsableError(Problem(file, 0, "It is nested too deeply, or a number is too long")) from None


def put(text: str, path: Keys, value: Any, file: str) -> str:
    """Return the text with `value` at `path`. A mapping becomes a table, or an inline table within an inline table."""
    document = read(text, file)
    statements = _statements(text)
    present = lookup(document, path)
    inline = _in_braces(text, statements, path)
    if inline is not None and (present is None or not isinstance(present, Mapping)):
        at = put_member(text, inline.value, inline.end, path[len(inline.path) :], _key(path[-1]), _literal(value))
        new = spliced(text, [at])
    elif present is not None and not isinstance(present, Mapping):
        found = next((s for s in statements if s.path == path and not s.is_head), None)
        if found is None:
            refuse(file, _line(text, path[:-1]), f"cannot find where {path[-1]} is set; it may be in an inline table")
        new = spliced(text, [Splice(found.value, found.end, _literal(value))])
    elif present is not None:
        new = put(drop(text, path, file), path, value, file)
    elif isinstance(value, Mapping):
        new = _with_table(text, path, value)
    else:
        new = _with_key(text, statements, path, value, file)
    _check(new, with_value(document, path, value), file, path)
    return new


def drop(text: str, path: Keys, file: str) -> str:
    document = read(text, file)
    if lookup(document, path) is None:
        return text
    everything = _statements(text)
    statements = [s for s in everything if s.path[: len(path)] == path]
    inline = _in_braces(text, everything, path)
    if inline is not None:
        cut = drop_member(text, inline.value, inline.end, path[len(inline.path) :])
        new = spliced(text, [cut]) if cut is not None else text
    else:
        new = spliced(text, _joined([_lines(text, statement) for statement in statements], text))
    if new != text and not new.strip():
        new = BOM if text.startswith(BOM) else ""
    expected = without(document, path)
    for length in range(len(path) - 1, 0, -1):  # parent tables without a header vanish with their last key
        if not lookup(expected, path[:length]) and lookup(read(new, file), path[:length]) is None:
            expected = without(expected, path[:length])
    _check(new, expected, file, path)
    return new


def lines(text: str, path: Keys) -> dict[str, int]:
    found: dict[str, int] = {}
    for statement in _statements(text):
        if statement.path[: len(path)] == path and len(statement.path) > len(path):
            found.setdefault(statement.path[len(path)], text.count("\n", 0, statement.start) + 1)
        if _is_table_in_braces(text, statement) and path[: len(statement.path)] == statement.path:
            inside = member_offsets(text, statement.value, statement.end, path[len(statement.path) :])
            found |= {key: text.count("\n", 0, at) + 1 for key, at in inside}
    return found


def _is_table_in_braces(text: str, statement: _Statement) -> bool:
    return not statement.is_head and text[statement.value] == "{"


def _in_braces(text: str, statements: Sequence[_Statement], path: Keys) -> _Statement | None:
    """Return the statement whose inline table holds, or would hold, the value at `path`; None if there is none."""
    above = (s for s in statements if len(s.path) < len(path) and path[: len(s.path)] == s.path)
    return next((s for s in above if _is_table_in_braces(text, s)), None)


def _line(text: str, path: Keys) -> int:
    return lines(text, path[:-1]).get(path[-1], 0)


def _check(new: str, expected: Any, file: str, path: Keys) -> None:
    try:
        fits = read(new, file) == expected
    except UnparsableError:
        fits = False
    if not fits:
        refuse(file, _line(new, path[:1]), f"{path[0]} is written in a form that this change could damage")


# --- positions


def _statements(text: str) -> list[_Statement]:
    found: list[_Statement] = []
    head: Keys = ()
    start, equals, depth, end = -1, -1, 0, -1
    for token in _TOKEN.finditer(text + "\n", len(BOM) * text.startswith(BOM)):
        word = token[0]
        if word.startswith("#") or (word.isspace() and word != "\n" and start < 0):
            continue
        if word == "\n" and depth == 0:
            if start >= 0:
                statement = _statement(text, head, start, equals, end)
                head = statement.path if statement.is_head else head
                found.append(statement)
            start = equals = -1
            continue
        if start < 0:
            start = _after_blanks(text, token.start())
        if word == "=" and equals < 0 and depth == 0:
            equals = token.start()
        depth += (word in "[{") - (word in "]}") if len(word) == 1 else 0
        if word.strip():
            end = token.start() + len(word.rstrip())
    return found


def _statement(text: str, head: Keys, start: int, equals: int, end: int) -> _Statement:
    if equals < 0:
        return _Statement(key_path(text[start:end]), start, end, is_list=text.startswith("[[", start))
    return _Statement((*head, *key_path(f"{text[start:equals]}=0")), start, end, _after_blanks(text, equals + 1))


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


# --- changes


def _lines(text: str, statement: _Statement) -> Splice:
    """Return the splice that removes all lines of a statement, including a trailing comment."""
    start = max(text.rfind("\n", 0, statement.start) + 1, len(BOM) * text.startswith(BOM))
    end = text.find("\n", statement.end)
    return Splice(start, len(text) if end < 0 else end + 1, "")


def _joined(cuts: list[Splice], text: str) -> list[Splice]:
    """Return the cuts, joined if only blank lines and comments separate them, each with the start of `_without_gap`."""
    whole: list[Splice] = []
    for cut in cuts:
        if whole and not re.sub(r"#[^\n]*", "", text[whole[-1].end : cut.start]).strip():
            whole[-1] = Splice(whole[-1].start, cut.end, "")
        else:
            whole.append(cut)
    return [Splice(_without_gap(text, cut), cut.end, "") for cut in whole]


def _without_gap(text: str, cut: Splice) -> int:
    """Return the start of a cut, including the blank line before it if a blank line or the end of the file follows."""
    follows = text[cut.end : cut.end + 2]
    gap = re.search(r"(?:(?<=\n)|\A)[ \t]*\r?\n\Z", text[: cut.start])
    alone = not follows or follows[0] == "\n" or follows == "\r\n"
    return gap.start() if gap and alone else cut.start


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"


def _with_table(text: str, path: Keys, value: Mapping[str, Any]) -> str:
    newline = _newline(text)
    gap = "" if not text.removeprefix(BOM) else newline if text.endswith("\n") else newline * 2
    if re.search(r"\n[ \t]*\r?\n\Z", text):
        gap = ""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_literal(item)}" for key, item in value.items()]
    return text + gap + "".join(line + newline for line in lines)


def _with_key(text: str, statements: Sequence[_Statement], path: Keys, value: Any, file: str) -> str:
    """Return the text with a new key after the last one of its table. A table without a header gets one."""
    at = next((i for i, s in enumerate(statements) if s.is_head and not s.is_list and s.path == path[:-1]), None)
    below = next((s for s in statements if s.is_head and not s.is_list and s.path[: len(path) - 1] == path[:-1]), None)
    if at is None and below is not None and isinstance(lookup(read(text, file), path[:-1]), Mapping):
        start, newline = (
            _lines(text, below).start,
            _newline(text),
        )  # the table itself has no header, only its subtables do
        head = f"[{'.'.join(map(_key, path[:-1]))}]{newline}{_key(path[-1])} = {_literal(value)}{newline}"
        return spliced(text, [Splice(start, start, head)])
    if at is None:
        why = no_mapping(path[:-1]) if lookup(read(text, file), path[:-1]) else "no table"
        refuse(file, _line(text, path[:-1]), why)
    last = statements[at]
    for statement in statements[at + 1 :]:
        if statement.is_head:
            break
        last = statement
    end, newline = _lines(text, last).end, _newline(text)
    gap = "" if text[end - 1 : end] == "\n" else newline
    return spliced(text, [Splice(end, end, f"{gap}{_key(path[-1])} = {_literal(value)}{newline}")])


def _key(word: str) -> str:
    return word if _BARE.fullmatch(word) else _text(word)


def _text(word: str) -> str:
    r"""Return a text as a basic string. JSON's escapes are valid in TOML, which also requires an escape for \x7f."""
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return json.dumps(value)


# --- inline tables


def put_member(text: str, start: int, end: int, path: Keys, key: str, literal: str) -> Splice:
    """Return the splice that puts `literal` at `path` in the inline table text[start:end]. `key`: its key as TOML."""
    found, rest = _towards(text, start, end, path)
    if found is not None and not rest:
        return Splice(found.value, found.end, literal)
    if found is not None and text[found.value] == "{":
        return put_member(text, found.value, found.end, rest, key, literal)
    there = list(members(text, start, end))
    if there:
        return Splice(there[-1].end, there[-1].end, f", {key} = {literal}")
    return Splice(start, end, f"{{ {key} = {literal} }}")


def drop_member(text: str, start: int, end: int, path: Keys) -> Splice | None:
    """Return the splice that removes the member at `path` with one comma; None if the member cannot be located."""
    found, rest = _towards(text, start, end, path)
    if found is None:
        return None
    if rest:
        return drop_member(text, found.value, found.end, rest) if text[found.value] == "{" else None
    there = list(members(text, start, end))
    at = there.index(found)
    if at:
        return Splice(there[at - 1].end, found.end, "")
    following = _COMMA.match(text, found.end) if len(there) == 1 else None
    return Splice(found.start, following.end() if following else there[1].start if there[1:] else found.end, "")


def member_offsets(text: str, start: int, end: int, path: Keys) -> Iterator[tuple[str, int]]:
    """Yield (key, offset) for each member of the table at `path` in the inline table text[start:end]."""
    if not path:
        yield from ((member.path[0], member.start) for member in members(text, start, end))
        return
    found, rest = _towards(text, start, end, path)
    if found is not None and text[found.value] == "{":
        yield from member_offsets(text, found.value, found.end, rest)


def members(text: str, start: int, end: int) -> Iterator[_Statement]:
    """Yield the members of the inline table text[start:end], whose braces are included in the range."""
    depth, begin, equals = 0, start + 1, -1
    for token in _TOKEN.finditer(text, start, end):
        word = token[0]
        if depth == 1 and (word == "," or (word == "}" and token.end() == end)):
            if equals >= 0:
                last = begin + len(text[begin : token.start()].rstrip())
                yield _statement(text, (), _after_blanks(text, begin), equals, last)
            begin, equals = token.end(), -1
        if word == "=" and depth == 1 and equals < 0:
            equals = token.start()
        depth += (word in "[{") - (word in "]}") if len(word) == 1 else 0


def _towards(text: str, start: int, end: int, path: Keys) -> tuple[_Statement | None, Keys]:
    """Return the member whose keys are the start of `path` (None if there is none), and the rest of `path`."""
    for member in members(text, start, end):
        if path[: len(member.path)] == member.path:
            return member, path[len(member.path) :]
    return None, path


def key_path(words: str) -> Keys:
    """Return the keys of a table header or a pair's left side, as tomli reads them."""
    inside: Any = tomli.loads(words)
    path: list[str] = []
    while isinstance(inside, dict) and inside:
        ((key, inside),) = inside.items()
        inside = inside[0] if isinstance(inside, list) else inside
        path.append(key)
    return tuple(path)
