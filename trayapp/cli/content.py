"""A tool's result as plain text: texts as they are, everything else as a line that stands for it.

Never here: printing, calling.
"""

from __future__ import annotations

from typing import Any

from trayapp.cli.text import byte_size, clean, json_text, one_line


def result_text(result: dict[str, Any]) -> str:
    """What a person gets to see; the structured content when there is no text. Cleaned, maybe of several lines."""
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block_text(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        texts.append(json_text(structured))
    return "\n".join(texts)


def block_text(block: dict[str, Any]) -> str:
    """One content block (MCP 2025-11-25, tools, tool result)."""
    kind = one_line(str(block.get("type")))
    if kind == "text":
        return clean(str(block.get("text", "")))
    if kind == "resource":
        return resource_text(block.get("resource"))
    if kind == "resource_link":
        return stand_in("link", block.get("title") or block.get("name"), block.get("uri"))
    return stand_in(kind, block.get("mimeType"), data_size(block.get("data")))


def resource_text(resource: Any) -> str:
    """An embedded resource: its text, or what it is."""
    if not isinstance(resource, dict):
        return stand_in("resource")
    if isinstance(resource.get("text"), str):
        return clean(resource["text"])
    return stand_in("resource", resource.get("uri"), resource.get("mimeType"), data_size(resource.get("blob")))


def stand_in(*parts: Any) -> str:
    """`[image, image/png, 12 kB]`."""
    return "[" + ", ".join(one_line(str(part)) for part in parts if part) + "]"


def data_size(data: Any) -> str:
    """The size of base64 data once decoded."""
    return byte_size(len(data.rstrip("=")) * 3 // 4) if isinstance(data, str) else ""
