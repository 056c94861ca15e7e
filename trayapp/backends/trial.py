"""Trial starts of a server, separate from the connection that clients use, to learn what it offers or needs.

A trial never writes the server's entry. `multi-mcp confine` shows what a confined server needs and proposes a setting.
`multi-mcp update` shows what a server would offer with a newer release of its package.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from trayapp.backends.confinements import Confinements
from trayapp.backends.connect import connect
from trayapp.backends.context import BackendContext, skip
from trayapp.backends.listing import fetch_offer
from trayapp.backends.stdio.shellenv import Environment
from trayapp.model.config import Confine, ServerConfig
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.offer import Offer
from trayapp.model.status import ConfinementStatus
from trayapp.packages.lock_file import LockedPackage, PackageRequest
from trayapp.packages.locks import Locks, NotLocked, not_locked, read_package
from trayapp.packages.tools import Tools
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, RpcError

MOST_ROUNDS = 8  # each round also allows the last access that the round before refused


class _TrialInbound:
    """An Inbound that ignores notifications and refuses requests."""

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        raise RpcError(METHOD_NOT_FOUND, "No user can answer: this is a trial")

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Do nothing."""

    def input_schema(self, tool: str) -> Any:
        """Return None: a trial calls no tools."""


async def run_once(server: ServerConfig, context: BackendContext) -> Offer:
    """Start a server, return what it offers, and end it. Raises MultiMcpError."""
    async with connect(server.name, server, context, _TrialInbound()) as live:
        return await fetch_offer(live.channel, live.peer, {}, skip)


@dataclass(frozen=True, slots=True)
class ConfineTrial:
    """The result of a trial. `tools` is None if the server does not work confined; `error` then says why.

    `confine` is the setting of the last run, and `line` that setting as written in servers.yaml. `read` lists the
    folders from which the server read, `written` the files that it wrote. With bubblewrap both are empty.
    """

    confine: Confine
    line: str
    status: ConfinementStatus
    tools: tuple[str, ...] | None
    error: MultiMcpError | None
    read: tuple[str, ...]
    written: tuple[str, ...]


async def try_confined(server: ServerConfig, context: BackendContext, confine: Confine) -> ConfineTrial:
    """Run a server confined. While refusals make it fail, run it again with more access, but never to secrets.

    Run it at most MOST_ROUNDS times, and return the result of the last run.
    """
    for _ in range(MOST_ROUNDS):
        trial, wanted = await _run_confined(server, context, confine)
        if trial.error is None or wanted == confine:
            break
        confine = wanted
    return trial


async def _run_confined(
    server: ServerConfig, context: BackendContext, confine: Confine
) -> tuple[ConfineTrial, Confine]:
    from trayapp.confinement.record import written

    confinements = Confinements(trial=True)
    tools: tuple[str, ...] | None = None
    failure: MultiMcpError | None = None
    try:
        offer = await run_once(replace(server, confine=confine), replace(context, confinements=confinements))
        tools = tuple(str(item.get("name")) for item in offer.tools)
    except MultiMcpError as error:
        failure = error
    record = confinements.get(server.name)
    assert record is not None
    read, changed = record.traced()
    line, status = written(confine), record.status()
    return ConfineTrial(confine, line, status, tools, failure, tuple(read), tuple(changed)), record.remedy()


DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Package:
    """The package of a server. `versions` holds the locked version, then the earlier ones; [] if none is locked."""

    request: PackageRequest
    versions: list[LockedPackage]


class PackageUpdates:
    """Updates of servers' packages. `tried` maps a server to the release that was last shown to the user."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self.tried: dict[str, LockedPackage] = {}

    def package(self, server: ServerConfig) -> Package | None:
        """Return the package that a server runs, or None if it runs none or has `lock: false`.

        Raises UnreadableLockError, and UsageError if packages are not locked here.
        """
        if server.command is None or not server.lock:
            return None
        request = read_package((server.command, *server.args))
        return Package(request, self._locks().file.find(server.name, request.spec)) if request is not None else None

    def bundle(self, server: ServerConfig) -> LockedPackage | None:
        """Return the bundle that a server runs, or None if it runs none. Raises as `package` does."""
        if server.command is None:
            return None
        found = (versions[0] for name, _, versions in self._locks().file.all() if name == server.name)
        return next((one for one in found if one.kind == "mcpb" and one.folder_name in (server.cwd or "")), None)

    def not_locked(self, server: ServerConfig) -> NotLocked | None:
        """Return why the unlocked package of a server may change at its next start, or None if it runs no package.

        The caller has looked for a locked version (`package`, `bundle`) and found none.
        """
        if server.command is None:
            return None
        argv = (server.command, *server.args)
        if read_package(argv) is None:
            return not_locked(argv)
        if server.lock:
            return NotLocked("the server has not been started yet", "Its first start locks the package")
        return NotLocked("the entry says lock: false", "To lock the package at the next start, remove lock: false")

    async def newest(self, server: ServerConfig, package: Package) -> str | None:
        """Look up the newest version that is old enough to be offered; None if there is none.

        Raises PackageError, ToolError.
        """
        before = self._age_limit()
        tools = await self._tools(server)
        return await tools.in_thread(lambda: package.request.newest(tools, before, package.versions[0]))

    def _age_limit(self) -> float:
        """Return the time (Unix seconds) before which a release must have been published to be offered."""
        return time.time() - self._context.settings().min_age * DAY_S

    async def choose(self, server: ServerConfig, package: Package, version: str | None) -> LockedPackage | None:
        """Return the package that an update to `version` (None: the newest) would lock; None if nothing is newer.

        A version that was locked before is reused; any other is looked up in the registry.

        Raises PackageError, ToolError, UsageError.
        """
        request, now = package.request, package.versions[0]
        if kept := [one for one in package.versions if version in (one.version, one.integrity)]:
            return kept[0]
        before = self._age_limit() if version is None else None  # a version that the user names may be of any age
        if version is None:
            version = await self.newest(server, package)
            if version is None:
                return None
        if request.pinned:
            raise UsageError(
                f"The command of {server.name} pins {now.version}", f"Change it to {version} with: multi-mcp edit"
            )
        tools, wanted = await self._tools(server), version if request.has_versions else None
        return await tools.in_thread(lambda: request.resolve(tools, wanted, before))

    async def offer(self, server: ServerConfig, one: LockedPackage) -> Offer:
        """Start the server once with that package and return what it offers. Raises MultiMcpError."""
        locks = replace(self._locks(), instead=one)
        return await run_once(server, replace(self._context, locks=lambda: locks))

    def take(self, server: ServerConfig, package: Package, one: LockedPackage) -> None:
        """Lock `one`, and delete the folders of packages that no lock names. Blocks. Raises StorageError."""
        locks = self._locks()
        locks.file.put(server.name, package.request.spec, one)
        locks.clean()

    def _locks(self) -> Locks:
        if (locks := self._context.locks()) is None:
            raise UsageError("Packages are not locked here", "Start the gateway: multi-mcp start")
        return locks

    async def _tools(self, server: ServerConfig) -> Tools:
        environ = self._context.environ
        if isinstance(environ, Environment):
            await environ.settled()
        plain = {name: value for name, value in server.env.items() if "${" not in value}
        return Tools({**environ, **plain})
