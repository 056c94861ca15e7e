"""Which URI templates (RFC 6570) a URI may have been made from.

Never here: filling templates in, the values of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

URI_LONGEST = 8192  # characters; what is longer matches no template
PARTS_MOST = 64  # literals and expressions of a template; what has more matches nothing

# Operator -> what an expansion begins with, and the characters that it cannot hold (RFC 6570, 3.2).
_OPERATORS = {
    "": ("", "/?#"),
    "+": ("", ""),
    "#": ("#", ""),
    ".": (".", "/?#"),
    "/": ("/", "?#"),
    ";": (";", "/?#"),
    "?": ("?", "#"),
    "&": ("&", "#"),
}
_EXPRESSION = re.compile(r"\{([+#./;?&]?)[^{}]*\}")

Part = tuple[str, str | None]  # a literal and None, or what an expansion begins with and what it cannot hold


def match_template(uri: str, templates: Iterable[str]) -> list[str]:
    """The templates that `uri` fits, of these the ones with the most literal characters; [] when none fits."""
    if len(uri) > URI_LONGEST:
        return []
    fitting = {template: _literals(template) for template in templates if _fits(uri, template)}
    most = max(fitting.values(), default=0)
    return [template for template, literals in fitting.items() if literals == most]


def _literals(template: str) -> int:
    return sum(len(text) for text, excluded in _parts(template) if excluded is None)


def _fits(uri: str, template: str) -> bool:
    parts = _parts(template)
    if len(parts) > PARTS_MOST:
        return False
    ends = {0}
    for text, excluded in parts:
        ends = _after_literal(uri, ends, text) if excluded is None else _after_expansion(uri, ends, text, excluded)
        if not ends:
            return False
    return len(uri) in ends


@lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[Part, ...]:
    return tuple(_split(template))


def _split(template: str) -> Iterator[Part]:
    end = 0
    for found in _EXPRESSION.finditer(template):
        if found.start() > end:
            yield template[end : found.start()], None
        yield _OPERATORS[found[1]]
        end = found.end()
    if end < len(template):
        yield template[end:], None


def _after_literal(uri: str, starts: set[int], text: str) -> set[int]:
    return {start + len(text) for start in starts if uri.startswith(text, start)}


def _after_expansion(uri: str, starts: set[int], begins: str, excluded: str) -> set[int]:
    """Where an expansion may end: where it starts (an undefined variable), or anywhere up to an excluded character.

    Every position is walked over once, whatever the template: no way to make this slow.
    """
    ends = set(starts)
    reached = -1
    for start in sorted(starts):
        first = start + len(begins)
        if first > reached and uri.startswith(begins, start):
            reached = next((i for i in range(first, len(uri)) if uri[i] in excluded), len(uri))
            ends.update(range(first, reached + 1))
    return ends
