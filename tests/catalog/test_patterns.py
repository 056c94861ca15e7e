"""Regular expressions in bounded time: they match as Python's do, and no pattern is expensive."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trayapp.catalog.search.index import LONGEST_TEXT, InvalidPatternError, Pattern

FOUND = [
    ("boot", "xcodebuild_BOOT_sim"), ("BOOT", "boot"), ("^a.c$", "abc"), ("a|b", "b"), ("(ab)+c", "xababc"),
    ("[a-c]{2}d", "acd"), ("[^a-c]d", "xd"), (r"\d+\.\d", "v12.5"), (r"\bfile\b", "read file now"), ("a*?b", "b"),
    ("(?:x|y){2,}", "xyx"), ("(?P<name>a)b", "ab"), ("(?i)A", "a"), (r"\Astart", "start"), (r"end\Z", "the end"),
    ("[]]", "]"), ("[a-]", "-"), ("a{,2}b", "b"), ("a{b", "a{b"), ("x{2}", "xx"), (r"\x41", "a"), ("[[:]", ":"),
    (r"\u0041[\U00000042]", "ab"), (r"\\Z", r"a\z"), (r"\\u0041", r"\u0041"),
    (r"\.", "."), (r"[\d_]", "_"), ("", "anything"), ("", ""), ("ü", "Ü"), (r"\w+検", "foo検"), (r"[\]]", "]"),
    ("(?i:B)", "b"), ("^$", ""), (r"\Bile", "file"), ("ß", "ß"), ("a+?", "a"), ("^(a|)b", "b"), ("()", "x"),
]  # fmt: skip
NOT_FOUND = [
    ("^boot", "xboot"), ("a.c", "a\nc"), ("[^a]", "a"), ("[^a]", "A"), (r"\d", "x"), ("a{3}", "aa"), (r"\bile", "file"),
    ("^$", "x"), ("a{2,3}$", "a"), ("(a|b)c", "ac".replace("c", "d")), (r"a\Z", "ab"),
]  # fmt: skip


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(("pattern", "text"), FOUND)
def test_a_pattern_is_found(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text)


@pytest.mark.parametrize(("pattern", "text"), NOT_FOUND)
def test_a_pattern_is_not_found(pattern: str, text: str) -> None:
    assert not Pattern(pattern).matches(text)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("[", "missing ]: [", id="search-45"),
        ("(", "missing ): ("),
        (")", "unexpected ): )"),
        ("*a", "no argument for repetition operator: *"),
        ("a**", "bad repetition operator: **"),
        ("a{2}{3}", "bad repetition operator: {2}{3}"),
        ("a++", "bad repetition operator: ++"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<!a)b", "invalid perl operator: (?<!"),
        ("(?(1)a)", "invalid perl operator: (?("),
        ("(?P=name)", "invalid perl operator: (?P"),
        ("\\", "trailing \\"),
        ("[b-a]", "invalid character class range: b-a"),
        ("a{3,2}", "invalid repetition size: {3,2}"),
        ("a{99999}", "invalid repetition size: {99999}"),
        ("((a{90}){90}){90}", "invalid repetition size: {90}"),
        (r"(\pL\pM*){500}", "pattern too large"),
        ("(" * 60, "missing ): ("),
        ("a" * 501, "too long"),
        (r"\q", r"invalid escape sequence: \q"),
        (r"\xzz", r"invalid escape sequence: \xzz"),
        ("(?P<x", "invalid named capture group: (?P<x"),
    ],
)
def test_what_cannot_be_used_is_refused_and_says_why(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPatternError, match=re.escape(why)) as caught:
        Pattern(pattern)
    assert caught.value.code == "invalid_pattern"
    assert "no lookaround, no back references" in (caught.value.hint or "")


@pytest.mark.requirement("search-bounded")
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*)*x", ".*.*.*.*.*.*x", "([a-z]+)*!", "(a?){50}a{50}$", "((a*)*)*b",
     "(a|b|ab)*c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "a{0,60}a{0,60}a{0,60}b"],
)  # fmt: skip
def test_hostile_patterns_end(pattern: str) -> None:
    compiled = Pattern(pattern)
    for text in ("a" * 5_000 + "!", "x" * 5_000, "ab" * 2_000):
        compiled.matches(text)


@pytest.mark.requirement("search-bounded")
def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    compiled, text = Pattern("(.?){1000}q9"), "".join(map(chr, range(0x4E00, 0x5A00)))
    with pytest.raises(InvalidPatternError, match="it takes too long on this text"):
        any(compiled.matches(text) for _ in range(1_000))


@pytest.mark.requirement("search-bounded")
def test_a_text_that_a_server_made_endless_is_searched_up_to_a_limit() -> None:
    assert Pattern("a{999}b").matches("x" * (LONGEST_TEXT - 1_000) + "a" * 999 + "b")
    assert not Pattern("b").matches("a" * LONGEST_TEXT + "b")


@pytest.mark.requirement("search-bounded")
def test_a_pattern_leaves_other_threads_running() -> None:
    compiled, ended, ticks = Pattern("(.?){1000}q9"), threading.Event(), 0

    def search() -> None:
        compiled.matches("\u4e00" * LONGEST_TEXT)
        ended.set()

    searching = threading.Thread(target=search)
    searching.start()
    while not ended.wait(0.001):
        ticks += 1
    searching.join()
    assert ticks > 3  # an engine that held the GIL would block this thread until the search ends


@pytest.mark.requirement("search-bounded")
def test_a_pattern_of_many_states_keeps_within_its_memory() -> None:
    text = "".join("ab"[bit == "1"] for number in range(600) for bit in f"{number:012b}")
    assert Pattern("(a|b)*a(a|b){11}c|never").matches(text) is False


def test_only_a_pattern_loads_the_engine() -> None:
    code = """
import sys, trayapp.catalog.search.index as index
before = "re2" in sys.modules
index.Pattern("a")
print(before, "re2" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


pieces = st.sampled_from(
    [
        "a",
        "b",
        "c",
        ".",
        "[ab]",
        "[^a]",
        "(a|b)",
        "(ab)",
        "(a|)",
        "(?:b|ca)",
        r"\b",
        "^",
        "$",
        r"\w",
        r"\W",
        "x",
        "|",
        "-",
    ]
)
repeats = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?"])
patterns = st.lists(st.tuples(pieces, repeats).map("".join), max_size=5).map("".join)


@settings(deadline=None)
@given(patterns, st.lists(st.text("abcABx -", max_size=8), max_size=5))
def test_patterns_mean_what_python_s_mean(pattern: str, texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = re.compile(pattern, re.IGNORECASE)
        except re.error:
            return
    try:
        ours = Pattern(pattern)
    except InvalidPatternError:
        return  # some patterns, such as repeated anchors, may be refused
    assert [ours.matches(text) for text in texts] == [bool(theirs.search(text)) for text in texts]


@settings(deadline=None)
@given(
    st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("()[]{}|*+?^$\\.,-0123ab"), max_size=40),
    st.text(max_size=20),
)
def test_any_text_is_a_pattern_or_an_error(pattern: str, text: str) -> None:
    try:
        Pattern(pattern).matches(text)
    except InvalidPatternError:
        return
