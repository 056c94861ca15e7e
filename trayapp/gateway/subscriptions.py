"""Who wants to hear of what: updates of single resources, and the listening requests of 2026-07-28.

An older client subscribes by resources/subscribe, a newer one holds a subscriptions/listen open; servers of both eras
are asked for the union. Never here: routing of anything else, connections' lives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.calls import Unheard
from trayapp.gateway.router import text_of
from trayapp.model.errors import MultiMcpError
from trayapp.wire.envelope import SUBSCRIPTION_ID
from trayapp.wire.messages import INVALID_PARAMS, Params, RequestId, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.frontend import Session

log = logging.getLogger(__name__)

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LISTENABLE = ("tools", "prompts", "resources")

Place = tuple[str, str]  # under which key a server runs, the resource's URI as that server knows it


@dataclass(eq=False, slots=True)
class _Ear:
    """One that hears: a session (older clients), or one listening request of it."""

    session: Session
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

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._ears: dict[Session, dict[RequestId | None, _Ear]] = {}

    # -- older clients -------------------------------------------------------------------------------------------

    async def subscribe(self, session: Session, uri: str) -> None:
        """Raises MultiMcpError, RpcError: no server has that resource, or its server refuses."""
        place = self._place(session, uri)
        connection = self._gateway.pool.find(place[0])
        await connection.ensure()
        if not self._wanted_places(place):
            await self._ask(connection, "resources/subscribe", place[1])
        ear = self._ears.setdefault(session, {}).setdefault(None, _Ear(session))
        ear.places[place] = uri
        self._follow([place])

    async def unsubscribe(self, session: Session, uri: str) -> None:
        """Raises MultiMcpError, RpcError: no server has that resource."""
        place = self._place(session, uri)
        ear = self._ears.get(session, {}).get(None)
        if ear is not None and ear.places.pop(place, None) is not None:
            await self._end([place])

    # -- clients of 2026-07-28 -----------------------------------------------------------------------------------

    async def listen(self, session: Session, request_id: RequestId, params: Params) -> None:
        """Serve one subscriptions/listen until it is cancelled: first the acknowledgement, then what it asked for."""
        wanted = (params or {}).get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "subscriptions/listen needs notifications")
        kinds = frozenset(kind for kind in LISTENABLE if wanted.get(f"{kind}ListChanged") is True)
        uris = [uri for uri in wanted.get("resourceSubscriptions") or () if isinstance(uri, str)]
        ear = _Ear(session, request_id, kinds, self._places(session, uris))
        self._ears.setdefault(session, {})[request_id] = ear
        honored: dict[str, Any] = {f"{kind}ListChanged": True for kind in LISTENABLE if kind in kinds}
        try:
            ear.tell(ACKNOWLEDGED, {"notifications": {**honored, **({"resourceSubscriptions": uris} if uris else {})}})
            await self._begin(ear)
            await anyio.sleep_forever()
        finally:
            self._forget(ear)

    def _places(self, session: Session, uris: Iterable[str]) -> dict[Place, str]:
        """Where those resources are; one that nobody has is never updated (as the revision has it)."""
        places: dict[Place, str] = {}
        for uri in uris:
            try:
                places[self._place(session, uri)] = uri
            except (MultiMcpError, RpcError) as error:
                log.info("No updates of %s: %s", uri[:200], error)
        return places

    async def _begin(self, ear: _Ear) -> None:
        for place in ear.places:
            try:
                connection = self._gateway.pool.find(place[0])
                await connection.ensure()
                await self._ask(connection, "resources/subscribe", place[1])
            except (MultiMcpError, RpcError) as error:
                log.info("No updates of %s from %s: %s", place[1][:200], place[0], error)
        self._follow(ear.places)

    # -- both ----------------------------------------------------------------------------------------------------

    def wanted(self, key: str) -> frozenset[str]:
        """The URIs, as that server knows them, of which somebody wants updates."""
        return frozenset(uri for ear in self._all() for server, uri in ear.places if server == key)

    def drop(self, session: Session) -> None:
        """The session has ended."""
        for ear in list(self._ears.get(session, {}).values()):
            self._forget(ear)

    def tell_list_changed(self, session: Session, kind: str) -> None:
        """Tell a client of 2026-07-28, where it listens, that a list is another now."""
        for ear in self._ears.get(session, {}).values():
            if kind in ear.kinds:
                ear.tell(f"notifications/{kind}/list_changed", {})

    def updated(self, connection: Connection, params: Params) -> None:
        """A server says that a resource is another now: tell those who wanted to know."""
        place = (connection.name, (params or {}).get("uri"))
        for ear in list(self._all()):
            uri = ear.places.get(place)  # type: ignore[arg-type]  # what is no text is no key of it
            if uri is not None:
                ear.tell(UPDATED, {**_without_subscription(params), "uri": uri})

    def renew(self, connection: Connection) -> None:
        """A server was connected anew: it knows of no subscription."""
        live = connection.live
        if live is not None and not live.peer.modern:
            for uri in self.wanted(connection.name):
                live.channel.relay("resources/subscribe", {"uri": uri}, Unheard())

    def _all(self) -> Iterable[_Ear]:
        return [ear for ears in self._ears.values() for ear in ears.values()]

    def _place(self, session: Session, uri: str) -> Place:
        server, own = session.window.router.resource(uri)
        return session.connection(server).name, own

    def _wanted_places(self, place: Place) -> bool:
        return place[1] in self.wanted(place[0])

    async def _ask(self, connection: Connection, method: str, uri: str) -> None:
        """Ask an older server; a newer one hears it by the request that its connection holds open."""
        if connection.live is not None and not connection.live.peer.modern:
            await connection.request(method, {"uri": uri})

    def _follow(self, places: Iterable[Place]) -> None:
        """Servers of 2026-07-28 are asked for the new union."""
        for key in {key for key, _ in places}:
            connection = self._gateway.pool.get(key)
            if connection is not None:
                connection.follow_subscriptions()

    def _forget(self, ear: _Ear) -> None:
        ears = self._ears.get(ear.session, {})
        if ears.pop(ear.request_id, None) is None:
            return
        if not ears:
            self._ears.pop(ear.session, None)
        places = list(ear.places)
        self._gateway.spawn(self._end, places)

    async def _end(self, places: list[Place]) -> None:
        """Unsubscribe from what nobody wants any more; a server that is not connected knows nothing of it anyway."""
        for key, uri in places:
            connection = self._gateway.pool.get(key)
            if connection is None or connection.live is None or uri in self.wanted(key):
                continue
            try:
                await self._ask(connection, "resources/unsubscribe", uri)
            except (MultiMcpError, RpcError) as error:
                log.info("%s: %s", key, error)
        self._follow(places)


def _without_subscription(params: Params) -> dict[str, Any]:
    """The params without the id of our own subscription at the server."""
    known = dict(params or {})
    meta = known.get("_meta")
    if isinstance(meta, dict) and SUBSCRIPTION_ID in meta:
        left = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID}
        known.pop("_meta")
        known.update({"_meta": left} if left else {})
    return known


# -- the requests, which wait for servers ----------------------------------------------------------------------------


def _subscribe(gateway: Gateway, session: Session, request_id: RequestId, params: dict[str, Any]) -> None:
    async def work() -> None:
        await gateway.subscriptions.subscribe(session, text_of(params, "uri", "resources/subscribe"))
        session.send_result(request_id, b"{}")

    session.start(request_id, work)


def _unsubscribe(gateway: Gateway, session: Session, request_id: RequestId, params: dict[str, Any]) -> None:
    async def work() -> None:
        await gateway.subscriptions.unsubscribe(session, text_of(params, "uri", "resources/unsubscribe"))
        session.send_result(request_id, b"{}")

    session.start(request_id, work)


def _listen(gateway: Gateway, session: Session, request_id: RequestId, params: dict[str, Any]) -> None:
    """Raises RpcError: the id is under way already."""
    session.refuse_twice(request_id)
    session.lists.had_by_now()
    session.start(request_id, partial(gateway.subscriptions.listen, session, request_id, params))


# What each era has that needs a task.
Work = Callable[["Gateway", "Session", RequestId, dict[str, Any]], None]
OLDER_WORK: dict[str, Work] = {"resources/subscribe": _subscribe, "resources/unsubscribe": _unsubscribe}
MODERN_WORK: dict[str, Work] = {"subscriptions/listen": _listen}
