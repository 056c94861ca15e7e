"""A tree of nodes with positions for a YAML text: lines and columns for problems, character indexes for edits.

`compose` builds the tree from PyYAML's events, within limits that protect against hostile files. Aliases stay in the
tree (`follow` resolves them), so a few lines cannot expand to gigabytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Plain
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import yaml

from trayapp.config.problems import InvalidValueError, UnparsableError, shown
from trayapp.config.read.text import BOM, check
from trayapp.model.errors import Problem

ScalarKind = Literal["str", "bool", "int", "float", "null", "other"]

MAX_NODES = 100_000  # values, with every alias counted in full; 527 tools of 70 servers need 4,000
MAX_DEPTH = 50  # levels of nesting

Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True, eq=False)
class Node:
    """The base class of all nodes. text[start:end] is the node, but the `end` of a block collection is not exact.

    `line` is 1-based and `column` 0-based. All positions except `line` are 0 in nodes that were not read from YAML.
    """

    start: int
    end: int
    line: int
    column: int
    anchor: str | None
    size: int  # number of nodes including this one, with every alias counted in full


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """A scalar. `style` is a quote, `|`, `>`, or "" for a plain scalar. `tag` is set only if it is written."""

    text: str
    style: str
    tag: str | None


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """A mapping with its pairs as written and merge keys unresolved. `flow` is True if it is written in braces."""

    pairs: list[tuple[Node, Node]]
    flow: bool


@dataclass(slots=True, eq=False)
class Sequence(Node):
    """A sequence. `flow` is True if it is written in brackets."""

    items: list[Node]
    flow: bool


@dataclass(slots=True, eq=False)
class Alias(Node):
    """An alias, `*name`."""

    target: Node


def follow(node: Node) -> Node:
    """Return the node itself, or the target of an alias."""
    return node.target if isinstance(node, Alias) else node


def node_of(value: Any, line: int = 0) -> Node:
    """Return a plain value (from JSON, TOML, ...) as a node at `line`. Raises RecursionError if nested too deeply."""
    if isinstance(value, Plain):
        pairs = [(text_node(str(key), line), node_of(item, line)) for key, item in value.items()]
        return Mapping(0, 0, line, 0, None, 1, [*pairs], True)
    if isinstance(value, list | tuple):
        return Sequence(0, 0, line, 0, None, 1, [node_of(item, line) for item in value], True)
    if value is None or isinstance(value, bool | int | float):
        return Scalar(0, 0, line, 0, None, 1, json.dumps(value), "", None)
    return text_node(str(value), line)  # a date from TOML becomes text, too


def text_node(text: str, line: int = 0) -> Scalar:
    """Return a text as a quoted scalar at `line`."""
    return Scalar(0, 0, line, 0, None, 1, text, '"', None)


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
TRUE = frozenset(form for word in ("yes", "true", "on") for form in (word, word.title(), word.upper()))
FALSE = frozenset(form for word in ("no", "false", "off") for form in (word, word.title(), word.upper()))
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    re.ASCII,
)
_TAGS: dict[str, ScalarKind] = {f"tag:yaml.org,2002:{name}": name for name in get_args(ScalarKind)}


def kind(scalar: Scalar) -> ScalarKind:
    """Return the kind of a scalar by YAML 1.1. Sexagesimal numbers and dates are text. A custom tag is `other`."""
    if scalar.tag not in (None, "!"):
        return _TAGS.get(scalar.tag or "", "other")
    return "str" if scalar.style or scalar.tag else plain_kind(scalar.text)


def plain_kind(text: str) -> ScalarKind:
    """Return the kind of a plain scalar with this text."""
    if text in _NULLS:
        return "null"
    if text in TRUE or text in FALSE:
        return "bool"
    if _INT.fullmatch(text):
        return "int"
    return "float" if _FLOAT.fullmatch(text) else "str"


def is_null(node: Node) -> bool:
    node = follow(node)
    return isinstance(node, Scalar) and kind(node) == "null"


def is_merge_key(node: Node) -> bool:
    """Return True if a key is `<<`, unquoted."""
    return isinstance(node, Scalar) and node.text == "<<" and not node.style


def key_text(key: Node) -> str:
    """Return a key as text, even if YAML reads it as another type (`1`). Raises InvalidValueError for a collection."""
    key = follow(key)
    if not isinstance(key, Scalar):
        raise InvalidValueError(key, "contains a key that is a list or a mapping")
    return key.text


class Pair(NamedTuple):
    """One pair of a mapping. `name` is the text of `key`. If the value is an alias, `value` is its target."""

    key: Node
    name: str
    value: Node
    merged: bool = False  # True if merged by `<<`


def pairs(mapping: Mapping) -> list[Pair]:
    """Return the pairs of a mapping with merge keys resolved: its own keys win, then those of the first merged mapping.

    Raises InvalidValueError for a duplicate key, a key that is not a scalar, or a merge of anything but mappings.
    """
    own: dict[str, Pair] = {}
    merged: list[Pair] = []
    for key, value in mapping.pairs:
        if is_merge_key(key):
            node = follow(value)
            for source in map(follow, node.items if isinstance(node, Sequence) else [node]):
                if not isinstance(source, Mapping):
                    raise InvalidValueError(node, "merges (<<) something that is not a mapping")
                merged += [pair._replace(merged=True) for pair in pairs(source)]
            continue
        name = key_text(key)
        if name in own:
            message = f"{shown(name)} is written twice (first in line {own[name].key.line})"
            raise InvalidValueError(key, message, "Keep one of them")
        own[name] = Pair(key, name, follow(value))
    for pair in merged:
        own.setdefault(pair.name, pair)
    return list(own.values())


def compose(text: str, file: str, loader: type[Any] = Loader) -> Node | None:
    """Return the root node of a text, or None if it is empty. Raises UnparsableError if invalid or over a limit."""
    check(text, file)
    shift = len(BOM) if text.startswith(BOM) else 0  # libyaml would count the byte order mark as a column of line 1
    events: Any = yaml.parse(text[shift:], Loader=loader)
    try:
        return _Composer(events, file, shift).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if mark and text[shift + mark.index : shift + mark.index + 1] == "\t":
            message, hint = "The file is not YAML: it has a tab here", "Indent with spaces"
        else:
            words = " ".join(filter(None, (error.problem, error.context)))  # the problem first: long messages are cut
            message, hint = f"The file is not YAML: {words}", "Check this line and the one above"
        raise UnparsableError(Problem(file, line, message, hint, column)) from None
    except yaml.YAMLError:
        raise UnparsableError(Problem(file, 0, "The file is not YAML")) from None
    finally:
        events.close()


class _Composer:
    """A converter from YAML events to nodes, within the limits."""

    def __init__(self, events: Any, file: str, shift: int) -> None:
        self._events = events
        self._file = file
        self._shift = shift
        self._anchors: dict[str, Node | None] = {}  # None while the node is incomplete

    def document(self) -> Node | None:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            hint = "Keep everything in one document: remove this ---"
            raise self._refused(after, "A second document begins here", hint)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            node: Node = Scalar(*self._place(event), 1, event.value, event.style or "", event.tag)
        elif isinstance(event, yaml.AliasEvent):
            anchor = str(event.anchor)  # an alias always has an anchor
            target = self._anchors.get(anchor)
            if target is None:
                why = "refers to itself" if anchor in self._anchors else "refers to no anchor above it"
                raise self._refused(event, f"*{shown(anchor)} {why}")
            node = Alias(*self._place(event), target.size, target)
        else:
            if depth >= MAX_DEPTH:
                raise self._refused(event, f"Nested more than {MAX_DEPTH} levels deep")
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            if isinstance(event, yaml.MappingStartEvent):
                node = mapping = Mapping(*self._place(event), 1, [], bool(event.flow_style))
                while not isinstance(inner := next(self._events), yaml.MappingEndEvent):
                    key = self._grow(mapping, inner, depth + 1)
                    mapping.pairs.append((key, self._grow(mapping, next(self._events), depth + 1)))
            else:
                node = sequence = Sequence(*self._place(event), 1, [], bool(event.flow_style))
                while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                    sequence.items.append(self._grow(sequence, inner, depth + 1))
            node.end = int(inner.end_mark.index) + self._shift
        if event.anchor is not None and not isinstance(node, Alias):
            self._anchors[event.anchor] = node
        return node

    def _grow(self, parent: Node, event: Any, depth: int) -> Node:
        node = self._node(event, depth)
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise self._refused(event, f"More than {MAX_NODES} values, aliases counted in full")
        return node

    def _place(self, event: Any) -> tuple[int, int, int, int, str | None]:
        start, end = event.start_mark, event.end_mark
        return start.index + self._shift, end.index + self._shift, start.line + 1, start.column, event.anchor

    def _refused(self, event: Any, message: str, hint: str = "") -> UnparsableError:
        mark = event.start_mark
        return UnparsableError(Problem(self._file, mark.line + 1, message, hint, mark.column + 1))
