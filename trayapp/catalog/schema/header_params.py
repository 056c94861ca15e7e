"""Arguments that a client repeats in HTTP headers: the annotation `x-mcp-header` in a tool's input schema, and whether
it is what MCP says (2026-07-28, transports, custom headers from tool parameters).

Never here: HTTP, values of headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

ANNOTATION = "x-mcp-header"
SHOWN = 40  # characters of what a server sent, in a reason
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2: what a header's name may be
_TYPES = frozenset({"string", "integer", "boolean"})  # those whose text everybody writes alike
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
_SINGLE = frozenset({
    "items", "additionalItems", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
    "propertyNames", "not", "if", "then", "else", "contentSchema",
})  # fmt: skip


def why_no_headers(schema: Any) -> str | None:
    """Why a client must not use a tool with this input schema; None when its annotations are fine, or none are there.

    Each stands at a parameter (inner ones of objects too) that is a text, an integer or a boolean, and names a header
    of its own.
    """
    taken: set[str] = set()
    for place, part in _parts(schema):
        if ANNOTATION not in part:
            continue
        header, where = part[ANNOTATION], ".".join(place or ())[:SHOWN]
        if not where:
            return f"{ANNOTATION} stands where no parameter is"
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{ANNOTATION} of {where} is no name of a header: {header!r:.{SHOWN}}"
        if not isinstance(part.get("type"), str) or part["type"] not in _TYPES:
            return f"{ANNOTATION} of {where} stands at neither a string nor an integer nor a boolean"
        if header.lower() in taken:
            return f"{ANNOTATION} of {where} is another parameter's, too: {header[:SHOWN]}"
        taken.add(header.lower())
    return None


def header_params(schema: Any) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield each parameter that is repeated: the names that lead to it, its header's name, its type.

    Of a schema for which `why_no_headers` is None.
    """
    for place, part in _parts(schema):
        if place and ANNOTATION in part:
            yield place, part[ANNOTATION], part["type"]


def _parts(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every schema inside a schema, with the names of the parameters that lead to it; None where something else does.

    References are not followed.
    """
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while waiting:
        place, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield place, part
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                waiting += [((*place, name) if place is not None else None, one) for name, one in value.items()]
            elif key in _MAPS and isinstance(value, dict):
                waiting += [(None, one) for one in value.values()]
            elif key in _LISTS and isinstance(value, list):
                waiting += [(None, one) for one in value]
            elif key in _SINGLE:
                waiting.append((None, value))
