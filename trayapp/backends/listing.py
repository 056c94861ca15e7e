"""Read everything a server offers: every list that its capabilities announce, with all pages, up to MAX_ITEMS entries.

Each list succeeds or fails on its own and has its own time limit.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from trayapp.backends.handshake import Peer
from trayapp.model.offer import UNREAD, Item, Offer
from trayapp.model.redact import KNOWN, redacted
from trayapp.wire.capabilities import EVENTS, SKILLS, announces
from trayapp.wire.jsonio import dumps, salvaged, well_formed
from trayapp.wire.messages import METHOD_NOT_FOUND, Channel, RpcError
from trayapp.wire.revisions import SERVER_INFO

log = logging.getLogger(__name__)

LIST_TIMEOUT_S = 60.0  # limit on reading all pages of one list; a slower list fails, but the server stays connected
HEAD_START_S = 1.0  # after this long, a slow list delays neither the next list nor the lists already read
MAX_PAGES = 1_000
MAX_ITEMS = 20_000  # the most entries of one list: twice the largest catalog that search must support
MORE_LARGEST = 64 * 1024  # bytes; the limit for a result's members besides its list
REASON_LONGEST = 300  # the most characters of a failure's reason

# list -> the capability that announces it, its method, the member of a result that holds it
_LISTS = {
    "tools": ("tools", "tools/list", "tools"),
    "prompts": ("prompts", "prompts/list", "prompts"),
    "resources": ("resources", "resources/list", "resources"),
    "templates": ("resources", "resources/templates/list", "resourceTemplates"),
    "skills": (SKILLS, "skills/list", "skills"),
    "events": (EVENTS, "events/list", "events"),
}


_OF_THE_PROTOCOL = ("nextCursor", "ttlMs", "resultType", "cacheScope")
_NAMES = ("name", "uri", "uriTemplate")


async def fetch_offer(
    channel: Channel, peer: Peer, able: Mapping[str, Any], tell: Callable[[Offer], Awaitable[None]]
) -> Offer:
    """Read and return all lists. A list that cannot be read to its end has the pages that arrived, and is in `failed`.

    `able`: the client capabilities for which the lists are read. While lists that take longer than
    HEAD_START_S are being read, `tell` gets what has been read so far.
    """
    known = peer.capabilities
    readings = [_ListRead(name) for name, (by, _, _) in _LISTS.items() if by in known or announces(known, by)]
    async with anyio.create_task_group() as tasks:
        for reading in readings:
            tasks.start_soon(reading.read, channel, peer, able)
            with anyio.move_on_after(HEAD_START_S):
                await reading.done.wait()
        told = None
        for reading in readings:
            if not all(each.done.is_set() for each in readings) and (offer := _offer(readings, peer)) != told:
                await tell(offer)
                told = offer
            await reading.done.wait()
    return _offer(readings, peer)


def _offer(readings: list[_ListRead], peer: Peer) -> Offer:
    ttls = [ttl for reading in readings for ttl in reading.ttls]
    lists: dict[str, Any] = {reading.name: tuple(reading.items[:MAX_ITEMS]) for reading in readings}
    return Offer(
        **lists,
        capabilities=well_formed(KNOWN.without_in(peer.capabilities)),
        server_info=well_formed(KNOWN.without_in(peer.server_info)),
        instructions=well_formed(KNOWN.without_in(peer.instructions)),
        protocol=peer.protocol,
        ttl_ms=min(ttls, default=None),
        signed=False,  # set by the caller, who knows whether a sign-in was used
        failed={reading.name: reading.failure for reading in readings if reading.failure},
        results={reading.name: reading.more for reading in readings if reading.more},
    )


def _mended(item: Item) -> Item:
    """Return an entry that strict parsers accept (well_formed), except that its names stay as sent.

    Some clients reject a whole list for one malformed entry.
    """
    mended = well_formed(item)
    names = {key: item[key] for key in _NAMES if isinstance(item.get(key), str)}
    return item if mended is item else {**mended, **names}


def _besides(result: dict[str, Any], member: str) -> Item:
    """Return a page's members besides its list and those of the protocol; {} if larger than MORE_LARGEST."""
    more = {key: value for key, value in result.items() if key not in (member, "_meta", *_OF_THE_PROTOCOL)}
    meta = result.get("_meta")
    left = {key: value for key, value in meta.items() if key != SERVER_INFO} if isinstance(meta, dict) else {}
    found: Item = well_formed(KNOWN.without_in({**more, **({"_meta": left} if left else {})}))
    return found if len(dumps(found)) <= MORE_LARGEST else {}


class _ListRead:
    """One list that is being read, page by page."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: list[Item] = []
        self.ttls: list[int] = []
        self.more: Item = {}  # other members of its results; the first page wins
        self.failure = UNREAD  # "" once the list has been read
        self.done = anyio.Event()

    async def read(self, channel: Channel, peer: Peer, able: Mapping[str, Any]) -> None:
        """Read all pages. Stop at the first failure and record it. Never raises RpcError or TimeoutError."""
        _, method, member = _LISTS[self.name]
        try:
            with anyio.fail_after(LIST_TIMEOUT_S):
                await self._pages(channel, peer, able, method, member)
            self.failure = ""
        except TimeoutError:
            self.failure = f"no complete answer to {method} within {LIST_TIMEOUT_S:.0f} s"
        except RpcError as error:
            # Servers with nothing to list often announce a list that they do not implement.
            unknown = error.code == METHOD_NOT_FOUND and not self.items
            self.failure = "" if unknown else redacted(error.message or f"error {error.code}")[:REASON_LONGEST]
        finally:
            self.done.set()

    async def _pages(self, channel: Channel, peer: Peer, able: Mapping[str, Any], method: str, member: str) -> None:
        cursor: Any = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            try:
                params = {"cursor": cursor} if cursor is not None else None
                result = await channel.send_raw_request(method, peer.stamped(params, able))
            except RpcError as error:
                message = salvaged(error.unread) if error.unread else None
                if message is None or not isinstance(message.get("result"), dict):
                    raise
                log.warning("Dropped list entries that are not valid JSON or nested too deeply")
                result = message["result"]
            page = result.get(member)
            if isinstance(page, list):
                # Secrets are removed from what is served, too, because it has to match what is approved and cached
                self.items += [_mended(item) for item in KNOWN.without_in(page) if isinstance(item, dict)]
            elif page is not None:  # some servers send null for an empty list
                raise RpcError(0, f"{member} of its answer is not a list")
            self.more = {**_besides(result, member), **self.more}
            if isinstance(ttl := result.get("ttlMs"), int) and not isinstance(ttl, bool):
                self.ttls.append(max(0, ttl))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(self.items) >= MAX_ITEMS:
                return
            seen.add(cursor)
