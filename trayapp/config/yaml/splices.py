"""Edits of a YAML text, as splices that change the fewest bytes.

The new text is parsed again and compared with the expected configuration. An edit that is not safe is refused.
ruamel.yaml also keeps comments, but it changed 295 of 300 test files even without an edit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingType
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from trayapp.config.problems import InvalidValueError, UnparsableError, shown
from trayapp.config.yaml import rendering
from trayapp.config.yaml.nodes import (
    Alias,
    Mapping,
    Node,
    Scalar,
    compose,
    follow,
    is_merge_key,
    is_null,
    key_text,
    kind,
    node_of,
    pairs,
)
from trayapp.config.yaml.nodes import Sequence as SequenceNode
from trayapp.model.errors import ConfigError, ExitCode

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks in YAML
_COLON = re.compile(r"[ \t]*:")
_TO_COMMA = re.compile(r"(?:\s+#[^\r\n]*|\s)*,")


class Layout:
    """The lines of a text, and lookups in it. Positions are character indexes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        self._newline = _line_end(_BREAK.search(text)) or "\n"

    def newline(self, at: int) -> str:
        """Return the line ending to use at position `at`: the one found there, the file's first, or a line feed."""
        return _line_end(_BREAK.match(self.text, at)) or self._newline

    def line_end(self, at: int) -> int:
        """Return the end of the line that contains `at`, before its line break."""
        found = _BREAK.search(self.text, at)
        return found.start() if found else len(self.text)

    def line_start(self, at: int) -> int:
        return self._starts[bisect_right(self._starts, at) - 1]

    def next_line(self, end: int) -> int | None:
        """Return the start of the line after the one that ends at `end`, or None at the end of the text."""
        found = _BREAK.match(self.text, end)
        return found.end() if found else None

    def previous_end(self, start: int) -> int | None:
        """Return the end of the line before the one that starts at `start`, or None for the first."""
        if start == 0:
            return None
        return start - 2 if self.text[start - 2 : start] == "\r\n" else start - 1

    def line_at(self, start: int) -> str:
        """Return the line that starts at `start`, without its line ending."""
        return self.text[start : self.line_end(start)]

    def line_above(self, start: int) -> int | None:
        """Return the start of the line above the one that starts at `start`, or None for the first."""
        end = self.previous_end(start)
        return None if end is None else self.line_start(end)

    def blank_above(self, start: int) -> int:
        """Return the start of the topmost blank line directly above `start`, or `start` if there is none."""
        while (above := self.line_above(start)) is not None and not self.line_at(above).strip():
            start = above
        return start

    def blank_below(self, end: int) -> int:
        """Return the end of the last blank line directly below the line that ends at `end`, or `end` without one."""
        while (below := self.next_line(end)) is not None and below < len(self.text) and not self.line_at(below).strip():
            end = self.line_end(below)
        return end

    def is_last_at(self, end: int, column: int) -> bool:
        """Return True if the line below the one that ends at `end` is missing or indented less than `column`."""
        below = self.next_line(end)
        return below is None or below >= len(self.text) or _indent(self.line_at(below)) < column

    def begins_line(self, at: int) -> bool:
        return not self.text[self.line_start(at) : at].strip(" \ufeff")

    def content_end(self, node: Node) -> int:
        """Return the end of a value: after its last character that is neither white space nor a comment."""
        if isinstance(node, Mapping) and not node.flow and node.pairs:
            return self.content_end(node.pairs[-1][1])
        if isinstance(node, SequenceNode) and not node.flow and node.items:
            return self.content_end(node.items[-1])
        if isinstance(node, Scalar) and node.style in ("|", ">"):
            written = self.text[node.start : node.end]
            if "+" not in written.split("\n", 1)[0]:
                return node.start + len(written.rstrip())
            return node.start + len(written.removesuffix("\n").removesuffix("\r"))  # |+ includes the blank lines
        return node.end

    def after(self, node: Node, column: int) -> int:
        """Return where to add a line: after a value and any comments below it that are indented beyond `column`."""
        at = end = self.line_end(self.content_end(node))
        while (start := self.next_line(at)) is not None:
            line = self.line_at(start)
            at = start + len(line)
            if line.lstrip(" ").startswith("#") and _indent(line) > column:
                end = at
            elif line.strip():
                break
        return end

    def colon_end(self, key: Node) -> int | None:
        """Return the position after the colon of a key, or None if none follows the key directly."""
        found = _COLON.match(self.text, key.end)
        return found.end() if found else None

    def comma(self, start: int, end: int) -> int | None:
        """Return the position of a comma in text[start:end] that only blanks and comments precede, or None."""
        found = _TO_COMMA.match(self.text, start, end)
        return found.end() - 1 if found else None


