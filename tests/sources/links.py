"""Install links of multi-mcp for tests."""

from __future__ import annotations

import base64
import json

from trayapp.sources.source import Entry


def link_to(entry: Entry, name: str) -> str:
    """Return the multi-mcp:// link that adds an entry."""
    packed = base64.urlsafe_b64encode(json.dumps(entry, ensure_ascii=False).encode()).decode().rstrip("=")
    return f"multi-mcp://add?name={name}&config={packed}"
