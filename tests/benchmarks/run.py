"""A benchmark run: what was measured, when, and on which machine. It is saved as run.json."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.curves import Curve
from tests.benchmarks.figures import Figure
from trayapp import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "benchmarks"  # ignored by Git
NAME = "run.json"
VERSION = 2

Measured = Figure | Curve | str  # a str is a note or a table in Markdown


@dataclass(slots=True)
class Chapter:
    """One part's figures and curves, and when they were measured. `broken`: why the rest is missing."""

    name: str
    title: str
    measured: list[Measured] = field(default_factory=list)
    broken: str = ""
    at: float = field(default_factory=time.time)

    @property
    def notes(self) -> list[str]:
        """The notes, and tables in Markdown."""
        return [one for one in self.measured if isinstance(one, str)]

    @property
    def figures(self) -> list[Figure]:
        return [one for one in self.measured if isinstance(one, Figure)]

    @property
    def curves(self) -> list[Curve]:
        return [one for one in self.measured if isinstance(one, Curve)]

    def as_json(self) -> dict[str, Any]:
        """Return the chapter as a JSON object for run.json."""
        figures, curves = ([one.as_json() for one in some] for some in (self.figures, self.curves))
        own = {"name": self.name, "title": self.title, "broken": self.broken, "at": self.at}
        return own | {"figures": figures, "curves": curves, "notes": self.notes}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Restore a chapter from the result of `as_json`. Raises KeyError, ValueError."""
        measured: list[Measured] = [Figure.from_json(one) for one in given["figures"]]
        measured += [Curve.from_json(one) for one in given["curves"]]
        return cls(given["name"], given["title"], [*measured, *given["notes"]], given["broken"], given["at"])


@dataclass(slots=True)
class Run:
    """The chapters and the machine. `at`: when the run began, in seconds since 1970. `seconds`: how long all its parts
    took.

    A run of only some parts continues the previous run: it keeps the other parts and the days on which they were
    measured.
    """

    at: float
    machine: str
    quick: bool
    chapters: list[Chapter] = field(default_factory=list)
    seconds: float = 0.0
    program: str = __version__

    @classmethod
    def now(cls, quick: bool) -> Self:
        """Return an empty run that begins now, on this machine."""
        return cls(time.time(), machine(), quick)

    @classmethod
    def after(cls, folder: Path, quick: bool) -> Self:
        """Return a run that begins now. Keep the chapters of the folder's run if both are quick or both are full."""
        run = cls.now(quick)
        try:
            before = cls.load(folder)
        except (FileNotFoundError, KeyError, ValueError):
            return run
        if before.quick == quick:
            run.chapters, run.seconds = before.chapters, before.seconds
        return run

    def end(self) -> None:
        """Add the time since the run began to `seconds`."""
        self.seconds += time.time() - self.at

    @property
    def days(self) -> str:
        """The day of the measurements, as 2026-11-21, or the first and the last day."""
        days = [day(chapter.at) for chapter in self.chapters] or [day(self.at)]
        return " to ".join(sorted({min(days), max(days)}))

    @property
    def figures(self) -> Iterator[Figure]:
        """The figures of all chapters."""
        return (figure for chapter in self.chapters for figure in chapter.figures)

    @property
    def curves(self) -> Iterator[Curve]:
        """The curves of all chapters."""
        return (curve for chapter in self.chapters for curve in chapter.curves)

    def put(self, chapter: Chapter) -> None:
        """Replace the chapter of the same name, or add it at the end."""
        for place, known in enumerate(self.chapters):
            if known.name == chapter.name:
                self.chapters[place] = chapter
                return
        self.chapters.append(chapter)

    def save(self, folder: Path) -> None:
        """Write run.json. It has every round of every figure, for the summary and for comparing runs."""
        facts = {"version": VERSION, "program": self.program, "at": self.at, "seconds": self.seconds}
        facts |= {"machine": self.machine, "quick": self.quick}
        chapters = [chapter.as_json() for chapter in self.chapters]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).write_text(json.dumps(facts | {"chapters": chapters}, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read run.json. Raises FileNotFoundError, KeyError, ValueError."""
        given = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if given.get("version") != VERSION:
            raise ValueError(f"{folder / NAME} is of another version")
        chapters = [Chapter.from_json(one) for one in given["chapters"]]
        return cls(given["at"], given["machine"], given["quick"], chapters, given["seconds"], given["program"])


def day(at: float) -> str:
    """Return the day in the form 2026-11-21."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def machine() -> str:
    """Return a description of the machine and its load."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}"
    return f"{os.cpu_count()} cores, {python}, {system}{load}"
