"""What was sent to HTTP clients lately, so that one whose stream broke off can have the rest (MCP transports,
resumability). In memory and bounded. Never here: streams.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

MOST_EVENTS = 2_000
LARGEST_KEPT = 256 * 1024  # characters of a message's text, roughly: a larger answer is asked for again


class RecentEvents(EventStore):
    """The newest events of all streams; what is older cannot be resumed any more."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._events: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None]] = OrderedDict()
        self._numbers = itertools.count(1)

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """See EventStore."""
        event_id = str(next(self._numbers))
        self._events[event_id] = (stream_id, message)
        while len(self._events) > self._most:
            self._events.popitem(last=False)
        return event_id

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """See EventStore."""
        known = self._events.get(last_event_id)
        if known is None:
            return None
        stream_id, after = known[0], int(last_event_id)
        for event_id, (stream, message) in list(self._events.items()):
            if stream == stream_id and int(event_id) > after and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream_id
