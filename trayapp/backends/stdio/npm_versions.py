"""npm's version numbers and ranges: decide if a version satisfies `^1.2`, `~1`, `1.x`, `>=1 <3`, `1 - 2`, `a || b`.

Source of the rules: https://github.com/npm/node-semver#ranges (the library `packaging` reads only Python's ranges).
Texts that need its "loose" mode (`01.2.3`, `x.1`, `1.2-beta`) are not ranges here.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

from trayapp.model.late import late

RANGE_LONGEST = 256  # in characters; the same limit as in node-semver
_PART = r"(?:0|[1-9]\d{0,15})"
_TAIL = r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
_FULL = late(rf"[v=\s]*(?P<major>{_PART})\.(?P<minor>{_PART})\.(?P<patch>{_PART}){_TAIL}", re.ASCII)
_PARTIAL = late(
    rf"[v=]?(?P<major>{_PART}|[xX*])(?:\.(?P<minor>{_PART}|[xX*])(?:\.(?P<patch>{_PART}|[xX*]){_TAIL})?)?", re.ASCII
)
_OPERATOR = late(r"(<=|>=|~>|[<>=~^]|)(.*)", re.DOTALL)
_GAP = late(r"(<=|>=|~>|[<>=~^])\s+")
_HYPHEN = late(r"(\S+)\s+-\s+(\S+)")

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}

Key = tuple[int, int, int, tuple[tuple[int, int, str], ...]]


@dataclass(frozen=True, slots=True)
class Version:
    """A version. Build metadata is left out: it does not affect the order."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    @property
    def key(self) -> Key:
        """Return the sort key: a prerelease comes before its release, and numeric identifiers before other ones."""
        words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in self.pre)
        return self.major, self.minor, self.patch, (*words, *([] if self.pre else [(2, 0, "")]))


Comparator = tuple[str, Version]  # `<`, `<=`, `>`, `>=` or `=`, and the version on its right


def read_version(text: str) -> Version | None:
    """Read a full version, which may begin with `v` or `=`. Return None for any other text."""
    found = _FULL.fullmatch(text)
    pre = _prerelease(found["pre"]) if found else None
    return None if found is None or pre is None else Version(int(found[1]), int(found[2]), int(found[3]), pre)


def is_range(text: str) -> bool:
    """Return True if npm would read the text as a range and not as a tag. A full version is a range, too."""
    return bool(_alternatives(text))


def satisfies(version: Version, text: str) -> bool:
    """Return True if the version is in the range; False if the text is not a range.

    A prerelease is in a range only if a comparator names a prerelease of the same three numbers.
    """
    for comparators in _alternatives(text):
        named = any(bound.pre and bound.numbers == version.numbers for _, bound in comparators)
        if (named or not version.pre) and all(_COMPARE[sign](version.key, bound.key) for sign, bound in comparators):
            return True
    return False


def _prerelease(text: str | None) -> tuple[str, ...] | None:
    """Return the identifiers of a prerelease, or None if a number has a leading zero, which is invalid."""
    words = tuple(text.split(".")) if text else ()
    return None if any(word.isdigit() and word[0] == "0" and word != "0" for word in words) else words


def _alternatives(text: str) -> list[list[Comparator]]:
    """Return the sets of comparators between `||`; none if the text is not a range."""
    try:
        return [_comparators(part.strip()) for part in text.split("||")] if len(text) <= RANGE_LONGEST else []
    except ValueError:
        return []


def _comparators(text: str) -> list[Comparator]:
    if hyphen := _HYPHEN.fullmatch(text):
        return [*_PartialVersion(hyphen[1]).comparators(">="), *_PartialVersion(hyphen[2]).comparators("<=")]
    found: list[Comparator] = []
    for word in _GAP.sub(r"\1", text).split():
        operator, rest = _OPERATOR.fullmatch(word).groups()  # type: ignore[union-attr] # it matches every text
        found += _PartialVersion(rest).comparators(operator)
    return found


class _PartialVersion:
    """A version with up to three numbers: `1`, `1.2`, `1.2.x`, `1.2.3-beta`, `*`. A missing number matches any."""

    def __init__(self, text: str) -> None:
        found = _PARTIAL.fullmatch(text or "*")
        if found is None:
            raise ValueError(text)
        parts = [found["major"], found["minor"], found["patch"]]
        given: list[bool] = [part is not None and part.isdigit() for part in parts]
        pre = _prerelease(found["pre"])
        if given != sorted(given, reverse=True) or pre is None or (pre and not all(given)):
            raise ValueError(text)
        self.given = sum(given)
        major, minor, patch = (int(part) if is_given else 0 for part, is_given in zip(parts, given, strict=True))
        self.lowest = Version(major, minor, patch, pre)

    def comparators(self, operator: str) -> list[Comparator]:
        """Return the comparators that `operator` followed by this version means."""
        if operator in ("^", "~", "~>"):
            fixed = 2  # how many of the leading numbers must not change
            if operator == "^":
                fixed = 1 + next((place for place, number in enumerate(self.lowest.numbers) if number), 2)
            return self._from_to(min(fixed, self.given))
        if self.given == 3:
            return [(operator or "=", self.lowest)]
        if self.given == 0:
            return [("<", Version(0, 0, 0, ("0",)))] if operator in ("<", ">") else []
        if operator in ("", "="):
            return self._from_to(self.given)
        above = self._after(self.given)
        return {
            ">=": [(">=", self.lowest)],
            ">": [(">=", Version(*above.numbers))],
            "<": [("<", Version(*self.lowest.numbers, ("0",)))],
            "<=": [("<", above)],
        }[operator]

    def _from_to(self, fixed: int) -> list[Comparator]:
        return [(">=", self.lowest), ("<", self._after(fixed))] if fixed else []

    def _after(self, fixed: int) -> Version:
        """Return the lowest version, prereleases included, above all that share the first `fixed` numbers."""
        numbers = [*self.lowest.numbers[: fixed - 1], self.lowest.numbers[fixed - 1] + 1, 0, 0][:3]
        return Version(numbers[0], numbers[1], numbers[2], ("0",))
