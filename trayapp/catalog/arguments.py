"""Whether arguments fit a tool's input schema, before anything is called.

In doubt they do: the server has the last word. Never here: changing the schema, calling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.model.errors import MultiMcpError


class InvalidArgumentsError(MultiMcpError):
    """Arguments that are no object, or no JSON."""

    code = "invalid_arguments"


def read_arguments(args: Any, schema: Any) -> dict[str, Any]:
    """The arguments of a call out of an object or its JSON text (None: no arguments).

    A text in the place of an array or object that the schema wants is parsed where no string would be valid there.
    Raises InvalidArgumentsError for anything else.
    """
    raise NotImplementedError


def problems(args: Mapping[str, Any], schema: Any) -> list[str]:
    """All that is wrong with `args`, a sentence each that names the parameter; empty: they may be sent."""
    return []
