"""List the values that a JSON schema names: an enum, or constants with titles (MCP 2025-11-25, elicitation)."""

from __future__ import annotations

from typing import Any

DEEPEST = 3  # levels of `anyOf`


def choices(schema: Any, levels: int = DEEPEST) -> list[tuple[Any, str]]:
    """Return the values with their titles for people; an empty list if the schema names none."""
    if not isinstance(schema, dict) or levels == 0:
        return []
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        return [(value, str(title)) for value, title in zip(values, titles, strict=True)]
    if "const" in schema:
        return [(schema["const"], str(schema.get("title", schema["const"])))]
    forms = [form for key in ("oneOf", "anyOf") if isinstance(some := schema.get(key), list) for form in some]
    return [one for form in forms for one in choices(form, levels - 1)]
