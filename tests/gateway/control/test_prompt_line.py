"""The words after a prompt's name on the command line, and the arguments that they become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.gateway.control.catalog import prompt_arguments, split_words
from trayapp.model.errors import UsageError


def declared(*names: str) -> list[dict[str, Any]]:
    """Return declarations of arguments: `topic!` is required, `date?` is optional."""
    return [{"name": name[:-1], "required": name.endswith("!")} for name in names]


@pytest.mark.requirement("prompt-line")
@pytest.mark.parametrize(
    ("case", "line", "positional", "named"),
    [
        ("prompt-09", "today weather", ["today", "weather"], {}),
        ("prompt-10", '"important tasks" today', ["important tasks", "today"], {}),
        ("prompt-11", "topic=demo date=today", [], {"topic": "demo", "date": "today"}),
        ("prompt-13", "today topic=demo", ["today"], {"topic": "demo"}),
        ("-", "", [], {}),
        ("-", "  a \t b\n", ["a", "b"], {}),
        ("-", "topic='two words'", [], {"topic": "two words"}),
        ("-", '"a=b" c', ["a=b", "c"], {}),
        ("-", "https://x.test/?a=b", ["https://x.test/?a=b"], {}),
        ("-", "it's fine", ["it's", "fine"], {}),
        ("-", "a= =b", ["=b"], {"a": ""}),
        ("-", "1=2", ["1=2"], {}),
        ("-", "名前=東京 größe=2", [], {"名前": "東京", "größe": "2"}),
        ("-", 'the "end', ["the", '"end'], {}),
        ("-", r'"say \"hi\"" x', ['say "hi"', "x"], {}),
        ("-", r'D:\b path="C:\my dir\"', ["D:\\b"], {"path": "C:\\my dir\\"}),
        ("-", r"it\s C:\x", ["it\\s", "C:\\x"], {}),
    ],
)
def test_a_line_is_positional_and_named_words(
    case: str, line: str, positional: list[str], named: dict[str, str]
) -> None:
    assert split_words(line) == (positional, named)


@given(st.text(alphabet="ab =\"'\n", max_size=40))
def test_no_letter_of_a_line_is_lost(line: str) -> None:
    positional, named = split_words(line)
    kept = "".join(positional) + "".join(name + value for name, value in named.items())
    if "=" not in line:
        assert [c for c in kept if c in "ab"] == [c for c in line if c in "ab"]


def test_words_of_a_shell_keep_their_quotes() -> None:
    assert split_words(['it\'s "x"', "a=b c"]) == (['it\'s "x"'], {"a": "b c"})


@pytest.mark.requirement("prompt-line")
@pytest.mark.parametrize(
    ("case", "known", "positional", "named", "args"),
    [
        ("prompt-14", ["topic!", "date?"], ["ai", "today"], {}, {"topic": "ai", "date": "today"}),
        ("prompt-15", ["topic!", "date?"], ["today"], {"topic": "ai"}, {"topic": "ai", "date": "today"}),
        ("prompt-17", [], [], {"extra": "value"}, {"extra": "value"}),
        ("-", ["topic!", "date?"], ["ai"], {}, {"topic": "ai"}),
        ("-", ["topic!"], ["all", "of", "this"], {}, {"topic": "all of this"}),
        ("-", ["topic!", "rest?"], ["a", "b", "c"], {}, {"topic": "a", "rest": "b c"}),
        ("-", [], [], {}, {}),
    ],
)
def test_words_become_arguments(
    case: str, known: list[str], positional: list[str], named: dict[str, str], args: dict[str, str]
) -> None:
    assert prompt_arguments(declared(*known), positional, named) == args


@pytest.mark.parametrize(
    ("known", "positional", "named"), [(["topic!"], [], {}), ([], ["x"], {}), (["topic!"], ["x"], {"topic": "y"})]
)
def test_a_missing_argument_and_one_too_many_are_usage_errors(
    known: list[str], positional: list[str], named: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        prompt_arguments(declared(*known), positional, named)


@pytest.mark.parametrize("odd", [None, "x", 5, [1, {"no": "name"}, {"name": 5}]])
def test_an_odd_declaration_is_none(odd: Any) -> None:
    assert prompt_arguments(odd, [], {"a": "b"}) == {"a": "b"}
