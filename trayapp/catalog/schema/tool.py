"""Definitions of tools, prompts, resources and templates as a client gets them.

Their members have the types that MCP requires. Tools also have exposed names, and schemas that every client accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trayapp.catalog.schema.mending import Mender, Schema, is_number, is_text, is_whole
from trayapp.model.offer import Item
from trayapp.wire.jsonio import well_formed
from trayapp.wire.mirror_headers import why_no_headers

RULES = 3  # increase it with each change to `served_tool`, so that sound tools are checked again
REASON_LONGEST = 120  # characters of a server's text in a reason
_MERGED = ("oneOf", "anyOf", "allOf")
_FORBIDDEN = (*_MERGED, "enum", "const", "not")  # clients that read only a schema's `properties` miss these
_PUT_BESIDE = ("$ref", "enum", "const")  # a schema with one of these does more than limit its parameters
_TASKS = ("forbidden", "optional", "required")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class WithheldTool(NamedTuple):
    """A tool that no client could accept. `reason` is one line for people."""

    reason: str


def served_tool(item: Item, exposed_name: str, schema: Schema | None = None) -> Item:
    """Return a copy of `item` under `exposed_name` as a valid MCP tool, even if the tool is withheld.

    Every other valid field is kept, in its order. `schema`: the tool's input schema, if it was already repaired. An
    output schema that allows values other than objects is left out: no revision before 2026-07-28 has such results
    (SEP-2106).
    """
    served = _valid(item, _TOOL_CHECKS)
    if given := served.get("annotations"):
        wrong = [key for key in _HINTS if key in given and not isinstance(given[key], bool)]
        wrong += ["title"] if "title" in given and not isinstance(given["title"], str) else []
        served["annotations"] = {key: value for key, value in given.items() if key not in wrong} if wrong else given
    if "outputSchema" in served:
        output = repair(served["outputSchema"])
        if not isinstance(output, WithheldTool) and not allows_others(served["outputSchema"]):
            served = {**served, "outputSchema": output}
        else:
            served = {key: value for key, value in served.items() if key != "outputSchema"}
    schema = schema if schema is not None else repaired(item.get("inputSchema"))
    return {**served, "name": exposed_name, "inputSchema": schema}


def allows_others(schema: Any) -> bool:
    """Return True if a schema allows values other than objects, by its `type` or the `type` of an alternative."""
    if not isinstance(schema, dict):
        return False
    if (kind := schema.get("type")) is not None:
        return bool(kind != "object")
    ways = [way for name in ("anyOf", "oneOf") if isinstance(found := schema.get(name), list) for way in found]
    return any(map(allows_others, ways))


def is_sound(item: Item) -> bool:
    """Return True if clients get a tool's definition unchanged, apart from its name."""
    found = repair(item.get("inputSchema"))
    if isinstance(found, WithheldTool) or found is not item.get("inputSchema"):
        return False
    return served_tool(item, str(item.get("name")), found) == item


def repaired(schema: Any) -> Schema:
    """Return a schema as clients get it, or one that allows any object if it cannot be repaired."""
    found = repair(schema)
    return {"type": "object", "properties": {}} if isinstance(found, WithheldTool) else found


def repair(schema: Any) -> Schema | WithheldTool:
    """Return a tool's input or output schema as MCP requires it: `type: object`, with all parameters in `properties`.

    Parameters in a `oneOf`, `anyOf`, `allOf` or `$ref` at the top move there, too. The result allows all that the
    original allows. A value that is not a schema becomes one for any object. Return the same object if nothing was
    wrong. Return a WithheldTool if the schema describes no object, has a list of properties or an unresolvable `$ref`
    at the top, or requires headers that no client may send.
    """
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    mender = Mender(schema)
    mended = mender.mended(_tolerated(schema))
    if "$ref" in schema and "$ref" not in mended and not mended.get("properties"):
        return WithheldTool(f"its input schema is {str(schema['$ref'])[:REASON_LONGEST]}, which cannot be resolved")
    found = _at_top(mended, mender)
    if found is None or _only(found.get("type")):
        what = f": {str(found['type'])[:REASON_LONGEST]}" if found is not None else ""
        return WithheldTool(f"its input schema does not describe an object{what}")
    if isinstance(schema.get("properties"), list) and schema["properties"]:
        return WithheldTool("the properties of its input schema are a list")
    if (why := why_no_headers(schema)) is not None:
        return WithheldTool(why)
    return found if found.get("type") == "object" else {**found, "type": "object"}


