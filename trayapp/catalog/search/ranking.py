"""Ranking: how well a tool answers a query.

The score is BM25 over the tool's fields, multiplied by factors that depend on:
- how much of the query and of the tool's name is matched
- how many adjacent words of the query are adjacent in the tool's text
- whether the query names the tool's server
- whether the query and the tool are about the same action

The numbers were tuned on three catalogs (tests/benchmarks/search.py measures them). They apply to all queries alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from trayapp.catalog.search.documents import FIELDS
from trayapp.catalog.search.query import Query, action_of_tool
from trayapp.catalog.search.vocabulary import Vocabulary

WEIGHTS = {
    "name": 3.0, "compound": 3.0, "title": 1.7, "server": 1.5, "head": 1.3, "body": 0.6, "params": 0.8, "keywords": 3.0
}  # fmt: skip
# How much less a term counts in a long field, and the usual length of each field (in stems). These are constants, not
# averages of the catalog, so that no tool's weight depends on other tools, and updating one server affects no other.
LENGTH_MATTERS = {
    "name": 0.3, "compound": 0.0, "title": 0.4, "server": 0.6, "head": 0.7, "body": 0.4, "params": 0.45, "keywords": 0.0
}  # fmt: skip
USUAL_LENGTH = {
    "name": 3, "compound": 2, "title": 3, "server": 3, "head": 8, "body": 25, "params": 25, "keywords": 4
}  # fmt: skip
SATURATION = 2.0  # k1 of BM25: how quickly a further occurrence stops mattering
PAIRED_FIELDS = ("name", "title", "head", "body")  # where adjacent words count
NAME_MET = 0.6  # raises the score by 60% if the query has the whole name of the tool, by less for a part
PAIRS_MET = 1.6  # raises the score by 160% if all neighbors in the query are neighbors in the tool, by less for some
SERVER_NAMED = 2.0  # raises the score by 200% for a word of the server's name that no other server's tools use
ACTION_MET = 0.3  # raises the score by 30% if query and tool have the same action, lowers it as much if they differ


@dataclass(slots=True)
class DocumentView:
    """A document as ranking needs it."""

    weights: dict[str, float]  # stem -> its weight over all fields
    name: frozenset[str]  # stems
    server: frozenset[str]  # stems
    pairs: frozenset[tuple[str, str]]  # adjacent stems
    action: str


def view(fields: Sequence[Sequence[str]]) -> DocumentView:
    """Return the view of a document's fields, in the order of FIELDS."""
    weights: dict[str, float] = {}
    pairs: set[tuple[str, str]] = set()
    for kind, stems in zip(FIELDS, fields, strict=True):
        one = WEIGHTS[kind] / (1 - LENGTH_MATTERS[kind] + LENGTH_MATTERS[kind] * len(stems) / USUAL_LENGTH[kind])
        for stemmed in stems:
            weights[stemmed] = weights.get(stemmed, 0.0) + one
        if kind in PAIRED_FIELDS:
            pairs.update(pairwise(stems))
    saturated = {stemmed: weight / (weight + SATURATION) for stemmed, weight in weights.items()}
    name, server, head = (fields[FIELDS.index(kind)] for kind in ("name", "server", "head"))
    return DocumentView(saturated, frozenset(name), frozenset(server), frozenset(pairs), action_of_tool(name, head))


def score(query: Query, seen: DocumentView, vocabulary: Vocabulary) -> tuple[float, tuple[str, ...]]:
    """Return the score (0 for no match) and the words of the query that the document lacks."""
    best: dict[int, float] = {}  # index of a term -> its gain
    for known in query.gains.keys() & seen.weights.keys():
        weight = seen.weights[known]
        for place, gain in query.gains[known]:
            if gain * weight > best.get(place, 0.0):
                best[place] = gain * weight
    gained, rarity, missed = 0.0, 0.0, list[str]()
    for place, term in enumerate(query.terms):
        if place in best:
            gained += best[place]
            rarity += 0.0 if term.extra else term.rarity
        elif not term.extra:
            missed.append(term.word)
    if not best:
        return 0.0, tuple(missed)
    worth = gained * rarity / query.rarity
    in_name = sum([vocabulary.rarity(one) * query.worths[one] for one in query.worths.keys() & seen.name])
    if in_name:
        worth *= 1 + NAME_MET * in_name / sum(map(vocabulary.rarity, seen.name))
    if query.pairs:
        worth *= 1 + PAIRS_MET * len(query.pairs & seen.pairs) / len(query.pairs)
    if query.servers:
        worth *= 1 + SERVER_NAMED * sum([query.servers[known] for known in query.servers.keys() & seen.server])
    if query.action and seen.action:
        worth *= 1 + ACTION_MET if query.action == seen.action else 1 - ACTION_MET
    return worth, tuple(missed)


def only_own(query: Query, found: list[tuple[int, DocumentView]]) -> list[tuple[int, DocumentView]]:
    """Return `found` or, for a query of one word, only the documents with one of its `own` stems, if any."""
    terms = [term for term in query.terms if not term.extra]
    if len(terms) != 1:
        return found
    exact = [(number, seen) for number, seen in found if not terms[0].own.isdisjoint(seen.weights)]
    return exact or found
