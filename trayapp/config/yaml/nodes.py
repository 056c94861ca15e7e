"""A YAML text as a tree of nodes with positions: line and column for problems, character indexes for edits.

compose makes the tree from PyYAML's events. Aliases stay aliases (`follow` resolves them), so a few lines cannot expand
to gigabytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Plain
from dataclasses import dataclass
from typing import Any, Literal

from trayapp.config.problems import InvalidValueError, shown

ScalarKind = Literal["str", "bool", "int", "float", "null", "other"]


@dataclass(slots=True, eq=False)
class Node:
    """Base of all nodes. text[start:end] is the node (except for a block collection's `end`); `line` is 1-based."""

    start: int
    end: int
    line: int
    column: int
    anchor: str | None
    size: int  # number of nodes in it, aliases counted in full


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """A scalar. `style` is a quote, `|`, `>` or "" for a plain scalar; `tag` is set only if written."""

    text: str
    style: str
    tag: str | None


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """A mapping with its pairs as written, merge keys unresolved. `flow`: in braces."""

    pairs: list[tuple[Node, Node]]
    flow: bool


@dataclass(slots=True, eq=False)
class Sequence(Node):
    """A sequence. `flow`: in brackets."""

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
    """Return a plain value (from JSON, TOML, ...) as a node at that line. Raise RecursionError."""
    if isinstance(value, Plain):
        pairs = [(text_node(str(key), line), node_of(item, line)) for key, item in value.items()]
        return Mapping(0, 0, line, 0, None, 1, [*pairs], True)
    if isinstance(value, list | tuple):
        return Sequence(0, 0, line, 0, None, 1, [node_of(item, line) for item in value], True)
    if value is None or isinstance(value, bool | int | float):
        return Scalar(0, 0, line, 0, None, 1, json.dumps(value), "", None)
    return text_node(str(value), line)  # also for a date of TOML


def text_node(text: str, line: int = 0) -> Scalar:
    """Return a text as a node at that line."""
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
_TAGS: dict[str, ScalarKind] = {
    "tag:yaml.org,2002:str": "str",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:null": "null",
}


def kind(scalar: Scalar) -> ScalarKind:
    """Return the kind of a scalar by YAML 1.1. Sexagesimal numbers and dates are text; a custom tag is `other`."""
    if scalar.tag is not None and scalar.tag != "!":
        return _TAGS.get(scalar.tag, "other")
    if scalar.style or scalar.tag == "!":
        return "str"
    return plain_kind(scalar.text)


def plain_kind(text: str) -> ScalarKind:
    """Return the kind of a plain scalar with that text."""
    if text in _NULLS:
        return "null"
    if text in TRUE or text in FALSE:
        return "bool"
    if _INT.fullmatch(text):
        return "int"
    return "float" if _FLOAT.fullmatch(text) else "str"


def is_null(node: Node) -> bool:
    """Return True if the value is empty or null."""
    node = follow(node)
    return isinstance(node, Scalar) and kind(node) == "null"


def is_merge_key(node: Node) -> bool:
    """Return True if a key is `<<`, unquoted."""
    return isinstance(node, Scalar) and node.text == "<<" and not node.style


def key_text(key: Node) -> str:
    """Return a key as text, even if YAML reads another type (`1`). Raise InvalidValueError for lists, mappings."""
    key = follow(key)
    if not isinstance(key, Scalar):
        raise InvalidValueError(key, "contains a key that is a list or a mapping")
    return key.text


@dataclass(slots=True)
class Pair:
    """One key with its value, aliases resolved. `merged`: it comes from `<<`."""

    key: Node
    name: str
    value: Node
    merged: bool = False


def pairs(mapping: Mapping) -> list[Pair]:
    """Return the pairs of a mapping. Raise InvalidValueError for a duplicate key.

    Merge keys are resolved: own keys win, then the first merged one.
    """
    own: dict[str, Pair] = {}
    merged: list[Pair] = []
    for key, value in mapping.pairs:
        if is_merge_key(key):
            merged += _merged_pairs(follow(value))
            continue
        name = key_text(key)
        if name in own:
            raise InvalidValueError(
                key, f"{shown(name)} is written twice (first in line {own[name].key.line})", "Keep one of them"
            )
        own[name] = Pair(key, name, follow(value))
    for pair in merged:
        own.setdefault(pair.name, pair)
    return list(own.values())


def _merged_pairs(node: Node) -> list[Pair]:
    sources = [follow(item) for item in node.items] if isinstance(node, Sequence) else [node]
    found: list[Pair] = []
    for source in sources:
        if not isinstance(source, Mapping):
            raise InvalidValueError(node, "merges (<<) something that is not a mapping")
        found += [Pair(pair.key, pair.name, pair.value, merged=True) for pair in pairs(source)]
    return found
