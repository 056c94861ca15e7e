"""Matching of a URI against the URI templates (RFC 6570) from which it may have been made.

Never here: filling templates in, the values of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

URI_LONGEST = 8192  # characters; longer URIs match no template
PARTS_MOST = 64  # literals and expressions of a template; one with more matches nothing

# Operator -> the beginning of an expansion, and the characters that it cannot hold (RFC 6570, 3.2).
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

Part = tuple[str, str | None]  # a literal and None, or how an expansion begins and what it cannot hold


def match_template(uri: str, templates: Iterable[str]) -> list[str]:
    """Return the templates that `uri` fits with the most literal characters; [] if it fits none."""
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
    """Return where an expansion may end: at its start (an undefined variable), or anywhere up to an excluded character.

    Every position is visited once, so that no template can make this slow.
    """
    ends = set(starts)
    reached = -1
    for start in sorted(starts):
        first = start + len(begins)
        if first > reached and uri.startswith(begins, start):
            reached = next((i for i in range(first, len(uri)) if uri[i] in excluded), len(uri))
            ends.update(range(first, reached + 1))
    return ends
