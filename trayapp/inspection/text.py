"""The texts of a definition with their places, and a text split into sentences for the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from trayapp.model.late import late
from trayapp.model.offer import Item

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
READ_MOST = 100_000  # characters of one definition. The longest known legitimate one has 15,000
TOGETHER = 600  # characters. Longer sentences are searched in overlapping parts
REACH = 200  # characters that a match may span: parts of a longer sentence overlap by this many

_END = late(r"[.!?。！？](?<!e\.g\.|i\.e\.)(?:(?<=[.!?]) |(?<=[。！？]) ?)")
_MARKS = frozenset(".!?:;。！？")  # these end a sentence if a line break follows
_ITEMS = frozenset("-*#>|<[{•0123456789")  # these begin a list item, a heading or a tag


class Sentence(NamedTuple):
    """A sentence, or a part of a very long one, on one line: as it was written, and in lower case."""

    said: str
    low: str


def passages(text: str) -> list[str]:
    """Return a text from `hidden.bared`, up to READ_MOST, in parts of whole sentences, each on one line."""
    if " " not in text and len(text) <= TOGETHER and text.isascii() and text.isprintable():
        return [text]  # a name or a value: some definitions have hundreds of them
    return [passage for line in _joined(text[:READ_MOST].splitlines()) for passage in _in_passages(line)]


def _in_passages(line: str) -> Iterator[str]:
    """Yield a line in parts, each cut after the first sentence that ends beyond TOGETHER characters."""
    begin = 0
    while len(line) - begin > TOGETHER and (end := _END.search(line, begin + TOGETHER)) is not None:
        yield line[begin : end.start() + 1]
        begin = end.end()
    yield line[begin:]


def sentences(passage: str) -> list[Sentence]:
    """Return the sentences of a passage."""
    return [Sentence(said, lowered(said)) for said in _cut(passage)]


def lowered(said: str) -> str:
    """Return a text in the form that rules and hints expect: in lower case, with straight apostrophes."""
    return said.lower().replace("’", "'")


def together(parts: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield (place, text) pairs in groups of at most 2 * TOGETHER characters. A longer text is alone in its group."""
    some, size = list[tuple[str, str]](), 0
    for part in parts:
        if some and size + len(part[1]) > 2 * TOGETHER:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part[1])
        if size > TOGETHER:
            yield some
            some, size = [], 0
    if some:
        yield some


def _cut(line: str) -> Iterator[str]:
    begin = 0
    for end in _END.finditer(line):
        said = line[begin : end.start() + 1]
        begin = end.end()
        if len(said) <= TOGETHER:
            yield said
        else:
            yield from _parts(said)
    if begin < len(line):
        yield from _parts(line[begin:])


def _parts(said: str) -> Iterator[str]:
    """Yield a sentence, in overlapping parts if it is very long, because rules take longer on longer texts."""
    begin = 0
    while len(said) - begin > TOGETHER:
        yield said[begin : begin + TOGETHER]
        begin = said.rfind(" ", begin + 1, begin + TOGETHER - REACH) + 1 or begin + TOGETHER - REACH
    yield said[begin:]


def _joined(lines: list[str]) -> Iterator[str]:
    """Yield lines with wrapped ones joined. A line ends at a blank line, after punctuation or before a list item."""
    parts: list[str] = []
    for line in lines:
        plain = " ".join(line.split())
        if parts and (not plain or plain[0] in _ITEMS or parts[-1][-1] in _MARKS):
            yield " ".join(parts)
            parts = []
        if plain:
            parts.append(plain)
    if parts:
        yield " ".join(parts)


def texts_of(item: Item) -> list[tuple[str, str]]:
    """Return (place, text) for each distinct text of a definition at any depth, including names of parameters.

    Icons that are embedded as data are left out.
    """
    first: dict[str, str] = {}
    beside = sorted(item.keys() - FIELDS)
    for field in (*FIELDS, *beside):
        if field in item:
            _note_texts(item[field], field, first)
    return [(place, text) for text, place in first.items()]


def _note_texts(value: Any, field: str, first: dict[str, str]) -> None:
    todo: list[tuple[str, Any]] = [(field, value)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, str):
            if value not in first and not (field == "icons" and value.startswith("data:")):
                first[value] = place
        elif isinstance(value, dict):
            if place.endswith("properties"):
                for key in value:
                    first.setdefault(str(key).replace("_", " "), f"{place}.{key}'s name")
            todo += [(f"{place}.{key}", inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(place, inner) for inner in reversed(value)]
