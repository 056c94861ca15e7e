"""A tool in words: one compact line for the answer of a search, or everything about it for people and models.

Never here: finding the tool, checking arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def compact(tool: Mapping[str, Any]) -> str:
    """The parameters of `tool` in one line, like `(query: string, limit?: integer = 10)`."""
    return json.dumps(tool.get("inputSchema"))


def describe(tool: Mapping[str, Any], exposed_name: str, server: str) -> str:
    """Everything: names, the whole description, each parameter with type, `*required*`, enums, defaults, nesting."""
    return f"{exposed_name} ({server})\n{tool.get('description') or ''}\n{parameters(tool.get('inputSchema'))}"


def parameters(schema: Any) -> str:
    """The parameters of an input schema, a line each, nesting by indentation; `(no parameters)` when there are none."""
    return json.dumps(schema)
