"""HTTP headers that repeat parts of a request (MCP 2026-07-28, transports).

They repeat the method, the name of the requested item (`NAMED_BY`), and the arguments that a tool's input schema marks
with `x-mcp-header`. Both the clients' side and the servers' side use this module.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trayapp.wire.capabilities import TASK_METHODS
from trayapp.wire.jsonio import member_at

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER, NAME_HEADER, PARAM_HEADER = "mcp-method", "mcp-name", "mcp-param-"
NAMED_BY = {  # method -> the member of the params that Mcp-Name repeats
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(TASK_METHODS, "taskId"),
}

ANNOTATION = "x-mcp-header"
SHOWN = 40  # characters of a server's text that a reason quotes
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2: a valid header name
_PLAIN = re.compile(r"[ -~]*")
_BASE64 = re.compile(r"=\?base64\?(.*)\?=")
_TYPES = frozenset({"string", "integer", "boolean"})  # types whose values have only one written form
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
_SINGLE = frozenset({
    "items", "additionalItems", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
    "propertyNames", "not", "if", "then", "else", "contentSchema",
})  # fmt: skip


def why_no_headers(schema: Any) -> str | None:
    """Return why a client must not use a tool with this input schema; None if its annotations, if any, are valid.

    Each annotation must be on a parameter of type string, integer or boolean, which may be nested in objects. It must
    name a header that no other parameter names.
    """
    taken: set[str] = set()
    for place, part in _parts(schema):
        if ANNOTATION not in part:
            continue
        header, where = part[ANNOTATION], ".".join(place or ())[:SHOWN]
        if not where:
            return f"{ANNOTATION} is not on a parameter"
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{ANNOTATION} of {where} is not a header name: {header!r:.{SHOWN}}"
        if not isinstance(part.get("type"), str) or part["type"] not in _TYPES:
            return f"{ANNOTATION} of {where} is not on a string, integer or boolean"
        if header.lower() in taken:
            return f"{ANNOTATION} of {where} is used by another parameter: {header[:SHOWN]}"
        taken.add(header.lower())
    return None


def header_params(schema: Any) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield the path, header and type of each parameter that a header repeats.

    The schema must be one for which `why_no_headers` returns None.
    """
    for place, part in _parts(schema):
        if place and ANNOTATION in part:
            yield place, part[ANNOTATION], part["type"]


def argument_headers(schema: Any, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that mirror a call's annotated arguments, except absent ones and values with no text form."""
    texts = {token: text_of(member_at(arguments, *path)) for path, token, _ in header_params(schema)}
    return {PARAM_HEADER + token: encoded(text) for token, text in texts.items() if text is not None}


def text_of(value: Any) -> str | None:
    """Return a value as a client writes it into a header; None if it has no such text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return None


def encoded(text: str) -> str:
    """Return a header's value: the text if it is printable ASCII without outer spaces, or `=?base64?...?=`."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _BASE64.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def decoded(value: str | None) -> str | None:
    """Return a header's text, plain or as `=?base64?...?=`; None if it is missing or its base64 or UTF-8 is invalid."""
    found = _BASE64.fullmatch(value) if value is not None else None
    if found is None:
        return value
    try:
        text = base64.b64decode(found[1], validate=True)
        return text.decode() if base64.b64encode(text).decode() == found[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _parts(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Yield every schema inside a schema, with its path of parameter names.

    The path is None if keywords other than `properties` lead to the schema. References are not followed.
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
