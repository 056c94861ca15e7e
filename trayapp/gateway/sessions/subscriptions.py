"""Track subscriptions to resources, and the subscriptions/listen requests of 2026-07-28.

A connection to a server has the subscriptions of all sessions that use it. When a session changes to another
connection, its subscriptions move there. A client gets its confirmation once the server has confirmed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.backends.subscription import ACKNOWLEDGED, AGAIN_MOST_S, AGAIN_S, UPDATED
from trayapp.catalog.names import Key
from trayapp.gateway.calls.routed_call import IgnoredCall
from trayapp.gateway.client import ClientSession
from trayapp.gateway.extensions.streams import ExtensionSession
from trayapp.gateway.services import Services
from trayapp.model.errors import MultiMcpError, ServerError
from trayapp.model.lifecycle import RECONNECT_FIRST_S, State
from trayapp.wire.messages import INVALID_PARAMS, Params, RequestId, RpcError
from trayapp.wire.revisions import SUBSCRIPTION_ID

log = logging.getLogger(__name__)

LISTENABLE = ("tools", "prompts", "resources")

BELOW = ("/", "?", "#")  # the characters that may follow a resource's URI in the URI of a sub-resource
Place = tuple[str, str]  # the key of a connection, and a resource's URI at its server


@dataclass(eq=False, slots=True)
class _Listener:
    """A listener for updates: the session of an older client, or one subscriptions/listen request."""

    session: ExtensionSession
    request_id: RequestId | None = None
    kinds: frozenset[str] = frozenset()
    resources: dict[Key, str] = field(default_factory=dict)  # server, URI at the server -> URI that the client uses
    # notifications that wait for the acknowledgment. None: they are sent immediately
    waiting: list[tuple[str, dict[str, Any]]] | None = None

    def places(self) -> dict[Place, str]:
        """Return place -> URI that the client uses, for the connections that the session uses now."""
        return {(self.session.server_key(server), own): uri for (server, own), uri in self.resources.items()}

    def take(self, uri: str) -> list[Place]:
        """Stop following a resource, and return its places. `uri`: the URI that the client uses."""
        places = [place for place, known in self.places().items() if known == uri]
        self.resources = {key: known for key, known in self.resources.items() if known != uri}
        return places

    def acknowledge(self, uris: list[str], more: Mapping[str, Any]) -> None:
        """Send the acknowledgment, followed by the notifications that arrived before it.

        `uris`: the followed resources. `more`: members of the acknowledgment for extensions.
        """
        kinds = {f"{kind}ListChanged": True for kind in LISTENABLE if kind in self.kinds}
        waiting, self.waiting = self.waiting or [], None
        honored = {**kinds, **({"resourceSubscriptions": uris} if uris else {}), **more}
        self.send(ACKNOWLEDGED, {"notifications": honored})
        for method, params in waiting:
            self.send(method, params)

    def send(self, method: str, params: dict[str, Any]) -> None:
        if self.waiting is not None:
            self.waiting += [(method, params)] if (method, params) not in self.waiting else []
        elif self.request_id is None:
            self.session.notify(method, params)
        else:
            meta = {**(params.get("_meta") or {}), SUBSCRIPTION_ID: self.request_id}
            self.session.notify(method, {**params, "_meta": meta}, self.request_id)


class Subscriptions:
    """The subscriptions of all sessions, and those of the connections at their servers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._listeners: dict[ClientSession, dict[RequestId | None, _Listener]] = {}
        self._subscribed: dict[Place, Live] = {}  # place -> the live connection that is subscribed, or about to be
        self._restored: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        self._locks: WeakValueDictionary[Place, anyio.Lock] = WeakValueDictionary()

    # -- older clients -------------------------------------------------------------------------------------------

    async def subscribe(self, session: ExtensionSession, request_id: RequestId, uri: str) -> None:
        """Subscribe a session to a resource, on the connection that its calls use. Raises MultiMcpError, RpcError."""
        key = session.seen.resource(uri)
        connection = await session.connected(request_id, key[0])
        listener = self._listeners.setdefault(session, {}).setdefault(None, _Listener(session))
        confirmed = key in listener.resources
        try:
            await self._begin(listener, key, connection, uri)
            confirmed = True
        finally:
            if not confirmed and listener.resources.pop(key, None) is not None:
                self._services.spawn(self._unsubscribe_unused, [(connection.key, key[1])])

    async def unsubscribe(self, session: ExtensionSession, uri: str) -> None:
        """End a subscription that `subscribe` began. Raises MultiMcpError, RpcError if the resource is unknown."""
        _ = session.seen.resource(uri)
        listener = self._listeners.get(session, {}).get(None)
        if listener is not None:
            await self._unsubscribe_unused(listener.take(uri))

    # -- clients of 2026-07-28 -----------------------------------------------------------------------------------

    async def listen(
        self, session: ExtensionSession, request_id: RequestId, params: Params, more: Mapping[str, Any] | None = None
    ) -> None:
        """Serve a subscriptions/listen request until cancelled. `more`: members of the acknowledgment for extensions.

        Raises RpcError.
        """
        wanted = (params or {}).get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "subscriptions/listen needs notifications")
        kinds = frozenset(kind for kind in LISTENABLE if wanted.get(f"{kind}ListChanged") is True)
        uris = [uri for uri in wanted.get("resourceSubscriptions") or () if isinstance(uri, str)]
        listener = _Listener(session, request_id, kinds, waiting=[])
        self._listeners.setdefault(session, {})[request_id] = listener
        try:
            refused = await self._begin_all(listener, request_id, _known(session, uris))
            listener.acknowledge([uri for uri in uris if uri not in refused], more or {})
            await anyio.sleep_forever()
        finally:
            self._forget(listener)

    async def _begin_all(self, listener: _Listener, request_id: RequestId, known: Mapping[str, Key]) -> set[str]:
        """Follow the resources concurrently. Return the URIs of resources whose servers refuse or cannot start.

        `known`: the URI that the client uses -> the server and its own URI.
        """
        refused: set[str] = set()

        async def begin(uri: str, server: str, own: str) -> None:
            try:
                connection = await listener.session.connected(request_id, server)
                await self._begin(listener, (server, own), connection, uri)
            except (MultiMcpError, RpcError) as error:
                log.info("Cannot subscribe to %s at %s: %s", own[:200], server, error)
                listener.take(uri)
                refused.add(uri)

        async with anyio.create_task_group() as tasks:
            for uri, key in known.items():
                tasks.start_soon(begin, uri, *key)
        return refused

    # -- all clients ---------------------------------------------------------------------------------------------

    def wanted(self, key: str) -> frozenset[str]:
        """Return the servers' own URIs of the resources that listeners follow on the connection with that key."""
        places = (place for listener in self._all_listeners() for place in listener.places())
        return frozenset(uri for server, uri in places if server == key)

    def drop(self, session: ClientSession) -> None:
        """Drop the listeners of a session that has ended."""
        for listener in list(self._listeners.get(session, {}).values()):
            self._forget(listener)

    def tell_list_changed(self, session: ClientSession, kind: str) -> None:
        """Send list_changed to a client of 2026-07-28 that listens for that kind."""
        for listener in self._listeners.get(session, {}).values():
            if kind in listener.kinds:
                listener.send(f"notifications/{kind}/list_changed", {})

    def updated(self, connection: Connection, params: Params) -> None:
        """Pass an update of a resource or sub-resource on to the listeners that follow the resource."""
        known = dict(params or {})
        changed, meta = known.get("uri"), known.get("_meta")
        if not isinstance(changed, str):
            return
        if isinstance(meta, dict) and SUBSCRIPTION_ID in meta:  # the id of our own subscription at the server
            known.pop("_meta")
            left = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID}
            known.update({"_meta": left} if left else {})
        for listener in list(self._all_listeners()):
            followed = {own: uri for (key, own), uri in listener.places().items() if key == connection.key}
            own = changed if changed in followed else next((own for own in followed if _is_below(changed, own)), None)
            if own is not None and listener.session.has_server(connection.key):
                listener.send(UPDATED, {**known, "uri": followed[own] + changed[len(own) :]})

    def renew(self, connection: Connection, places: Collection[Place] | None = None) -> None:
        """Subscribe the connection to each of `places` (default: all wanted ones) to which it is not subscribed yet.

        Then end subscriptions to the same resources that the server's other connections no longer need.
        """
        live = connection.live
        wanted = [(connection.key, uri) for uri in self.wanted(connection.key)] if places is None else places
        missing = [place for place in wanted if self._subscribed.get(place) is not live]
        if live is None or not missing:
            return
        self._subscribed |= dict.fromkeys(missing, live)
        if live.peer.modern:
            connection.follow_subscriptions()
        else:
            for _, uri in missing:
                live.channel.relay("resources/subscribe", {"uri": uri}, IgnoredCall())
        shared_key, uris = self._services.shared_key, {uri for _, uri in missing}
        server = shared_key(connection.key)
        former = [(key, uri) for key, uri in self._subscribed if uri in uris and shared_key(key) == server]
        self._services.spawn(self._unsubscribe_unused, former)

    async def restore(self, connection: Connection) -> None:
        """Try to reconnect a lost server while sessions follow its resources: they might never send it a call.

        The first attempt is immediate, unless the last `restore` was less than RECONNECT_FIRST_S ago.
        """
        key, clock, pause_s = connection.key, self._services.clock, AGAIN_S
        if clock.now() - self._restored.get(connection, -math.inf) < RECONNECT_FIRST_S:
            await clock.sleep(RECONNECT_FIRST_S)
        self._restored[connection] = clock.now()
        while connection.live is None and self.wanted(key) and self._services.pool.get(key) is connection:
            try:
                await connection.ensure(explicit=connection.state is not State.NEEDS_AUTH, background=True)
            except ServerError as error:
                log.info("%s", error)
                await clock.sleep(pause_s)
                pause_s = min(2 * pause_s, AGAIN_MOST_S)

    def follow(self, session: ClientSession, connection: Connection) -> None:
        """Move a session's subscriptions to the connection that its requests use now."""
        for listener in self._listeners.get(session, {}).values():
            places = [place for place in listener.places() if place[0] == connection.key]
            self.renew(connection, [place for place in places if not self._lock(place).locked()])

    def _all_listeners(self) -> Iterable[_Listener]:
        return [listener for listeners in self._listeners.values() for listener in listeners.values()]

    async def _begin(self, listener: _Listener, key: Key, connection: Connection, uri: str) -> None:
        """Follow the resource on that connection, and wait until its server confirms. Raises MultiMcpError, RpcError.

        An older server gets one subscription for all listeners. A newer one gets one listen request per connection.
        """
        place = connection.key, key[1]
        live = await connection.ensure()
        listener.session.called_servers.add(connection.key)
        listener.resources[key] = uri  # set first: the server may report an update as soon as it has confirmed
        connection.follow_subscriptions()
        if live.peer.modern:
            self._subscribed[place] = live
            await connection.follows(place[1])
            return
        async with self._lock(place):
            if self._subscribed.get(place) is not live:
                await connection.request("resources/subscribe", {"uri": place[1]})
                self._subscribed[place] = live

    def _lock(self, place: Place) -> anyio.Lock:
        return self._locks.setdefault(place, anyio.Lock())

    def _forget(self, listener: _Listener) -> None:
        listeners = self._listeners.get(listener.session, {})
        if listeners.pop(listener.request_id, None) is None:
            return
        if not listeners:
            self._listeners.pop(listener.session, None)
        self._services.spawn(self._unsubscribe_unused, list(listener.places()))

    async def _unsubscribe_unused(self, places: list[Place]) -> None:
        """Unsubscribe from those of `places` that have no listeners. Ignore connections that are no longer live."""
        for key, uri in places:
            async with self._lock((key, uri)):
                if uri in self.wanted(key):
                    continue
                subscribed = self._subscribed.pop((key, uri), None)
                connection = self._services.pool.get(key)
                try:
                    if connection is None or subscribed is None or connection.live is not subscribed:
                        continue
                    if not subscribed.peer.modern:
                        await connection.request("resources/unsubscribe", {"uri": uri})
                except (MultiMcpError, RpcError) as error:
                    log.info("%s: %s", key, error)
        for key in {key for key, _ in places}:
            connection = self._services.pool.get(key)
            if connection is not None:
                connection.follow_subscriptions()


def _is_below(uri: str, followed: str) -> bool:
    """Return True if the URI names a sub-resource of `followed`, or differs from it only by a slash at the end."""
    return uri.startswith(followed) and (followed.endswith(BELOW) or uri[len(followed) :].startswith(BELOW))


def _known(session: ExtensionSession, uris: Iterable[str]) -> dict[str, Key]:
    """Return URI -> (server, the server's own URI). Leave out unknown resources, which never get updates."""
    known: dict[str, Key] = {}
    for uri in uris:
        try:
            known[uri] = session.seen.resource(uri)
        except (MultiMcpError, RpcError) as error:
            log.info("Cannot subscribe to %s: %s", uri[:200], error)
    return known
