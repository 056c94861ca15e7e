"""The one boundary from our errors to JSON-RPC errors.

Never here: raising, logging.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from trayapp.catalog.resources import AmbiguousResourceError
from trayapp.model.errors import (
    AmbiguousToolError,
    MultiMcpError,
    ServerError,
    ServerNotFoundError,
    ToolNotFoundError,
)
from trayapp.model.redact import redacted
from trayapp.model.status import Problem
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

_UNDOING = re.compile(r"multi-mcp (?:enable|approve|trust|allow|remove|import|connect)\b")


def to_rpc(error: MultiMcpError) -> RpcError:
    """Return `error` for a person's own programs: what and what to do, the stable code and the rest in `data`."""
    return _to_rpc(error, error.hint)


def to_client(error: MultiMcpError) -> RpcError:
    """Return `error` for an AI tool, whose model reads it."""
    return _to_rpc(error, model_hint(error))


def _to_rpc(error: MultiMcpError, hint: str) -> RpcError:
    data = {"code": error.code, "hint": shown(hint), "exit_code": int(error.exit_code)}
    if isinstance(error, ServerError):
        data["server"] = error.server
    return RpcError(_code(error), shown(f"{error.title}. {hint}" if hint else error.title), data)


def model_hint(error: MultiMcpError) -> str:
    """Return what to do, for a model: it may ask its user, and gets no command that undoes what the user decided."""
    hint = error.hint if error.model_hint is None else error.model_hint
    return "Ask the user" if _UNDOING.search(hint) else hint


def unknown_method(method: str) -> RpcError:
    """The error of a request that nobody here can answer."""
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}"[:200], method)


def _code(error: MultiMcpError) -> int:
    if isinstance(error, ToolNotFoundError | AmbiguousToolError | AmbiguousResourceError):
        return INVALID_PARAMS  # MCP tools, error handling: unknown tools are protocol errors
    return CONNECTION_CLOSED if isinstance(error, ServerError) else INTERNAL_ERROR


def error_json(error: MultiMcpError) -> dict[str, object]:
    """`{"title", "hint", "code", "exit_code"}` for control answers."""
    title, hint = shown(error.title), shown(error.hint)
    return {"title": title, "hint": hint, "code": error.code, "exit_code": int(error.exit_code)}


def explained(error: MultiMcpError, problems: Iterable[Problem]) -> MultiMcpError:
    """`error`, and of a server that only seems unknown, since its entry cannot be used, what is wrong with that."""
    if isinstance(error, ServerNotFoundError):
        wrong = next((problem for problem in problems if problem.fatal and problem.server == error.server), None)
        if wrong is not None:
            where = f"{wrong.file}, line {wrong.line}" if wrong.line else wrong.file
            error.title = f"{error.server} cannot be used: {wrong.message}"
            error.hint = ". ".join(part for part in (f"See {where}", wrong.hint) if part)
    return error


def shown(text: str) -> str:
    """A text of an error as it may leave the gateway: servers put what they were given into their last words."""
    return redacted(text)
