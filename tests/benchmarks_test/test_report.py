"""Saved runs and reports: a run is restored from its file, and the summary names targets, losses and failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.curves import Curve
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.report import NOTES, as_markdown, as_text, behind, write_summary
from tests.benchmarks.run import Chapter, Run


def measured() -> Run:
    """Return a run with a target that is met, a peer that is ahead, a missed target, and a curve."""
    call = Figure("call", "ms", {"direct": [1.0], OURS: [2.0], "peer": [1.5]}, Target("ratio", 3.0))
    rate = Figure("8 in flight", "calls/s", {"direct": [9.0], OURS: [5.0], "peer": [2.0]}, Target("value", 6, True))
    curve = Curve("tools", "call", "ms", {10: 1.0, 100: 1.0}, flat=True)
    chapter = Chapter("calls", "Calls", [call, rate, curve, "It is so."], at=0.0)
    idle = Chapter("idle", "Idle", broken="no gateway", at=90_000.0)
    return Run(0.0, "2 cores", False, [chapter, idle], 12.0, "1.2.3")


def test_a_run_comes_back_from_its_file(tmp_path: Path) -> None:
    run = measured()
    run.save(tmp_path)
    assert Run.load(tmp_path) == run


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"version": 1}')
    with pytest.raises(ValueError, match="another version"):
        Run.load(tmp_path)


def test_a_part_that_is_measured_again_takes_its_old_place() -> None:
    run = measured()
    run.put(Chapter("calls", "Calls"))
    assert [(chapter.name, chapter.measured) for chapter in run.chapters] == [("calls", []), ("idle", [])]


def test_a_run_of_some_parts_keeps_the_others_if_it_is_as_thorough(tmp_path: Path) -> None:
    assert Run.after(tmp_path, quick=False).chapters == []
    measured().save(tmp_path)
    assert Run.after(tmp_path, quick=False).chapters == measured().chapters
    assert Run.after(tmp_path, quick=True).chapters == []


def test_a_peer_with_the_better_median_is_ahead_and_the_base_is_no_peer() -> None:
    found = {figure.name: [row.way for _, row in behind(figure)] for figure in measured().figures}
    assert found == {"call": ["peer"], "8 in flight": []}


def test_the_summary_holds_targets_losses_growth_and_what_broke_and_keeps_the_notes(tmp_path: Path) -> None:
    file = tmp_path / "BENCHMARKS.md"
    file.write_text(f"old\n\n{NOTES}\n\nWhy it is so.\n")
    write_summary(measured(), file)
    text = file.read_text(encoding="utf-8")
    for line in (
        "1970-01-01 to 1970-01-02, multi-mcp 1.2.3; 2 cores. Idle broke: no gateway.",
        "1 of 2 are met.",
        "| call, ms | ours | 2.00 | x 2.00, +1.00 | ratio <= 3.00 | met |",
        "| 8 in flight, calls/s | ours | 5.00 | x 0.556, -4.00 | >= 6.00 | **missed by 17%** |",
        "|  | direct | ours | peer |",
        "It is so.",
        "- call: peer 1.50 ms, ours 2.00: 1.33 times",
        "| tools | call, ms | 10: 1.00, 100: 1.00 | size ^ 0.00, flat |",
    ):
        assert line in text
    assert text.endswith(f"{NOTES}\n\nWhy it is so.\n")
    assert "old" not in text


def test_the_report_shows_its_plots_and_the_text_all_figures() -> None:
    page = as_markdown(measured(), {"calls": ["calls.png"]})
    assert "![calls](calls.png)" in page
    assert "**Broke:** no gateway" in page
    assert "Idle broke: no gateway" in as_text(measured())
