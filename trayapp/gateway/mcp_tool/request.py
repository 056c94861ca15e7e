"""Read a call of the one tool: its mode and fields, and the arguments for a server's tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trayapp.catalog.names import Key
from trayapp.catalog.schema.arguments import InvalidArgumentsError, problems, read_arguments
from trayapp.catalog.suggest import nearest
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.mcp_tool import texts
from trayapp.model.errors import MultiMcpError

Mode = Literal["tool", "connect", "describe", "result", "search", "server", "status"]
MODES: tuple[Mode, ...] = ("tool", "connect", "describe", "result", "search", "server")  # in order of precedence

# Fields allowed in each mode, besides the field that names the mode.
WITH: dict[Mode, frozenset[str]] = {
    "tool": frozenset({"args", "server"}),
    "connect": frozenset(),
    "describe": frozenset({"server"}),
    "result": frozenset({"offset"}),
    "search": frozenset({"regex", "server", "includeSchemas", "limit"}),
    "server": frozenset({"offset", "limit"}),
    "status": frozenset(),
}
FIELDS = (*MODES, "args", "regex", "includeSchemas", "limit", "offset")
SWITCHES = ("regex", "includeSchemas")
NUMBERS = ("limit", "offset")
ALSO_ARGS = frozenset(("arguments", "params", "parameters", "input", "inputs", "arg"))  # models write these for args
TRUTH = {"true": True, "false": False}
# Placeholders that models put into unneeded fields. They are ignored, except in a call without a mode's field.
NEUTRAL: tuple[Any, ...] = ({}, "", "{}", False, 0)


class WrongFieldsError(MultiMcpError):
    """Raised when the fields of a call are unknown, have invalid values, or cannot be combined."""

    code = "wrong_fields"


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of the one tool. `text`: the value of the field that names the mode. `args`: not validated."""

    mode: Mode
    text: str = ""
    server: str | None = None
    args: Any = None
    regex: bool = False
    schemas: bool = False
    limit: int | None = None
    offset: int = 0


