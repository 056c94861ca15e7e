"""The index of all tools in Markdown: a resource of our own.

Never here: other resources, the words of the one tool's answers.
"""

from __future__ import annotations

from typing import Any

from trayapp.catalog.names import Key
from trayapp.gateway.exposure.exposure import INDEX, INDEX_URI, Exposure, first_line
from trayapp.model.offer import Item
from trayapp.model.text import count


def index_result(seen: Exposure) -> dict[str, Any]:
    """The result of reading it."""
    return {"contents": [{"uri": INDEX_URI, "mimeType": INDEX["mimeType"], "text": index_text(seen)}]}


def index_text(seen: Exposure) -> str:
    """All tools that a session may call, a heading a server."""
    enabled = [name for name, entry in seen.servers.items() if not entry.disabled]
    head = f"# {count(len(seen.tools), 'tool')} of {count(len(enabled), 'server')}"
    return "\n".join([head, *(_section(seen, name) for name in enabled)]) + "\n"


def _section(seen: Exposure, server: str) -> str:
    title = seen.servers[server].title
    rows = [_row(seen, key, item) for key, item in seen.entries[server].items()]
    return "\n".join([f"\n## {server}{f' ({title})' if title else ''}\n", *(rows or ["No tools are known"])])


def _row(seen: Exposure, key: Key, item: Item) -> str:
    line = first_line(item.get("description"))
    return f"- `{seen.name_of(key)}`: {line}" if line else f"- `{seen.name_of(key)}`"
