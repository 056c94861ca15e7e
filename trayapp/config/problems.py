"""Problems that the configuration readers find: errors for a file or a value, and the report of all problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from trayapp.model.errors import ConfigError, Problem

SHOWN_CHARACTERS = 60  # the most characters of a word from the file, since a problem is one line


class UnparsableError(ConfigError):
    """Raised when a whole file cannot be used. `problem` has the place and the reason."""

    code = "config_unparsable"

    def __init__(self, problem: Problem) -> None:
        where = f"{problem.file}, line {problem.line}" if problem.line else problem.file
        super().__init__(f"{where}: {problem.message}", problem.hint)
        self.problem = problem


class TextPlace(Protocol):
    """A position in a text. `line` is 1-based, `column` 0-based."""

    line: int
    column: int


class InvalidValueError(Exception):
    """Raised when a value cannot be read. The reader of the surrounding entry turns it into a problem."""

    def __init__(self, place: TextPlace, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint


def problem_at(file: str, place: TextPlace, message: str, hint: str = "") -> Problem:
    """Return a problem at `place` that concerns the whole file, not a single server."""
    return Problem(file, place.line, message, hint, column=place.column + 1)


class Report:
    """A collector of all problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._problems: list[Problem] = []

    def add(
        self, place: TextPlace, message: str, hint: str = "", *, server: str | None = None, fatal: bool = False
    ) -> None:
        """Add one problem. `fatal`: the problem makes the entry of `server` unusable."""
        column = place.column + 1
        self._problems.append(Problem(self.file, place.line, message, hint, column, server, fatal))

    def sorted(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._problems, key=lambda problem: (problem.line, problem.column)))


def shown(word: str) -> str:
    """Return `word` for a message: unprintable characters become `?`, and it is cut to SHOWN_CHARACTERS."""
    safe = "".join(letter if letter.isprintable() else "?" for letter in word[: SHOWN_CHARACTERS + 1])
    return safe if len(safe) <= SHOWN_CHARACTERS else f"{safe[: SHOWN_CHARACTERS - 3]}..."


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was most likely meant to be, or None if no word is similar."""
    import difflib  # imported late: takes 1 ms, and only files with an unknown word need it

    found = difflib.get_close_matches(word[:SHOWN_CHARACTERS], sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known word, or "" if no word is similar."""
    near = nearest(word, known)
    return f"Did you mean {near}?" if near else ""
