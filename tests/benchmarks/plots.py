"""A run as pictures: a panel of bars for each figure with several ways, log-log curves of growth.

Never here: what was measured, texts around the pictures.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.run import Run


def draw(run: Run, folder: Path) -> dict[str, list[str]]:
    """Write PNG files into the folder; their names by chapter."""
    return {}
