"""Positions in a YAML text: line ends, comments beside and below a value, commas in braces."""

from __future__ import annotations

import re
from bisect import bisect_right

from trayapp.config.yaml.nodes import Mapping, Node, Scalar, Sequence

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks in YAML
_COLON = re.compile(r"[ \t]*:")
_TO_COMMA = re.compile(r"(?:\s+#[^\r\n]*|\s)*,")
DEFAULT_STEP = 2  # columns


class Layout:
    """A text and queries about it. Positions are character indexes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        found = _BREAK.search(text)
        self._newline = found[0] if found and found[0] in ("\n", "\r\n", "\r") else "\n"

    def newline(self, at: int) -> str:
        """Return the line end to use at position `at`: that of the line there, or else the file's first."""
        found = _BREAK.match(self.text, at)
        return found[0] if found and found[0] in ("\n", "\r\n", "\r") else self._newline

    def line_end(self, at: int) -> int:
        """Return the end of the line of `at`, before its line break."""
        found = _BREAK.search(self.text, at)
        return found.start() if found else len(self.text)

    def line_start(self, at: int) -> int:
        """Return the start of the line that contains `at`."""
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
        """Return the line that starts at `start`, without its end."""
        return self.text[start : self.line_end(start)]

    def line_above(self, start: int) -> int | None:
        """Return the start of the line above the one that starts at `start`."""
        end = self.previous_end(start)
        return None if end is None else self.line_start(end)

    def blank_above(self, start: int) -> int:
        """Return the start of the first of the blank lines above `start`, or `start`."""
        while (above := self.line_above(start)) is not None and not self.line_at(above).strip():
            start = above
        return start

    def blank_below(self, end: int) -> int:
        """Return the end of the last of the blank lines below the line that ends at `end`, or `end`."""
        while (below := self.next_line(end)) is not None and below < len(self.text) and not self.line_at(below).strip():
            end = self.line_end(below)
        return end

    def is_last_at(self, end: int, column: int) -> bool:
        """Return True if nothing at `column` or deeper follows the line that ends at `end`."""
        below = self.next_line(end)
        return below is None or below >= len(self.text) or _indent(self.line_at(below)) < column

    def begins_line(self, at: int) -> bool:
        """Return True if only blanks precede `at` in its line."""
        return not self.text[self.line_start(at) : at].strip(" \ufeff")

    def content_end(self, node: Node) -> int:
        """Return the real end of a value: after the last character that is not white space or a comment."""
        if isinstance(node, Mapping) and not node.flow and node.pairs:
            return self.content_end(node.pairs[-1][1])
        if isinstance(node, Sequence) and not node.flow and node.items:
            return self.content_end(node.items[-1])
        if isinstance(node, Scalar) and node.style in ("|", ">"):
            written = self.text[node.start : node.end]
            if "+" not in written.split("\n", 1)[0]:
                return node.start + len(written.rstrip())
            return node.start + len(written.removesuffix("\n").removesuffix("\r"))  # |+ keeps its blank lines
        return node.end

    def after(self, node: Node, column: int) -> int:
        """Return where a line may be added after a value: the end of its last line or of its comments.

        Comments count if they are deeper than `column`.
        """
        end = self.line_end(self.content_end(node))
        at = end
        while (start := self.next_line(at)) is not None:
            line = self.line_at(start)
            at = start + len(line)
            if line.strip() and not (line.lstrip(" ").startswith("#") and _indent(line) > column):
                break
            if line.strip():
                end = at
        return end

    def colon_end(self, key: Node) -> int | None:
        """Return the position after the colon of a key, or None if there is none beside it."""
        found = _COLON.match(self.text, key.end)
        return found.end() if found else None

    def comma(self, start: int, end: int) -> int | None:
        """Return the position of the first comma from `start` to `end`, if only blanks and comments precede it."""
        found = _TO_COMMA.match(self.text, start, end)
        return found.end() - 1 if found else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def indent_step(root: Node | None) -> int:
    """Return the number of columns by which the file indents a nested mapping."""
    if isinstance(root, Mapping) and not root.flow:
        for _, value in root.pairs:
            if isinstance(value, Mapping) and not value.flow:
                return max(1, value.column - root.column)
    return DEFAULT_STEP
