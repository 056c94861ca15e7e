"""Answer control requests about the user's decisions on held-back tools, open asks and commands that print secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from trayapp.catalog.schema.arguments import as_typed
from trayapp.config.layers.project import TrustStore
from trayapp.gateway.asks import Answer
from trayapp.gateway.client import text_of
from trayapp.gateway.gateway import Gateway
from trayapp.inspection.finding import Finding
from trayapp.inspection.inspect import inspect_tool
from trayapp.inspection.subjects import apart_of, findings_of, is_tool, skills_of
from trayapp.model.errors import MultiMcpError, ServerNotFoundError
from trayapp.model.offer import Offer
from trayapp.model.text import escape_unprintable
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, RpcError

Asked = dict[str, Any]
ALLOWING: tuple[Answer, ...] = ("once", "session", "always")
BY_LONGEST = 40  # characters of the answering program's name


class ApprovalRequests:
    """Requests of one gateway about held-back tools and open asks."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.APPROVALS: self._list_waiting,
            control.APPROVE: self._approve,
            control.INSPECT: self._inspect,
            control.ASKS: self._list_asks,
            control.ALLOW: self._allow,
            control.DENY: self._deny,
        }

    async def _list_waiting(self, asked: Asked) -> Any:
        await self._judge_all()
        server, tool = self._server(asked), asked.get("tool")
        shown = [one for one in self._gateway.services.approvals.waiting(server) if tool in (None, one.tool)]
        if tool is not None and not shown:
            hint = "See what is waiting: multi-mcp approve"
            raise MultiMcpError(f"{server}/{tool} is not waiting for approval", hint)
        return {"rows": [{**one._asdict(), "findings": [found._asdict() for found in one.findings]} for one in shown]}

    async def _approve(self, asked: Asked) -> Any:
        """Approve the definitions that the user was shown, by their hashes. `keep`: keep the earlier ones instead.

        In the answer, `missed` lists the tools that no longer wait for approval with that definition.
        """
        approvals = self._gateway.services.approvals
        decide = approvals.decline if asked.get("keep") is True else approvals.approve
        tools = asked.get("tools")
        if not isinstance(tools, list) or not all(isinstance(item, dict) for item in tools):
            raise RpcError(INVALID_PARAMS, "approve needs tools: a list of {server, tool, hash}")
        await self._judge_all()
        done: dict[str, Any] = {"approved": [], "missed": []}
        for tool in tools:
            server, name, digest = (text_of(tool, member, "a tool") for member in ("server", "tool", "hash"))
            known = decide(server, name, digest)
            done["approved" if known else "missed"].append({"server": server, "tool": name})
        if done["approved"]:
            self._gateway.intake.take_approvals()
            await self._gateway.services.writer.written()
            done["problems"] = approvals.pins.unsaved_of({row["server"] for row in done["approved"]})
        return done

    async def _inspect(self, asked: Asked) -> Any:
        server, rows, tools = self._server(asked), list[dict[str, Any]](), 0
        for name in list(self._gateway.servers.shared.servers):
            offer = self._gateway.services.listings.get(name) if server in (None, name) else None
            held = self._gateway.services.approvals.held(name)
            for tool, findings in inspected(offer) if offer is not None else ():
                tools += is_tool(tool)
                # Only `held` has findings from comparing names across servers.
                both = {found.code: found for found in (*held.get(tool, ()), *findings)}.values()
                rows += [{"server": name, "tool": tool, **found._asdict(), "held": tool in held} for found in both]
                await anyio.lowlevel.checkpoint()  # lets requests of clients go first
        return {"rows": rows, "tools": tools}

    async def _judge_all(self) -> None:
        """Judge the offers that no list request has needed yet. Search the remaining definitions for orders."""
        for name in self._gateway.servers.shared.servers:
            if (offer := self._gateway.services.listings.get(name)) is not None:
                _ = self._gateway.services.served_tools.of(name, offer).tools
        await self._gateway.intake.read_words_now()

    def _server(self, asked: Asked) -> str | None:
        """Return the named server, or None if no server is named. Raises ServerNotFoundError, RpcError."""
        if asked.get("server") is None:
            return None
        name, servers = text_of(asked, "server"), self._gateway.servers.shared.servers
        if name not in servers:
            raise ServerNotFoundError(name, list(servers))
        return name

    # -- open asks -----------------------------------------------------------------------------------------------

    async def _list_asks(self, asked: Asked) -> Any:
        pins, servers = self._gateway.services.approvals.pins, self._gateway.servers.shared.servers
        always = [{"server": name, "tool": tool} for name in servers for tool in pins.allowed(name)]
        return {"asks": [ask.row() for ask in self._gateway.asks], "always": always}

    async def _allow(self, asked: Asked) -> Any:
        answer, content = asked.get("answer") or "once", asked.get("content")
        if answer not in ALLOWING:
            raise RpcError(INVALID_PARAMS, f"answer must be one of {', '.join(ALLOWING)}")
        if content is not None and not isinstance(content, dict):
            raise RpcError(INVALID_PARAMS, "content must be an object")
        ask_id, typed = text_of(asked, "id", "allow"), asked.get("typed")
        if content is not None and isinstance(typed, dict):
            content = as_typed(content, typed, self._gateway.asks.schema_of(ask_id))
        row = self._gateway.asks.answer(ask_id, answer, _who(asked), content)
        if answer == "always":
            await self._gateway.services.writer.written()
        return {"ask": row}

    async def _deny(self, asked: Asked) -> Any:
        if "id" in asked:
            return {"ask": self._gateway.asks.answer(text_of(asked, "id", "deny"), "deny", _who(asked))}
        server, tool = text_of(asked, "server", "deny"), text_of(asked, "tool", "deny")
        if not self._gateway.services.approvals.pins.forbid(server, tool):
            raise MultiMcpError(f"{server}/{tool} is not always allowed", "See the list: multi-mcp asks")
        await self._gateway.services.writer.written()
        return {}


