"""Splitting texts into words, and reducing words to stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.catalog.search.words import STOP_WORDS, joined, meaningful, split, stem


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("getForecast", ["get", "forecast"], id="search-56"),
        pytest.param("project's", ["project", "s"], id="search-58"),
        pytest.param("foo検索bar", ["foo", "検索", "bar"], id="search-60"),
        pytest.param("HTMLParser", ["html", "parser"], id="search-61"),
        ("resolve-library-id", ["resolve", "library", "id"]),
        ("a.b_c/d", ["a", "b", "c", "d"]),
        ("READ_FILE", ["read", "file"]),
        ("IDs of PDFs", ["ids", "of", "pdfs"]),
        ("the 10th 3D S3Bucket", ["the", "10th", "3d", "s3", "bucket"]),
        ("使用必应搜索", ["使用", "用必", "必应", "应搜", "搜索"]),
        ("Café ＡＢＣ Привет", ["cafe", "abc", "привет"]),
        ("naïve résumé", ["naive", "resume"]),
        ("Straße SøkFil łódź", ["strasse", "sok", "fil", "lodz"]),
        ("", []),
        ("?! --", []),
    ],
)
def test_a_text_is_split(text: str, words: list[str]) -> None:
    assert split(text) == words


def test_words_with_humps_are_also_known_whole() -> None:
    assert joined("IDs in GitHub, iOS and JavaScript") == ["github", "ios", "javascript"]


def test_stop_words_go_unless_there_is_nothing_else() -> None:
    assert meaningful(["take", "a", "picture", "of", "it"]) == ["take", "picture"]
    assert meaningful(["what", "to", "do"]) == ["what", "to", "do"]


@pytest.mark.parametrize(
    "family",
    [
        ["merge", "merging", "merged", "merges"],
        ["repository", "repositories"],
        ["simulator", "simulators", "simulate", "simulation", "simulater"],
        ["create", "creating", "creates", "created"],
        ["file", "files", "filing"],
        ["run", "running", "runs"],
        ["document", "documents", "documentation", "documented"],
        ["generate", "generator", "generation"],
        ["calculate", "calculator", "calculation", "calculating"],
        ["issue", "issues"],
        ["copy", "copies", "copied"],
        ["delete", "deletion", "deleting"],
        ["status"],
        ["analysis"],
        ["process", "processes", "processing"],
    ],
)
def test_a_family_of_words_has_one_stem(family: list[str]) -> None:
    assert len({stem(word) for word in family}) == 1, [stem(word) for word in family]


@pytest.mark.parametrize(
    ("one", "other"),
    [("directory", "direction"), ("new", "now"), ("status", "state"), ("file", "fill"), ("note", "notice"),
     ("post", "posit"), ("pass", "pas"), ("sing", "s"), ("red", "r")],
)  # fmt: skip
def test_different_words_stay_apart(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@pytest.mark.parametrize(("one", "verb"), [
    ("reader", "read"), ("readers", "read"), ("scanner", "scan"), ("linter", "lint"), ("writer", "writing"),
    ("maker", "make"), ("editor", "edited"), ("converter", "convert"),
])  # fmt: skip
def test_one_that_does_it_has_the_stem_of_the_verb(one: str, verb: str) -> None:
    assert stem(one) == stem(verb)


@pytest.mark.parametrize("word", ["user", "order", "number", "server", "folder", "player", "worker", "header"])
def test_other_words_that_end_alike_are_no_verbs(word: str) -> None:
    assert stem(word) == word


@given(st.text(max_size=40))
def test_words_are_short_lower_case_and_split_no_further(text: str) -> None:
    for word in split(text):
        assert word
        assert len(word) <= 64
        assert not any(character.isspace() or character in "_\"'-" for character in word)
        assert stem(word)


def test_stop_words_are_words() -> None:
    assert {word for stop in STOP_WORDS for word in split(stop)} == STOP_WORDS
