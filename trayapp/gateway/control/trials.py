"""Answer control requests to try a server in confinement, and to list, try and adopt new versions of packages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from trayapp.catalog.changes import difference
from trayapp.gateway.calls.errors import error_json
from trayapp.gateway.client import text_of
from trayapp.gateway.gateway import Gateway
from trayapp.model.config import Confine, ServerConfig, confine_of
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.offer import Item
from trayapp.wire import control

if TYPE_CHECKING:
    from trayapp.backends.trial import Package
    from trayapp.packages.lock_file import LockedPackage

Asked = dict[str, Any]


class TrialRequests:
    """Requests of one gateway to try updates and confinement."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.OUTDATED: self._list_outdated,
            control.UPDATE_TRY: self._try,
            control.UPDATE_TAKE: self._take,
            control.CONFINE: self._try_confined,
        }

    async def _list_outdated(self, asked: Asked) -> Any:
        updates = self._gateway.services.pool.updates
        rows, unlocked = list[Asked](), list[Asked]()
        for server in self._gateway.servers.shared.servers.values():
            package = updates.package(server)
            if (bundle := updates.bundle(server)) is not None:
                rows.append(_row(server, bundle, pinned=True))
                continue
            if package is None or not package.versions:
                told = updates.not_locked(server)
                unlocked += [{"server": server.name, "why": told.why, "hint": told.hint}] if told is not None else []
                continue
            row = _row(server, *package.versions, pinned=package.request.pinned)
            try:
                row["newest"] = await updates.newest(server, package)
            except MultiMcpError as error:
                row["error"] = error_json(error)
            rows.append(row)
        return {"rows": rows, "unlocked": unlocked}

    async def _try(self, asked: Asked) -> Any:
        server, package = self._package(asked)
        updates, to = self._gateway.services.pool.updates, asked.get("to")
        one = await updates.choose(server, package, str(to) if to is not None else None)
        now = package.versions[0]
        told: Asked = {"server": server.name, "package": now.package, "from": now.version, "to": None}
        if one is None or one.content == now.content:
            return told
        updates.tried[server.name] = one
        told |= {"to": one.version, "added": [], "removed": [], "changed": {}, "error": None}
        if one in package.versions:
            return told | {"kept": True}  # this version ran before: going back takes seconds and needs no registry
        before = self._gateway.services.listings.get(server.name)
        try:
            after = await updates.offer(server, one)
        except MultiMcpError as error:
            return told | {"error": error_json(error)}
        old: dict[str, Item] = {str(item.get("name")): item for item in (before.tools if before is not None else ())}
        new: dict[str, Item] = {str(item.get("name")): item for item in after.tools}
        both = {name: difference(old[name], new[name]) for name in new if name in old}
        return told | {
            "added": [name for name in new if name not in old],
            "removed": [name for name in old if name not in new],
            "changed": {name: lines for name, lines in both.items() if lines},
        }

    async def _take(self, asked: Asked) -> Any:
        server, package = self._package(asked)
        updates = self._gateway.services.pool.updates
        one = updates.tried.get(server.name)
        if one is None or one.version != asked.get("to"):
            hint = f"See: multi-mcp update {server.name}"
            raise UsageError(f"{server.name} has not been tried with that version", hint)
        await anyio.to_thread.run_sync(updates.take, server, package, one)
        connection, failure = self._gateway.services.pool.find(server.name), None
        try:
            await connection.close()
            await self._gateway.services.pool.refresh(connection)
        except MultiMcpError as error:
            failure = error_json(error)
        return {"state": connection.state, "error": failure}

    def _package(self, asked: Asked) -> tuple[ServerConfig, Package]:
        """Return the server that a request names, and its package. Raises ServerNotFoundError, UsageError."""
        server = self._gateway.services.pool.find(text_of(asked, "server")).server
        package = self._gateway.services.pool.updates.package(server)
        if package is None:
            raise UsageError(f"{server.name} runs no locked package", "See: multi-mcp outdated")
        if not package.versions:
            raise UsageError(f"{server.name} has not been started yet", f"Start it: multi-mcp reconnect {server.name}")
        return server, package

    async def _try_confined(self, asked: Asked) -> Any:
        services, name = self._gateway.services, text_of(asked, "server")
        connection = services.pool.find(name)
        server = connection.server
        if server.command is None:
            raise UsageError(f"Cannot confine {name}: it runs elsewhere, not on this machine", "See: multi-mcp status")
        now = confine_of(server.confine, services.settings().confine) or Confine()
        record = services.confinements.get(name)
        called = record.status().refused if record is not None else ()
        if record is not None and record.confine == now:
            now = record.remedy()  # a trial calls no tool, so only this record has the refusals during calls
        trial = await services.pool.try_confined(connection, now)
        return {
            "way": trial.status.way,
            "tools": None if trial.tools is None else list(trial.tools),
            "error": {"title": trial.error.title, "hint": trial.error.hint} if trial.error is not None else None,
            "read": list(trial.read),
            "written": list(trial.written),
            "refused": [asdict(one) for one in trial.status.refused],
            "refused_in_calls": [asdict(one) for one in called if one not in trial.status.refused],
            "confine": trial.confine.value(),
            "line": trial.line,
        }


def _row(server: ServerConfig, one: LockedPackage, *before: LockedPackage, pinned: bool) -> Asked:
    row = {"server": server.name, "kind": one.kind, "package": one.package, "version": one.version, "newest": None}
    return {**row, "pinned": pinned, "before": [old.version for old in before], "error": None}