def inspected(offer: Offer) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Yield (name, findings) for each tool and each other text of an offer."""
    for item in offer.tools:
        yield str(item.get("name")), inspect_tool(item)
    for name, item in {**skills_of(offer), **apart_of(offer)}.items():
        yield name, findings_of(name, item)


def _who(asked: Asked) -> str:
    by = asked.get("by")
    return by[:BY_LONGEST] if isinstance(by, str) and by.isprintable() and by else "the user"


class SecretCommandRequests:
    """Requests to list and approve the commands that print secrets for a gateway's servers.

    `trust`: the store of approved commands.
    """

    def __init__(self, gateway: Gateway, trust: TrustStore) -> None:
        self._gateway = gateway
        self._trust = trust
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.COMMANDS: self._list_waiting,
            control.APPROVE_COMMANDS: self._approve,
        }

    async def _list_waiting(self, asked: Asked) -> Any:
        waiting = await anyio.to_thread.run_sync(self._unapproved, asked.get("server"))
        shown = {name: [escape_unprintable(one) for one in commands] for name, commands in waiting.items()}
        rows = [{"server": name, "commands": commands, "shown": shown[name]} for name, commands in waiting.items()]
        return {"rows": rows}

    async def _approve(self, asked: Asked) -> Any:
        """Approve those of `commands` that still wait for approval. Return `{"approved", "missed"}`.

        The caller must have shown each command to the user in full.
        """
        server, commands = text_of(asked, "server"), asked.get("commands")
        if not isinstance(commands, list) or not all(isinstance(one, str) for one in commands):
            raise RpcError(INVALID_PARAMS, "approve_commands needs commands: a list of texts")
        waiting = (await anyio.to_thread.run_sync(self._unapproved, server)).get(server, [])
        approved = [one for one in commands if one in waiting]
        await anyio.to_thread.run_sync(self._trust.approve_commands, approved)
        return {"approved": approved, "missed": [one for one in commands if one not in waiting]}

    def _unapproved(self, server: str | None) -> dict[str, list[str]]:
        """Return enabled server -> its commands that wait for approval. `server`: None for all servers. Blocks."""
        servers = list(self._gateway.servers.shared.servers.values())
        return self._trust.unapproved(one for one in servers if not one.disabled and server in (None, one.name))
