"""What a tree of nodes says, as plain values to compare: two texts with equal outlines configure the same.

Never here: places, comments, what keys mean.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from typing import Any

from trayapp.config.problems import Wrong
from trayapp.config.yaml.nodes import Mapping, Node, Scalar, Sequence, follow, kind, pairs, plain_kind

NOTHING = ("null", "")
Path = tuple[str, ...]


def outline(node: Node | None) -> Any:
    """Dicts, lists and (kind, text) pairs; aliases and merge keys followed.

    A mapping with a doubled or unreadable key is the list of its pairs: no edit reaches into it, and it says the same
    while nothing in it changes.
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
    if node.style in ("|", ">"):  # one that ends the file without a line end gets one when something follows
        return found, node.text.removesuffix("\n")
    return found, node.text.lower() if found == "bool" else node.text


def _mapping(node: Mapping) -> Any:
    try:
        return {pair.name: outline(pair.value) for pair in pairs(node)}
    except Wrong:
        return [[outline(key), outline(value)] for key, value in node.pairs]


def outline_of(value: Any) -> Any:
    """The outline of what `render` writes for a Python value."""
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
    """`whole` with `value` (an outline) at `path`; mappings on the way are made where nothing is."""
    if not path:
        return value
    inside = dict(whole) if isinstance(whole, dict) else {}
    inside[path[0]] = put(inside.get(path[0], NOTHING), path[1:], value)
    return inside


def drop(whole: Any, path: Path) -> Any:
    """`whole` without the key at `path`."""
    if not isinstance(whole, dict) or path[0] not in whole:
        return whole
    inside = dict(whole)
    if len(path) > 1:
        inside[path[0]] = drop(inside[path[0]], path[1:])
    else:
        del inside[path[0]]
    return inside


def same(one: Any, other: Any) -> bool:
    """Whether two outlines say the same; an empty mapping says as much as nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (one or NOTHING) == (other or NOTHING)
