"""Repair of the JSON Schemas that servers actually send. No repair makes a schema stricter.

A part that cannot be interpreted is replaced by one that allows anything. The server then decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trayapp.model.json_schema import referenced

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
# Type names from programming languages; lower case.
_TYPE_NAMES = {
    "str": "string", "text": "string", "char": "string", "date": "string", "datetime": "string", "uuid": "string",
    "int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "float": "number", "double": "number",
    "decimal": "number", "bool": "boolean", "dict": "object", "map": "object", "list": "array", "none": "null",
}  # fmt: skip

DEPTH_MOST = 40  # levels; models would not read deeper ones, and some clients' parsers fail
ENUM_MOST = 1_000  # values; more would cost a model more tokens than the rest of the catalog
ENUM_SHOWN = 5  # values of a longer enum that the description names

_KNOWN_DIALECTS = ("http://json-schema.org/draft-", "https://json-schema.org/draft/")

Schema = dict[str, Any]


class Mender:
    """The repair of one schema with all its parts."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._tuples = "draft-0" in str(root.get("$schema"))  # dialects in which `items` may be a list

    def mended(self, schema: Schema, depth: int = 0) -> Schema:
        """Return `schema` with all parts valid, or the same object if nothing was wrong."""
        found = {key: value for key, value in schema.items() if (check := _VALID.get(key)) is None or check(value)}
        found = _flags_lifted(self._modern(self._referring(found)))
        found = {key: self._part(key, value, depth) for key, value in found.items()}
        return schema if _is_same(schema, found) else found

    def resolve(self, reference: str) -> Any:
        """Return the target of a local reference, through further references, or None if they lead nowhere."""
        seen: set[str] = set()
        while reference not in seen:
            seen.add(reference)
            target = referenced(self._root, reference)
            if not isinstance(target, Mapping) or not isinstance(target.get("$ref"), str) or len(target) > 1:
                return target
            reference = target["$ref"]
        return None

    def _part(self, key: str, value: Any, depth: int) -> Any:
        if key in _SCHEMA_LISTS or (isinstance(value, list) and key == "items"):
            inner = [self._inner(schema, depth) for schema in value]
            return value if all(new is old for new, old in zip(inner, value, strict=True)) else inner
        if key in _SCHEMAS:
            return value if isinstance(value, bool) and key in _FREE else self._inner(value, depth)
        if key in _SCHEMA_MAPS or key == "dependencies":
            names = key == "dependencies"  # some of its values are lists of names
            named = {
                name: schema if names and isinstance(schema, list) else self._inner(schema, depth)
                for name, schema in value.items()
            }
            return value if _is_same(value, named) else named
        return value

    def _inner(self, value: Any, depth: int) -> Any:
        if isinstance(value, bool):
            return {} if value else {"not": {}}  # MCP requires an object as the schema of a parameter
        return self.mended(value, depth + 1) if isinstance(value, dict) and depth + 1 < DEPTH_MOST else {}

    def _referring(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        if reference is None or isinstance(self.resolve(reference), dict | bool):
            return schema
        if not {reference, reference.lstrip("#")}.isdisjoint(_anchors(self._root)):
            return schema
        return {key: value for key, value in schema.items() if key != "$ref"}

    def _modern(self, schema: Schema) -> Schema:
        """Return a schema with current spellings, types by their standard names, and no enum longer than ENUM_MOST."""
        found = dict(schema)  # draft-04: `exclusiveMinimum: true` takes over the number of `minimum`
        for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(found.get(key), bool) and found.pop(key) and bound in found:
                found[key] = found.pop(bound)
        if isinstance(found.get("items"), list) and not self._tuples:
            found["prefixItems"] = found.pop("items")
            if "additionalItems" in found:
                found["items"] = found.pop("additionalItems")
            if not found["prefixItems"]:
                del found["prefixItems"]
        return _short(_typed(found))


def _typed(schema: Schema) -> Schema:
    if "type" not in schema:
        return schema
    given = schema["type"]
    names = [
        _TYPE_NAMES.get(name.lower(), name.lower()) if isinstance(name, str) else "any"
        for name in (given if isinstance(given, list) else [given])
    ]
    known = list(dict.fromkeys(name for name in names if name in TYPES))
    if known and given in (known, known[0]):
        return schema
    if len(known) < len(set(names)) or not known:  # an unknown type may mean anything
        return {key: value for key, value in schema.items() if key != "type"}
    return {**schema, "type": known if isinstance(given, list) else known[0]}


def _short(schema: Schema) -> Schema:
    """Return a schema with an enum longer than ENUM_MOST replaced by a note in the description with some values."""
    values = schema.get("enum")
    if not isinstance(values, list) or len(values) <= ENUM_MOST:
        return schema
    shown = ", ".join(str(value)[:80] for value in values[:ENUM_SHOWN])
    told = f"{schema.get('description') or ''} (one of {len(values)} values, such as {shown})".strip()
    return {**{key: value for key, value in schema.items() if key != "enum"}, "description": told}


def _flags_lifted(schema: Schema) -> Schema:
    """Return a schema with `required: true` at a parameter (draft-03) moved to the object's list of names."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(_flag(inner) is not None for inner in properties.values()):
        return schema
    named = [name for name, inner in properties.items() if _flag(inner)]
    required = list(dict.fromkeys([*schema.get("required", []), *named]))
    bare = {
        name: inner if _flag(inner) is None else {key: value for key, value in inner.items() if key != "required"}
        for name, inner in properties.items()
    }
    return {**schema, "properties": bare, **({"required": required} if required else {})}


def _is_same(before: Schema, after: Schema) -> bool:
    """Return True if nothing was replaced. Comparison is by identity, so that a schema is not walked once per level."""
    return len(before) == len(after) and all(after.get(key, before) is value for key, value in before.items())


def _flag(schema: Any) -> bool | None:
    flag = schema.get("required") if isinstance(schema, dict) else None
    return flag if isinstance(flag, bool) else None


def _anchors(value: Any, depth: int = 0) -> list[str]:
    """Return all names that a reference may use instead of a path: `$anchor`, `$dynamicAnchor`, `$id`, `id`."""
    if depth > DEPTH_MOST or not isinstance(value, dict | list):
        return []
    if isinstance(value, list):
        return [name for inner in value for name in _anchors(inner, depth + 1)]
    own = [value[key] for key in ("$anchor", "$dynamicAnchor", "$id", "id") if isinstance(value.get(key), str)]
    return [*own, *(name for inner in value.values() for name in _anchors(inner, depth + 1))]


def is_number(value: Any) -> bool:
    """Return True for a JSON number. A boolean is not one, although it is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(number: float) -> bool:
    """Return True for a number without a fraction. False for infinity and NaN."""
    return number % 1 == 0


def is_text(value: Any) -> bool:
    """Return True for a JSON string."""
    return isinstance(value, str)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value)) and len(set(value)) == len(value)


