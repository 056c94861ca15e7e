"""The subscription to a 2026-07-28 server's notifications: one subscriptions/listen request that stays open.

Over HTTP a server restart ends that request, but not the connection, which has no session there. The request is then
sent again, and the lists are read again, because notifications sent in between are lost.

When the set of resources changes, a second request replaces the first. The first stays open until shortly after the
server has acknowledged the second, so that no update is lost. In between, the server sends most updates once for each
request, and over HTTP in any order. Each update is passed on only once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import anyio

from trayapp.backends.context import BackendContext, Live
from trayapp.wire.jsonio import member_at
from trayapp.wire.messages import CONNECTION_CLOSED, INVALID_PARAMS, Call, Channel, Params, Reply, RpcError
from trayapp.wire.revisions import SUBSCRIPTION_ID

log = logging.getLogger(__name__)

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
AGAIN_S = 1.0  # the wait after a broken request: a restarted server is back by then
AGAIN_MOST_S = 60.0  # the wait doubles up to this while the request keeps breaking
TAKES_WITHIN_S = 10.0  # a server that has not acknowledged the request by then never will
OVERLAP_S = 0.5  # how long a replaced request stays open over HTTP: its updates may come after the acknowledgment
OVERLAPS_MOST = 4  # limit on the OVERLAP_S periods to wait while either request lacks updates that the other delivered


class Listening:
    """A subscriptions/listen request, sent again when it breaks. Implements wire.messages.Call."""

    def __init__(self) -> None:
        self.uris: frozenset[str] = frozenset()  # the resources requested; after acknowledgment, those accepted
        self.scope = anyio.CancelScope()
        self.taken = anyio.Event()  # the server acknowledged or refused the request, or did not answer in time
        self.refused: RpcError | None = None
        self.numbers: set[int] = set()  # the request's ids, one for each time it was sent
        self.updates: Counter[str] = Counter()  # number of updates delivered, by URI, since the newest request began
        self._answer: asyncio.Future[Reply] | None = None

    async def send(self, channel: Channel, params: Params) -> None:
        """Send the request and wait until the server ends it. Raises RpcError."""
        self._answer = asyncio.get_running_loop().create_future()
        number = channel.relay("subscriptions/listen", params, self)
        self.numbers.add(number)
        try:
            (await self._answer).result()
        except asyncio.CancelledError:
            channel.cancel(number, "replaced")
            raise

    def answered(self, reply: Reply) -> None:
        """Take the final answer, which ends the request."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)

    def progress(self, params: dict[str, Any]) -> None:
        """Ignore the progress."""


