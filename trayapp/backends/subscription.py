"""What a 2026-07-28 server tells by itself: it is asked for that with one request, which stays open.

Over HTTP a server that is started anew ends that request and not the connection, which has no session there: so it is
made again, and the lists are read again, since what was told in between is lost. For other resources a second request
is made, and the first one ends once the server has taken that: no update is lost in between. Never here: what is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio

from trayapp.backends.context import BackendContext, Live
from trayapp.wire.messages import CONNECTION_CLOSED, INVALID_PARAMS, Params, RpcError

log = logging.getLogger(__name__)

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
AGAIN_S = 1.0  # after a request that broke off: a server that is started anew is back by then
AGAIN_MOST_S = 60.0  # doubling, where it breaks off again and again
TAKES_WITHIN_S = 10.0  # a server that has not acknowledged the request by then never does


class _Listening:
    """One subscriptions/listen, made again where it breaks off."""

    def __init__(self) -> None:
        self.uris: frozenset[str] = frozenset()  # those that the server took, once it has acknowledged it
        self.scope = anyio.CancelScope()
        self.taken = anyio.Event()  # the server acknowledged it, or takes no such request
        self.refused: RpcError | None = None


class Subscription:
    """To one live connection, `key`, of the server `name`. `missed` is told when something may not have been heard: a
    call may have changed the lists before the server took the request; `used` says whether there was one.
    """

    def __init__(
        self,
        key: str,
        name: str,
        live: Live,
        context: BackendContext,
        missed: Callable[[], None],
        used: Callable[[], bool],
    ) -> None:
        self._key, self._name = key, name
        self._live, self._context, self._missed = live, context, missed
        self._used = used
        self._changed = anyio.Event()
        self._newest = self._asked = _Listening()  # the one for what is wanted now; the one that was made last
        self._first = True  # it has not told yet
        self._heard = False  # it took the request that is open now, or was last
        self._deaf = False  # it told, and no longer does

    def changed(self) -> None:
        """Other resources are of interest now."""
        if self._newest is self._asked:
            self._newest = _Listening()
        self._changed.set()

    def acknowledged(self, params: Params) -> None:
        """The server tells from now on."""
        said = (params or {}).get("notifications")
        honored = said.get("resourceSubscriptions") if isinstance(said, dict) else None
        if isinstance(honored, list):
            self._asked.uris &= {uri for uri in honored if isinstance(uri, str)}
        self._asked.taken.set()
        self._heard = True
        if self._deaf or (self._first and self._used()):
            self._missed()
        self._deaf = self._first = False

    async def confirmed(self, uri: str) -> None:
        """Wait until the server tells of that resource, which is among those of interest. Raises RpcError."""
        newest = self._newest
        with anyio.move_on_after(TAKES_WITHIN_S) as scope:
            await newest.taken.wait()
        if scope.cancelled_caught:
            log.info("%s has not acknowledged a subscription within %.0f s", self._name, TAKES_WITHIN_S)
        elif newest.refused is not None:
            raise newest.refused
        elif uri not in newest.uris:
            raise RpcError(INVALID_PARAMS, f"{self._name} does not tell when that resource changes", {"uri": uri})

    async def listen(self) -> None:
        """Subscribe to list changes and to resources, for as long as the connection lives."""
        former: _Listening | None = None
        async with anyio.create_task_group() as tasks:
            while True:
                self._changed = anyio.Event()
                self._asked = newest = self._newest
                wanted = self._wanted()
                if wanted:
                    newest.uris = frozenset(wanted.get("resourceSubscriptions", ()))
                    tasks.start_soon(self._keep_listening, wanted, newest)
                    # One at a time: an acknowledgment belongs to the last one that was made.
                    with anyio.move_on_after(TAKES_WITHIN_S):
                        await newest.taken.wait()
                newest.taken.set()
                if former is not None:
                    former.scope.cancel()
                former = newest
                await self._changed.wait()

    def _wanted(self) -> dict[str, Any]:
        announced = self._live.peer.capabilities
        kinds = [k for k in ("tools", "prompts", "resources") if (announced.get(k) or {}).get("listChanged")]
        uris = sorted(self._context.subscribed(self._key))
        return {**{f"{kind}ListChanged": True for kind in kinds}, **({"resourceSubscriptions": uris} if uris else {})}

    async def _keep_listening(self, wanted: dict[str, Any], listening: _Listening) -> None:
        clock, pause_s = self._context.clock, AGAIN_S
        with listening.scope:
            while True:
                began, self._heard = clock.now(), False
                if not await self._listen_once(wanted, listening):
                    return
                self._deaf = True
                if self._heard or clock.now() - began > AGAIN_MOST_S:  # it was back: what ended it now is something new
                    pause_s = AGAIN_S
                await clock.sleep(pause_s)
                pause_s = min(2 * pause_s, AGAIN_MOST_S)

    async def _listen_once(self, wanted: dict[str, Any], listening: _Listening) -> bool:
        """Whether it broke off; else the server does not take such a request."""
        params = self._live.peer.stamped({"notifications": wanted}, {})
        try:
            await self._live.channel.send_raw_request("subscriptions/listen", params)
        except RpcError as error:
            if error.code != CONNECTION_CLOSED:
                log.info("%s takes no subscription: %s", self._name, error.message)
                listening.refused = error
                listening.taken.set()
                return False
        log.info("What %s tells broke off; it is asked again", self._name)
        return True
