"""A tool as a search document: the stems of each of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from typing import Any

from trayapp.catalog.search.words import STOP_WORDS, joined, split, stem
from trayapp.model.json_schema import properties_of

FIELDS = ("name", "compound", "title", "server", "head", "body", "params", "keywords")

HEAD_CHARS = 200  # characters of the first sentence, which says what a tool does
BODY_CHARS = 4_000  # characters of a description; the rest of a long manual only blurs the tool's purpose
PARAMS_MOST = 100  # parameters, nested ones included
PARAM_CHARS = 300  # characters of one parameter's description
ENUM_MOST = 20  # values of one parameter
DEPTH_MOST = 5  # levels of nested parameters; `$ref`s are not followed

_SENTENCE = re.compile(r"(?<=[.!?])\s|[。\n]")


def document(server: str, server_title: str, tool: Mapping[str, Any], keywords: Iterable[str]) -> tuple[list[str], ...]:
    """Return the stems of each of FIELDS, in order of appearance. Stop words stay in names, where they matter."""
    name, description = text(tool, "name"), text(tool, "description").strip()
    head = _SENTENCE.split(description[: HEAD_CHARS * 2], maxsplit=1)[0][:HEAD_CHARS]
    annotations = tool.get("annotations")
    marks = annotations if isinstance(annotations, Mapping) else {}
    true = [key.removesuffix("Hint") for key, value in marks.items() if value is True]  # such as readOnly
    return (
        [stem(word) for word in split(name)],
        _compounds(name),
        _stems(f"{text(tool, 'title')} {text(marks, 'title')}"),
        server_stems(server, server_title),
        _stems(head),
        _stems(f"{description[len(head) : BODY_CHARS]} {' '.join(true)}"),
        _stems(" ".join(islice(_parameters(tool.get("inputSchema")), PARAMS_MOST * 3))),
        _stems(" ".join(keywords)),
    )


def server_stems(server: str, title: str) -> list[str]:
    """Return the stems of a server's name and title."""
    return _stems(f"{server} {title}")


def raw_words(server: str, tool: Mapping[str, Any]) -> list[str]:
    """Return the words, as written, that a misspelled word may stand for."""
    return split(f"{text(tool, 'name')} {text(tool, 'description')[:HEAD_CHARS]} {server}")


def keywords_of(server: str, tool: str, synonyms: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that `settings.synonyms` gives a tool, from each key that is its name or a matching pattern."""
    found: dict[str, None] = {}
    for key, words in synonyms.items():
        of, slash, pattern = key.rpartition("/")
        if fnmatchcase(tool, pattern) and (not slash or fnmatchcase(server, of)):
            found.update(dict.fromkeys(words))
    return list(found)


def is_pattern(key: str) -> bool:
    """Return True if a key of `settings.synonyms` is a pattern for tools, and so not a word with synonyms."""
    return not {"/", "*", "?"}.isdisjoint(key)


def text(values: Mapping[str, Any], key: str) -> str:
    """Return the text under `key`, or "" if there is none or it is not a string: servers may send anything."""
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _compounds(name: str) -> list[str]:
    """Return each pair of adjacent words as one word (people write mindmap or mind map), and the whole name."""
    words = split(name)
    pairs = [left + right for left, right in pairwise(words)]
    return [*pairs, "".join(words)] if len(words) > 2 else pairs


def _stems(written: str) -> list[str]:
    if not written or written.isspace():
        return []
    return [stem(word) for word in (*split(written), *joined(written)) if word not in STOP_WORDS]


def _parameters(schema: Any, depth: int = 0) -> Iterator[str]:
    """Yield the names, titles, descriptions and enum values of all parameters, nested ones included."""
    if not isinstance(schema, Mapping) or depth > DEPTH_MOST:
        return
    for name, inner in properties_of(schema).items():
        yield str(name)
        if isinstance(inner, Mapping):
            yield from (text(inner, "title"), text(inner, "description")[:PARAM_CHARS])
            values = inner.get("enum")
            texts = (value for value in values if isinstance(value, str)) if isinstance(values, list) else iter(())
            yield " ".join(islice(texts, ENUM_MOST))
            yield from _parameters(inner, depth + 1)
    yield from _parameters(schema.get("items"), depth + 1)
