"""Words that people use for one another when they ask for a tool, as stems: the general English of synonyms.txt.

Never here: the words themselves, servers' own vocabulary (`settings.synonyms` holds it).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from trayapp.catalog.search.stem import stem

WORDS = Path(__file__).with_name("synonyms.txt")
VERBS = "[verbs]"  # the section of groups that hold for a word where it says what to do

Groups = dict[str, tuple[str, ...]]  # for a stem, those that will do in its place


def synonyms(word: str, *, is_verb: bool) -> tuple[str, ...]:
    """Return the stems that will do in place of a stem: of a noun, and of a verb where it stands as one.

    A word that is never a noun is a verb wherever it stands.
    """
    verbs, others = _groups()
    named = others.get(word)
    if named is None or not is_verb:
        return verbs.get(word, ()) if named is None else named
    return tuple(dict.fromkeys((*verbs.get(word, ()), *named)))


@lru_cache(maxsize=1)
def _groups() -> tuple[Groups, Groups]:
    """Return the groups of verbs and of other words. Raises OSError where the file is missing."""
    verbs: dict[str, dict[str, None]] = {}
    others: dict[str, dict[str, None]] = {}
    section = others
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = verbs if line == VERBS else others
        elif line and not line.startswith("#"):
            group = [stem(word) for word in line.split()]
            for word in group:
                section.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return tuple({word: tuple(found) for word, found in one.items()} for one in (verbs, others))  # type: ignore[return-value]
