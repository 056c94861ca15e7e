"""Synonyms, as stems, that people use when they ask for a tool: the general English of synonyms.txt.

Never here: the words themselves, servers' own vocabulary (`settings.synonyms` holds it).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from trayapp.catalog.search.stem import stem

WORDS = Path(__file__).with_name("synonyms.txt")
VERBS = "[verbs]"  # the section of groups that apply to a word used as a verb

Groups = dict[str, tuple[str, ...]]  # stem -> the stems that may stand for it


def synonyms(word: str, *, is_verb: bool) -> tuple[str, ...]:
    """Return the stems that may stand for a stem: those of the noun and, if it is used as a verb, those of the verb.

    A word that is never a noun always counts as a verb.
    """
    verbs, others = _groups()
    named = others.get(word)
    if named is None or not is_verb:
        return verbs.get(word, ()) if named is None else named
    return tuple(dict.fromkeys((*verbs.get(word, ()), *named)))


@lru_cache(maxsize=1)
def _groups() -> tuple[Groups, Groups]:
    """Return the groups of verbs and of other words. Raises OSError if the file is missing."""
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
