"""Adapt the answer of a call through the one tool to its client: with content types that it knows, and not too long. An
answer that already fits is passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from trayapp.gateway.mcp_tool.paging import LINES_MOST, CutResults, paged
from trayapp.model.errors import MultiMcpError
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Reply
from trayapp.wire.revisions import ALL_PARTS, KNOWN_PARTS

Result = dict[str, Any]
NO_SUCH_TOOL = (INVALID_PARAMS, METHOD_NOT_FOUND)  # errors by which servers answer a call of a missing tool

# Members that these kinds of parts must have, and their substitutes.
_WANTED: dict[object, dict[str, str]] = {"text": {"text": ""}, "image": {"data": "", "mimeType": "image/png"}}


class ResultFitter:
    """Fits one answer to its client. `limit`: bytes of text, 0 = none. `gone`: returns an error if the tool is gone."""

    def __init__(
        self, protocol: str, limit: int, store: CutResults, gone: Callable[[], MultiMcpError | None], *, reads: bool
    ) -> None:
        self._protocol = protocol
        self._limit = limit
        self._store = store
        self._gone = gone
        self._reads = reads

    def __call__(self, reply: Reply) -> Reply:
        """Return the reply for the client. Raises JsonError if the answer has to be read and is not valid JSON."""
        if reply.is_large and self._can_pass_unread(reply.frame):
            return reply
        message = reply.message
        result = message.get("result")
        if not isinstance(result, dict) or result.get("isError") is True:
            gone = self._gone() if isinstance(result, dict) or _says_no_such_tool(message) else None
            if gone is not None:
                return Reply.of_result(error_result(gone, f"Error ({gone.code}): {gone}"))
        if not isinstance(result, dict) or is_task(result):
            return reply
        fit = fitted(as_tool_result(result) if self._reads else result, self._protocol)
        if self._limit and not self._is_short(reply.frame):
            fit = paged(fit, self._limit, self._store)
        return reply if fit is result else Reply.of_result(fit)

    def _can_pass_unread(self, frame: bytes) -> bool:
        """Return True if a large answer may be passed on unread."""
        if self._reads or KNOWN_PARTS.get(self._protocol) != ALL_PARTS:
            return False  # for an older client, some parts may need a substitute
        return not self._limit or self._is_short(frame)

    def _is_short(self, frame: bytes) -> bool:
        """Return True if the text of a frame is within the limits: it is never longer than its JSON."""
        return 0 < len(frame) <= self._limit and frame.count(b"\\n") < LINES_MOST


def _says_no_such_tool(message: dict[str, Any]) -> bool:
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") in NO_SUCH_TOOL


def is_task(result: Result) -> bool:
    """Return True if the answer is a task, for a client that can have tasks: the call's result comes later."""
    return "content" not in result and any(
        isinstance(found, dict) and isinstance(found.get("taskId"), str) for found in (result, result.get("task"))
    )


def as_tool_result(read: Result) -> Result:
    """Return a result of resources/read as a tool's, with each content as an embedded resource."""
    contents = read.get("contents")
    parts = [{"type": "resource", "resource": one} for one in contents] if isinstance(contents, list) else []
    return {"content": parts, **{key: value for key, value in read.items() if key not in ("contents", "content")}}


def text_result(text: str) -> Result:
    """Return a tool's result of one text."""
    return {"content": [{"type": "text", "text": text}]}


def error_result(error: MultiMcpError, text: str) -> Result:
    """Return a tool's error result for a model to read, with the stable code in `_meta`."""
    return {**text_result(text), "isError": True, "_meta": {"multi-mcp/error": error.code}}


# -- parts of results, by protocol revision --------------------------------------------------------------------------


def fitted(result: Result, protocol: str) -> Result:
    """Return `result` with text for each part that the revision does not know; itself if it knows all."""
    content = result.get("content")
    parts = [fitted_part(part, protocol) for part in content] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if not parts and structured is not None:
        parts = [_text(_json(structured))]  # servers should send it as text, too (MCP tools, structured content)
    same = isinstance(content, list) and len(parts) == len(content) and all(map(is_, parts, content))
    return result if same else {**result, "content": parts}


def fitted_part(part: Any, protocol: str) -> Any:
    """Return the part itself, or text in its place."""
    known = KNOWN_PARTS.get(protocol)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _WANTED:
        return _complete_part(part, _WANTED[kind])
    if known is None or kind in known:
        return part
    return _text(stand_in(part))


def _complete_part(part: dict[str, Any], wanted: Mapping[str, str]) -> dict[str, Any]:
    """Return the part with all required members: a strict client would drop the whole result otherwise."""
    missing = {key: value for key, value in wanted.items() if not isinstance(part.get(key), str)}
    return {**part, **missing} if missing else part


def stand_in(part: Any) -> str:
    """Return a part in words."""
    writer = _WRITERS.get(str(part.get("type"))) if isinstance(part, dict) else None
    return writer(part) if writer else _json(part)


def _resource(part: Mapping[str, Any]) -> str:
    resource = part.get("resource")
    if not isinstance(resource, dict):
        return "[Resource: (no URI)]\n(no content)"
    text = resource.get("text")
    return f"[Resource: {resource.get('uri') or '(no URI)'}]\n{text if isinstance(text, str) else _json(resource)}"


def _link(part: Mapping[str, Any]) -> str:
    uri = part.get("uri")
    return f"[Resource Link: {part.get('name') or uri or 'unknown'}]\nURI: {uri or '(no URI)'}"


def _audio(part: Mapping[str, Any]) -> str:
    return f"[Audio content: {part.get('mimeType') or 'audio/*'}]"


def _image(part: Mapping[str, Any]) -> str:
    return f"[Image content: {part.get('mimeType') or 'image/*'}]"


_WRITERS = {"resource": _resource, "resource_link": _link, "audio": _audio, "image": _image}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")
