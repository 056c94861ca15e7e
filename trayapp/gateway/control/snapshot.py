"""Build the snapshot of the gateway (model/status) for tray, panel and command line, without changing anything."""

from __future__ import annotations

import os
from functools import lru_cache

from trayapp import __version__
from trayapp.backends.connection import Connection
from trayapp.config.programs import RUNS_PACKAGES
from trayapp.gateway.gateway import Gateway
from trayapp.model.config import confine_of
from trayapp.model.errors import CommandNotApprovedError
from trayapp.model.redact import redacted
from trayapp.model.status import CallsToday, ConfinementStatus, GatewayStatus, ServerStatus, SessionStatus, Snapshot


def snapshot_of(gateway: Gateway) -> Snapshot:
    """Return the snapshot of the gateway's current state. All connections of a server make one row."""
    now, today = gateway.services.clock.now(), gateway.services.history.today
    status = GatewayStatus(
        state=gateway.state,
        pid=os.getpid(),
        version=__version__,
        uptime_s=round(now - gateway.started, 3),
        http_url=gateway.http_url,
        # A request of 2026-07-28 over HTTP is a session of its own, which ends before anybody could see it.
        sessions=tuple(
            SessionStatus(one.client.name, one.transport, one.client.protocol, one.seen.exposure.mode)
            for one in gateway.sessions
            if one.lasting
        ),
        keyring=gateway.sign_ins.accounts.vault.state,
        keyring_error=gateway.sign_ins.keyring_error,
        today=CallsToday(today.calls, today.failed) if today is not None and today.calls else None,
    )
    own, connections = gateway.servers.own, dict[str, list[Connection]]()
    for connection in sorted(gateway.services.pool, key=lambda one: own.is_own(one.key)):  # the shared one first
        connections.setdefault(own.shared_key(connection.key), []).append(connection)
    servers = tuple(_server(gateway, of_server, now) for of_server in connections.values())
    asks = tuple(ask.status for ask in gateway.asks)
    return Snapshot(gateway.services.changes.revision, status, servers, gateway.problems, asks)


def _server(gateway: Gateway, connections: list[Connection], now: float) -> ServerStatus:
    # Show the state of a connection that is up, or else of the one used last.
    connection = max(connections, key=lambda one: (one.is_up, -1.0 if one.last_used is None else one.last_used))
    up = sum(one.is_up for one in connections)
    server = gateway.servers.shared.servers[gateway.services.shared_key(connection.key)]
    offer = gateway.services.listings.get(server.name)
    view = gateway.servers.view_with(server.name)
    name = view.name_of(server.name) or server.name
    held, live = gateway.services.approvals.held(server.name), connection.live
    approvals = view.catalog.switched_on(name, held)
    auth = gateway.sign_ins.status(server)
    state, error = gateway.sign_ins.state_of(connection, server, signed=offer is not None and offer.signed)
    reason = None
    if error:
        reason = {"title": redacted(error.title), "hint": redacted(error.hint)}
    elif offer is not None and offer.failure:  # reachable, but some of its lists are missing
        hint = f"Read its lists again: multi-mcp refresh {server.name}"
        reason = {"title": f"{server.name} {offer.failure}", "hint": hint}
    # The lists that are unknown although the server was asked for them.
    unlisted = offer.unknown if offer is not None else ("tools",) if connection.error is not None else ()
    confinement = gateway.services.confinements.status(server.name)
    if confinement is None and server.command is not None:  # the server has not been started since its entry changed
        confinement = ConfinementStatus("") if confine_of(server.confine, gateway.services.settings().confine) else None
    return ServerStatus(
        name=server.name,
        state=state,
        lifecycle=server.lifecycle,
        transport=live.transport.kind if live else server.transport,
        protocol=live.peer.protocol if live else (offer.protocol if offer else ""),
        tools=view.catalog.counts[name],
        pid=connection.pid,
        error=reason,
        failed_s_ago=_seconds_since(now, connection.failed_at),
        last_used_s_ago=_seconds_since(now, connection.last_used),
        calls=sum(one.calls for one in connections) + gateway.services.pool.ended_calls[server.name],
        connections=up if up > 1 else None,
        project=str(view.folder) if view.folder else None,
        signed_in=auth.signed_in if auth else None,
        auth=auth,
        approvals=approvals or None,
        findings=tuple(dict.fromkeys(found.code for name in approvals for found in held[name])) or None,
        needs_approval=(error is not None and isinstance(error.__cause__, CommandNotApprovedError)) or None,
        suspicious=view.catalog.switched_on(name, gateway.services.approvals.flagged(server.name)) or None,
        unlisted=unlisted or None,
        confinement=confinement,
        not_locked=_not_locked((server.command, *server.args)) if server.command is not None and server.lock else None,
    )


@lru_cache(maxsize=256)
def _not_locked(argv: tuple[str, ...]) -> str | None:
    if not any(RUNS_PACKAGES.search(word) for word in argv):
        return None
    from trayapp.packages.locks import not_locked  # imported only for a command that runs a package

    told = not_locked(argv)
    return str(told) if told is not None else None


def _seconds_since(now: float, moment: float | None) -> float | None:
    return round(now - moment, 3) if moment is not None else None
