"""Two definitions of one tool: what differs, in lines for people, and whether calls made by the old one still fit.

Pure. Never here: who approved what (pins).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from trayapp.catalog.pins import PINNED, PINNED_SET
from trayapp.inspection.hidden import folded, is_mostly_ascii
from trayapp.model.offer import Item
from trayapp.model.text import clean

LINES_MOST = 1_000  # of a difference
LINE_LONGEST = 200  # characters: a longer line goes on in the next, since what is approved must be seen whole
TEXT_LONGEST = 100_000  # characters of one field that are compared
DEEPEST = 12

# What a server may have said of a value besides its type: calls fit when it says the same, or nothing, now.
_LIMITS_IGNORED = frozenset(
    {"description", "title", "default", "examples", "example", "$schema", "$id", "$comment", "deprecated"}
)
_READ = frozenset({"type", "properties", "required", "additionalProperties", "enum", "items", "$defs", "definitions"})


def difference(old: Item, new: Item) -> list[str]:
    """Lines as of a unified diff: `- ` what was approved, `+ ` what the server says now, `  ` around it. Cleaned."""
    import difflib  # 1 ms, for definitions that a person looks at

    lines: list[str] = []
    for field in (*PINNED, *sorted((old.keys() | new.keys()) - PINNED_SET)):
        before, after = _lines(old.get(field)), _lines(new.get(field))
        if before != after:
            lines.append(f"{field}:")
            found = difflib.unified_diff(before, after, lineterm="", n=1)
            lines += [f"{line[:1]} {line[1:]}" for line in found if not line.startswith(("---", "+++", "@@"))]
    rest = len(lines) - LINES_MOST
    return lines if rest <= 0 else [*lines[:LINES_MOST], f"... and {rest} more lines"]


def whole(item: Item) -> list[str]:
    """A definition that nothing is compared with, in the same lines."""
    return difference({}, item)


def _lines(value: Any) -> list[str]:
    """A field as lines. What draws nothing stands as an escape: a change of it is one, too."""
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    rest = text[TEXT_LONGEST:]
    mark = hashlib.blake2b(rest.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest() if rest else ""
    more = [f"... and {len(rest)} more characters ({mark})"] if rest else []
    escaped = is_mostly_ascii(text)
    whole = (_visible(line, escaped) for line in text[:TEXT_LONGEST].split("\n"))
    return [part for line in whole for part in _wrapped(line)] + more


def _wrapped(line: str) -> list[str]:
    return [line[at : at + LINE_LONGEST] for at in range(0, len(line), LINE_LONGEST)] or [""]


def _visible(line: str, look_alikes: bool) -> str:
    """What draws nothing as an escape; and in a text of ASCII letters those that only look like them."""
    plain = clean(line) == line and (line.isprintable() or line.replace("\t", " ").isprintable())
    if plain and (not look_alikes or line.isascii() or folded(line) == line):
        return line
    return "".join(
        f"<U+{ord(c):04X}>" if not (c.isprintable() or c == "\t") or (look_alikes and folded(c) != c) else c
        for c in line
    )


def still_takes(old: Item, new: Item) -> bool:
    """Whether each call that the old definition allows is one that the new definition allows; in doubt not."""
    return _fits(old.get("inputSchema", {}), new.get("inputSchema", {}), 0)


def _fits(old: Any, new: Any, depth: int) -> bool:
    """Whether all values of `old` are of `new`."""
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
    return (
        _kinds(old) <= _kinds(new)
        and _choices_fit(old, new)
        and _members_fit(old, new, depth)
        and _fits(old.get("items", {}), new.get("items", {}), depth + 1)
    )


def _kinds(schema: dict[str, Any]) -> set[str]:
    every = {"object", "array", "string", "number", "integer", "boolean", "null"}
    kind = schema.get("type")
    kinds = (
        {kind}
        if isinstance(kind, str)
        else {k for k in kind if isinstance(k, str)}
        if isinstance(kind, list)
        else every
    )
    return kinds | ({"integer"} if "number" in kinds else set())


def _choices_fit(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if "enum" not in new:
        return True
    before, after = old.get("enum"), new["enum"]
    return isinstance(before, list) and isinstance(after, list) and all(choice in after for choice in before)


def _members_fit(old: dict[str, Any], new: dict[str, Any], depth: int) -> bool:
    before, after = _object(old.get("properties")), _object(new.get("properties"))
    if not set(_list(new.get("required"))) <= set(_list(old.get("required"))):
        return False
    if _open(old) is not False and _open(new) is False:
        return False
    if any(name not in after for name in before):  # also where any member is taken: it would mean nothing any more
        return False
    return all(_fits(before[name], after[name], depth + 1) for name in before)


def _open(schema: dict[str, Any]) -> bool | None:
    """Whether a schema takes members that it does not name: True, False, or None where only some."""
    more = schema.get("additionalProperties", True)
    return more if isinstance(more, bool) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def in_approved_form(old: Item, new: Item) -> Item:
    """The tool as the server lists it now, in the words that were approved.

    Nothing is served that nobody has looked at. Its results come from the new tool: a result schema that changed is
    left out, and of two hints about what a call does the more careful one counts.
    """
    form = {**old}
    if old.get("outputSchema") != new.get("outputSchema"):
        form.pop("outputSchema", None)
    hints = _object(old.get("annotations"))
    if hints:
        now = _object(new.get("annotations"))
        form["annotations"] = {key: value for key, value in hints.items() if not _is_less_careful(key, value, now)}
    return form


# The value by which a hint lets a client be careless (MCP, ToolAnnotations).
_CARELESS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False}


def _is_less_careful(key: str, value: Any, now: dict[str, Any]) -> bool:
    return key in _CARELESS and value is _CARELESS[key] and now.get(key) is not value
