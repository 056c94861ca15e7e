"""Quick screening of definitions, as JSON, for signs of hidden content. Most definitions have none.

The screening finds a sign in every definition in which `inspect.find_concealed` finds something, and in some others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import orjson

from trayapp.inspection import encoded, hidden
from trayapp.inspection.text import READ_MOST
from trayapp.model.offer import Item

# A `_` in a parameter's name is read as a space
_BLANK = r"(?:[ _]|\\[trf])"
_SEPARATOR = r"(?:[ _:,;]|\\[ntr])"
_APART = r"[-._*| \x{80}-\x{10ffff}]{1,2}"  # between spaced-out letters
_OTHER_LETTERS = {"o": "0", "i": "1", "e": "3", "a": "4@", "s": "5$", "t": "7"}
_SIGNS = (
    rf"{hidden.SUSPECTS}|\x{{fe0f}}{{2}}|\\[ub]",
    rf"{_BLANK}{{{hidden.FAR_AWAY}}}|(?:\\n{_BLANK}*){{{hidden.FAR_BELOW}}}",
    r"\\x|&#|%[0-9A-F]",
    rf"(?:[0-9A-Fa-f]{{2,3}}{_SEPARATOR}{{1,2}}){{{encoded.RUN_SHORTEST // 3}}}|[01]{{8}}",
    rf"(?:[^A-Za-z013457@$]|\\[ntrf])[A-Za-z]{_APART}[A-Za-z]{_APART}[A-Za-z][^A-Za-z013457@$]",
)


def may_conceal(*items: Item) -> bool:
    """Return True if at least one of these definitions could hide something."""
    if not all(str(item.get("name", "")).isascii() for item in items):
        return True
    try:
        data = orjson.dumps(items)
    except TypeError:  # raised for a lone surrogate, a large integer, or deep nesting
        return True
    is_long = len(data) > READ_MOST
    return is_long or any(search(data) for search in _searches()) or encoded.may_hold_run(data)


def release() -> None:
    """Free the memory of the searches. The next screening builds them again, in 2 ms."""
    if _searches.cache_info().currsize:
        import re2

        _searches.cache_clear()
        re2.purge()  # otherwise, re2's cache would keep the last 128 patterns


@functools.cache
def _searches() -> tuple[Callable[[bytes], object], ...]:
    """Return the searches for signs. They use RE2, which takes a tenth of the time of `re`.

    A single pattern for all signs would have ten times as many states.
    """
    import re2  # imported at the first check: takes 3 MB and 3 ms, and a cached list needs no check

    options = re2.Options()
    options.never_capture = True
    words = "|".join([*encoded.UNREADABLE, *map(_with_digits, encoded.KEYWORDS)]).replace(" ", "[ _]")
    kinds = ("|".join(_SIGNS), f"(?i:{words})", encoded.PIECES)
    return tuple(re2.compile(kind.encode(), options).search for kind in kinds)


def _with_digits(word: str) -> str:
    """Return a pattern for a word with a digit or a sign in place of at least one letter."""
    usual = [f"[{letter}{_OTHER_LETTERS.get(letter, '')}]" for letter in word]
    return "|".join(
        "".join([*usual[:at], f"[{_OTHER_LETTERS[letter]}]", *usual[at + 1 :]])
        for at, letter in enumerate(word)
        if letter in _OTHER_LETTERS
    )
