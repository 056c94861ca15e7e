"""Check of a call's arguments against the tool's input schema, before the server is called.

In doubt, arguments pass and the server decides. Many keywords (such as `format` and `pattern`) are not checked, nor are
references that cannot be resolved. The rules are those of JSON Schema 2020-12, validation vocabulary.

The check is written by hand for three reasons. The jsonschema package takes 9 MiB of the gateway's 40. It has no time
limit: 18 levels of `anyOf` take a minute. It rejects or fails on ten of fifteen odd schemas that must be accepted. The
tests compare the two: arguments that jsonschema finds valid are not refused here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from operator import ge, gt, le, lt
from typing import Any

from trayapp.catalog.schema.mending import TYPES, is_number, is_whole
from trayapp.catalog.suggest import nearest
from trayapp.model.errors import MultiMcpError
from trayapp.model.json_schema import properties_of, referenced, required_of

PROBLEMS_MOST = 20  # sentences in one message
STEPS_MOST = 50_000  # steps of one check: about 50 ms
DEPTH_MOST = 60  # levels; deeper arguments and circular references are left to the server
SHOWN = 60  # characters of a wrong value in a message
ENUM_SHOWN = 12  # values of an enum in a message

_TYPES = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array", "null": "null"}


class InvalidArgumentsError(MultiMcpError):
    """Raised for arguments that are neither an object nor the JSON text of one."""

    code = "invalid_arguments"


def read_arguments(args: Any, schema: Any) -> dict[str, Any]:
    """Return the arguments of a call, given as an object or its JSON text. None and an empty text mean {}.

    Some models pass JSON text where an array or object belongs. Such a text is parsed if the schema allows the result
    but not the text. Raises InvalidArgumentsError for any other `args`.
    """
    if args is None or (isinstance(args, str) and not args.strip()):
        return {}
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentsError(f"args is not JSON: {error}", "Pass an object or its JSON text") from None
    if not isinstance(args, dict):
        raise InvalidArgumentsError(f"args must be an object, not {_shown(args)}", "Pass the parameters by name")
    return {name: _unpacked(value, properties_of(schema).get(name), schema) for name, value in args.items()}


def as_typed(args: Mapping[str, Any], typed: Mapping[str, str], schema: Any) -> dict[str, Any]:
    """Return the arguments of a command line, with parsed words turned back into text where only text fits the schema.

    `args`: the arguments, with words that look like JSON already parsed. `typed`: parameter -> its word as typed (`123`
    of `title=123`).
    """

    def fits(value: Any, name: str) -> bool:
        return not _Check(schema).all_wrong(value, properties_of(schema).get(name))

    wanted = {name for name, text in typed.items() if not fits(args.get(name), name) and fits(text, name)}
    return {name: typed[name] if name in wanted else value for name, value in args.items()}


def problems(args: Mapping[str, Any], schema: Any) -> list[str]:
    """Return the problems of `args`: at most PROBLEMS_MOST sentences, each naming its parameter."""
    found = chain(_not_finite(args, ""), _Check(schema).all_wrong(args, schema))
    return list(dict.fromkeys(islice(found, PROBLEMS_MOST)))


def _unpacked(value: Any, schema: Any, root: Any) -> Any:
    """Parse `value` if it is the JSON text of an array or object, and the schema allows only the parsed value."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    check = _Check(root)
    if not check.all_wrong(value, schema):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if check.all_wrong(inner, schema) else inner


