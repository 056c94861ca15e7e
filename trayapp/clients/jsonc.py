"""Implements family.Family for JSON with comments and trailing commas. Edits are splices at scanned positions.

Every edit is checked: the new text is parsed again and compared with the expected document. The standard library does
not accept comments, and rewriting a whole file with it would change other bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trayapp.clients.family import Document, Keys, lookup, no_mapping, refuse, with_value, without
from trayapp.config.problems import UnparsableError
from trayapp.config.read.text import BOM, without_comments
from trayapp.config.yaml.splices import Splice, spliced
from trayapp.model.errors import Problem

DEFAULT_STEP = "  "
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s"{}\[\],:/]+', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REST_OF_LINE = re.compile(r"(?:[ \t]*/\*[^\n]*?\*/)*[ \t]*(?://[^\n]*)?")


@dataclass(slots=True)
class _Member:
    """A member `"key": value` at text[start:end], with the offsets of its value and of the comma after it."""

    key: str
    start: int
    value: int
    end: int
    comma: int | None = None


@dataclass(slots=True)
class _Object:
    """An object: text[start] is its opening brace, text[end] its closing brace."""

    start: int
    end: int = -1
    members: list[_Member] = field(default_factory=list)

    def find(self, key: str) -> int | None:
        """Return the index of a key's member, None if there is none. Of duplicate keys, the last one counts."""
        found = [index for index, member in enumerate(self.members) if member.key == key]
        return found[-1] if found else None


def read(text: str, file: str) -> Document:
    """Return the parsed text; {} for an empty text or `null`. Raises UnparsableError, also if it is not an object."""
    try:
        text = text.removeprefix(BOM)
        try:  # try plain JSON first: most files have no comments
            value = json.loads(text)
        except json.JSONDecodeError:
            plain = without_comments(text)
            value = json.loads(plain) if plain.strip() else None
    except json.JSONDecodeError as error:
        raise UnparsableError(Problem(file, error.lineno, f"Not JSON: {error.msg}", "", error.colno)) from None
    except (RecursionError, ValueError):
        raise UnparsableError(Problem(file, 0, "It is nested too deeply, or a number is too long")) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnparsableError(Problem(file, 1, "The file is not a JSON object"))
    return value


def put(text: str, path: Keys, value: Any, file: str) -> str:
    document = read(text, file)
    new = _put(_Text(text, file), path, value)
    if read(new, file) != with_value(document, path, value):
        refuse(file, 0, "it is written in a form that this change could damage")
    return new


def drop(text: str, path: Keys, file: str) -> str:
    document = read(text, file)
    holder = lookup(document, path[:-1])
    if not isinstance(holder, Mapping) or path[-1] not in holder:
        return text
    scanned = _Text(text, file)
    inside = scanned.objects(path[:-1])[-1]
    index = inside.find(path[-1])
    assert index is not None  # the parser has found this member
    new = spliced(text, scanned.removal(inside, index))
    if read(new, file) != without(document, path):
        refuse(file, 0, "it is written in a form that this change could damage")
    return new


def lines(text: str, path: Keys) -> dict[str, int]:
    scanned = _Text(text, "")
    objects = scanned.objects(path)
    members = objects[-1].members if len(objects) == len(path) + 1 else []
    return {member.key: scanned.line_of(member.start) for member in members}


def _put(scanned: _Text, path: Keys, value: Any) -> str:
    objects = scanned.objects(path[:-1])
    if not objects:
        return scanned.with_root(with_value({}, path, value))
    holder, rest = objects[-1], path[len(objects) - 1 :]
    index = holder.find(rest[0])
    if index is None:
        return spliced(scanned.text, scanned.insertion(holder, rest[0], with_value({}, rest[1:], value)))
    member = holder.members[index]
    if len(rest) > 1 and scanned.text[member.value : member.end] != "null":
        refuse(scanned.file, scanned.line_of(member.start), no_mapping(path[: len(objects)]))
    return spliced(scanned.text, scanned.replacement(member, with_value({}, rest[1:], value)))


