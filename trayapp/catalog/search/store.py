"""The documents of the search in an in-memory FTS5 table, and the choice of those worth ranking for a query.

SQLite is imported with the first document, to keep start-up fast. Only one thread at a time may use a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from trayapp.catalog.search.documents import FIELDS
from trayapp.catalog.search.query import Query
from trayapp.catalog.search.ranking import WEIGHTS, DocumentView, view
from trayapp.catalog.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    import sqlite3

CANDIDATES = 128  # documents that are ranked for one query, whatever its limit: the order must not depend on it
# A common word is in more documents than COMMON and in more than COMMON_SHARE of all. If the query also has
# rarer words, a common word adds only documents that have it in their name or title. A common word that surely names a
# server also adds documents that have it and another common word.
COMMON = 60
COMMON_SHARE = 0.02
NAMED = 24  # at most this many candidates for a common word in a name or title
VIEWS_MOST = 3_000  # cached for later queries; a few KB each

_COLUMNS = ", ".join(FIELDS)
_INSERT = f"INSERT INTO documents (rowid, {_COLUMNS}) VALUES ({', '.join('?' * (len(FIELDS) + 1))})"
_ROW = f"SELECT {_COLUMNS} FROM documents WHERE rowid = ?"
_BEST = f"""SELECT rowid FROM documents WHERE documents MATCH ? AND rowid BETWEEN ? AND ?
AND rank MATCH 'bm25({", ".join(str(WEIGHTS[kind]) for kind in FIELDS)})' ORDER BY rank"""

Document = Sequence[Sequence[str]]  # the stems of each of FIELDS


class Store:
    """The search documents, stored by number."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self._views: dict[int, DocumentView] = {}
        self._opened: sqlite3.Connection | None = None

    def __del__(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _table(self) -> sqlite3.Connection:
        if self._opened is None:
            import sqlite3

            self._opened = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._opened.execute(f"CREATE VIRTUAL TABLE documents USING fts5({_COLUMNS}, tokenize='ascii')")
        return self._opened

    def add(self, first: int, documents: Sequence[Document], spellings: Iterable[Iterable[str]]) -> None:
        """Store documents under the numbers from `first` on. `spellings`: the words of each document as written."""
        rows = ((first + place, *map(" ".join, fields)) for place, fields in enumerate(documents))
        self._table.execute("BEGIN")
        self._table.executemany(_INSERT, rows)
        self._table.execute("COMMIT")
        for fields, written in zip(documents, spellings, strict=True):
            self.vocabulary.add(set(chain(*fields)), written)

    def remove(self, numbers: range) -> None:
        """Remove the documents with these numbers."""
        for number in numbers:
            self.vocabulary.remove(set(chain(*self._fields(number))))
            self._views.pop(number, None)
        self._table.execute("DELETE FROM documents WHERE rowid BETWEEN ? AND ?", (numbers.start, numbers.stop - 1))

    def candidates(self, query: Query, among: range, wanted: Callable[[int], bool]) -> set[int]:
        """Return the numbers in `among` of the documents that are worth ranking and `wanted`.

        These are the best by the words themselves and the best with synonyms, plus some by common words (COMMON).
        """
        half = CANDIDATES // 2
        every = [(stem, stem in term.own) for term in query.terms for stem in term.gains]
        common = max(COMMON, COMMON_SHARE * self.vocabulary.documents)
        rare = [(stem, is_own) for stem, is_own in every if self.vocabulary.count(stem) <= common]
        own = [stem for stem, is_own in rare if is_own] or [stem for stem, is_own in every if is_own]
        others = [stem for stem, _ in rare]
        found = set(islice(filter(wanted, self._best(own, among)), half))
        if set(others) - set(own) or not found:
            found.update(islice(filter(wanted, self._best({*own, *others}, among)), half))
        rest = {stem for stem, is_own in every if is_own} - {*own}
        found.update(islice(filter(wanted, self._best(rest, among, "name title")), NAMED))
        named = [stem for stem in rest if query.servers.get(stem) == 1]
        both = sorted(f'"{server}" AND "{stem}"' for server in named for stem in rest - {server})
        found.update(islice(filter(wanted, self._matching(" OR ".join(both), among)), half))
        return found

    def having(self, stem: str) -> Iterator[int]:
        """Yield the numbers of all documents that have a stem in any field."""
        found = self._table.execute("SELECT rowid FROM documents WHERE documents MATCH ?", (f'"{stem}"',))
        return (number for (number,) in found)

    def view(self, number: int) -> DocumentView:
        """Return the document as ranking needs it. The result is cached."""
        seen = self._views.get(number)
        if seen is None:
            if len(self._views) >= VIEWS_MOST:
                self._views.clear()
            seen = self._views[number] = view(self._fields(number))
        return seen

    def _fields(self, number: int) -> list[list[str]]:
        (row,) = self._table.execute(_ROW, (number,))
        return [column.split() for column in row]

    def _best(self, stems: Iterable[str], among: range, fields: str = "") -> Iterator[int]:
        """Yield the numbers of the documents with one of these stems in `fields` ("" for any), best first."""
        asked = " OR ".join(f'"{stem}"' for stem in sorted(stems))
        return self._matching(f"{{{fields}}} : ({asked})" if asked and fields else asked, among)

    def _matching(self, asked: str, among: range) -> Iterator[int]:
        """Yield the numbers of the documents that match an FTS5 query, best first. Stems are letters and digits."""
        if not asked:
            return iter(())
        return (number for (number,) in self._table.execute(_BEST, (asked, among.start, among.stop - 1)))
