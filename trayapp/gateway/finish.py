"""The answer of a call through the one tool, made fit for the client: nothing it cannot take, nothing too long.

An answer that needs neither is passed on as it came. Never here: sending, what the call was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trayapp.gateway.content import KNOWN_PARTS, fitted
from trayapp.gateway.paging import LINES_MOST, CutResults, paged
from trayapp.model.errors import MultiMcpError
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Reply

Result = dict[str, Any]
NO_SUCH_TOOL = (INVALID_PARAMS, METHOD_NOT_FOUND)  # how servers answer a call of a tool that they do not have


class Finish:
    """What becomes of one answer. `limit` in bytes of text, 0 = none; `gone` says when the tool is no longer there."""

    def __init__(
        self, protocol: str, limit: int, store: CutResults, gone: Callable[[], MultiMcpError | None], *, reads: bool
    ) -> None:
        self._protocol = protocol
        self._limit = limit
        self._store = store
        self._gone = gone
        self._reads = reads

    def __call__(self, reply: Reply) -> Reply:
        """Raises JsonError for an answer that has to be read and cannot be."""
        if reply.is_large and self._may_stay(reply.frame):
            return reply
        message = reply.message
        result = message.get("result")
        if not isinstance(result, dict) or result.get("isError") is True:
            gone = self._gone() if isinstance(result, dict) or _says_no_such_tool(message) else None
            if gone is not None:
                return Reply.of_result(error_result(gone, f"Error ({gone.code}): {gone}"))
        if not isinstance(result, dict):
            return reply
        fit = fitted(as_tool_result(result) if self._reads else result, self._protocol)
        if self._limit and not self._is_short(reply.frame):
            fit = paged(fit, self._limit, self._store)
        return reply if fit is result else Reply.of_result(fit)

    def _may_stay(self, frame: bytes) -> bool:
        """Whether a large answer can go on unread."""
        if self._reads or self._protocol not in KNOWN_PARTS:
            return False
        if len(KNOWN_PARTS[self._protocol]) < len(KNOWN_PARTS["2025-11-25"]):
            return False  # an older client: some parts may need a stand-in
        return not self._limit or self._is_short(frame)

    def _is_short(self, frame: bytes) -> bool:
        """Whether the text of a frame is surely within the limits: it is no longer than its JSON."""
        return 0 < len(frame) <= self._limit and frame.count(b"\\n") < LINES_MOST


def _says_no_such_tool(message: dict[str, Any]) -> bool:
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") in NO_SUCH_TOOL


def as_tool_result(read: Result) -> Result:
    """The result of resources/read as that of a tool: each of its contents an embedded resource."""
    contents = read.get("contents")
    parts = [{"type": "resource", "resource": one} for one in contents] if isinstance(contents, list) else []
    return {"content": parts, **{key: value for key, value in read.items() if key not in ("contents", "content")}}


def text_result(text: str) -> Result:
    """A tool's result of one text."""
    return {"content": [{"type": "text", "text": text}]}


def error_result(error: MultiMcpError, text: str) -> Result:
    """A tool's result that says what went wrong, for a model to read; the stable code beside it."""
    return {**text_result(text), "isError": True, "_meta": {"multi-mcp/error": error.code}}
