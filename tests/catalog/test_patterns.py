"""Regular expressions in bounded time: they mean what Python's own mean, and no pattern is expensive."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trayapp.catalog.patterns import InvalidPatternError, Pattern

FOUND = [
    ("boot", "xcodebuild_BOOT_sim"), ("BOOT", "boot"), ("^a.c$", "abc"), ("a|b", "b"), ("(ab)+c", "xababc"),
    ("[a-c]{2}d", "acd"), ("[^a-c]d", "xd"), (r"\d+\.\d", "v12.5"), (r"\bfile\b", "read file now"), ("a*?b", "b"),
    ("(?:x|y){2,}", "xyx"), ("(?P<name>a)b", "ab"), ("(?i)A", "a"), (r"\Astart", "start"), (r"end\Z", "the end"),
    ("[]]", "]"), ("[a-]", "-"), ("a{,2}b", "b"), ("a{b", "a{b"), ("x{2}", "xx"), (r"\x41", "a"), ("[[:]", ":"),
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
        pytest.param("[", "not closed", id="search-45"),
        ("(", "not closed"),
        (")", "no ("),
        ("*a", "before *"),
        ("a**", "repeated"),
        ("a{2}{3}", "repeated"),
        ("a++", "repeated"),
        (r"(a)\1", "back references"),
        ("(?=a)", "lookaround"),
        ("(?<!a)b", "lookaround"),
        ("(?(1)a)", "lookaround"),
        ("(?P=name)", "lookaround"),
        ("\\", "ends it"),
        ("[b-a]", "reversed"),
        ("a{3,2}", "ends before it starts"),
        ("a{99999}", "too large"),
        ("((a{90}){90}){90}", "too large"),
        ("(" * 60, "nested too deep"),
        ("a" * 501, "too long"),
        (r"\q", "means nothing"),
        (r"\xzz", "not a character"),
        ("(?P<x", "is not closed"),
    ],
)
def test_what_cannot_be_used_is_refused_and_says_why(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPatternError, match=re.escape(why)) as caught:
        Pattern(pattern)
    assert caught.value.code == "invalid_pattern"


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
    compiled, text = Pattern("(.?){1900}q9"), "".join(map(chr, range(0x4E00, 0x5A00)))
    with pytest.raises(InvalidPatternError, match="it takes too long on this text"):
        compiled.matches(text)


@pytest.mark.requirement("search-bounded")
def test_no_more_states_are_kept_than_a_limit() -> None:
    text = "".join("ab"[bit == "1"] for number in range(600) for bit in f"{number:012b}")
    assert Pattern("(a|b)*a(a|b){11}c|never").matches(text) is False


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
        return  # a repeated edge, or the like: refusing is allowed
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
