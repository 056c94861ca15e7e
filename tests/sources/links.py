"""Our own install links."""

from __future__ import annotations

import base64
import json

from trayapp.sources.source import Entry


def link_to(entry: Entry, name: str) -> str:
    """Return a multi-mcp:// link for an entry."""
    packed = base64.urlsafe_b64encode(json.dumps(entry, ensure_ascii=False).encode()).decode().rstrip("=")
    return f"multi-mcp://add?name={name}&config={packed}"
