"""The management requests over HTTP (PRODUCT 9): the same code as the command line's, behind the same guard.

Never here: who may come in, how servers.yaml is edited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trayapp.config.interpolate import expand
from trayapp.config.read.parse import parse
from trayapp.config.urls import is_forbidden_place, unsafe_url
from trayapp.gateway.calls.errors import shown
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.control.tool_rows import tool_rows
from trayapp.gateway.gateway import Gateway
from trayapp.model.errors import ConfigError, MultiMcpError, ServerNotFoundError, UsageError
from trayapp.model.lifecycle import State
from trayapp.model.plan import Config
from trayapp.wire.jsonio import JsonError, dumps, loads

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
        states = [connection.state for connection in self._gateway.services.pool]
        ready = self._gateway.state == "running"
        body = {
            "status": "ok" if ready else self._gateway.state,
            "connected_servers": states.count(State.CONNECTED),
            "pending_servers": states.count(State.CONNECTING),
        }
        return (200 if ready else 503), body

    async def servers(self, request: Request) -> tuple[int, Any]:
        """As `status --json`, its servers."""
        return 200, {"servers": snapshot_of(self._gateway).to_json()["servers"]}

    async def tools(self, request: Request) -> tuple[int, Any]:
        """As `list --json`."""
        return 200, {"tools": tool_rows(self._gateway.servers.view.catalog)}

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
        config = self._gateway.config
        if name in config.foreign:
            raise Refused(409, f"{name} stands in {config.foreign[name]}, which settings.imports names")
        if name not in config.servers and not any(problem.server == name for problem in config.problems):
            raise Refused(404, f"No server is named {name}"[:200])
        await anyio.to_thread.run_sync(self._file.remove_server, name)
        await self._file.reload()
        return 200, {"name": name}

    async def _entry(self, request: Request) -> tuple[str, dict[str, Any]]:
        body = await _body(request)
        if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"].strip():
            raise Refused(422, "The body must be an object with a name")
        name, entry = body["name"], {key: value for key, value in body.items() if key != "name"}
        config = _read(name, entry)
        if any(server.url is not None and _may_not_be(server.url) for server in config.servers.values()):
            raise Refused(403, "Link-local and metadata addresses may not be added this way")
        faults = [problem.message for problem in config.problems]
        faults += [f"url {why}" for one in config.servers.values() if one.url and (why := _unsafe(one.url)) is not None]
        if faults:
            raise Refused(422, "; ".join(faults))
        return name, entry


def _read(name: str, entry: dict[str, Any]) -> Config:
    """What servers.yaml would come to with nothing but this entry."""
    try:
        return parse(dumps({"servers": {name: entry}}).decode(), "the request")
    except (MultiMcpError, UnicodeError) as error:
        raise Refused(422, str(error)) from None


def _may_not_be(url: str) -> bool:
    """Whether an address, by the defaults of its variables too, leads where none may that comes this way."""
    return is_forbidden_place(expand(url, _nothing, _nothing).text)


def _unsafe(url: str) -> str | None:
    """What speaks against an address, by the defaults of its variables too: the same as for `multi-mcp add`."""
    expanded = expand(url, _nothing, _nothing)
    return unsafe_url(url) or (None if expanded.missing else unsafe_url(expanded.text))


def _nothing(name: str) -> None:
    return None


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


def _status_of(error: MultiMcpError) -> int:
    """404 for what is not there, 409 for what the file does not allow as it is, 500 for what the machine does not."""
    if isinstance(error, ServerNotFoundError):
        return 404
    return 409 if isinstance(error, UsageError | ConfigError) else 500


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
            status, body = _status_of(error), {"error": shown(error.title), "hint": shown(error.hint)}
        return Response(dumps(body), status, media_type="application/json")

    return endpoint
