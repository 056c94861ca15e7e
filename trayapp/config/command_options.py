"""Options before the first plain word of a command line, read by a table of the program's documented options.

Never here: what an option means. The reader of each program decides that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


class UncertainError(ValueError):
    """A command line does not show what it runs. The text names the obstacle.

    `is_local`: the command runs a folder, an address or an installed program, not a release from a registry. The text
    names what it runs.
    """

    def __init__(self, text: str, *, is_local: bool = False) -> None:
        super().__init__(text)
        self.is_local = is_local


def options(text: str) -> frozenset[str]:
    """Return the options in a blank-separated list."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The known options of one program, named with their dashes: `switches` take no value, `values` take one.

    `named`: a pattern of further options, whose value must follow `=`. `joins`: short options may be joined (`-it`).
    """

    switches: frozenset[str]
    values: frozenset[str]
    named: str = ""
    joins: bool = True

    def read(self, words: Sequence[str]) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        """Return the options with their values ("" for none), and the words from the first plain word on.

        A `--` ends the options; it is not returned. Raises UncertainError for an unknown option or a missing value.
        """
        rest, found = list(words), list[tuple[str, str]]()
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word == "--":
                break
            name, equals, value = word.partition("=")
            if name in self.values:
                if not equals and not rest:
                    raise UncertainError(f"{name} without a value")
                found.append((name, value if equals else rest.pop(0)))
            elif name in self.switches or (self.named and equals and re.fullmatch(self.named, name)):
                found.append((name, value))
            elif self.joins and not word.startswith("--"):
                found += self._read_letters(word, rest)
            else:
                raise UncertainError(f"its option {name}")
        return found, tuple(rest)

    def _read_letters(self, word: str, rest: list[str]) -> list[tuple[str, str]]:
        """Return the options joined in one word (`-it`, `-eNAME`). A value that the word lacks is taken from `rest`."""
        found = list[tuple[str, str]]()
        for at, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            if name in self.values and (word[at:] or rest):
                return [*found, (name, word[at:].removeprefix("=") or rest.pop(0))]
            if name not in self.switches:
                raise UncertainError(f"its option {name}")
            found.append((name, ""))
        return found
