"""The answer of a call through the one tool, made fit for the client: nothing it cannot take, nothing too long.

An answer that needs neither is passed on as it came. Never here: sending, what the call was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from trayapp.gateway.mcp_tool.paging import LINES_MOST, CutResults, paged
from trayapp.model.errors import MultiMcpError
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Reply
from trayapp.wire.revisions import KNOWN_PARTS

Result = dict[str, Any]
NO_SUCH_TOOL = (INVALID_PARAMS, METHOD_NOT_FOUND)  # how servers answer a call of a tool that they do not have

# What parts of kinds that every revision knows must have, and what stands in for it.
_WANTED: dict[object, dict[str, str]] = {"text": {"text": ""}, "image": {"data": "", "mimeType": "image/png"}}


class FitResult:
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


# -- parts of results as a client of some protocol revision can take them --------------------------------------------


def fitted(result: Result, protocol: str) -> Result:
    """`result` with a stand-in for each part that the revision does not know; itself when it knows them all."""
    content = result.get("content")
    parts = [fitted_part(part, protocol) for part in content] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if not parts and structured is not None:
        parts = [_text(_json(structured))]  # a server should say it in text, too (MCP tools, structured content)
    same = isinstance(content, list) and len(parts) == len(content) and all(map(is_, parts, content))
    return result if same else {**result, "content": parts}


def fitted_part(part: Any, protocol: str) -> Any:
    """One part: itself, or text that stands for it."""
    known = KNOWN_PARTS.get(protocol)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _WANTED:
        return _completed(part, _WANTED[kind])
    if known is None or kind in known:
        return part
    return _text(stand_in(part))


def _completed(part: dict[str, Any], wanted: Mapping[str, str]) -> dict[str, Any]:
    """The part, itself when it has all that its kind must have: a strict client drops the whole result otherwise."""
    missing = {key: value for key, value in wanted.items() if not isinstance(part.get(key), str)}
    return {**part, **missing} if missing else part


def stand_in(part: Any) -> str:
    """What a part comes to in words."""
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
