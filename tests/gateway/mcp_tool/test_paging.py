"""Pages of lists and of long results: nothing is lost, and no page is too long."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.gateway.mcp_tool.results import paged
from trayapp.gateway.mcp_tool.texts import page
from trayapp.gateway.mcp_tool.tool_dependencies import (
    KEPT_CHARACTERS,
    KEPT_RESULTS,
    LINES_MOST,
    CutResults,
    ResultFiles,
    ResultNotFoundError,
    cut_at,
)

LIMIT = 51_200
NO_FILES = ResultFiles(Path(os.devnull) / "results")  # no file can be created in this folder


def text(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in texts]}


def shown(result: dict[str, Any]) -> list[str]:
    return [part["text"] for part in result["content"] if part["type"] == "text"]


@pytest.mark.requirement("one-tool-list")
@pytest.mark.parametrize(
    ("case", "items", "offset", "limit", "expected"),
    [
        ("page-02", "abc", 2, 2, ("c", None)),
        ("page-03", "abc", -5, 0, ("a", 1)),
        ("page-05", "", 0, 12, ("", None)),
        ("page-06", "abc", 5, 1, ("", None)),
        ("page-07", "abc", 1, 1, ("b", 2)),
        ("-", "abc", 0, 3, ("abc", None)),
        ("-", "abc", 0, 10**30, ("abc", None)),
    ],
)
def test_a_page_of_a_list(case: str, items: str, offset: int, limit: int, expected: tuple[str, int | None]) -> None:
    assert page(items, offset, limit) == expected


@given(st.text(st.characters(), max_size=300), st.integers(1, 40))
def test_pages_of_a_text_are_short_and_lose_no_character(whole: str, limit: int) -> None:
    ends = [0]
    while ends[-1] < len(whole):
        ends.append(cut_at(whole, ends[-1], limit))
        piece = whole[ends[-2] : ends[-1]]
        assert piece
        assert len(piece.encode("utf-8", "surrogatepass")) <= max(limit, 4)
    assert "".join(whole[a:b] for a, b in pairwise(ends)) == whole


def test_a_page_ends_with_a_line_where_that_costs_little() -> None:
    lines = "".join(f"line {n}\n" for n in range(100))
    assert lines[: cut_at(lines, 0, 100)].endswith("\n")
    assert cut_at("x" * 90 + "\n" + "y" * 200, 0, 200) == 200  # the line break is too far from the page's end


@pytest.mark.requirement("one-tool-result-paging")
def test_a_long_text_is_cut_with_a_note_and_the_rest_can_be_had() -> None:
    whole, store = "".join(f"{n:05d}\n" for n in range(10_000)), CutResults(NO_FILES)
    first = paged({**text(whole), "isError": True, "_meta": {"x": 1}}, LIMIT, store)
    assert (first["isError"], first["_meta"]) == (True, {"x": 1})
    said, note = shown(first)
    assert len((said + note).encode()) <= LIMIT
    more = json.loads(note[note.index("{") : note.index("}") + 1])
    found, offset = said, more["offset"]
    while offset is not None:
        answer = store.get(more["result"], offset, LIMIT)
        piece, _, note = answer.rpartition("\n\n[")
        assert len(answer.encode()) <= LIMIT
        found += piece
        offset = json.loads(note[note.index("{") : note.index("}") + 1])["offset"] if "{" in note else None
    assert found == whole


@pytest.mark.requirement("one-tool-result-file")
@pytest.mark.parametrize("limit", [400, 2_000, LIMIT])
def test_the_whole_text_lies_in_a_file_that_the_note_names(tmp_path: Path, limit: int) -> None:
    whole, folder = "".join(f"{n:05d} é\n" for n in range(10_000)), tmp_path / "cache" / "results"
    first = paged(text(whole), limit, CutResults(ResultFiles(folder)))
    assert len("".join(shown(first)).encode()) <= limit
    (file,) = folder.iterdir()
    assert f"All of it: {file}]" in shown(first)[1]
    assert file.read_text(encoding="utf-8") == whole
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.requirement("one-tool-result-file")
def test_a_file_goes_with_the_result_that_it_belongs_to(tmp_path: Path) -> None:
    store = CutResults(ResultFiles(tmp_path))
    files = [store.keep(f"text {n}").file for n in range(KEPT_RESULTS + 2)]
    assert [file is not None and file.exists() for file in files] == [False] * 2 + [True] * KEPT_RESULTS
    store.drop()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ResultNotFoundError):
        store.get("r3", 0, 0)


def test_what_an_earlier_gateway_left_goes_and_what_is_ours_stays(tmp_path: Path) -> None:
    earlier, own = ResultFiles(tmp_path), ResultFiles(tmp_path)
    left, kept = earlier.write("left"), own.write("kept")
    own.clear(own=False)
    assert left is not None
    assert not left.exists()
    assert kept is not None
    assert kept.read_text() == "kept"
    own.clear(own=True)
    assert list(tmp_path.iterdir()) == []
    ResultFiles(tmp_path / "none").clear(own=False)


@pytest.mark.requirement("fault-disk-full")
def test_without_a_file_the_pages_are_all_there_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "results").write_text("a file is in the folder's place")
    store = CutResults(ResultFiles(tmp_path / "results"))
    note = shown(paged(text("x" * 1_000), 300, store))[1]
    assert "All of it" not in note
    assert "Cannot write a long result to a file" in caplog.text
    assert store.get("r1", 0, 0).startswith("x" * 1_000)


def test_many_short_lines_are_cut_too() -> None:
    result = paged(text("ab\n" * 2_500), LIMIT, CutResults(NO_FILES))
    assert shown(result)[0].count("\n") == LINES_MOST


@pytest.mark.parametrize(
    ("result", "limit"),
    [
        (text("x" * LIMIT), LIMIT),
        (text("a", "b"), LIMIT),
        ({"content": [{"type": "image", "data": "A" * 4_000_000}]}, LIMIT),
        ({"content": []}, LIMIT),
        ({"structuredContent": {"a": 1}}, LIMIT),
        ({"content": 5}, LIMIT),
    ],
)
def test_what_is_short_or_no_text_is_the_very_same(result: dict[str, Any], limit: int) -> None:
    assert paged(result, limit, CutResults(NO_FILES)) is result


def test_parts_that_are_no_text_stay_where_they_are_and_later_texts_follow_on_later_pages() -> None:
    image = {"type": "image", "data": "QQ=="}
    link = {"type": "resource_link", "uri": "u://1"}
    store = CutResults(NO_FILES)
    parts = [*text("first " * 10)["content"], image, *text("second " * 100, "third")["content"], link]
    result = paged({"content": parts}, 300, store)
    kinds = [part["type"] for part in result["content"]]
    assert kinds == ["text", "image", "text", "resource_link", "text"]
    assert "third" not in "".join(shown(result))
    assert "third" in store.get("r1", 700, 0)


def test_a_long_resource_is_cut_like_a_text() -> None:
    part = {"type": "resource", "resource": {"uri": "u://1", "mimeType": "text/plain", "text": "r" * 1_000}}
    result = paged({"content": [part]}, 300, CutResults(NO_FILES))
    cut = result["content"][0]["resource"]
    assert (cut["uri"], cut["mimeType"]) == ("u://1", "text/plain")
    assert set(cut["text"]) == {"r"}
    assert len(cut["text"]) < 300


@pytest.mark.parametrize("indent", [None, 2])
def test_a_long_structure_that_the_text_says_already_is_not_sent_twice(indent: int | None) -> None:
    structure = {"rows": list(range(5_000))}
    store = CutResults(NO_FILES)
    said = json.dumps(structure, indent=indent)
    result = paged({**text(said), "structuredContent": structure}, 1_000, store)
    assert "structuredContent" not in result
    assert store.get("r1", 0, 0).startswith(said)


def test_a_long_structure_that_no_text_says_becomes_one() -> None:
    structure = {"rows": list(range(5_000))}
    store = CutResults(NO_FILES)
    result = paged({**text("5000 rows"), "structuredContent": structure}, 1_000, store)
    assert "structuredContent" not in result
    assert shown(result)[0] == "5000 rows"
    assert shown(result)[1].startswith('{"rows":[0,1,2')
    assert json.dumps(structure, separators=(",", ":")) in store.get("r1", 0, 0)


def test_the_store_of_a_session_is_bounded_by_number_and_by_size() -> None:
    store = CutResults(NO_FILES)
    names = [store.keep(f"text {n}").name for n in range(KEPT_RESULTS + 2)]
    with pytest.raises(ResultNotFoundError, match=names[2]):
        store.get(names[1], 0, 0)
    assert store.get(names[2], 0, 0).startswith("text 2")
    big = store.keep("x" * KEPT_CHARACTERS).name
    assert store.get(big, 0, 300).startswith("x")  # the latest text is kept, however long
    with pytest.raises(ResultNotFoundError):
        store.get(names[-1], 0, 0)


@pytest.mark.parametrize("offset", [-5, 0])
def test_an_offset_before_the_text_is_its_beginning_and_one_behind_it_the_end(offset: int) -> None:
    store = CutResults(NO_FILES)
    name = store.keep("abc").name
    assert store.get(name, offset, LIMIT).startswith("abc\n\n[Characters 0-3 of 3: the end]")
    assert store.get(name, 99, LIMIT) == "\n\n[Characters 3-3 of 3: the end]"
