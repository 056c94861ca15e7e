"""Who wants to hear of what: updates of single resources, and the listening requests of 2026-07-28.

An older client subscribes by resources/subscribe, a newer one holds a subscriptions/listen open; servers of both eras
are asked for the union. Never here: routing of anything else, connections' lives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.calls.call import Unheard
from trayapp.gateway.client import ClientSession
from trayapp.gateway.services import Services
from trayapp.model.errors import MultiMcpError
from trayapp.wire.envelope import SUBSCRIPTION_ID
from trayapp.wire.messages import INVALID_PARAMS, Params, RequestId, RpcError

log = logging.getLogger(__name__)

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LISTENABLE = ("tools", "prompts", "resources")

Place = tuple[str, str]  # under which key a server runs, the resource's URI as that server knows it


@dataclass(eq=False, slots=True)
class _Listener:
    """Who hears of updates: a session (older clients), or one listening request of it."""

    session: ClientSession
    request_id: RequestId | None = None
    kinds: frozenset[str] = frozenset()
    places: dict[Place, str] = field(default_factory=dict)  # -> the URI as the client knows it

    def tell(self, method: str, params: dict[str, Any]) -> None:
        if self.request_id is None:
            self.session.notify(method, params)
        else:
            meta = {**(params.get("_meta") or {}), SUBSCRIPTION_ID: self.request_id}
            self.session.notify(method, {**params, "_meta": meta}, self.request_id)


class Subscriptions:
    """All subscriptions of all sessions."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._listeners: dict[ClientSession, dict[RequestId | None, _Listener]] = {}

    # -- older clients -------------------------------------------------------------------------------------------

    async def subscribe(self, session: ClientSession, place: Place, uri: str) -> None:
        """Follow the resource at `place`, which the client knows as `uri`.

        Raises MultiMcpError, RpcError: its server cannot be started, or refuses.
        """
        connection = self._services.pool.find(place[0])
        await connection.ensure()
        if not self._wanted_places(place):
            await self._ask(connection, "resources/subscribe", place[1])
        listener = self._listeners.setdefault(session, {}).setdefault(None, _Listener(session))
        listener.places[place] = uri
        self._follow([place])

    async def unsubscribe(self, session: ClientSession, place: Place) -> None:
        """End what `subscribe` began."""
        listener = self._listeners.get(session, {}).get(None)
        if listener is not None and listener.places.pop(place, None) is not None:
            await self._end([place])

    # -- clients of 2026-07-28 -----------------------------------------------------------------------------------

    async def listen(
        self, session: ClientSession, request_id: RequestId, params: Params, place_of: Callable[[str], Place]
    ) -> None:
        """Serve one subscriptions/listen until it is cancelled: first the acknowledgement, then what it asked for.

        `place_of`: as Session.place_of. Raises RpcError.
        """
        wanted = (params or {}).get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "subscriptions/listen needs notifications")
        kinds = frozenset(kind for kind in LISTENABLE if wanted.get(f"{kind}ListChanged") is True)
        uris = [uri for uri in wanted.get("resourceSubscriptions") or () if isinstance(uri, str)]
        listener = _Listener(session, request_id, kinds, _places(place_of, uris))
        self._listeners.setdefault(session, {})[request_id] = listener
        honored: dict[str, Any] = {f"{kind}ListChanged": True for kind in LISTENABLE if kind in kinds}
        try:
            listener.tell(
                ACKNOWLEDGED, {"notifications": {**honored, **({"resourceSubscriptions": uris} if uris else {})}}
            )
            await self._begin(listener)
            await anyio.sleep_forever()
        finally:
            self._forget(listener)

    async def _begin(self, listener: _Listener) -> None:
        for place in listener.places:
            try:
                connection = self._services.pool.find(place[0])
                await connection.ensure()
                await self._ask(connection, "resources/subscribe", place[1])
            except (MultiMcpError, RpcError) as error:
                log.info("No updates of %s from %s: %s", place[1][:200], place[0], error)
        self._follow(listener.places)

    # -- both ----------------------------------------------------------------------------------------------------

    def wanted(self, key: str) -> frozenset[str]:
        """The URIs, as that server knows them, of which somebody wants updates."""
        return frozenset(uri for listener in self._all() for server, uri in listener.places if server == key)

    def drop(self, session: ClientSession) -> None:
        """The session has ended."""
        for listener in list(self._listeners.get(session, {}).values()):
            self._forget(listener)

    def tell_list_changed(self, session: ClientSession, kind: str) -> None:
        """Tell a client of 2026-07-28, where it listens, that a list is another now."""
        for listener in self._listeners.get(session, {}).values():
            if kind in listener.kinds:
                listener.tell(f"notifications/{kind}/list_changed", {})

    def updated(self, connection: Connection, params: Params) -> None:
        """A server says that a resource is another now: tell those who wanted to know."""
        place = (connection.name, (params or {}).get("uri"))
        for listener in list(self._all()):
            uri = listener.places.get(place)  # type: ignore[arg-type]  # what is no text is no key of it
            if uri is not None:
                listener.tell(UPDATED, {**_without_subscription(params), "uri": uri})

    def renew(self, connection: Connection) -> None:
        """A server was connected anew: it knows of no subscription."""
        live = connection.live
        if live is not None and not live.peer.modern:
            for uri in self.wanted(connection.name):
                live.channel.relay("resources/subscribe", {"uri": uri}, Unheard())

    def _all(self) -> Iterable[_Listener]:
        return [listener for listeners in self._listeners.values() for listener in listeners.values()]

    def _wanted_places(self, place: Place) -> bool:
        return place[1] in self.wanted(place[0])

    async def _ask(self, connection: Connection, method: str, uri: str) -> None:
        """Ask an older server; a newer one hlisteners it by the request that its connection holds open."""
        if connection.live is not None and not connection.live.peer.modern:
            await connection.request(method, {"uri": uri})

    def _follow(self, places: Iterable[Place]) -> None:
        """Servers of 2026-07-28 are asked for the new union."""
        for key in {key for key, _ in places}:
            connection = self._services.pool.get(key)
            if connection is not None:
                connection.follow_subscriptions()

    def _forget(self, listener: _Listener) -> None:
        listeners = self._listeners.get(listener.session, {})
        if listeners.pop(listener.request_id, None) is None:
            return
        if not listeners:
            self._listeners.pop(listener.session, None)
        places = list(listener.places)
        self._services.spawn(self._end, places)

    async def _end(self, places: list[Place]) -> None:
        """Unsubscribe from what nobody wants any more; a server that is not connected knows nothing of it anyway."""
        for key, uri in places:
            connection = self._services.pool.get(key)
            if connection is None or connection.live is None or uri in self.wanted(key):
                continue
            try:
                await self._ask(connection, "resources/unsubscribe", uri)
            except (MultiMcpError, RpcError) as error:
                log.info("%s: %s", key, error)
        self._follow(places)


def _places(place_of: Callable[[str], Place], uris: Iterable[str]) -> dict[Place, str]:
    """Return where those resources are; one that nobody has is never updated (as the revision has it)."""
    places: dict[Place, str] = {}
    for uri in uris:
        try:
            places[place_of(uri)] = uri
        except (MultiMcpError, RpcError) as error:
            log.info("No updates of %s: %s", uri[:200], error)
    return places


def _without_subscription(params: Params) -> dict[str, Any]:
    """The params without the id of our own subscription at the server."""
    known = dict(params or {})
    meta = known.get("_meta")
    if isinstance(meta, dict) and SUBSCRIPTION_ID in meta:
        left = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID}
        known.pop("_meta")
        known.update({"_meta": left} if left else {})
    return known
