"""Fetching all that a server offers: every page of every list that its capabilities name.

Never here: caching, naming, deciding when.
"""

from __future__ import annotations

from typing import Any

import anyio

from trayapp.backends.handshake import Peer
from trayapp.model.offer import Item, Offer
from trayapp.wire.messages import METHOD_NOT_FOUND, Channel, RpcError

LIST_TIMEOUT_S = 60.0  # for all pages of one list; a slower list is a failed one, the server stays connected
MAX_PAGES = 1_000
MAX_ITEMS = 20_000  # of one list: twice the largest catalog that we promise to search


async def fetch_offer(channel: Channel, peer: Peer) -> Offer:
    """Everything, as sent. Raises RpcError when a list that the server announced cannot be had."""
    announced = peer.capabilities
    lists: dict[str, tuple[Item, ...]] = {}
    ttls: list[int] = []
    if "tools" in announced:
        lists["tools"] = await _all_pages(channel, peer, "tools", ttls)
    if "prompts" in announced:
        lists["prompts"] = await _all_pages(channel, peer, "prompts", ttls)
    if "resources" in announced:
        lists["resources"] = await _all_pages(channel, peer, "resources", ttls)
        lists["templates"] = await _templates(channel, peer, ttls)
    return Offer(
        **lists,
        capabilities=announced,
        server_info=peer.server_info,
        instructions=peer.instructions,
        protocol=peer.protocol,
        ttl_ms=min(ttls, default=None),
    )


async def _templates(channel: Channel, peer: Peer, ttls: list[int]) -> tuple[Item, ...]:
    try:
        return await _all_pages(channel, peer, "resourceTemplates", ttls)
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:  # many servers have resources and no templates
            return ()
        raise


async def _all_pages(channel: Channel, peer: Peer, kind: str, ttls: list[int]) -> tuple[Item, ...]:
    method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
    items: list[Item] = []
    cursor: Any = None
    seen: set[str] = set()
    try:
        with anyio.fail_after(LIST_TIMEOUT_S):
            for _ in range(MAX_PAGES):
                params = {"cursor": cursor} if cursor is not None else None
                result = await channel.send_raw_request(method, peer.stamped(params, {}))
                page = result.get(kind)
                if isinstance(page, list):
                    items.extend(item for item in page if isinstance(item, dict))
                if isinstance(ttl := result.get("ttlMs"), int) and not isinstance(ttl, bool):
                    ttls.append(max(0, ttl))
                cursor = result.get("nextCursor")
                if not isinstance(cursor, str) or cursor in seen or len(items) >= MAX_ITEMS:
                    break
                seen.add(cursor)
    except TimeoutError:
        raise RpcError(-32001, f"No complete answer to {method} within {LIST_TIMEOUT_S:.0f} s") from None
    return tuple(items[:MAX_ITEMS])
