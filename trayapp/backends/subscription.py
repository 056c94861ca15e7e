"""What a 2026-07-28 server tells by itself: it is asked for that with one request, which stays open.

Over HTTP a server that is started anew ends that request and not the connection, which has no session there: so it is
made again, and the lists are read again, since what was told in between is lost. Never here: what is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from trayapp.backends.context import BackendContext, Live
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

log = logging.getLogger(__name__)

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
AGAIN_S = 1.0  # after a request that broke off: a server that is started anew is back by then
AGAIN_MOST_S = 60.0  # doubling, where it breaks off again and again


class Subscription:
    """To one live connection of the server `name`. `missed` is told when something may not have been heard: a call may
    have changed the lists before the server took the request; `used` says whether there was one.
    """

    def __init__(
        self, name: str, live: Live, context: BackendContext, missed: Callable[[], None], used: Callable[[], bool]
    ) -> None:
        self._name, self._live, self._context, self._missed = name, live, context, missed
        self._used = used
        self._changed = anyio.Event()
        self._first = True  # it has not told yet
        self._heard = False  # it took the request that is open now, or was last
        self._deaf = False  # it told, and no longer does

    def changed(self) -> None:
        """Other resources are of interest now."""
        self._changed.set()

    def acknowledged(self) -> None:
        """The server tells from now on."""
        self._heard = True
        if self._deaf or (self._first and self._used()):
            self._missed()
        self._deaf = self._first = False

    async def listen(self) -> None:
        """Subscribe to list changes and to resources; for other resources the request is made anew."""
        while True:
            self._changed = anyio.Event()
            async with anyio.create_task_group() as tasks:
                if wanted := self._wanted():
                    tasks.start_soon(self._keep_listening, wanted)
                await self._changed.wait()
                tasks.cancel_scope.cancel()

    def _wanted(self) -> dict[str, object]:
        announced = self._live.peer.capabilities
        kinds = [k for k in ("tools", "prompts", "resources") if (announced.get(k) or {}).get("listChanged")]
        uris = sorted(self._context.subscribed(self._name))
        return {**{f"{kind}ListChanged": True for kind in kinds}, **({"resourceSubscriptions": uris} if uris else {})}

    async def _keep_listening(self, wanted: dict[str, object]) -> None:
        clock, pause_s = self._context.clock, AGAIN_S
        while True:
            began, self._heard = clock.now(), False
            if not await self._listen_once(wanted):
                return
            self._deaf = True
            if self._heard or clock.now() - began > AGAIN_MOST_S:  # it was back: what ended it now is something new
                pause_s = AGAIN_S
            await clock.sleep(pause_s)
            pause_s = min(2 * pause_s, AGAIN_MOST_S)

    async def _listen_once(self, wanted: dict[str, object]) -> bool:
        """Whether it broke off; else the server does not take such a request."""
        params = self._live.peer.stamped({"notifications": wanted}, {})
        try:
            await self._live.channel.send_raw_request("subscriptions/listen", params)
        except RpcError as error:
            if error.code != CONNECTION_CLOSED:
                log.info("%s takes no subscription: %s", self._name, error.message)
                return False
        log.info("What %s tells broke off; it is asked again", self._name)
        return True
