"""Read and check the arguments of a call, and return the request for its backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.catalog.names import Key
from trayapp.catalog.schema.arguments import InvalidArgumentsError, problems, read_arguments
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.mcp_tool import texts
from trayapp.gateway.mcp_tool.request import check_inside
from trayapp.model.errors import MultiMcpError

PLAIN_AROUND = frozenset({"type", "properties", "required", "additionalProperties", "$schema", "title", "description"})
PLAIN_INSIDE = frozenset({"type", "description", "title", "default", "examples"})
PLAIN_TYPES: dict[object, tuple[type, ...]] = {"string": (str,), "integer": (int,), "boolean": (bool,)}


class ArgumentsError(MultiMcpError):
    """Raised when the tool's schema does not allow the arguments. The hint has the `problems` and the parameters."""

    code = "invalid_arguments"

    def __init__(self, title: str, name: str, problems: list[str], schema: Any) -> None:
        super().__init__(title, texts.arguments_text(name, problems, schema))
        self.name = name
        self.problems = problems


def prepared_call(seen: Exposure, key: Key, args: Any, beside: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return method and params of a call. `beside`: other members of the client's params, passed on unchanged.

    Raises ArgumentsError, WrongFieldsError.
    """
    item = seen.entries[key[0]].get(key) or {}
    arguments = _check_arguments(seen.name_of(key), args, item.get("inputSchema"))
    if key in seen.tools:
        return "tools/call", {"name": key[1], "arguments": arguments, **beside}
    return "resources/read", {"uri": key[1], **beside}


def fits_plainly(args: Mapping[str, Any], schema: Any) -> bool:
    """Return True if the arguments are certainly valid: only texts, whole numbers and booleans, as in most calls. False
    leaves it open. The full check takes ten times as long.
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


def _check_arguments(name: str, given: Any, schema: Any) -> Mapping[str, Any]:
    try:
        args = read_arguments(given, schema)
    except InvalidArgumentsError as error:
        wrong = [error.hint] if error.hint else []
        raise ArgumentsError(error.title, name, wrong, schema) from None
    if fits_plainly(args, schema):
        return args
    check_inside(args, schema)
    wrong = problems(args, schema)
    if wrong:
        raise ArgumentsError(f"The arguments do not fit {name}", name, wrong, schema)
    return args
