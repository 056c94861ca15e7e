"""Rewriting of the addresses in what a server sends, so that they lead back to that server.

Each function returns its argument itself if nothing in it changes. Pure. Never here: the mapping of addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Exposed = Callable[[str], str]  # a server's own address or handle -> the one that its clients know

# Where a tool, a result or a resource names its user interface in `_meta` (SEP-1865 and its predecessors).
UI_KEYS = ("ui/resourceUri", "openai/outputTemplate")
UI, UI_MEMBER = "ui", "resourceUri"


def linked_definition(item: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    """Return a tool, or another object with `_meta`, with the address of its user interface rewritten."""
    meta = item.get("_meta")
    if not isinstance(meta, dict):
        return item
    changed: dict[str, Any] = {key: exposed(meta[key]) for key in UI_KEYS if isinstance(meta.get(key), str)}
    ui = meta.get(UI)
    if isinstance(ui, dict) and isinstance(ui.get(UI_MEMBER), str):
        changed[UI] = {**ui, UI_MEMBER: exposed(ui[UI_MEMBER])}
    changed = {key: value for key, value in changed.items() if value != meta[key]}
    return {**item, "_meta": {**meta, **changed}} if changed else item


def has_ui(item: dict[str, Any]) -> bool:
    """Return True if a tool has its own user interface (MCP Apps)."""
    meta = item.get("_meta")
    if not isinstance(meta, dict):
        return False
    ui = meta.get(UI)
    return (isinstance(ui, dict) and isinstance(ui.get(UI_MEMBER), str)) or isinstance(meta.get(UI_KEYS[0]), str)


def linked_result(result: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    """Return the result of a tool, prompt, resource or skill with its addresses rewritten."""
    changed = {
        "content": _each(result.get("content"), exposed, _linked_part),
        "messages": _each(result.get("messages"), exposed, _linked_message),
        "contents": _each(result.get("contents"), exposed, _linked_entry),
        "resources": _each(result.get("resources"), exposed, _linked_entry),
        "skill": _linked_member(result.get("skill"), exposed, linked_skill),
    }
    kept = {key: value for key, value in changed.items() if key in result and value is not result[key]}
    return linked_definition({**result, **kept} if kept else result, exposed)


def linked_skill(skill: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    """Return a skill's entry with its addresses rewritten."""
    entry = _linked_entry(skill, exposed)
    files = _each(entry.get("resources"), exposed, _linked_entry)
    return entry if files is entry.get("resources") else {**entry, "resources": files}


def _linked_entry(entry: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    uri = entry.get("uri")
    known = exposed(uri) if isinstance(uri, str) else uri
    return linked_definition(entry if known == uri else {**entry, "uri": known}, exposed)


def _linked_part(part: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    if part.get("type") == "resource_link":
        return _linked_entry(part, exposed)
    inside = _linked_member(part.get("resource"), exposed, _linked_entry)
    return part if inside is part.get("resource") else {**part, "resource": inside}


def _linked_message(message: dict[str, Any], exposed: Exposed) -> dict[str, Any]:
    content = message.get("content")
    inside = (
        _each(content, exposed, _linked_part)
        if isinstance(content, list)
        else _linked_member(content, exposed, _linked_part)
    )
    return message if inside is content else {**message, "content": inside}


_Linked = Callable[[dict[str, Any], Exposed], dict[str, Any]]


def _linked_member(value: Any, exposed: Exposed, linked: _Linked) -> Any:
    return linked(value, exposed) if isinstance(value, dict) else value


def _each(values: Any, exposed: Exposed, linked: _Linked) -> Any:
    if not isinstance(values, list):
        return values
    found = [_linked_member(value, exposed, linked) for value in values]
    return values if all(new is old for new, old in zip(found, values, strict=True)) else found