_SCHEMAS = frozenset({
    "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_FREE = _SCHEMAS - {"not", "if", "then", "else", "contains"}  # where `true` and `false` are common and understood
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
           "maxContains")  # fmt: skip
_TEXTS = ("title", "description", "pattern", "format", "$ref", "$id", "id", "$comment", "contentEncoding",
          "contentMediaType", "$anchor", "$dynamicAnchor", "$dynamicRef")  # fmt: skip

_VALID: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_SCHEMAS - {"items"}, _is_schema),
    **dict.fromkeys(
        _SCHEMA_LISTS, lambda value: isinstance(value, list) and bool(value) and all(map(_is_schema, value))
    ),
    **dict.fromkeys(_SCHEMA_MAPS, lambda value: isinstance(value, dict)),
    **dict.fromkeys(_COUNTS, lambda value: is_number(value) and value >= 0 and is_whole(value)),
    **dict.fromkeys(_TEXTS, is_text),
    **dict.fromkeys(("minimum", "maximum"), is_number),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"), lambda value: is_number(value) or isinstance(value, bool)
    ),
    "items": lambda value: _is_schema(value) or isinstance(value, list),
    "multipleOf": lambda value: is_number(value) and value > 0,
    "required": _is_names,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "examples": lambda value: isinstance(value, list),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), lambda value: isinstance(value, bool)),
    "$schema": lambda value: isinstance(value, str) and value.startswith(_KNOWN_DIALECTS),
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    "dependencies": lambda value: (
        isinstance(value, dict) and all(_is_schema(inner) or _is_names(inner) for inner in value.values())
    ),
}
