"""Synonyms: the words of the table, and when a query's word counts as a verb."""

from __future__ import annotations

import pytest

from tests.catalog.test_search import entry, found, index_of
from trayapp.catalog.search.query import WORDS, synonyms
from trayapp.catalog.search.words import stem

LINES = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if line and line[0] not in "#["]
HOTEL = index_of(
    entry("a", "reserve", "Reserve a room"),
    entry("b", "novels", "Look through novels"),
    entry("c", "commit", "Keep a revision"),
    entry("d", "write", "Store a text"),
)


@pytest.mark.requirement("search-verbs")
@pytest.mark.parametrize("words", [
    "book", "book it", "please book it", "i want to book", "could you book one", "look around and book it",
    "no, book it", "Books. Book it",
])  # fmt: skip
def test_a_word_that_stands_as_a_verb_has_the_synonyms_of_one(words: str) -> None:
    assert "a_reserve" in found(HOTEL, words)


@pytest.mark.requirement("search-verbs")
@pytest.mark.parametrize("words", ["my book", "a new book", "what is in this book", "the book of books"])
def test_the_same_word_as_a_noun_has_none_of_them(words: str) -> None:
    assert "b_novels" in found(HOTEL, words)
    assert "a_reserve" not in found(HOTEL, words)


@pytest.mark.requirement("search-verbs")
def test_what_is_repeated_is_an_echo() -> None:
    index = index_of(entry("a", "echo", "Echoes back the input"), entry("b", "run_task", "Performs a task"))
    assert found(index, "repeat what I say") == ["a_echo"]


def test_a_word_that_is_never_a_noun_is_a_verb_wherever_it_stands() -> None:
    assert stem("remove") in synonyms(stem("delete"), is_verb=False)


def test_each_group_holds_different_words_in_plain_letters() -> None:
    assert len(LINES) > 100
    for line in LINES:
        words = line.split()
        assert line.isascii(), line
        assert line == line.lower(), line
        assert all(word.isalpha() for word in words), line
        assert len({stem(word) for word in words}) > 1, line
        assert len(set(words)) == len(words), line
