"""One session's lists: given when its client asks, told of when they change.

Never here: what all sessions of a window list (expose), the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from trayapp.wire.messages import RequestId

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.frontend import Session

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = tuple(LISTS.values())
TOLD_AS = {**{kind: kind for kind in LIST_KINDS}, "templates": "resources"}  # there is no notification for them alone


class Lists:
    """Of one session."""

    def __init__(self, session: Session, gateway: Gateway) -> None:
        self._session = session
        self._gateway = gateway
        self._had: dict[str, bytes] = {}  # as the client had them, or was told that they changed

    def ask(self, request_id: RequestId, kind: str) -> None:
        """Answer the request for a list, one of LIST_KINDS; on the very first run once there is something to list."""
        session = self._session
        # With `search` it is the one tool, whatever comes.
        settled = kind == "tools" and session.window.exposure.choice.expose == "search"
        if session.view.lists_may_grow and not settled:
            session.start(request_id, partial(self._give_later, request_id, kind))
        else:
            self._give(request_id, kind)

    async def _give_later(self, request_id: RequestId, kind: str) -> None:
        await self._session.view.first_lists()
        self._give(request_id, kind)

    def _give(self, request_id: RequestId, kind: str) -> None:
        session = self._session
        self._had[kind] = listing = session.window.listing(kind)
        session.send_cacheable(request_id, listing)
        self._gateway.list_served()

    def had_by_now(self) -> None:
        """Changes are to be told from now on: of what the client never asked for, too."""
        window = self._session.window
        self._had = {**{kind: window.listing(kind) for kind in LIST_KINDS}, **self._had}

    def tell(self, listings: Mapping[str, bytes]) -> None:
        """Say `list_changed` of those (by LIST_KINDS, as all sessions of the window get them) that are others now; to a
        client that is not ready, later."""
        session = self._session
        if not session.ready:
            return
        changed = [TOLD_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        for kind in dict.fromkeys(changed):
            if session.modern:
                self._gateway.subscriptions.tell_list_changed(session, kind)
            else:
                session.notify(f"notifications/{kind}/list_changed")
