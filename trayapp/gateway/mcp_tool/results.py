"""Adapt answers of calls through the one tool to the client's revision, and page long text.

An answer that already fits is passed on unchanged. The whole text of a shortened answer is kept for its session.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from trayapp.gateway.extensions.results import task_of
from trayapp.gateway.mcp_tool.tool_dependencies import LINES_MOST, CutResults, cut_at, note, page_bytes
from trayapp.model.errors import MultiMcpError
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Reply
from trayapp.wire.revisions import ALL_PARTS, KNOWN_PARTS

Result = dict[str, Any]
NO_SUCH_TOOL = (INVALID_PARAMS, METHOD_NOT_FOUND)  # codes of servers' errors for unknown tools

# Members that these kinds of parts must have, and their substitutes.
_WANTED: dict[object, dict[str, str]] = {"text": {"text": ""}, "image": {"data": "", "mimeType": "image/png"}}


def fit_reply(
    protocol: str, limit: int, store: CutResults, gone: Callable[[], MultiMcpError | None], reply: Reply, *, reads: bool
) -> Reply:
    """Return a server's reply, adapted to the client. If the call failed because the tool is gone, return that error.

    `limit`: bytes of text, 0 = no limit. `gone`: returns an error if the tool is gone, otherwise None. `reads`: the
    call was sent as resources/read. Raises JsonError if the answer has to be read and is not valid JSON.
    """
    # A client that does not support all kinds of parts may need substitutes.
    passes = not reads and KNOWN_PARTS.get(protocol) == ALL_PARTS
    # A text is never longer than its JSON. Without a frame, its length is not known.
    is_short = 0 < len(reply.frame) <= limit and reply.frame.count(b"\\n") < LINES_MOST
    if reply.is_large and passes and (not limit or is_short):
        return reply
    result, error = reply.message.get("result"), reply.message.get("error")
    failed = isinstance(result, dict) and result.get("isError") is True
    refused = isinstance(error, dict) and error.get("code") in NO_SUCH_TOOL
    if (failed or refused) and (missing := gone()) is not None:
        return Reply.of_result(error_result(missing, f"Error ({missing.code}): {missing}"))
    if not isinstance(result, dict) or task_of(result) is not None:
        return reply  # an error, or a task for a client that supports tasks: the result of the call comes later
    fit = fitted(as_tool_result(result) if reads else result, protocol)
    if limit and not is_short:
        fit = paged(fit, limit, store)
    return reply if fit is result else Reply.of_result(fit)


def as_tool_result(read: Result) -> Result:
    """Return a result of resources/read in the form of a tool's result, with each content as an embedded resource."""
    contents = read.get("contents")
    parts = [{"type": "resource", "resource": one} for one in contents] if isinstance(contents, list) else []
    return {"content": parts, **{key: value for key, value in read.items() if key not in ("contents", "content")}}


def text_result(text: str) -> Result:
    """Return a tool result with one text part."""
    return {"content": [_text(text)]}


def error_result(error: MultiMcpError, text: str) -> Result:
    """Return a tool's error result for a model to read, with the stable code in `_meta`."""
    return {**text_result(text), "isError": True, "_meta": {"multi-mcp/error": error.code}}


# -- parts of results, by protocol revision --------------------------------------------------------------------------


def fitted(result: Result, protocol: str) -> Result:
    """Return `result` with only parts that the revision defines, or `result` itself if nothing has to change.

    Other parts become text. Known parts get their missing members. Without parts, structured content becomes text.
    """
    content = result.get("content")
    parts = [fitted_part(part, protocol) for part in content] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if not parts and structured is not None:
        parts = [_text(_json(structured))]  # servers should also send it as text (MCP tools, structured content)
    same = isinstance(content, list) and len(parts) == len(content) and all(map(is_, parts, content))
    return result if same else {**result, "content": parts}


def fitted_part(part: Any, protocol: str) -> Any:
    """Return the part if it fits the revision. Otherwise, return a copy with its missing members, or a text part."""
    known = KNOWN_PARTS.get(protocol)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _WANTED:
        # Without all required members, a strict client would drop the whole result.
        missing = {key: value for key, value in _WANTED[kind].items() if not isinstance(part.get(key), str)}
        return {**part, **missing} if missing else part
    if known is None or kind in known:
        return part
    return _text(stand_in(part))


def stand_in(part: Any) -> str:
    """Return the text that replaces a content part."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "resource":
        resource = part.get("resource")
        if not isinstance(resource, dict):
            return "[Resource: (no URI)]\n(no content)"
        text = resource.get("text")
        return f"[Resource: {resource.get('uri') or '(no URI)'}]\n{text if isinstance(text, str) else _json(resource)}"
    if kind == "resource_link":
        uri = part.get("uri")
        return f"[Resource Link: {part.get('name') or uri or 'unknown'}]\nURI: {uri or '(no URI)'}"
    if kind in ("audio", "image"):
        return f"[{kind.capitalize()} content: {part.get('mimeType') or f'{kind}/*'}]"
    return _json(part)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")


def paged(result: dict[str, Any], limit: int, store: CutResults) -> dict[str, Any]:
    """Return `result` with at most `limit` bytes of text, or `result` itself if it is short enough. If text is cut,
    keep the whole text in `store`.

    The first text that does not fit is cut, and later ones are left out. Parts that are not text stay. Structured
    content that is too long becomes text, unless the text already contains it.
    """
    parts = result.get("content")
    parts = list(parts) if isinstance(parts, list) else []
    structured = None  # structured content as text, if it is longer than a page
    if result.get("structuredContent") is not None and len(written := dumps(result["structuredContent"])) > limit:
        structured = written.decode("utf-8", "surrogatepass")
    if structured is not None and not any(_says(part, structured) for part in parts):
        parts.append(_text(structured))
    text = "\n".join(text for part in parts if (text := _text_of(part)) is not None)
    if structured is None and cut_at(text, 0, limit) >= len(text):
        return result
    short = {key: value for key, value in result.items() if key != "structuredContent" or structured is None}
    if cut_at(text, 0, page_bytes(limit)) >= len(text):  # only the structure was too long, and the text contains it
        return short
    kept = store.keep(text)
    end = cut_at(text, 0, page_bytes(limit, kept.file))
    rest = _text(note(kept.name, 0, end, len(text), kept.file).lstrip("\n"))
    return {**short, "content": [*_first_page(parts, end), rest]}


def _says(part: Any, structured: str) -> bool:
    """Return True if a part's text is the same JSON as `structured`, with any whitespace between tokens."""
    text = _text_of(part)
    if text is None or not text.lstrip().startswith(structured[:1]):
        return False
    try:
        return dumps(loads(text.encode("utf-8", "surrogatepass"))) == structured.encode("utf-8", "surrogatepass")
    except JsonError:
        return False


def _first_page(parts: list[Any], end: int) -> list[Any]:
    """Return the parts of a result, with only the first `end` characters of their text.

    A line break between the texts of two parts counts as a character.
    """
    shown: list[Any] = []
    for part in parts:
        if (text := _text_of(part)) is None:
            shown.append(part)
        elif end > 0:
            cut = {"text": text[:end]}
            shown.append(part | cut if part["type"] == "text" else {**part, "resource": part["resource"] | cut})
            end -= len(text) + 1
    return shown


def _text_of(part: Any) -> str | None:
    """Return the text of a text part or of a text resource, or None for any other part."""
    if not isinstance(part, dict) or part.get("type") not in ("text", "resource"):
        return None
    holder = part if part["type"] == "text" else part.get("resource")
    text = holder.get("text") if isinstance(holder, dict) else None
    return text if isinstance(text, str) else None
