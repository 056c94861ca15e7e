"""Queries on a JSON schema: the values it allows, its members, and the target of a local reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

DEEPEST = 3  # levels of `anyOf`


def choices(schema: Any, levels: int = DEEPEST) -> list[tuple[Any, str]]:
    """Return (value, title) for each value that a schema allows, or [] if it lists none.

    The values are listed in `enum`, or each is the `const` of a schema in `oneOf` or `anyOf` (MCP 2025-11-25,
    elicitation). A value without a title is its own title.
    """
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


def properties_of(schema: Any) -> Mapping[str, Any]:
    """Return the schemas of an object's members by name, or {} if the schema lists none."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the members that a schema requires."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def referenced(root: Any, reference: str) -> Any:
    """Return the part of `root` that a local reference (`#/$defs/a`, RFC 6901) names, or None if there is none."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    here = root
    for step in unquote(reference[1:]).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping):
            here = here.get(step)
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here
