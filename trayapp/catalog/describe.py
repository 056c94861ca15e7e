"""Descriptions of a tool: its parameters on one line for a search result, or all details for people and models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from trayapp.model.json_schema import properties_of, referenced, required_of

COMPACT_PARAMETERS = 12  # parameters on one line, required ones first; the others are only counted
COMPACT_ENUM = 8  # values of one parameter on one line
COMPACT_VALUE = 40  # characters of one value
COMPACT_DEPTH = 2  # levels of objects on one line
DEPTH_MOST = 8  # levels of a description: recursive schemas have no end
LINES_MOST = 400  # lines for one description's parameters
INDENT = "  "

# Keywords that are shown after a parameter, in this order: `[minimum: 1]`.
_LIMITS = (
    "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
    "maxItems", "uniqueItems", "minProperties", "maxProperties", "format", "pattern", "default",
)  # fmt: skip
_CHOICES = ("oneOf", "anyOf", "allOf")


def compact(tool: Mapping[str, Any]) -> str:
    """Return the parameters of `tool` on one line: `(query: string, limit?: integer = 10, state?: "open"|"closed")`."""
    schema = tool.get("inputSchema")
    return f"({_compact_object(schema, _Scope(schema), 1)})" if isinstance(schema, Mapping) else "()"


def describe(tool: Mapping[str, Any], exposed_name: str, server: str) -> str:
    """Return a full description: names, text, and each parameter with type, `*required*`, enums, defaults, nesting."""
    name, given = tool.get("name"), tool.get("annotations")
    annotations = given if isinstance(given, Mapping) else {}
    title = tool.get("title") or annotations.get("title")
    other = f"{name} of " if isinstance(name, str) and name != exposed_name else ""
    head = f"{exposed_name} ({other}server {server})"
    description = tool.get("description")
    told = [text.strip() for text in (title, description) if isinstance(text, str) and text.strip()]
    known = {"readOnlyHint": "read-only", "destructiveHint": "destructive", "idempotentHint": "idempotent"}
    hints = [word for key, word in known.items() if annotations.get(key) is True]
    marks = [f"Hints: {', '.join(hints)}"] if hints else []
    return "\n".join([head, *told, *marks, "", "Parameters:", parameters(tool.get("inputSchema"))])


def parameters(schema: Any) -> str:
    """Return the parameters of an input schema, one per line, indented by nesting, or `(no parameters)`."""
    lines = list(islice(_Scope(schema).lines(schema), LINES_MOST + 1))
    return "\n".join([*lines[:LINES_MOST], "..."] if len(lines) > LINES_MOST else lines)


class _Scope:
    """The scope in which the references of one schema are resolved."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def opened(self, schema: Any) -> Mapping[str, Any]:
        """Return `schema` merged into the target of its `$ref`, or {} if it is not an object."""
        for _ in range(DEPTH_MOST):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str):
                break
            target = referenced(self._root, reference) if reference != "#" else None
            target = target if isinstance(target, Mapping) else {}
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema if isinstance(schema, Mapping) else {}

    def lines(self, schema: Any) -> Iterator[str]:
        """Yield the lines of each parameter of a tool, or one line about the schema if it names none."""
        if not isinstance(schema, Mapping):
            yield "(no schema)"
            return
        schema = self.opened(schema)
        inner = chain(self._properties(schema, 0), self._choices(schema, 0))
        first = next(inner, None)
        if first is not None:
            yield from chain([first], inner)
        elif isinstance(schema.get("properties"), Mapping) or schema.get("additionalProperties") is False:
            yield "(no parameters)"
        else:
            yield f"({_kind(schema, 'complex schema')})"

    def _properties(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        required = required_of(schema)
        for name, inner in properties_of(schema).items():
            yield from self._parameter(str(name), inner, depth, name in required)

    def _parameter(self, name: str, schema: Any, depth: int, required: bool = False) -> Iterator[str]:
        if schema is False:
            return
        schema = self.opened(schema)
        kind = _kind(schema, "")
        head = f"{INDENT * depth}{name} ({kind})" if kind else f"{INDENT * depth}{name}"
        yield _line(head, schema, "*required*" if required else "")
        if depth < DEPTH_MOST:
            yield from self._inside(schema, depth + 1)

    def _inside(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        yield from self._properties(schema, depth)
        items, extra = schema.get("items"), schema.get("additionalProperties")
        if isinstance(items, Mapping) and items:
            yield from self._parameter("items", items, depth)
        if isinstance(extra, Mapping) and extra:
            yield from self._parameter("(any name)", extra, depth)
        yield from self._choices(schema, depth)

    def _choices(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        for key in _CHOICES:
            choices = schema.get(key)
            if not isinstance(choices, list) or not choices or _is_nullable(schema):
                continue
            yield f"{INDENT * depth}{key}:"
            for choice in map(self.opened, choices):
                yield _line(f"{INDENT * (depth + 1)}- {_kind(choice, 'any')}", choice)
                if depth + 1 < DEPTH_MOST:
                    yield from self._inside(choice, depth + 2)


def _kind(schema: Mapping[str, Any], otherwise: str) -> str:
    """Return a type in words: `integer`, `string | null`, `enum: "a", "b"`, `const 1`; `otherwise` if none is given."""
    if "const" in schema:
        return f"const {_value(schema['const'])}"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return f"enum: {', '.join(map(_value, values))}"
    types = schema.get("type")
    if not types and _is_nullable(schema):
        types = [inner.get("type") for key in ("anyOf", "oneOf") for inner in schema.get(key, ())]
    if isinstance(types, list):
        return " | ".join(map(str, types))
    if types:
        return str(types)
    return "object" if isinstance(schema.get("properties"), Mapping) else "array" if "items" in schema else otherwise


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    """Return True for an `anyOf` or `oneOf` of one plain type and null, as Python libraries write an optional value."""
    choices = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(choices, list) or len(choices) != 2:
        return False
    plain = [inner for inner in choices if isinstance(inner, Mapping) and set(inner) == {"type"}]
    return len(plain) == 2 and {"type": "null"} in plain


def _line(head: str, schema: Mapping[str, Any], mark: str = "") -> str:
    """Return the line of a parameter or of an alternative: `head`, `mark`, its description and its limits."""
    description = schema.get("description")
    told = f"- {' '.join(description.split())}" if isinstance(description, str) and description.strip() else ""
    limits = (f"[{key}: {_value(schema[key])}]" for key in _LIMITS if key in schema)
    return " ".join(filter(None, (head, mark, told, *limits)))


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _compact_object(schema: Any, scope: _Scope, depth: int) -> str:
    """Return an object as `a: string, b?: integer`: required members first, each group in the server's order."""
    schema = scope.opened(schema)
    properties, required = schema.get("properties"), required_of(schema)
    if not isinstance(properties, Mapping):
        return "" if depth == 1 else "..."
    shown = list[str]()
    for name in sorted(properties, key=lambda name: name not in required):
        inner = scope.opened(properties[name])
        default = inner.get("default")
        given = f" = {_cut(_value(default))}" if default not in (None, "", [], {}) else ""
        shown.append(f"{name}{'' if name in required else '?'}: {_compact_type(inner, scope, depth)}{given}")
    more = [f"... {len(shown) - COMPACT_PARAMETERS} more"] if len(shown) > COMPACT_PARAMETERS else []
    return ", ".join([*shown[:COMPACT_PARAMETERS], *more])


def _compact_type(schema: Mapping[str, Any], scope: _Scope, depth: int) -> str:
    if "const" in schema:
        return _cut(_value(schema["const"]))
    values = schema.get("enum")
    if isinstance(values, list) and values:
        shown = [_cut(_value(value)) for value in values[:COMPACT_ENUM] if value is not None]
        return "|".join([*shown, "..."] if len(values) > COMPACT_ENUM else shown)
    if isinstance(schema.get("properties"), Mapping) and depth < COMPACT_DEPTH:
        return f"{{{_compact_object(schema, scope, depth + 1)}}}"
    if schema.get("type") == "array" or "items" in schema:
        inner = scope.opened(schema.get("items"))
        kind = _compact_type(inner, scope, depth) if inner and depth < DEPTH_MOST else "any"
        return f"({kind})[]" if "|" in kind and not kind.startswith("{") else f"{kind}[]"
    return "|".join(kind for kind in dict.fromkeys(_compact_kinds(schema, scope, depth)) if kind != "null") or "null"


def _compact_kinds(schema: Mapping[str, Any], scope: _Scope, depth: int) -> list[str]:
    kind = schema.get("type")
    if kind:
        return [str(one) for one in (kind if isinstance(kind, list) else [kind])]
    choices: list[Any] = next((schema[key] for key in _CHOICES if isinstance(schema.get(key), list)), [])
    if not choices or depth >= DEPTH_MOST:
        return ["any"]
    return [_compact_type(scope.opened(choice), scope, depth + 1) for choice in choices[:COMPACT_ENUM]]


def _cut(text: str) -> str:
    return text if len(text) <= COMPACT_VALUE else f"{text[: COMPACT_VALUE - 3]}..."
