"""Conversion of the words of `multi-mcp call` to a tool's arguments.

Invalid words raise UsageError. Never here: reading files, calling.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from shlex import quote
from typing import Any

from trayapp.cli.text import one_line, shortened
from trayapp.model.errors import UsageError

HOW = "Write KEY=VALUE for each argument, or --args JSON for all of them"
OBJECT = """Example: --args '{"text": "hello"}'"""
WORD_SHOWN = 40  # columns
EXAMPLES: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "string": "text"}


def from_pairs(words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments for `KEY=VALUE ...`. Each key may occur once."""
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{_shown(word)} is not KEY=VALUE", HOW)
        if key in arguments:
            raise UsageError(f"{_shown(key)} is given twice", "Give it once; a list is KEY=[1,2]")
        arguments[key] = value_of(value)
    return arguments


def typed(words: Sequence[str], arguments: dict[str, Any]) -> dict[str, str]:
    """Return the VALUEs that were parsed as something other than text, as typed: the tool may want text."""
    pairs = (word.partition("=") for word in words)
    return {key: value for key, _, value in pairs if not isinstance(arguments[key], str)}


def value_of(text: str) -> Any:
    """Return the parsed value if the text is JSON (so `"5"` is the text 5), else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def from_json(text: str) -> dict[str, Any]:
    """Return the JSON object in a text."""
    try:
        arguments = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {one_line(str(error))}", OBJECT) from None
    if not isinstance(arguments, dict):
        raise UsageError("--args has to be a JSON object", OBJECT)
    return arguments


def example_call(tool: str, schema: Any) -> str:
    """Return a command line that calls the tool with its required arguments."""
    schema = schema if isinstance(schema, dict) else {}
    known, needed = schema.get("properties"), schema.get("required")
    properties = known if isinstance(known, dict) else {}
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    words = (f"{one_line(name)}={_example(properties.get(name))}" for name in names)
    return " ".join(("multi-mcp call", *map(quote, (one_line(tool), *words))))


def _example(schema: Any) -> str:
    """Return an example VALUE for a parameter: one that its schema names, else one of its type."""
    schema = schema if isinstance(schema, dict) else {}
    listed = [values[0] for key in ("examples", "enum") if isinstance(values := schema.get(key), list) and values]
    named = [schema[key] for key in ("default", "const") if key in schema]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    value = [*listed, *named, EXAMPLES.get(kind if isinstance(kind, str) else "", "...")][0]
    return shortened(one_line(value if isinstance(value, str) else json.dumps(value)), WORD_SHOWN)


def _shown(word: str) -> str:
    return shortened(one_line(word), WORD_SHOWN)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