def read_request(arguments: Any) -> ToolRequest:
    """Return the request that the arguments of a call describe. Raises WrongFieldsError.

    A null field counts as not given. So does a mode's empty field if another field names the mode.
    """
    if arguments is not None and not isinstance(arguments, Mapping):
        raise WrongFieldsError("The arguments must be an object", 'For instance {"search": "what it should do"}')
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    if unknown := [name for name in given if name not in FIELDS]:
        if "tool" in given and "args" not in given and unknown[0] in ALSO_ARGS:
            hint = 'Did you mean args? {"tool": ..., "args": {...}}'
        elif "tool" in given:
            hint = f'Arguments of the tool go into args: {{"tool": ..., "args": {{"{unknown[0][:40]}": ...}}}}'
        else:
            near = nearest(unknown[0], FIELDS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"The fields are: {', '.join(FIELDS)}"
        listed = ", ".join(str(name)[:40] for name in unknown[:5])
        raise WrongFieldsError(f"Unknown field{'s' if len(unknown) > 1 else ''} {listed}", hint)
    values = {name: _value(name, value) for name, value in given.items()}
    mode = _mode(values)
    _check_places(mode, values)
    return ToolRequest(
        mode,
        str(values.get(mode, "")),
        (values.get("server") or None) if mode != "server" else None,
        values.get("args"),
        bool(values.get("regex")),
        bool(values.get("includeSchemas")),
        values.get("limit"),
        values.get("offset", 0),
    )


def _value(name: str, value: Any) -> Any:
    """Return the value, converted to the type of its field. Raises WrongFieldsError.

    Models also write numbers and booleans as text. Whitespace around a text is removed, except from a search.
    """
    if name == "args":
        return value
    if name in SWITCHES:
        value = TRUTH.get(value.strip().lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise WrongFieldsError(f"{name} must be true or false, not {value!r}"[:200])
        return value
    if name in NUMBERS:
        if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) <= 15:
            value = int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongFieldsError(f"{name} must be a whole number, not {value!r}"[:200])
        return value
    if not isinstance(value, str):
        raise WrongFieldsError(f"{name} must be text, not {value!r}"[:200])
    return value if name == "search" else value.strip()


def _mode(values: dict[str, Any]) -> Mode:
    """Return the first mode whose field is not empty, or "status" if no mode's field is given.

    Beside `search`, `server` is not a mode: it narrows the search. If the fields of all given modes are empty, the
    first of these modes counts: an empty `search` is a search, and any other mode raises WrongFieldsError.
    """
    for mode in MODES:
        if values.get(mode) and (mode != "server" or "search" not in values):
            return mode
    empty: Mode = next((mode for mode in MODES if mode in values), "status")
    if empty not in ("search", "status"):
        raise WrongFieldsError(f"{empty} is empty", "Leave out all fields to get the status")
    return empty


def _check_places(mode: Mode, values: Mapping[str, Any]) -> None:
    """Raise WrongFieldsError for a field that belongs to no given mode.

    If a mode is given, fields that contain a placeholder (NEUTRAL) are ignored. So are fields of modes that are given
    but not chosen. Beside `tool`, however, `limit` is accepted only with `search`, and `offset` only with `search` or
    `result`.
    """
    named = {mode, *(name for name in MODES if values.get(name))}
    fitting = {*MODES, *(field for one in named for field in WITH[one])} if mode != "status" else set()
    if mode == "tool" and "search" not in named:
        fitting -= {"limit", "offset"} - ({"offset"} if "result" in named else set())
    lost = [name for name in values if name not in fitting and (mode == "status" or values[name] not in NEUTRAL)]
    if not lost:
        return
    name = lost[0]
    if name == "args":
        own = [key for key in values["args"] if key in FIELDS] if isinstance(values["args"], Mapping) else []
        aside = f"Put {', '.join(own)} beside args, not into it"
        raise WrongFieldsError("args without tool", aside if own else 'Name the tool: {"tool": ..., "args": ...}')
    owners = " or ".join(one for one in MODES if name in WITH[one])
    inside_hint = "; if it is an argument of the tool, put it into args" if mode == "tool" else ""
    raise WrongFieldsError(f"{name} goes with {owners}{inside_hint}", f"The call has: {', '.join(values)}")


def check_inside(args: Mapping[str, Any], schema: Any) -> None:
    """Raise WrongFieldsError if a call's args contain fields of the one tool.

    Accept a field if the called tool has a parameter of that name, or may accept any arguments.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or schema.get("additionalProperties") not in (None, False):
        return
    if any(key in schema for key in ("patternProperties", "$ref", "allOf", "anyOf", "oneOf")):
        return
    if names := ", ".join(name for name in args if name in FIELDS and name not in properties):
        raise WrongFieldsError(f"{names} inside args", f"Put {names} beside args: the tool has no such parameter")


PLAIN_AROUND = frozenset({"type", "properties", "required", "additionalProperties", "$schema", "title", "description"})
PLAIN_INSIDE = frozenset({"type", "description", "title", "default", "examples"})
PLAIN_TYPES: dict[object, tuple[type, ...]] = {"string": (str,), "integer": (int,), "boolean": (bool,)}


class ArgumentsError(MultiMcpError):
    """Raised when the tool's schema does not allow the arguments. The hint lists the `problems` and the parameters."""

    code = "invalid_arguments"

    def __init__(self, title: str, name: str, problems: list[str], schema: Any) -> None:
        super().__init__(title, texts.arguments_text(name, problems, schema))
        self.name = name
        self.problems = problems


def prepared_call(seen: Exposure, key: Key, args: Any, beside: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the method and params of a call to the server. `beside`: further members of the params.

    Raises ArgumentsError, WrongFieldsError.
    """
    schema = (seen.entries[key[0]].get(key) or {}).get("inputSchema")
    try:
        arguments = read_arguments(args, schema)
    except InvalidArgumentsError as error:
        wrong = [error.hint] if error.hint else []
        raise ArgumentsError(error.title, seen.name_of(key), wrong, schema) from None
    if not fits_plainly(arguments, schema):
        check_inside(arguments, schema)
        if wrong := problems(arguments, schema):
            name = seen.name_of(key)
            raise ArgumentsError(f"The arguments do not match the parameters of {name}", name, wrong, schema)
    if key in seen.tools:
        return "tools/call", {"name": key[1], "arguments": arguments, **beside}
    return "resources/read", {"uri": key[1], **beside}


def fits_plainly(args: Mapping[str, Any], schema: Any) -> bool:
    """Return True if the arguments are only strings, whole numbers and booleans, as in most calls, and all are valid.

    If the result is False, they may still be valid: only the full check, which takes ten times as long, can decide.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object" or not schema.keys() <= PLAIN_AROUND:
        return False
    properties, required = schema.get("properties"), schema.get("required", ())
    if not isinstance(properties, dict) or not isinstance(required, list | tuple):
        return False
    return all(name in args for name in required) and all(
        isinstance(inner := properties.get(name), dict)
        and inner.keys() <= PLAIN_INSIDE
        and isinstance(inner.get("type"), str)
        and type(value) in PLAIN_TYPES.get(inner["type"], ())
        for name, value in args.items()
    )
