"""Composition of a YAML text to a tree of nodes from PyYAML's events, with limits that keep a hostile file cheap."""

from __future__ import annotations

from typing import Any

import yaml

from trayapp.config.problems import UnparsableError, problem_at, shown
from trayapp.config.read.text import BOM, TextPosition, check
from trayapp.config.yaml.nodes import Alias, Mapping, Node, Scalar, Sequence
from trayapp.model.status import Problem

MAX_NODES = 100_000  # with every alias counted in full; 527 tools of 70 servers need 4,000
MAX_DEPTH = 50  # levels of nesting

Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def compose(text: str, file: str, loader: type[Any] = Loader) -> Node | None:
    """Return the root node of a text, or None if it is empty.

    Raise UnparsableError: not YAML, too large, too deep, an alias without anchor, more than one document.
    """
    check(text, file)
    shift = len(BOM) if text.startswith(BOM) else 0  # libyaml would count the mark as a column of line 1
    events: Any = yaml.parse(text[shift:], Loader=loader)
    try:
        return _Composer(events, file, shift).document()
    except yaml.MarkedYAMLError as error:
        raise UnparsableError(_marked_problem(file, error, text[shift:])) from None
    except yaml.YAMLError:
        raise UnparsableError(Problem(file, 0, "The file is not YAML")) from None
    finally:
        events.close()


def _marked_problem(file: str, error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    if mark and text[mark.index : mark.index + 1] == "\t":
        return Problem(file, line, "The file is not YAML: it has a tab here", "Indent with spaces", column)
    words = " ".join(filter(None, (error.problem, error.context)))  # the problem first: lines get cut
    return Problem(file, line, f"The file is not YAML: {words}", "Look at this line and the one above", column)


class _Composer:
    """Converts events to nodes, within the limits."""

    def __init__(self, events: Any, file: str, shift: int) -> None:
        self._events = events
        self._file = file
        self._shift = shift
        self._anchors: dict[str, Node | None] = {}  # None: incomplete

    def document(self) -> Node | None:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refused(
                after, "A second document begins here", "Keep everything in one document: remove this ---"
            )
        return root

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            node: Node = Scalar(*self._place(event), 1, event.value, _style(event), event.tag)
        elif isinstance(event, yaml.AliasEvent):
            node = self._alias(event)
        else:
            node = self._collection(event, depth)
        if event.anchor is not None and not isinstance(node, Alias):
            self._anchors[event.anchor] = node
        return node

    def _collection(self, event: Any, depth: int) -> Node:
        if depth >= MAX_DEPTH:
            raise self._refused(event, f"Nested more than {MAX_DEPTH} levels deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth + 1)
        sequence = Sequence(*self._place(event), 1, [], bool(event.flow_style))
        while not isinstance(inner := self._next(), yaml.SequenceEndEvent):
            sequence.items.append(self._grow(sequence, inner, depth + 1))
        sequence.end = self._end(inner)
        return sequence

    def _mapping(self, event: Any, depth: int) -> Node:
        mapping = Mapping(*self._place(event), 1, [], bool(event.flow_style))
        while not isinstance(inner := self._next(), yaml.MappingEndEvent):
            key = self._grow(mapping, inner, depth)
            mapping.pairs.append((key, self._grow(mapping, next(self._events), depth)))
        mapping.end = self._end(inner)
        return mapping

    def _grow(self, parent: Node, event: Any, depth: int) -> Node:
        node = self._node(event, depth)
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise self._refused(event, f"More than {MAX_NODES} values, aliases counted in full")
        return node

    def _alias(self, event: Any) -> Node:
        target = self._anchors.get(event.anchor)
        if target is None:
            known = event.anchor in self._anchors
            why = "refers to itself" if known else "refers to no anchor above it"
            raise self._refused(event, f"*{shown(event.anchor)} {why}")
        return Alias(*self._place(event), target.size, target)

    def _next(self) -> Any:
        return next(self._events)

    def _end(self, event: Any) -> int:
        return int(event.end_mark.index) + self._shift

    def _place(self, event: Any) -> tuple[int, int, int, int, str | None]:
        start, end = event.start_mark, event.end_mark
        return start.index + self._shift, end.index + self._shift, start.line + 1, start.column, event.anchor

    def _refused(self, event: Any, message: str, hint: str = "") -> UnparsableError:
        mark = event.start_mark
        return UnparsableError(problem_at(self._file, TextPosition(mark.line + 1, mark.column), message, hint))


def _style(event: Any) -> str:
    return event.style or ""
