"""Run a session's requests that have to wait, often for a server's start, each as a task that the client can cancel."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from trayapp.model.errors import MultiMcpError
from trayapp.wire.frames import INTERNAL
from trayapp.wire.messages import INVALID_REQUEST, RequestId, RpcError

log = logging.getLogger(__name__)

Refuse = Callable[[RequestId, MultiMcpError | RpcError], None]


class PendingRequests:
    """Pending requests of one session. They run in its `tasks`; `refuse` answers a request with an error."""

    def __init__(self, refuse: Refuse) -> None:
        self.tasks: anyio.abc.TaskGroup | None = None
        self._refuse = refuse
        self.scopes: dict[RequestId, anyio.CancelScope] = {}  # by request
        self._servers: dict[RequestId, str] = {}

    @property
    def servers(self) -> set[str]:
        """Return the servers that are starting for these requests."""
        return set(self._servers.values())

    def waits_for(self, request_id: RequestId, server: str) -> None:
        """Note the server that a request needs."""
        self._servers[request_id] = server

    def start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        """Start the task of a request. A task that starts the next one of its own request, as the last thing that it
        does, hands it over: an id in use was refused when the request arrived.
        """
        assert self.tasks is not None
        self.scopes[request_id] = scope = anyio.CancelScope()
        self.tasks.start_soon(self._carry_out, request_id, scope, work)

    def cancel(self, request_id: RequestId) -> None:
        """Cancel a request if it is pending: it gets no answer."""
        if scope := self.scopes.get(request_id):
            scope.cancel()

    async def _carry_out(
        self, request_id: RequestId, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Run one request: the boundary that makes its failure its answer. A cancelled request gets none."""
        error: MultiMcpError | RpcError | None = None
        try:
            with scope:
                await work()
        except (MultiMcpError, RpcError) as failure:
            error = failure
        except Exception:
            log.exception("Unexpected error in a request")
            error = INTERNAL
        finally:
            if self.scopes[request_id] is scope:
                del self.scopes[request_id]
                self._servers.pop(request_id, None)
        if error is not None:
            self._refuse(request_id, error)


def already_under_way(request_id: RequestId) -> RpcError:
    """Return the error of a request whose id is in use by an unanswered one."""
    return RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is already in progress")
