"""Prompts, resources and templates as clients get them, with each member of the type that MCP requires.

A client gets the lists of all servers as one list, and drops all of it for one entry that its schema rejects.
Never here: tools (see schema), choosing names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trayapp.model.offer import Item
from trayapp.wire.jsonio import well_formed

_ROLES = frozenset({"user", "assistant"})


def served_entry(item: Item) -> Item:
    """Return `item` without the members whose values MCP does not allow; unknown members are kept."""
    served = {key: value for key, value in item.items() if (check := _CHECKS.get(key)) is None or check(value)}
    if "arguments" in served:
        named = (one for one in served["arguments"] if isinstance(one, Mapping) and _is_text(one.get("name")))
        served["arguments"] = [_argument(one) for one in named]
    if "annotations" in served:
        served["annotations"] = {key: value for key, value in served["annotations"].items() if _is_noted(key, value)}
    return served


def served_resource(item: Item) -> Item:
    """Return a resource or template without invalid members; one without a name gets its URI as its name."""
    served: Item = well_formed(served_entry(item))
    if "name" not in served:
        served = {**served, "name": well_formed(str(item.get("uri", item.get("uriTemplate"))))}
    return served


def are_icons(value: Any) -> bool:
    """Return True if a client can accept these icons."""
    return isinstance(value, list) and all(
        isinstance(icon, Mapping)
        and _is_text(icon.get("src"))
        and _is_text(icon.get("mimeType", ""))
        and icon.get("theme", "light") in ("light", "dark")
        and isinstance(sizes := icon.get("sizes", []), list)
        and all(map(_is_text, sizes))
        for icon in value
    )


def _argument(argument: Mapping[str, Any]) -> Mapping[str, Any]:
    wrong: list[str] = [key for key in ("title", "description") if key in argument and not _is_text(argument[key])]
    wrong += ["required"] if "required" in argument and not isinstance(argument["required"], bool) else []
    return {key: value for key, value in argument.items() if key not in wrong} if wrong else argument


def _is_noted(key: str, value: Any) -> bool:
    if key == "audience":
        return isinstance(value, list) and all(isinstance(role, str) and role in _ROLES for role in value)
    if key == "priority":
        return _is_number(value) and 0 <= value <= 1
    return key != "lastModified" or _is_text(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "title", "description", "mimeType"), _is_text),
    **dict.fromkeys(("_meta", "annotations"), lambda value: isinstance(value, Mapping)),
    "arguments": lambda value: isinstance(value, list),
    "size": lambda value: _is_number(value) and value == int(value),
    "icons": are_icons,
}