class _Text:
    """One text with its style (line ends, indentation) and the positions of its parts. The text must be readable."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        first = next((t for t in _TOKEN.finditer(text, len(BOM) * text.startswith(BOM)) if not _is_comment(t[0])), None)
        self.root = self._scan(first.start()) if first and first[0] == "{" else None
        self.step: str | None = DEFAULT_STEP
        if self.root is not None and self.root.members:
            at = self.root.members[0].start
            self.step = self._indent(at) or DEFAULT_STEP if self._begins_line(at) else None

    def line_of(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def objects(self, path: Keys) -> list[_Object]:
        """Return the objects from the top along `path`, up to the first value that is not an object."""
        found = [self.root] if self.root else []
        for key in path:
            index = found[-1].find(key) if found else None
            if index is None or self.text[at := found[-1].members[index].value] != "{":
                break
            found.append(self._scan(at))
        return found

    def _scan(self, start: int) -> _Object:
        scanned, depth, key, value = _Object(start), 0, None, -1
        for token in _TOKEN.finditer(self.text, start + 1):
            word = token[0]
            if _is_comment(word):
                continue
            if depth == 0:
                if word == "}":
                    scanned.end = token.start()
                    return scanned
                if word == ",":
                    key = None
                    if scanned.members:
                        scanned.members[-1].comma = token.start()
                if word in ",:":
                    continue
                if key is None:
                    key = token
                    continue
                value = token.start()
            depth += (word in "{[") - (word in "}]")
            if depth == 0 and key is not None:
                scanned.members.append(_Member(json.loads(key[0], strict=False), key.start(), value, token.end()))
        refuse(self.file, self.line_of(start), "its braces do not match")

    # --- lines

    def _line_start(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at) + 1, len(BOM) * self.text.startswith(BOM))

    def _before_line(self, at: int) -> int:
        end = self._line_start(at) - 1
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def _begins_line(self, at: int) -> bool:
        start = self._line_start(at)
        return start > 0 and not self.text[start:at].strip(" \t")

    def _indent(self, at: int) -> str:
        found = re.compile(r"[ \t]*").match(self.text, self._line_start(at))
        return found[0] if found else ""

    def _rest_of_line(self, at: int) -> int | None:
        """Return the offset where the line of `at` ends, if only comments follow `at` on it; else None."""
        found = _REST_OF_LINE.match(self.text, at)
        end = found.end() if found else at
        end -= self.text[end - 1 : end] == "\r" and end > at
        return end if self.text[end : end + 1] in ("", "\n") or self.text[end : end + 2] == "\r\n" else None

    # --- words

    def _value(self, value: Any, indent: str) -> str:
        if self.step is None:
            return self._compact(value)
        return _rendered(value, self.step).replace("\n", self.newline + indent)

    def _compact(self, value: Any) -> str:
        return _json(value, (", ", ": ") if self._spaced() else (",", ":"))

    def _spaced(self) -> bool:
        member = self.root.members[0] if self.root and self.root.members else None
        return member is None or self.text[member.value - 1].isspace()

    # --- changes

    def with_root(self, value: Any) -> str:
        gap = self.newline if self.text.removeprefix(BOM).strip() and not self.text.endswith("\n") else ""
        return self.text + gap + self._value(value, "") + self.newline

    def replacement(self, member: _Member, value: Any) -> list[Splice]:
        old = self.text[member.value : member.end]
        inline = old[0] in "{[" and "\n" not in old and len(old) > 2
        new = self._compact(value) if inline else self._value(value, self._indent(member.start))
        return [Splice(member.value, member.end, new)]

    def insertion(self, holder: _Object, key: str, value: Any) -> list[Splice]:
        name = _json(key)
        if not holder.members:
            return self._first(holder, name, value)
        last = holder.members[-1]
        if not self._begins_line(last.start) or "\n" not in self.text[last.end : holder.end]:
            gap = " " if self._spaced() else ""
            member = f"{name}:{gap}{self._compact(value)}"
            if last.comma is not None:
                return [Splice(last.comma + 1, last.comma + 1, f"{gap}{member},")]
            return [Splice(last.end, last.end, f",{gap}{member}")]
        indent = self._indent(last.start)
        member = f"{self.newline}{indent}{name}: {self._value(value, indent)}"
        after = last.end if last.comma is None else last.comma + 1
        end = self._rest_of_line(after)
        end = after if end is None else end
        if last.comma is not None:
            return [Splice(end, end, member + ",")]
        if end == last.end:
            return [Splice(end, end, "," + member)]
        return [Splice(last.end, last.end, ","), Splice(end, end, member)]

    def _first(self, holder: _Object, name: str, value: Any) -> list[Splice]:
        inside = self.text[holder.start + 1 : holder.end]
        if self.step is None:
            at = holder.end if inside.strip() else holder.start + 1
            return [Splice(at, at, f"{name}:{' ' * self._spaced()}{self._compact(value)}")]
        outer = self._indent(holder.start)
        indent = outer + self.step
        member = f"{self.newline}{indent}{name}: {self._value(value, indent)}"
        if not inside.strip() and "\n" not in inside:
            return [Splice(holder.start + 1, holder.end, member + self.newline + outer)]
        if not inside.strip():
            return [Splice(holder.start + 1, holder.start + 1, member)]
        if self._begins_line(holder.end):
            at = self._before_line(holder.end)
            return [Splice(at, at, member)]
        return [Splice(holder.end, holder.end, member + self.newline + outer)]

    def removal(self, holder: _Object, index: int) -> list[Splice]:
        member = holder.members[index]
        end = member.end if member.comma is None else member.comma + 1
        around = self.text[holder.start + 1 : member.start] + self.text[end : holder.end]
        if len(holder.members) == 1 and not around.strip():
            return [Splice(holder.start + 1, holder.end, "")]
        line_end = self._rest_of_line(end)
        is_last = index == len(holder.members) - 1
        comma = holder.members[index - 1].comma if index and is_last and member.comma is None else None
        if line_end is not None and self._begins_line(member.start):
            cut = Splice(self._before_line(member.start), line_end, "")
        else:
            cut = self._cut_words(holder, index, end)
        if comma is None or cut.start <= comma:
            return [cut]
        return [Splice(comma, comma + 1, ""), cut]

    def _cut_words(self, holder: _Object, index: int, end: int) -> Splice:
        """Return the splice that removes a member within a line and the blanks after it, or before it if it is last."""
        members = holder.members
        start = members[index].start
        if index + 1 < len(members):
            following = members[index + 1].start
            return Splice(start, following if not self.text[end:following].strip() else end, "")
        comma = members[index - 1].comma if index else None
        if comma is not None and not self.text[comma + 1 : start].strip():
            return Splice(comma if members[index].comma is None else comma + 1, end, "")
        return Splice(start, end, "")


def _rendered(value: Any, step: str) -> str:
    if not isinstance(value, Mapping) or not value:
        return _json(value)
    members = (f"{_json(key)}: {_rendered(item, step)}" for key, item in value.items())
    return "{\n" + step + ",\n".join(members).replace("\n", "\n" + step) + "\n}"


def _json(value: Any, separators: tuple[str, str] | None = None) -> str:
    """Return a value as JSON that UTF-8 can encode: a lone surrogate stays an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_comment(word: str) -> bool:
    return word.startswith(("//", "/*"))
