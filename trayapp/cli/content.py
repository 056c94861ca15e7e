"""A tool's result as plain text. Text stays as it is; anything else becomes a line that describes it.

Never here: printing, calling.
"""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from typing import Any

from trayapp.cli.text import byte_size, clean, json_text, one_line


def result_text(result: dict[str, Any]) -> str:
    """Return a result as cleaned text, possibly of several lines; its structured content if it has no text."""
    blocks = _blocks(result)
    texts = [block_text(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        texts.append(json_text(structured))
    return "\n".join(texts)


def binary_parts(result: dict[str, Any]) -> list[bytes]:
    """Return the images, audio and blobs of a result, decoded. Invalid base64 is skipped."""
    parts: list[bytes] = []
    for block in _blocks(result):
        resource = block.get("resource")
        data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
        if isinstance(data, str):
            with suppress(ValueError):
                parts.append(b64decode(data, validate=True))
    return parts


def _blocks(result: dict[str, Any]) -> list[dict[str, Any]]:
    content = result.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def block_text(block: dict[str, Any]) -> str:
    """Return one content block as text (MCP 2025-11-25, tools, tool result)."""
    kind = one_line(str(block.get("type")))
    if kind == "text":
        return clean(str(block.get("text", "")))
    if kind == "resource":
        return resource_text(block.get("resource"))
    if kind == "resource_link":
        return stand_in("link", block.get("title") or block.get("name"), block.get("uri"))
    return stand_in(kind, block.get("mimeType"), data_size(block.get("data")))


def resource_text(resource: Any) -> str:
    """Return an embedded resource's text, or a line that describes it."""
    if not isinstance(resource, dict):
        return stand_in("resource")
    if isinstance(resource.get("text"), str):
        return clean(resource["text"])
    return stand_in("resource", resource.get("uri"), resource.get("mimeType"), data_size(resource.get("blob")))


def stand_in(*parts: Any) -> str:
    """Return a line that describes a block: `[image, image/png, 12 kB]`."""
    return "[" + ", ".join(one_line(str(part)) for part in parts if part) + "]"


def data_size(data: Any) -> str:
    """Return the decoded size of base64 data; "" for anything but text."""
    return byte_size(len(data.rstrip("=")) * 3 // 4) if isinstance(data, str) else ""