def _tolerated(schema: Schema) -> Schema:
    """Return a schema without nulls and `properties: []` (PHP's empty object), with `required: "a"` as a list."""
    found = {key: value for key, value in schema.items() if value is not None and (key, value) != ("properties", [])}
    if isinstance(found.get("required"), str) and found["required"]:
        found["required"] = [found["required"]]
    return found if len(found) < len(schema) or found != schema else schema


def _only(kind: Any) -> bool:
    """Return True if a `type` excludes objects."""
    return kind is not None and "object" not in (kind if isinstance(kind, list) else [kind])


def _at_top(schema: Schema, mender: Mender) -> Schema | None:
    """Return `schema` with a `$ref`, `oneOf`, `anyOf` or `allOf` at its top merged into it.

    Combinations that only limit the listed parameters stay (MCP tools, JSON Schema 2020-12). Otherwise, `enum`,
    `const` and `not` at the top are dropped, too. Return None if the result cannot be an object.
    """
    if "$ref" not in schema and not any(key in schema for key in _FORBIDDEN):
        return schema
    if schema.get("type") == "object" and "properties" in schema and _only_limits(schema, set(schema["properties"])):
        return schema
    kept = {key: value for key, value in schema.items() if key not in (*_FORBIDDEN, "$ref")}
    target = _target(schema, mender)
    if "$ref" in schema and target is None:
        return None
    every = [target, *schema.get("allOf", ())]
    parts = [_opened(part, mender) for part in every if isinstance(part, dict)]
    if any(_only(part.get("type")) for part in parts):
        return None
    merged = _all_of([kept, *parts])
    for key in ("oneOf", "anyOf"):
        choices = [_opened(part, mender) for part in schema.get(key, ()) if isinstance(part, dict)]
        objects = [part for part in choices if not _only(part.get("type"))]
        if choices and not objects:
            return None
        if objects:
            merged = _all_of([merged, _any_of(objects)])
    return merged


def _only_limits(schema: Schema, named: set[str], depth: int = 0) -> bool:
    """Return True if combinations at the top constrain only `named` parameters, which every client reads."""
    if depth > 3 or not schema.get("properties", {}).keys() <= named or any(key in schema for key in _PUT_BESIDE):
        return False
    inner = [part for key in _MERGED for part in schema.get(key, ()) if isinstance(part, dict)]
    return not any(_only(part.get("type")) for part in inner) and all(_only_limits(p, named, depth + 1) for p in inner)


def _target(schema: Schema, mender: Mender) -> Schema | None:
    target = mender.resolve(schema["$ref"]) if isinstance(schema.get("$ref"), str) else None
    return mender.mended(target) if isinstance(target, dict) and target is not schema else None


def _opened(part: Schema, mender: Mender, depth: int = 0) -> Schema:
    """Return one part of a combination, with a reference and combinations at its own top merged into it."""
    if "$ref" in part:
        part = {**(_target(part, mender) or {}), **{key: value for key, value in part.items() if key != "$ref"}}
    nested = [inner for key in _MERGED for inner in part.get(key, ()) if isinstance(inner, dict)]
    plain = {key: value for key, value in part.items() if key not in _FORBIDDEN}
    if not nested or depth > 3:
        return plain
    opened = [_opened(inner, mender, depth + 1) for inner in nested]
    return _all_of([plain, _any_of(opened) if "allOf" not in part else _all_of(opened)])


def _all_of(parts: list[Schema]) -> Schema:
    """Return one schema that allows at least what all of `parts` allow together."""
    return _merged(parts, "allOf", [name for part in parts for name in part.get("required", ())])


