"""Outlines of node trees, as plain values to compare. Texts with equal outlines contain the same configuration."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from typing import Any

from trayapp.config.problems import InvalidValueError
from trayapp.config.yaml.nodes import Mapping, Node, Scalar, Sequence, follow, kind, pairs, plain_kind

NOTHING = ("null", "")
Path = tuple[str, ...]


def outline(node: Node | None) -> Any:
    """Return dicts, lists and (kind, text) pairs, with aliases and merge keys resolved.

    A mapping with a duplicate or unreadable key becomes the list of its pairs. No edit reaches into it, and its outline
    is equal as long as nothing in it changes.
    """
    if node is None:
        return NOTHING
    node = follow(node)
    if isinstance(node, Mapping):
        return _mapping(node)
    if isinstance(node, Sequence):
        return [outline(item) for item in node.items]
    assert isinstance(node, Scalar)  # follow leaves nothing else
    found = kind(node)
    if found == "null":
        return NOTHING
    if node.style in ("|", ">"):  # at the end of a file without a line end, one is added when something follows
        return found, node.text.removesuffix("\n")
    return found, node.text.lower() if found == "bool" else node.text


def _mapping(node: Mapping) -> Any:
    try:
        return {pair.name: outline(pair.value) for pair in pairs(node)}
    except InvalidValueError:
        return [[outline(key), outline(value)] for key, value in node.pairs]


def outline_of(value: Any) -> Any:
    """Return the outline of the text that `rendering` writes for a Python value."""
    if isinstance(value, MappingType):
        return {key: outline_of(item) for key, item in value.items()}
    if isinstance(value, str):
        return "str", value
    if isinstance(value, SequenceType):
        return [outline_of(item) for item in value]
    if value is None:
        return NOTHING
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return plain_kind(text), text


def put(whole: Any, path: Path, value: Any) -> Any:
    """Return `whole` with `value` (an outline) at `path`. Missing mappings are created."""
    if not path:
        return value
    inside = dict(whole) if isinstance(whole, dict) else {}
    inside[path[0]] = put(inside.get(path[0], NOTHING), path[1:], value)
    return inside


def drop(whole: Any, path: Path) -> Any:
    """Return `whole` without the key at `path`."""
    if not isinstance(whole, dict) or path[0] not in whole:
        return whole
    inside = dict(whole)
    if len(path) > 1:
        inside[path[0]] = drop(inside[path[0]], path[1:])
    else:
        del inside[path[0]]
    return inside


def same(one: Any, other: Any) -> bool:
    """Return True if two outlines are equivalent. An empty mapping equals nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (one or NOTHING) == (other or NOTHING)
