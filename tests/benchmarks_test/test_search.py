"""The search benchmark measures what it claims to."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.search import Quality, answer_tokens, enlarged, figures, indexed, load, quality, rank
from tests.catalog import shelf

TOOLS = [{"name": "read_file", "description": "Read a file"}, {"name": "write_file", "description": "Write a file"}]


def test_files_are_read_and_ranks_counted(tmp_path: Path) -> None:
    catalog, queries = tmp_path / "catalog.json", tmp_path / "queries.json"
    catalog.write_text(json.dumps([{"server": "fs", "title": "Files", "tools": TOOLS}]))
    queries.write_text(json.dumps([{"query": "read file", "tools": ["read_file"]},
                                   {"query": "read file", "tools": ["write_file"]},
                                   {"query": "read file", "tools": ["other"]}]))  # fmt: skip
    servers, asked = load(catalog, queries)
    index = indexed(servers)
    assert [rank(index, words, wanted) for words, wanted in asked] == [1, 2, 11]
    assert quality(index, asked) == Quality({1: 1 / 3, 5: 2 / 3, 10: 2 / 3}, 0.5)
    assert answer_tokens(index, servers, asked[:1])[0] > 10


def test_a_large_catalog_has_so_many_tools_with_distinct_keys() -> None:
    large = enlarged(shelf.entries(), 500)
    keys = {entry.key for entries in large.values() for entry in entries}
    assert len(keys) == sum(map(len, large.values())) == 500


def test_everything_is_measured() -> None:
    measured = figures(shelf.entries(), shelf.QUESTIONS[:5], 200)
    assert [figure.name for figure in measured] == [
        "recall@1", "recall@5", "recall@10", "MRR", "answer, median", "index of 147 tools", "query among 147 tools",
        "index of 200 tools", "query among 200 tools",
    ]  # fmt: skip
    assert all(row.value > 0 for figure in measured for row in figure.rows)
