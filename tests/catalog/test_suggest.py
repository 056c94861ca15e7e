"""Suggestions of similar names for an unknown name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.catalog.suggest import MOST, edits_between, nearest

KNOWN = [
    "github_search_repositories",
    "github_create_issue",
    "github_list_issues",
    "github_create_pull_request",
    "github_get_file_contents",
    "obsidian_global_search",
    "obsidian_read_note",
    "exa_web_search_exa",
    "context7_resolve-library-id",
    "context7_get-library-docs",
    "xcodebuild_list_sims",
    "xcodebuild_boot_sim",
    "chrome-devtools_take_screenshot",
    "wx_getForecast",
    "fs_read_file",
    "fs_write_file",
]


@pytest.mark.parametrize(
    ("asked", "best"),
    [
        pytest.param("xcodebuild_boot", "xcodebuild_boot_sim", id="describe-23"),
        pytest.param("xcodebuild_boot_simm", "xcodebuild_boot_sim", id="describe-24"),
        pytest.param("github_serch", "github_search_repositories", id="describe-26"),
        ("github_repo_search", "github_search_repositories"),
        ("githubcreateissue", "github_create_issue"),
        ("gihtub_create_issue", "github_create_issue"),
        ("read_fiel", "fs_read_file"),
        ("fs-readFile", "fs_read_file"),
        ("wx_get_forecast", "wx_getForecast"),
        ("take_screenshots", "chrome-devtools_take_screenshot"),
        ("library docs", "context7_get-library-docs"),
    ],
)
def test_the_name_that_was_meant_comes_first(asked: str, best: str) -> None:
    assert nearest(asked, KNOWN)[0] == best


@pytest.mark.parametrize("asked", ["zzz", "", "_", "---", "github_frobnicate", "日本語"])
def test_nothing_near_is_said_to_be_near(asked: str) -> None:
    assert nearest(asked, KNOWN) == []


def test_the_same_server_alone_is_no_likeness() -> None:
    assert nearest("xcodebuild_boot", KNOWN) == ["xcodebuild_boot_sim"]


@given(st.text(max_size=40), st.lists(st.text(alphabet="abc_-X", max_size=8), max_size=30))
def test_suggestions_are_few_known_and_independent_of_order(asked: str, names: list[str]) -> None:
    found = nearest(asked, names)
    assert len(found) <= MOST
    assert set(found) <= set(names)
    assert len(set(found)) == len(found)
    assert found == nearest(asked, reversed(names))


@given(st.text(alphabet="abcdefghij", min_size=6, max_size=20), st.integers(0, 5), st.sampled_from("xyz"))
def test_one_wrong_character_is_forgiven(name: str, place: int, wrong: str) -> None:
    asked = name[:place] + wrong + name[place + 1 :]
    assert nearest(asked, [name, "qqqqqqqqqq"]) == [name]


def plain_edits(left: str, right: str) -> int:
    """Return the edit distance, counting a transposition as one edit: the textbook algorithm with its full table."""
    rows = [[j if not i else i if not j else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


@given(st.text("abc", max_size=9), st.text("abc", max_size=9), st.integers(0, 4))
def test_edits_are_counted_right_as_far_as_they_matter(left: str, right: str, allowed: int) -> None:
    edits, counted = plain_edits(left, right), edits_between(left, right, allowed)
    assert counted == edits if edits <= allowed else counted > allowed
