"""The texts of a definition with their places, and a text as sentences, which is what rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trayapp.inspection import hidden
from trayapp.model.late import late
from trayapp.model.offer import Item

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
READ_MOST = 100_000  # characters of one definition; the longest known honest one has 15,000

_END = late(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKS = frozenset(".!?:;。！？")  # before a line break they end a sentence
_ITEMS = frozenset("-*#>|<[{•0123456789")  # begin a list item, a heading or a tag


class Sentence(NamedTuple):
    """A sentence on one line: as it was written, and in lower case."""

    said: str
    low: str


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, as a model reads it: without hidden characters, look-alikes as ASCII."""
    found: list[Sentence] = []
    for part in _lines(hidden.bared(text[:READ_MOST])):
        found += [Sentence(said, said.lower().replace("’", "'")) for said in _END.split(part) if said]
    return found


def _lines(text: str) -> Iterator[str]:
    """Join wrapped lines. A line break ends a sentence at a blank line, behind a mark or before a list item."""
    parts: list[str] = []
    for line in text.splitlines():
        plain = " ".join(line.split())
        if parts and (not plain or plain[0] in _ITEMS or parts[-1][-1] in _MARKS):
            yield " ".join(parts)
            parts = []
        if plain:
            parts.append(plain)
    if parts:
        yield " ".join(parts)


def texts_of(item: Item) -> list[tuple[str, str]]:
    """Return each text of a definition once, with its place; names of parameters included, whatever the depth."""
    first: dict[str, str] = {}
    beside = sorted(item.keys() - set(FIELDS))
    for field in (*FIELDS, *beside):
        if field in item:
            for place, text in _texts(item[field], field):
                if not (field == "icons" and text.startswith("data:")):
                    first.setdefault(text, place)
    return [(place, text) for text, place in first.items()]


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, Any]] = [(place, value)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            if place.endswith("properties"):
                yield from ((f"{place}.{key}'s name", str(key).replace("_", " ")) for key in value)
            todo += [(f"{place}.{key}", inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(place, inner) for inner in reversed(value)]
