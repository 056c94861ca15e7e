"""Comparison of two definitions of one tool: the differences as lines for people, and whether old calls remain valid.

All functions are pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from typing import Any

import orjson

from trayapp.catalog.approval_store import PINNED, PINNED_SET
from trayapp.catalog.schema.mending import TYPES
from trayapp.inspection.hidden import folded, is_mostly_ascii
from trayapp.model.json_schema import properties_of, required_of
from trayapp.model.offer import Item
from trayapp.model.text import count

LINES_MOST = 1_000  # lines of a difference
LINE_LONGEST = 200  # characters; longer lines are wrapped, not cut, since the user must see all that they approve
TEXT_LONGEST = 100_000  # characters of one field that are compared
DEEPEST = 12

# Keywords that limit no value, and those that `_fits` reads. Any other keyword of the new schema must be the same in
# the old one. The new schema must keep every combination and `$ref` of the old one.
_LIMITS_IGNORED = frozenset(
    {"description", "title", "default", "examples", "example", "$schema", "$id", "$comment", "deprecated"}
)
_READ = frozenset({"type", "properties", "required", "additionalProperties", "enum", "items", "$defs", "definitions"})


def difference(old: Item, new: Item) -> list[str]:
    """Return the differences by field (`- ` approved, `+ ` current, `  ` unchanged), cut to LINES_MOST lines."""
    import difflib  # takes 1 ms; loaded only when a person looks at a definition

    lines: list[str] = []
    for field in (*PINNED, *sorted((old.keys() | new.keys()) - PINNED_SET)):
        one, other = old.get(field), new.get(field)
        if _same(one, other):
            continue
        before, after = _lines(one), _lines(other)
        if before != after:
            lines.append(f"{field}:")
            found = difflib.unified_diff(before, after, lineterm="", n=1)
            lines += [f"{line[:1]} {line[1:]}" for line in found if not line.startswith(("---", "+++", "@@"))]
    rest = len(lines) - LINES_MOST
    return lines if rest <= 0 else [*lines[:LINES_MOST], f"... and {count(rest, 'more line')}"]


def _same(one: Any, other: Any) -> bool:
    """Return True if two values are certainly the same JSON. 1 and true are not."""
    try:
        return one == other and orjson.dumps(one) == orjson.dumps(other)
    except TypeError:  # a lone surrogate, a large integer, deep nesting
        return False


def _lines(value: Any) -> list[str]:
    """Return a field's value as lines. Invisible characters become escapes, so that changes in them are visible."""
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    rest = text[TEXT_LONGEST:]
    mark = hashlib.blake2b(rest.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest() if rest else ""
    more = [f"... and {count(len(rest), 'more character')} ({mark})"] if rest else []
    escaped = is_mostly_ascii(text)
    whole = [_visible(line, escaped) for line in text[:TEXT_LONGEST].split("\n")]
    cut = [line[at : at + LINE_LONGEST] for line in whole for at in range(0, len(line) or 1, LINE_LONGEST)]
    return cut + more


def _visible(line: str, look_alikes: bool) -> str:
    """Return a line with invisible characters as escapes and, if `look_alikes`, look-alikes of ASCII letters, too."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        f"<U+{ord(c):04X}>" if not (c.isprintable() or c == "\t") or (look_alikes and folded(c) != c) else c
        for c in line
    )


def still_takes(old: Item, new: Item) -> bool:
    """Return True if the new definition certainly allows each call that the old one allows."""
    return _fits(old.get("inputSchema", {}), new.get("inputSchema", {}), 0)


def _fits(old: Any, new: Any, depth: int) -> bool:
    """Return True if `new` certainly allows all values that `old` allows."""
    if old == new or new is True or new == {}:
        return True
    if not isinstance(old, dict) or not isinstance(new, dict) or depth > DEEPEST:
        return False
    others = (old.keys() | new.keys()) - _READ - _LIMITS_IGNORED
    if any(key in new and new[key] != old.get(key) for key in others):
        return False
    if any(key in old and key not in new and key.startswith(("$ref", "any", "one", "all")) for key in others):
        return False
    refers = "$ref" in json.dumps(old) or "$ref" in json.dumps(new)
    if refers and any(old.get(key) != new.get(key) for key in ("$defs", "definitions")):
        return False
    if "enum" in new:
        before, after = old.get("enum"), new["enum"]
        if not isinstance(before, list) or not isinstance(after, list) or any(one not in after for one in before):
            return False
    return (
        _kinds(old) <= _kinds(new)
        and _members_fit(old, new, depth)
        and _fits(old.get("items", {}), new.get("items", {}), depth + 1)
    )


def _kinds(schema: dict[str, Any]) -> Set[str]:
    kind = schema.get("type")
    named = [kind] if isinstance(kind, str) else kind
    kinds = {one for one in named if isinstance(one, str)} if isinstance(named, list) else TYPES
    return kinds | ({"integer"} if "number" in kinds else set())


def _members_fit(old: dict[str, Any], new: dict[str, Any], depth: int) -> bool:
    before, after = properties_of(old), properties_of(new)
    if not set(required_of(new)) <= set(required_of(old)):
        return False
    if _open(old) is not False and _open(new) is False:
        return False
    if any(name not in after for name in before):  # even if extra members are allowed, the tool would ignore this one
        return False
    return all(_fits(before[name], after[name], depth + 1) for name in before)


def _open(schema: dict[str, Any]) -> bool | None:
    """Return True if a schema allows all members that it does not name, False if none, None if only some."""
    more = schema.get("additionalProperties", True)
    return more if isinstance(more, bool) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# Hint -> the value that lets a client be careless (MCP, ToolAnnotations).
_CARELESS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False}


def in_approved_form(old: Item, new: Item) -> Item:
    """Return the approved definition without the parts that do not apply to the tool as it is listed now.

    No unapproved text is served. A changed output schema is left out, since results come from the current tool. A hint
    that lets a client be careless is kept only if both definitions give it.
    """
    form = {**old}
    if old.get("outputSchema") != new.get("outputSchema"):
        form.pop("outputSchema", None)
    hints = _object(old.get("annotations"))
    if hints:
        now = _object(new.get("annotations"))
        form["annotations"] = {
            key: value
            for key, value in hints.items()
            if key not in _CARELESS or value is not _CARELESS[key] or now.get(key) is value
        }
    return form