def _line_end(found: re.Match[str] | None) -> str:
    return found[0] if found and found[0] in ("\n", "\r\n", "\r") else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def indent_step(root: Node | None) -> int:
    """Return the indentation of the first nested mapping in the file, or 2 if there is none."""
    if isinstance(root, Mapping) and not root.flow:
        for _, value in root.pairs:
            if isinstance(value, Mapping) and not value.flow:
                return max(1, value.column - root.column)
    return 2


NOTHING = ("null", "")
Path = tuple[str, ...]


class EditRefusedError(ConfigError):
    """Raised when an edit could damage the file because of how it is written. Nothing was changed."""

    code = "edit_refused"
    exit_code = ExitCode.FAILED


@dataclass(frozen=True, slots=True)
class Splice:
    """A replacement of text[start:end] by `new`."""

    start: int
    end: int
    new: str


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """Return the text with all splices applied. Raises ValueError if two overlap."""
    parts: list[str] = []
    done = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if splice.start < done:
            raise ValueError("two changes affect the same place")
        parts += [text[done : splice.start], splice.new]
        done = splice.end
    return "".join(parts) + text[done:]


@dataclass(frozen=True, slots=True)
class Slot:
    """One pair of a mapping as written, so its value may be an alias. `path` has the keys that lead to the pair."""

    path: Path
    key: Node
    value: Node
    parent: Mapping


