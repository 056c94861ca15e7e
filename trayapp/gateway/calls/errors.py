"""Translate our errors into tool results, control answers and JSON-RPC errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trayapp.catalog.resources import AmbiguousResourceError
from trayapp.model.errors import (
    AmbiguousToolError,
    MultiMcpError,
    Problem,
    ServerError,
    ServerNotFoundError,
    ToolNotFoundError,
)
from trayapp.model.redact import redacted
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

_UNDOING = re.compile(r"multi-mcp (?:enable|approve|trust|allow|remove|import|connect)\b")


def to_client(error: MultiMcpError) -> RpcError:
    """Return the JSON-RPC error for a client, with the hint for its model."""
    return to_rpc(error, model_hint(error))


def to_rpc(error: MultiMcpError, hint: str) -> RpcError:
    """Return the JSON-RPC error for `error`, with `hint`. Its `data` has the stable code."""
    data, code = {"code": error.code, "hint": redacted(hint), "exit_code": int(error.exit_code)}, INTERNAL_ERROR
    if isinstance(error, ServerError):
        data["server"], code = error.server, CONNECTION_CLOSED
    if isinstance(error, ToolNotFoundError | AmbiguousToolError | AmbiguousResourceError):
        code = INVALID_PARAMS  # MCP tools, error handling: unknown tools are protocol errors
    return RpcError(code, redacted(f"{error.title}. {hint}" if hint else error.title), data)


def model_hint(error: MultiMcpError) -> str:
    """Return the hint for a model: "Ask the user" if the hint has a command that would undo the user's decision."""
    hint = error.hint if error.model_hint is None else error.model_hint
    return "Ask the user" if _UNDOING.search(hint) else hint


def tool_error(error: MultiMcpError) -> dict[str, Any]:
    """Return `error` as a tool's result for a model to read, with the stable code in `_meta`."""
    hint = model_hint(error)
    text = redacted(f"Error ({error.code}): {error.title}{'. ' if hint else ''}{hint}")
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {"multi-mcp/error": error.code}}


def unknown_method(method: str) -> RpcError:
    """Return the error for a request with an unknown method."""
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}"[:200], method)


def error_json(error: MultiMcpError) -> dict[str, object]:
    """Return `{"title", "hint", "code", "exit_code"}` for control answers."""
    title, hint = redacted(error.title), redacted(error.hint)
    return {"title": title, "hint": hint, "code": error.code, "exit_code": int(error.exit_code)}


def explained(error: MultiMcpError, problems: Iterable[Problem]) -> MultiMcpError:
    """Return `error`. If a server was not found, describe the fatal problem of its entry instead, if there is one."""
    if isinstance(error, ServerNotFoundError):
        wrong = next((problem for problem in problems if problem.fatal and problem.server == error.server), None)
        if wrong is not None:
            where = f"{wrong.file}, line {wrong.line}" if wrong.line else wrong.file
            error.title = f"{error.server} cannot be used: {wrong.message}"
            error.hint = ". ".join(part for part in (f"See {where}", wrong.hint) if part)
    return error
