"""What one server offers, exactly as it sent it: the value that a connection fetches and the cache keeps.

Never here: exposed names, which tools are enabled, files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]  # one tool, prompt, resource or template, raw


@dataclass(frozen=True, slots=True)
class Offer:
    """One server's lists and handshake facts. Items keep every field, known or not."""

    tools: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()
    capabilities: Item | None = None
    server_info: Item | None = None
    instructions: str | None = None
    protocol: str = ""  # the revision that was negotiated, "" when never connected
    ttl_ms: int | None = None  # smallest `ttlMs` of the lists, None when the server named none
