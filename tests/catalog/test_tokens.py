"""The token estimate, compared with recorded counts of the real o200k encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.catalog.tokens import tokens

COUNTED = [
    ("Find repositories on GitHub using a topic, a name or free words", 14),
    ('{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}', 26),
    ("github_create_issue(owner: string, repo: string, title: string, body?: string, labels?: string[])", 23),
    ("github_search_repositories\nfs_read_file\nchrome-devtools_take_screenshot", 15),
    ("The capital of Norway is Oslo; 1,234,567 people live in its urban area.", 20),
    ("使用必应搜索指定的关键词，并返回搜索结果列表", 12),
    ("- a (integer) *required* - count [minimum: 1] [maximum: 5] [default: 3]", 28),
    ("EARLY_PHASE1|PHASE1|PHASE2|NOT_APPLICABLE", 17),
    ("Это проверка того, как считается текст на другом языке.", 12),
]


@pytest.mark.parametrize(("text", "count"), COUNTED)
def test_a_real_text_is_estimated_within_a_third(text: str, count: int) -> None:
    assert abs(tokens(text) - count) <= max(1, count / 3)


def test_nothing_is_no_token() -> None:
    assert tokens("") == 0


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_is_never_much_less(one: str, other: str) -> None:
    assert 0 <= tokens(one) <= len(one.encode("utf-8", "replace"))
    assert tokens(f"{one}\n{other}") >= max(tokens(one), tokens(other)) - 1