def _any_of(parts: list[Schema]) -> Schema:
    """Return one schema that allows at least what any of `parts` allows, and requires what all of them require."""
    common = [name for name in parts[0].get("required", ()) if all(name in p.get("required", ()) for p in parts)]
    return _merged(parts, "anyOf", common)


def _merged(parts: list[Schema], how: str, required: list[str]) -> Schema:
    first, *others = parts
    found = {key: value for key, value in first.items() if key != "required"}
    for key in ("$defs", "definitions"):
        inner = {name: value for part in reversed(parts) for name, value in part.get(key, {}).items()}
        found |= {key: inner} if inner else {}
    if any(others):
        found.pop("additionalProperties", None)  # it would refuse what the other parts allow
        found.pop("unevaluatedProperties", None)
    said: dict[str, list[Any]] = {}  # parameter -> the constraints of all parts
    for part in parts:
        for name, schema in part.get("properties", {}).items():
            known = said.setdefault(name, [])
            known += [schema] if schema not in known else []
    found["properties"] = {name: known[0] if len(known) == 1 else {how: known} for name, known in said.items()}
    return found | ({"required": list(dict.fromkeys(required))} if required else {})


def served_entry(item: Item) -> Item:
    """Return `item` without the members whose values MCP does not allow. Unknown members are kept."""
    served = _valid(item, _ENTRY_CHECKS)
    if "arguments" in served:
        named = (one for one in served["arguments"] if isinstance(one, Mapping) and is_text(one.get("name")))
        served["arguments"] = [_argument(one) for one in named]
    if "annotations" in served:
        served["annotations"] = {key: value for key, value in served["annotations"].items() if _is_noted(key, value)}
    return served


def served_resource(item: Item) -> Item:
    """Return a resource or template with valid members and well-formed texts, named by its URI if it has no name."""
    served: Item = well_formed(served_entry(item))
    if "name" not in served:
        served = {**served, "name": well_formed(str(item.get("uri", item.get("uriTemplate"))))}
    return served


def are_icons(value: Any) -> bool:
    """Return True for a list of icons as MCP defines them."""
    return isinstance(value, list) and all(
        isinstance(icon, Mapping)
        and is_text(icon.get("src"))
        and is_text(icon.get("mimeType", ""))
        and icon.get("theme", "light") in ("light", "dark")
        and isinstance(sizes := icon.get("sizes", []), list)
        and all(map(is_text, sizes))
        for icon in value
    )


def _argument(argument: Mapping[str, Any]) -> Mapping[str, Any]:
    wrong: list[str] = [key for key in ("title", "description") if key in argument and not is_text(argument[key])]
    wrong += ["required"] if "required" in argument and not isinstance(argument["required"], bool) else []
    return {key: value for key, value in argument.items() if key not in wrong} if wrong else argument


def _is_noted(key: str, value: Any) -> bool:
    if key == "audience":
        return isinstance(value, list) and all(role in ("user", "assistant") for role in value)
    if key == "priority":
        return is_number(value) and 0 <= value <= 1
    return key != "lastModified" or is_text(value)


_Checks = Mapping[str, Callable[[Any], bool]]

# Members with the types that MCP gives them; any other member is kept.
_COMMON_CHECKS: _Checks = {
    **dict.fromkeys(("title", "description"), is_text),
    **dict.fromkeys(("_meta", "annotations"), lambda value: isinstance(value, Mapping)),
    "icons": are_icons,
}
_TOOL_CHECKS: _Checks = {
    **_COMMON_CHECKS,
    "execution": lambda value: isinstance(value, Mapping) and value.get("taskSupport", "optional") in _TASKS,
    "outputSchema": lambda value: value is not None,
}
_ENTRY_CHECKS: _Checks = {
    **_COMMON_CHECKS,
    **dict.fromkeys(("name", "mimeType"), is_text),
    "arguments": lambda value: isinstance(value, list),
    "size": lambda value: is_number(value) and is_whole(value),
}


def _valid(item: Item, checks: _Checks) -> Item:
    return {key: value for key, value in item.items() if (check := checks.get(key)) is None or check(value)}
