"""The words of `multi-mcp call` to a tool's arguments.

Never here: reading files, calling. Wrong words raise UsageError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trayapp.cli.text import one_line, shortened
from trayapp.model.errors import UsageError

HOW = "Write KEY=VALUE for each argument, or --args JSON for all of them"
OBJECT = """Example: --args '{"text": "hello"}'"""
WORD_SHOWN = 40  # columns


def from_pairs(words: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE ...` to arguments; a key may stand once."""
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
    """The VALUEs that became something else than text, as they were typed: the tool may want text there."""
    pairs = (word.partition("=") for word in words)
    return {key: value for key, _, value in pairs if not isinstance(arguments[key], str)}


def value_of(text: str) -> Any:
    """JSON if it is JSON (so `"5"` is the text 5), else the text as it stands."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def from_json(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        arguments = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {one_line(str(error))}", OBJECT) from None
    if not isinstance(arguments, dict):
        raise UsageError("--args has to be a JSON object", OBJECT)
    return arguments


def _shown(word: str) -> str:
    return shortened(one_line(word), WORD_SHOWN)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
