"""The parts of a tool's result as a client of some protocol revision can take them: as they are, or as text.

Never here: cutting long results (paging), the call itself. Only for calls through the one tool: a direct call is passed
on unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from trayapp.wire.jsonio import dumps

# Which parts each revision of MCP knows (its schema, ContentBlock). A revision that is not listed is newer than we are.
_FIRST = frozenset({"text", "image", "resource"})
_AUDIO = _FIRST | {"audio"}
_ALL = _AUDIO | {"resource_link"}
KNOWN_PARTS: dict[str, frozenset[str]] = {
    "2024-11-05": _FIRST,
    "2025-03-26": _AUDIO,
    "2025-06-18": _ALL,
    "2025-11-25": _ALL,
    "2026-07-28": _ALL,
}

# What parts of kinds that every revision knows must have, and what stands in for it.
_WANTED: dict[object, dict[str, str]] = {"text": {"text": ""}, "image": {"data": "", "mimeType": "image/png"}}

Result = dict[str, Any]


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