class Editor:
    """An editor of one text. It collects changes, and `finish` applies them together."""

    by_hand = "Make this change by hand: multi-mcp edit"  # hint for a refused change

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.layout = Layout(text)
        self.root = compose(text, file)
        self._step = indent_step(self.root)
        self._splices: list[Splice] = []
        self.expected: Any = outline(self.root)  # the outline that the new text must have

    def refuse(self, line: int, why: str) -> NoReturn:
        raise EditRefusedError(f"{self.file}, line {line}: {why}", self.by_hand)

    def slots(self, node: Node, path: Path) -> list[Slot]:
        """Return a mapping's own pairs, without merged ones, or [] if empty. Refuse other nodes and duplicate keys."""
        if is_null(node) and not isinstance(node, Alias):
            return []
        if isinstance(node, Alias):
            self.refuse(node.line, f"{_last(path)} is an alias of another entry")
        if not isinstance(node, Mapping):
            self.refuse(node.line, f"{_last(path)} is not a mapping")
        try:
            pairs(node)  # a duplicate key would be ambiguous
            own = [(key, value) for key, value in node.pairs if not is_merge_key(key)]
            return [Slot((*path, key_text(key)), key, value, node) for key, value in own]
        except InvalidValueError as wrong:
            self.refuse(wrong.place.line, f"{_last(path)}: {wrong.message}")

    def top(self) -> list[Slot]:
        return [] if self.root is None else self.slots(self.root, ())

    def assign(self, slot: Slot, value: Any) -> None:
        """Replace the value of a pair. Refuse if the old value is a collection with comments."""
        node, end = slot.value, self.layout.content_end(slot.value)
        new = rendering.flow(value, json_like=_json_like(slot.parent))
        if is_null(node) and not isinstance(node, Alias):
            self._fill(slot, " " + new)
        elif isinstance(node, Scalar | Alias):
            self.note(node.start, end, new)
        else:
            at = self.layout.colon_end(slot.key)
            if at is None or "#" in self.text[at:end]:
                self.refuse(node.line, f"{_last(slot.path)} contains comments")
            self.note(at, end, " " + new)
        self._expect(slot.path, value)

    def insert(self, slot: Slot, new: MappingType[str, Any], *, depth: int = 0, after: Slot | None = None) -> None:
        """Add pairs to the mapping that is the value of `slot`. An empty value becomes a mapping.

        The pairs are added at the end or, in a block mapping, after the pair `after`. `depth` is as in rendering.block.
        """
        node = slot.value
        may_become_lines = node.anchor is None and self.text[node.start : node.end] in ("{}", "{ }")
        if isinstance(node, Mapping) and (slot.parent.flow or not may_become_lines):
            self._insert_into(node, new, depth, after.value if after else None)
        elif isinstance(node, Mapping) or (is_null(node) and not isinstance(node, Alias)):
            if slot.parent.flow:  # a flow collection can contain only flow collections
                self._fill(slot, " " + rendering.flow(new, json_like=_json_like(slot.parent)))
            else:
                if slot.value.end > slot.value.start:  # the value is null or {}
                    self._fill(slot, "")
                column = slot.parent.column + self._step
                self._add_lines(self.layout.line_end(max(slot.key.end, slot.value.end)), new, column, depth)
        else:
            self.slots(node, slot.path)  # refuses the edit with a reason
        for name, value in new.items():
            self._expect((*slot.path, name), value)

    def insert_top(self, new: MappingType[str, Any], *, depth: int) -> None:
        """Add top-level pairs to the file."""
        if isinstance(self.root, Mapping):
            self._insert_into(self.root, new, depth, None)
        elif self.root is None or (isinstance(self.root, Scalar) and self.root.start == self.root.end):
            at = len(self.text) if self.root is None else self.root.start
            newline = self.layout.newline(at)
            before = newline if at and self.text[at - 1] not in "\n\r\ufeff" else ""
            lines = rendering.block(new, step=self._step, depth=depth)
            self.note(at, at, before + "".join(line + newline for line in lines))
        else:
            self.refuse(self.root.line, "the file is not a mapping")
        for name, value in new.items():
            self._expect((name,), value)

    def remove(self, slot: Slot) -> None:
        """Remove one pair: its lines in a block mapping, or its text in a flow mapping."""
        if not slot.parent.flow:
            end = self.layout.line_end(self.layout.content_end(slot.value))
            self.cut_lines(slot, self.layout.line_start(slot.key.start), end)
            return
        beside = slot.parent.pairs
        index = next(i for i, (key, _) in enumerate(beside) if key is slot.key)
        end = self._flow_value_end(slot.key, slot.value)
        comma = self.layout.comma(end, slot.parent.end - 1)
        if index + 1 < len(beside) and comma is not None:
            following = beside[index + 1][0].start
            is_blank = not self.text[comma + 1 : following].strip()  # otherwise there is a comment, which stays
            self.note(slot.key.start, following if is_blank else comma + 1, "")
        elif index > 0:  # remove the last pair and the comma before it; a comment between them stays
            before = self._flow_value_end(*beside[index - 1])
            comma = self.layout.comma(before, slot.key.start)
            if self.text[before : slot.key.start].strip(" \t\r\n,") and comma is not None:
                self.note(comma, comma + 1, "")
                before = slot.key.start
            self.note(before, end, "")
        else:
            self.note(slot.key.start, end if comma is None else comma + 1, "")
        self.expected = drop(self.expected, slot.path)

    def cut_lines(self, slot: Slot, start: int, end: int) -> None:
        """Remove the lines in text[start:end]. Refuse if the pair shares its line with something else."""
        if not self.layout.begins_line(slot.key.start):
            self.refuse(slot.key.line, f"{_last(slot.path)} shares its line with something else")
        before, following = self.layout.previous_end(start), self.layout.next_line(end)
        if before is not None:
            self.note(before, end, "")
        else:
            self.note(start, end if following is None else following, "")
        self.expected = drop(self.expected, slot.path)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Discard all changes of the `with` block if one of them is refused, and raise the EditRefusedError again."""
        count, expected = len(self._splices), self.expected
        try:
            yield
        except EditRefusedError:
            del self._splices[count:]
            self.expected = expected
            raise

    def finish(self) -> str:
        """Return the new text. Raises EditRefusedError if it does not contain exactly the expected configuration."""
        with suppress(UnparsableError, ValueError):  # ValueError: two changes affect the same place
            text = spliced(self.text, self._splices)
            if same(outline(compose(text, self.file)), self.expected):
                return text
        raise EditRefusedError(f"{self.file} is written in a form that this change could damage", self.by_hand)

    def note(self, start: int, end: int, new: str) -> None:
        """Record a change: `finish` replaces text[start:end] with `new`."""
        self._splices.append(Splice(start, end, new))

    def _expect(self, path: Path, value: Any) -> None:
        self.expected = put(self.expected, path, outline_of(value))

    def _fill(self, slot: Slot, new: str) -> None:
        """Write `new` in place of an empty value. Refuse if it has an anchor, or no colon in a block mapping."""
        at = self.layout.colon_end(slot.key)
        if at is None and slot.parent.flow:
            self.note(slot.key.end, slot.key.end, ":" + new)
        elif at is None or slot.value.anchor is not None:
            self.refuse(slot.key.line, f"{_last(slot.path)} has an empty value that cannot be replaced")
        else:
            self.note(at, slot.value.end if slot.value.end > slot.value.start else at, new)

    def _insert_into(self, node: Mapping, new: MappingType[str, Any], depth: int, after: Node | None) -> None:
        if not node.flow:
            value = after or node.pairs[-1][1]
            self._add_lines(self.layout.after(value, node.column), new, node.column, depth)
            return
        # New pairs are separated by a space, or by line breaks if they are long.
        is_long = len(new) > 1 and len(rendering.flow(new, json_like=_json_like(node))) > rendering.MAX_FLOW_CHARACTERS
        between = "," + self._next_line(node, 2) if is_long else ", "
        words = between.join(self._flow_words(node, name, value) for name, value in new.items())
        if not node.pairs:
            at = self.text.index("{", node.start) + 1
            self.note(at, at, f"{between[1:]}{words}{self._next_line(node, 1)}" if is_long else words)
            return
        last = self._flow_value_end(*node.pairs[-1])
        comma = self.layout.comma(last, node.end - 1)
        # If each pair has its own line and the closing brace is below them, the new pairs also get their own lines.
        if self.layout.begins_line(node.pairs[-1][0].start) and self.layout.line_end(last) < node.end:
            self._insert_flow_lines(node, new, last, comma)
        elif comma is None:
            self.note(last, last, between + words)
        else:
            self.note(comma + 1, comma + 1, f"{between[1:]}{words},")

    def _add_lines(self, at: int, new: MappingType[str, Any], column: int, depth: int) -> None:
        lines = rendering.block(new, column=column, step=self._step, depth=depth)
        newline = self.layout.newline(at)
        self.note(at, at, "".join(newline + line for line in lines))

    def _flow_words(self, node: Mapping, name: str, value: Any) -> str:
        """Return the text of one pair inside braces. A long mapping in its value gets one line for each pair."""
        json_like = _json_like(node)
        if not isinstance(value, MappingType) or len(rendering.flow(value)) <= rendering.MAX_FLOW_CHARACTERS:
            return rendering.flow({name: value}, json_like=json_like)[1:-1]
        start = self._next_line(node, 2)
        inner = [rendering.flow({key: item}, json_like=json_like)[1:-1] for key, item in value.items()]
        head = rendering.scalar(name, json_like=json_like)
        return f"{head}: {{{start}{f',{start}'.join(inner)}{self._next_line(node, 1)}}}"

    def _next_line(self, node: Mapping, steps: int) -> str:
        """Return a line ending and an indentation that is `steps` steps deeper than the line of the flow collection."""
        indent = _indent(self.layout.line_at(self.layout.line_start(node.start)))
        return self.layout.newline(node.start) + " " * (indent + steps * self._step)

    def _insert_flow_lines(self, node: Mapping, new: MappingType[str, Any], last: int, comma: int | None) -> None:
        end = self.layout.line_end(last)
        if comma is None:
            self.note(last, last, ",")
        elif comma > end:
            self.refuse(node.line, "a comma is on its own line")
        start = self.layout.newline(end) + " " * node.pairs[-1][0].column
        words = [rendering.flow({name: value}, json_like=_json_like(node))[1:-1] for name, value in new.items()]
        self.note(end, end, start + f",{start}".join(words) + ("," if comma is not None else ""))

    def _flow_value_end(self, key: Node, value: Node) -> int:
        """Return the end of a pair in braces. For an empty value, the end mark depends on the loader and is ignored."""
        return value.end if value.end > value.start else self.layout.colon_end(key) or key.end


def _json_like(node: Mapping) -> bool:
    first = node.pairs[0][0] if node.flow and node.pairs else None
    return isinstance(first, Scalar) and first.style == '"'


def _last(path: Path) -> str:
    return shown(path[-1]) if path else "the file"


# --- Outlines: node trees as plain values. Texts with equal outlines contain the same configuration.


def outline(node: Node | None) -> Any:
    """Return dicts, lists and (kind, text) pairs, with aliases and merge keys resolved.

    A mapping with a duplicate or unreadable key becomes a list of its pairs, because edits never change such a mapping.
    """
    if node is None:
        return NOTHING
    node = follow(node)
    if isinstance(node, Mapping):
        try:
            return {pair.name: outline(pair.value) for pair in pairs(node)}
        except InvalidValueError:
            return [[outline(key), outline(value)] for key, value in node.pairs]
    if isinstance(node, SequenceNode):
        return [outline(item) for item in node.items]
    assert isinstance(node, Scalar)  # no other type remains after `follow`
    found = kind(node)
    if found == "null":
        return NOTHING
    if node.style in ("|", ">"):  # at the end of a file, a value may lack its line ending until a line is added
        return found, node.text.removesuffix("\n")
    return found, node.text.lower() if found == "bool" else node.text


def outline_of(value: Any) -> Any:
    """Return the outline of a Python value. The YAML that `rendering` writes for it has the same outline."""
    return outline(node_of(value))


def put(whole: Any, path: Path, value: Any) -> Any:
    """Return the outline `whole` with the outline `value` at `path`. Missing mappings are created."""
    if not path:
        return value
    inside = whole if isinstance(whole, dict) else {}
    return inside | {path[0]: put(inside.get(path[0], NOTHING), path[1:], value)}


def drop(whole: Any, path: Path) -> Any:
    """Return the outline `whole` without the key at `path`."""
    if not isinstance(whole, dict) or path[0] not in whole:
        return whole
    others = {key: value for key, value in whole.items() if key != path[0]}
    return others if len(path) == 1 else whole | {path[0]: drop(whole[path[0]], path[1:])}


def same(one: Any, other: Any) -> bool:
    """Return True if two outlines are equivalent. An empty mapping or list equals NOTHING."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (one or NOTHING) == (other or NOTHING)
