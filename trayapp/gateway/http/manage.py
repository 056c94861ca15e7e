"""The management requests over HTTP (PRODUCT 9): the same code as the command line's, behind the same guard.

Never here: who may come in, how servers.yaml is edited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trayapp.config.parse import parse
from trayapp.config.urls import is_forbidden_place
from trayapp.gateway.errors import shown
from trayapp.model.errors import MultiMcpError
from trayapp.model.lifecycle import State
from trayapp.wire.jsonio import JsonError, dumps, loads

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

LARGEST_BODY = 256 * 1024  # one server's entry


class Refused(Exception):
    """A request that is not carried out, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FileEdits(Protocol):
    """servers.yaml, for requests that change it."""

    def add_server(self, name: str, entry: dict[str, Any]) -> None:
        """Blocks. Raises MultiMcpError."""

    def remove_server(self, name: str) -> None:
        """Blocks. Raises MultiMcpError."""

    async def reload(self) -> None:
        """Make what the file says now what runs."""


def routes(gateway: Gateway, file: FileEdits) -> list[Route]:
    """All of them."""
    manage = Manage(gateway, file)
    return [
        Route("/health", endpoint=_answered(manage.health), methods=["GET"]),
        Route("/mcp_servers", endpoint=_answered(manage.servers), methods=["GET"]),
        Route("/mcp_servers", endpoint=_answered(manage.add), methods=["POST"]),
        Route("/mcp_servers/{name:path}", endpoint=_answered(manage.remove), methods=["DELETE"]),
        Route("/mcp_tools", endpoint=_answered(manage.tools), methods=["GET"]),
    ]


class Manage:
    """One method a request; each returns (status, JSON value)."""

    def __init__(self, gateway: Gateway, file: FileEdits) -> None:
        self._gateway = gateway
        self._file = file

    async def health(self, request: Request) -> tuple[int, Any]:
        """Ready once the gateway runs; a server that is down does not make it unready."""
        states = [connection.state for connection in self._gateway.pool]
        ready = self._gateway.state == "running"
        body = {
            "status": "ok" if ready else self._gateway.state,
            "connected_servers": states.count(State.CONNECTED),
            "pending_servers": sum(state not in (State.CONNECTED, State.DISABLED) for state in states),
        }
        return (200 if ready else 503), body

    async def servers(self, request: Request) -> tuple[int, Any]:
        """As `status --json`, its servers."""
        return 200, {"servers": self._gateway.snapshot().to_json()["servers"]}

    async def tools(self, request: Request) -> tuple[int, Any]:
        """As `list --json`."""
        return 200, {"tools": self._gateway.view.known.tool_rows()}

    async def add(self, request: Request) -> tuple[int, Any]:
        """Write a new server into servers.yaml."""
        name, entry = await self._entry(request)
        if name in self._gateway.config.servers:
            raise Refused(409, f"A server is named {name} already")
        await anyio.to_thread.run_sync(self._file.add_server, name, entry)
        await self._file.reload()
        return 201, {"name": name}

    async def remove(self, request: Request) -> tuple[int, Any]:
        """Take a server out of servers.yaml."""
        name = request.path_params["name"]
        if name not in self._gateway.config.servers:
            raise Refused(404, f"No server is named {name}"[:200])
        await anyio.to_thread.run_sync(self._file.remove_server, name)
        await self._file.reload()
        return 200, {"name": name}

    async def _entry(self, request: Request) -> tuple[str, dict[str, Any]]:
        body = await _body(request)
        if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"].strip():
            raise Refused(422, "The body must be an object with a name")
        name, entry = body["name"], {key: value for key, value in body.items() if key != "name"}
        if not {"command", "url"} & entry.keys():
            raise Refused(422, "A server needs command or url")
        if isinstance(entry.get("url"), str) and is_forbidden_place(entry["url"]):
            raise Refused(403, "Link-local and metadata addresses may not be added this way")
        problems = parse(dumps({"servers": {name: entry}}).decode(), "the request").problems
        if problems:
            raise Refused(422, "; ".join(problem.message for problem in problems))
        return name, entry


async def _body(request: Request) -> Any:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > LARGEST_BODY:
            raise Refused(413, "The body is too large")
    try:
        return loads(bytes(data))
    except JsonError:
        raise Refused(400, "The body is not JSON") from None


def _answered(
    work: Callable[[Request], Awaitable[tuple[int, Any]]],
) -> Callable[[Request], Awaitable[Response]]:
    """The boundary from our errors to HTTP statuses."""

    async def endpoint(request: Request) -> Response:
        try:
            status, body = await work(request)
        except Refused as refusal:
            status, body = refusal.status, {"error": shown(str(refusal))}
        except MultiMcpError as error:
            status, body = 500, {"error": shown(error.title), "hint": shown(error.hint)}
        return Response(dumps(body), status, media_type="application/json")

    return endpoint