class Subscription:
    """The subscription of one live connection. `key` is the connection's key, and `name` the server's name.

    `missed` is called when notifications may have been lost: the lists may have changed before the server acknowledged
    the request. `exposed` returns True if lists have been read or calls made on this connection. `settled` is set once
    the server has acknowledged or refused the first request, once TAKES_WITHIN_S has passed without an answer, or
    immediately if no request is needed.
    """

    def __init__(
        self,
        key: str,
        name: str,
        live: Live,
        context: BackendContext,
        missed: Callable[[], None],
        exposed: Callable[[], bool],
    ) -> None:
        self._key, self._name = key, name
        self._live, self._context, self._missed = live, context, missed
        self._exposed = exposed
        self.settled = anyio.Event()
        self._changed = anyio.Event()
        self._newest = self._asked = Listening()  # the request for the current resources, and the last one sent
        self._open: list[Listening] = []  # the request that is being replaced, if any, and the last one sent
        self._replaced: set[int] = set()  # ids of replaced requests
        self._first = True  # the server has not acknowledged any request yet
        self._heard = False  # the server has acknowledged the request since it was last sent
        self._deaf = False  # a request broke and has not been acknowledged again

    def changed(self) -> None:
        """Replace the request, because the set of subscribed resources has changed."""
        if self._newest is self._asked:
            self._newest = Listening()
        self._changed.set()

    def acknowledged(self, params: Params) -> None:
        """Record the server's acknowledgment: it sends notifications from now on."""
        honored = member_at(params, "notifications", "resourceSubscriptions")
        if isinstance(honored, list):
            self._asked.uris &= {uri for uri in honored if isinstance(uri, str)}
        self._asked.taken.set()
        if self._live.transport.kind == "stdio":  # all later updates come for the newest request, too
            self._end(self._open[:-1])
        self._heard = True
        if self._deaf or (self._first and self._exposed()):
            self._missed()
        self._deaf = self._first = False

    def is_news(self, params: Params, about: Call | None) -> bool:
        """Return True for an update that no other request has delivered. `about` is the same as in context.Inbound.

        Every request delivers the same updates of a resource. So an update is news if this request has now delivered
        more of them than any other.
        """
        uri, said = member_at(params, "uri"), member_at(params, "_meta", SUBSCRIPTION_ID)
        number = said if isinstance(said, int) else 0  # no request has the number 0
        this = next((one for one in self._open if one is about or number in one.numbers), None)
        if this is None:
            return number not in self._replaced and not isinstance(about, Listening)
        if not isinstance(uri, str) or len(self._open) == 1:
            return True
        this.updates[uri] += 1
        return this.updates[uri] > max(one.updates[uri] for one in self._open if one is not this)

    async def confirmed(self, uri: str) -> None:
        """Wait up to TAKES_WITHIN_S for the server to confirm the subscription. Raises RpcError if it refuses.

        If the server does not answer in time, only log that.
        """
        newest = self._newest
        with anyio.move_on_after(TAKES_WITHIN_S) as scope:
            await newest.taken.wait()
        if scope.cancelled_caught:
            log.info("%s has not acknowledged a subscription within %.0f s", self._name, TAKES_WITHIN_S)
        elif newest.refused is not None:
            raise newest.refused
        elif uri not in newest.uris:
            raise RpcError(INVALID_PARAMS, f"{self._name} does not report changes to that resource", {"uri": uri})

    async def listen(self) -> None:
        """Subscribe to list changes and to resources for the life of the connection."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._changed = anyio.Event()
                self._asked = newest = self._newest
                wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in self._live.peer.changing_lists}
                if uris := self._context.subscribed(self._key):
                    wanted["resourceSubscriptions"] = sorted(uris)
                if wanted:
                    newest.uris = frozenset(uris)
                    self._end(self._open[:-1])  # at most two are open
                    self._open.append(newest)
                    for one in self._open:
                        one.updates.clear()
                    tasks.start_soon(self._keep_listening, wanted, newest)
                    # One at a time: an acknowledgment belongs to the last request sent.
                    with anyio.move_on_after(TAKES_WITHIN_S):
                        await newest.taken.wait()
                newest.taken.set()
                self.settled.set()
                if newest.refused is not None:
                    self._open.remove(newest)  # the former request stays: the server still reports what it covers
                elif not wanted:
                    self._end(self._open)
                elif len(self._open) > 1:
                    tasks.start_soon(self._end_later, self._open[0])
                await self._changed.wait()

    async def _end_later(self, former: Listening) -> None:
        for _ in range(OVERLAPS_MOST):
            await self._context.clock.sleep(OVERLAP_S)
            if former in self._open and former.updates == self._open[-1].updates:
                break
        if former in self._open:
            self._end([former])

    def _end(self, ended: Iterable[Listening]) -> None:
        for former in list(ended):
            former.scope.cancel()
            self._open.remove(former)
            self._replaced |= former.numbers

    async def _keep_listening(self, wanted: dict[str, Any], listening: Listening) -> None:
        clock, pause_s = self._context.clock, AGAIN_S
        with listening.scope:
            while True:
                began, self._heard = clock.now(), False
                if not await self._listen_once(wanted, listening):
                    return
                self._deaf = True
                if self._heard or clock.now() - began > AGAIN_MOST_S:  # the server had recovered: this is a new failure
                    pause_s = AGAIN_S
                await clock.sleep(pause_s)
                pause_s = min(2 * pause_s, AGAIN_MOST_S)

    async def _listen_once(self, wanted: dict[str, Any], listening: Listening) -> bool:
        """Send the request and wait for its end. Return True if it broke, False if the server refused it."""
        params = self._live.peer.stamped({"notifications": wanted}, {})
        try:
            await listening.send(self._live.channel, params)
        except RpcError as error:
            if error.code != CONNECTION_CLOSED:
                log.info("%s does not accept a subscription: %s", self._name, error.message)
                listening.refused = error
                listening.taken.set()
                return False
        log.info("The subscription to %s was interrupted. Subscribing again", self._name)
        return True