def _not_finite(value: Any, where: str, depth: int = 0) -> Iterator[str]:
    """Yield a problem for each number that JSON cannot hold (infinity, NaN), down to DEPTH_MOST levels."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{where}: {value} is not a number that JSON can hold"
    if depth > DEPTH_MOST:
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _not_finite(inner, _path(where, name), depth + 1)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _not_finite(inner, f"{where}[{place}]", depth + 1)


class _TooLongError(Exception):
    """Raised when the check takes too long or goes too deep: in some schemas each level doubles the work."""


class _Check:
    """A check of values against parts of one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._old = isinstance(root, Mapping) and "draft-0" in str(root.get("$schema"))
        self._steps = STEPS_MOST

    def all_wrong(self, value: Any, schema: Any) -> list[str]:
        """Return what is wrong with `value`, in at most PROBLEMS_MOST sentences, or [] if the check takes too long."""
        try:
            return list(islice(self.wrong(value, schema, "", 0), PROBLEMS_MOST))
        except _TooLongError:
            return []

    def wrong(self, value: Any, schema: Any, where: str, depth: int) -> Iterator[str]:
        """Yield what is wrong with `value` at `where` in the arguments ("" for all of them). Raises _TooLongError."""
        self._steps -= 1
        if self._steps < 0 or depth > DEPTH_MOST:
            raise _TooLongError
        if schema is False:
            yield f"{where or 'args'}: no value is allowed here"
        if not isinstance(schema, Mapping) or ("$id" in schema and depth):  # `$id` changes the base of references
            return
        if self._old and "$ref" in schema:  # in old drafts `$ref` overrides all sibling keywords
            schema = {"$ref": schema["$ref"]}
        bad_type = _wrong_type(value, schema.get("type"))
        if bad_type:
            yield f"{where or 'args'}: must be {bad_type}, not {_shown(value)}"
            return
        yield from _wrong_value(value, schema, where)
        if isinstance(value, Mapping):
            yield from self._wrong_object(value, schema, where, depth)
        elif isinstance(value, list):
            yield from self._wrong_array(value, schema, where, depth)
        yield from self._wrong_combination(value, schema, where, depth)

    def _wrong_object(self, value: Mapping[str, Any], schema: Any, where: str, depth: int) -> Iterator[str]:
        known = properties_of(schema)
        for name in required_of(schema):
            if name not in value:
                yield f"{_path(where, name)}: is missing"
        for name, inner in value.items():
            if name in known:
                yield from self.wrong(inner, known[name], _path(where, name), depth + 1)
            elif "patternProperties" not in schema:
                extra = schema.get("additionalProperties")
                if extra is not False:
                    yield from self.wrong(inner, extra, _path(where, name), depth + 1)
                    continue
                near = nearest(name, map(str, known), limit=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"{_path(where, name)}: unknown parameter{meant}"

    def _wrong_array(self, value: list[Any], schema: Any, where: str, depth: int) -> Iterator[str]:
        items, first = schema.get("items"), schema.get("prefixItems")
        tuples = first if isinstance(first, list) else items if isinstance(items, list) else []
        for place, inner in enumerate(value):
            fitting = tuples[place] if place < len(tuples) else items if not isinstance(items, list) else None
            yield from self.wrong(inner, fitting, f"{where}[{place}]", depth + 1)

    def _wrong_combination(self, value: Any, schema: Any, where: str, depth: int) -> Iterator[str]:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield from self.wrong(value, referenced(self._root, reference), where, depth + 1)
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            yield from self.wrong(value, part, where, depth + 1)
        for key in ("anyOf", "oneOf"):
            choices = schema.get(key)
            if isinstance(choices, list) and choices:
                yield from self._wrong_choice(value, choices, where, depth)

    def _wrong_choice(self, value: Any, choices: list[Any], where: str, depth: int) -> Iterator[str]:
        """Yield the problems of the closest alternative, or nothing if one fits. `oneOf` counts as `anyOf`."""
        each = [list(self.wrong(value, choice, where, depth + 1)) for choice in choices]
        if all(each):
            kinds = [choice.get("type") for choice in choices if isinstance(choice, Mapping)]
            fitting = [wrong for wrong, kind in zip(each, kinds, strict=False) if not _wrong_type(value, kind)]
            nearest_ = min(fitting or each, key=len)
            yield from nearest_ if fitting else [f"{where or 'args'}: matches none of the allowed forms; {nearest_[0]}"]


def _wrong_type(value: Any, kind: Any) -> str:
    """Return the required types in words, or "" if `value` has one of them, or if the schema's `type` is unknown."""
    kinds = kind if isinstance(kind, list) else [kind]
    if not all(isinstance(one, str) and one in TYPES for one in kinds) or any(_is_a(value, one) for one in kinds):
        return ""
    return " or ".join(_ARTICLES.get(one, f"a {one}") for one in kinds)


def _is_a(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        return is_number(value) and (kind == "number" or is_whole(value))
    return isinstance(value, _TYPES[kind])


def _wrong_value(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    values = schema.get("enum")
    if isinstance(values, list) and values and not any(_same(value, one) for one in values):
        listed = ", ".join(_json(one) for one in values[:ENUM_SHOWN]) + (", ..." if len(values) > ENUM_SHOWN else "")
        yield f"{where or 'args'}: must be one of {listed}, not {_shown(value)}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{where or 'args'}: must be {_json(schema['const'])}, not {_shown(value)}"
    for key, is_beyond, wording, measured in _limits(value):
        limit = schema.get(key)
        if is_number(limit) and is_beyond(measured, limit):
            yield f"{where or 'args'}: {wording.format(limit)}, not {measured}"


_SIZES: dict[type, tuple[str, str]] = {
    str: ("Length", "characters"),
    list: ("Items", "items"),
    dict: ("Properties", "parameters"),
}


def _limits(value: Any) -> Iterator[tuple[str, Callable[[Any, Any], bool], str, float]]:
    """Yield (keyword, test for a violation, wording, number to compare) for each limit on a value of this type."""
    if is_number(value):
        yield "minimum", lt, "must be at least {}", value
        yield "maximum", gt, "must be at most {}", value
        yield "exclusiveMinimum", le, "must be more than {}", value
        yield "exclusiveMaximum", ge, "must be less than {}", value
    elif (size := _SIZES.get(type(value))) is not None:
        yield f"min{size[0]}", lt, f"must have at least {{}} {size[1]}", len(value)
        yield f"max{size[0]}", gt, f"must have at most {{}} {size[1]}", len(value)


def _same(left: Any, right: Any) -> bool:
    """Return True if two values are equal in JSON: 1 equals 1.0 but not true, also inside lists and objects."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(inner, right[name]) for name, inner in left.items())
    return bool(left == right)


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
