"""Management requests over HTTP. They pass the same guard as MCP requests, and share code with the command line."""

from __future__ import annotations

from typing import Any

import anyio.to_thread

from trayapp.config.interpolate import expand
from trayapp.config.read.parse import parse
from trayapp.config.urls import is_forbidden_place, unsafe_url
from trayapp.gateway.control.catalog import tool_rows
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.gateway import Gateway
from trayapp.gateway.http.asgi import respond, whole
from trayapp.gateway.servers_file import ServersFile
from trayapp.model.errors import ConfigError, MultiMcpError, ServerNotFoundError, UsageError
from trayapp.model.lifecycle import State
from trayapp.model.redact import redacted
from trayapp.wire.jsonio import JsonError, dumps, loads

LARGEST_BODY = 256 * 1024  # bytes, which is enough because a body is one server's entry
SERVERS = "/mcp_servers"
METHODS = {"/health": "GET", "/mcp_tools": "GET", SERVERS: "GET, POST", f"{SERVERS}/": "DELETE"}  # path -> methods
Answer = tuple[int, Any]  # status, JSON value


class ManageRefusalError(Exception):
    """Raised to refuse a management request. `status`: the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Manage:
    """The ASGI application for every path that is neither an MCP endpoint nor one of the panel's."""

    def __init__(self, gateway: Gateway, file: ServersFile) -> None:
        self._gateway = gateway
        self._file = file

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request. A MultiMcpError or ManageRefusalError is answered with an HTTP status and a JSON error."""
        path, method, name = scope["path"].rstrip("/"), scope["method"], ""
        if path.startswith(f"{SERVERS}/"):
            path, name = f"{SERVERS}/", scope["path"].removeprefix(f"{SERVERS}/")
        if (allowed := METHODS.get(path)) is None:
            await respond(send, dumps({"error": "Not Found"}), 404)
            return
        if method not in allowed.split(", ") and (method, allowed[:3]) != ("HEAD", "GET"):
            await respond(send, dumps({"error": "Method Not Allowed"}), 405, more=[(b"allow", allowed.encode())])
            return
        try:
            if name:
                status, body = await self._remove(name)
            elif method == "POST":
                status, body = await self._add(receive)
            elif path == "/health":
                status, body = self._health()
            elif path == "/mcp_tools":  # as in `list --json`
                status, body = 200, {"tools": tool_rows(self._gateway.servers.view.catalog)}
            else:  # as in `status --json`
                status, body = 200, {"servers": snapshot_of(self._gateway).to_json()["servers"]}
        except ManageRefusalError as refusal:
            status, body = refusal.status, {"error": redacted(str(refusal))}
        except MultiMcpError as error:
            # 404: an unknown server. 409: a refused change of the file. 500: any other failure.
            status = 404 if isinstance(error, ServerNotFoundError) else 500
            status = 409 if isinstance(error, UsageError | ConfigError) else status
            body = {"error": redacted(error.title), "hint": redacted(error.hint)}
        await respond(send, dumps(body), status)

    def _health(self) -> Answer:
        """Return 200 while the gateway runs, even if a server is down, and 503 while it starts or stops.

        The body counts the connected and connecting servers.
        """
        own = self._gateway.servers.own
        states = [one.state for one in self._gateway.services.pool if not own.is_own(one.key)]
        ready = self._gateway.state == "running"
        body = {
            "status": "ok" if ready else self._gateway.state,
            "connected_servers": states.count(State.CONNECTED),
            "pending_servers": states.count(State.CONNECTING),
        }
        return (200 if ready else 503), body

    async def _add(self, receive: Any) -> Answer:
        if (data := await whole(receive, LARGEST_BODY)) is None:
            raise ManageRefusalError(413, "The body is too large")
        try:
            name, entry = _entry(loads(data))
        except JsonError:
            raise ManageRefusalError(400, "The body is not JSON") from None
        if name in self._gateway.config.servers:
            raise ManageRefusalError(409, f"A server named {name} already exists")
        await anyio.to_thread.run_sync(self._file.store.add_server, name, entry)
        await self._file.reload()
        return 201, {"name": name}

    async def _remove(self, name: str) -> Answer:
        config = self._gateway.config
        if name in config.foreign:
            raise ManageRefusalError(409, f"{name} is defined in {config.foreign[name]}, which settings.imports lists")
        if name not in config.servers and not any(problem.server == name for problem in config.problems):
            raise ManageRefusalError(404, f"No server is named {name}"[:200])
        await anyio.to_thread.run_sync(self._file.store.remove_server, name)
        await self._file.reload()
        return 200, {"name": name}


def _entry(body: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the entry of a new server. Raises ManageRefusalError.

    Names and addresses are checked by the rules of `multi-mcp add`, with variables expanded to their defaults.
    """
    if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"].strip():
        raise ManageRefusalError(422, "The body must be an object with a name")
    if len(body["name"].split()) != 1:
        raise ManageRefusalError(422, "A server's name cannot contain spaces")
    name, entry = body["name"], {key: value for key, value in body.items() if key != "name"}
    try:
        config = parse(dumps({"servers": {name: entry}}).decode(), "the request")
    except (MultiMcpError, UnicodeError) as error:
        raise ManageRefusalError(422, str(error)) from None
    faults = [problem.message for problem in config.problems]
    for url in [server.url for server in config.servers.values() if server.url]:
        expanded = expand(url, lambda _: None, lambda _: None)
        if is_forbidden_place(expanded.text):
            raise ManageRefusalError(403, "Link-local and metadata addresses cannot be added this way")
        why = unsafe_url(url) or (None if expanded.missing else unsafe_url(expanded.text))
        faults += [f"url {why}"] if why is not None else []
    if faults:
        raise ManageRefusalError(422, "; ".join(faults))
    return name, entry
