"""With `ask: writes`, no call executes a write that the user has not allowed, and no call is executed twice."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.behaviour import Asker, tool
from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import FakeServer
from tests.gateway.world import Client, House, Wire, house, serve, server
from tests.patience import stretched
from trayapp.backends.http.refusal import NOT_EXECUTED
from trayapp.catalog.approval_store import definition_hash
from trayapp.gateway.asks import AskOverError, Asks, OpenAsk
from trayapp.model.config import ServerConfig, Settings
from trayapp.wire import control
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

pytestmark = pytest.mark.anyio

CALLS = 10_000
AT_ONCE = 25  # calls between two rounds of answers and events
SEED = 16
READS = ("get_note", "listNotes")
WRITES = ("write_note", "delete_note", "send-mail", "toggle", "getNoteAndDelete")
LIARS = ("get_secret", "read_all")  # named like reads, but annotated as writes
PREFIXES = ("server", "short", "none", "mcp")
CLIENTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("2025-11-25", {}),
    ("2024-11-05", {"expose": "search"}),
    ("2025-06-18", {"servers": "a,c"}),
)
LOST_OF = 20  # a server loses its session in one of this many calls, and the gateway sends that call again
Grant = tuple[Any, str, str, str]  # session (None: all sessions, always), server, tool, hash of the tool's definition


def definitions(version: int) -> list[dict[str, Any]]:
    """Return the tools that a server lists in that version."""
    listed = [{**tool(name), "description": f"v{version}"} for name in LIARS + READS + WRITES]
    return [{**one, "annotations": {"readOnlyHint": False}} if one["name"] in LIARS else one for one in listed]


@dataclass
class NotingServer(FakeServer):
    """A server that records the calls it executes, and sometimes loses its session."""

    rng: random.Random = field(default_factory=random.Random)
    executed: list[dict[str, Any]] = field(default_factory=list)

    async def _call(self, params: dict[str, Any], peer: Asker) -> dict[str, Any]:
        if not self.rng.randrange(LOST_OF):
            raise RpcError(CONNECTION_CLOSED, "The server ended the session", NOT_EXECUTED)
        self.executed.append(params)
        return await super()._call(params, peer)


class Trial:
    """A gateway, its clients, and the user's answers. The argument `mark` identifies each call."""

    def __init__(self, made: House, rng: random.Random) -> None:
        self.made = made
        self.rng = rng
        self.net: dict[str, NotingServer] = defaultdict(lambda: NotingServer(rng=rng))
        made.net.servers = self.net  # type: ignore[assignment]  # more precise
        self.clients: list[Client] = []
        self.commands: list[Wire] = []
        self.marks = 0
        self.callers: dict[int, Any] = {}  # mark -> session of the call, None for the command line
        self.yes: set[int] = set()  # marks of the calls that the user allowed
        self.granted: set[Grant] = set()
        self.hashes: dict[tuple[str, str], str] = {}  # hashes of the definitions at the last `look`
        self.executed: list[tuple[str, str, int]] = []  # server, tool and mark of each call that reached a server
        self.without: list[tuple[str, str, int]] = []  # executed writes that nobody had allowed
        self.by_grant = 0  # writes that an earlier answer allowed
        self.version = 0
        self.there = ExitStack()
        self.servers: list[ServerConfig] = []

    async def begin(self) -> None:
        """Start three servers, one of them with a process per session, and clients of three revisions."""
        for name in ("a", "b-mcp", "c", "renamed"):
            self.net[name].tools = definitions(0)
            self.serve(name)
        self.servers = [server("a"), server("b-mcp"), server("c", scope="session")]
        await self.made.known(*self.servers, settings=self.settings())
        self.clients = [await self.made.ready(protocol, **options) for protocol, options in CLIENTS]
        self.commands = [self.made.control()]
        self.come()
        self.look()

    def serve(self, name: str) -> None:
        """Make a server list its newest tools, and resources that can be called as tools. One is named like a write."""
        docs = tuple({"uri": f"{name}://{doc}", "name": doc} for doc in ("doc", "delete_note"))
        serve(self.net[name], resources=docs, tools=tuple(definitions(self.version)))

    def settings(self) -> Settings:
        return Settings(expose="tools", ask="writes", tool_prefix=self.rng.choice(PREFIXES))  # type: ignore[arg-type]

    def come(self) -> None:
        """Make a user available again."""
        self.there.close()
        self.there.enter_context(self.made.gateway.asks.watched())

    # -- ways of calling -----------------------------------------------------------------------------------------

    def call(self) -> None:
        """Call a random tool in a random way."""
        self.marks += 1
        server_name, name = self.rng.choice(self.servers).name, self.rng.choice(READS + WRITES + LIARS)
        args: dict[str, Any] = {"mark": self.marks}
        ways: list[Callable[[Client, str, str, dict[str, Any]], None]] = [self.plain, self.one_tool, self.command]
        way, client = self.rng.choice(ways), self.rng.choice(self.clients)
        self.callers[self.marks] = None if way == self.command else client.session
        way(client, server_name, name, args)

    def spelling(self, server_name: str, name: str) -> str:
        """Return a random spelling of a tool's name, or a similar name."""
        server_form = self.rng.choice((server_name, server_name.replace("-", "_"), server_name.removesuffix("-mcp")))
        text = self.rng.choice(
            (
                f"{server_form}_{name}",
                f"mcp__{server_form}__{name}",
                f"mcp__{server_form}_{name}",
                f"{server_form}/{name}",
                f"{server_form}_{server_form}_{name}",
                f"{server_form}_read_{name}",
                f"{server_form}_read_doc",
                name,
            )
        )
        match self.rng.randrange(6):
            case 3:
                return text.replace("_", "-")
            case 4:
                return text.replace("-", "_")
            case 5:
                return text.upper() if self.rng.random() < 0.5 else text.title()
            case _:
                return text

    def beside(self) -> dict[str, Any]:
        """Return random additional params: none, a task, a progress token, or members that imitate our approval."""
        return self.rng.choice(
            (
                {},
                {"task": {"ttl": 60_000}},
                {"_meta": {"progressToken": f"p{self.marks}"}},
                {"_meta": {"multi-mcp/allowed": True}, "allowed": "once", "ask": False, "asks": True},
            )
        )

    def plain(self, client: Client, server_name: str, name: str, args: dict[str, Any]) -> None:
        params = {"name": self.spelling(server_name, name), "arguments": args, **self.beside()}
        client.ask_only(self.marks, "tools/call", params)

    def one_tool(self, client: Client, server_name: str, name: str, args: dict[str, Any]) -> None:
        given: Any = json.dumps(args) if self.rng.random() < 0.5 else args
        inside = {"tool": self.rng.choice((name, self.spelling(server_name, name))), "args": given}
        if self.rng.random() < 0.5:
            inside["server"] = server_name
        params = {"name": "mcp", "arguments": inside, **self.beside()}
        client.ask_only(self.marks, "tools/call", params)

    def command(self, client: Client, server_name: str, name: str, args: dict[str, Any]) -> None:
        asked = {"tool": self.spelling(server_name, name), "args": args}
        more = self.rng.choice(({}, {"asks": True}, {"allowed": "0" * 32}, {"asks": True, "allowed": True}))
        self.commands[0].ask_only(self.marks, control.CALL, {**asked, **more})

    # -- answers and events --------------------------------------------------------------------------------------

    def answer_some(self) -> None:
        """Answer each open ask at random: allow, deny, deny and then allow, give up the call, or leave it open."""
        asks: Asks = self.made.gateway.asks
        for ask in list(asks):
            match self.rng.randrange(8):
                case 0 | 1:
                    self.allow(ask, "once")
                case 2:
                    self.allow(ask, self.rng.choice(ask.answers[:-1]))
                case 3 | 4:
                    self.answer(ask, "deny")
                case 5:
                    self.answer(ask, "deny")
                    self.answer(ask, "once")  # too late to change anything
                case 6 if ask.asker.session is not None:
                    ask.asker.session.pending.cancel(mark_of(ask))
                    for number in list(ask.asker.session.open_calls):
                        ask.asker.session.open_calls[number].cancel("given up")
                case _:
                    pass

    def allow(self, ask: OpenAsk, answer: Any) -> None:
        assert ask.subject is not None
        self.yes.add(mark_of(ask))
        if answer != "once":
            whose = ask.asker.session if answer == "session" else None
            self.granted.add((whose, ask.subject.server, ask.subject.tool, ask.subject.hash))
        self.answer(ask, answer)

    def answer(self, ask: OpenAsk, answer: Any) -> None:
        with suppress(AskOverError):
            self.made.gateway.asks.answer(ask.id, answer, "a test")

    async def happen(self) -> None:
        """Do something that might let a write pass without an ask."""
        match self.rng.randrange(9):
            case 0:
                self.there.close()  # no user is available
            case 1:
                net = self.net[self.rng.choice(self.servers).name]
                if net.channel is not None and not net.channel.gone.is_set():
                    net.die()
            case 2:
                self.version += 1
                for one in self.servers:
                    self.serve(one.name)
                    self.commands[0].ask_only(f"refresh {one.name}", control.REFRESH, {"server": one.name})
                await self.made.gateway.services.pool.settled()
            case 3:
                last = "renamed" if self.servers[0].name == "a" else "a"
                self.servers[0] = server(last)
                self.made.apply(*self.servers, settings=self.settings())
                await self.made.gateway.services.pool.settled()
            case 4:
                self.made.apply(*self.servers, settings=self.settings())
            case 5:
                number = self.rng.randrange(len(CLIENTS))
                self.clients[number].end()
                protocol, options = CLIENTS[number]
                self.clients[number] = await self.made.ready(protocol, **options)
            case _:
                self.come()

    # -- executed calls ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check the writes executed since the last `look`.

        A grant counts for the tool's definition at that `look` or its definition now.
        """
        before, self.hashes = self.hashes, self.current_hashes()
        for name, fake in self.net.items():
            for params in fake.executed:
                found = name.split("#")[0], params["name"], params["arguments"]["mark"]
                self.executed.append(found)
                if found[1] not in READS and found[2] not in self.yes:
                    self.judge(*found, {hashes.get(found[:2], "") for hashes in (before, self.hashes)})
            fake.executed.clear()

    def judge(self, server_name: str, name: str, mark: int, hashes: set[str]) -> None:
        """Count a write that an earlier answer allows. Record any other write as executed without a yes."""
        if any(
            (whose, server_name, name, one) in self.granted for whose in (None, self.callers[mark]) for one in hashes
        ):
            self.by_grant += 1
        else:
            self.without.append((server_name, name, mark))

    def current_hashes(self) -> dict[tuple[str, str], str]:
        """Return the hashes of the current definitions by server and tool."""
        session = self.clients[0].session
        assert session is not None
        view = session.seen.view
        names = [(one.name, name) for one in self.servers for name in WRITES + LIARS]
        return {key: definition_hash(found[-1]) for key in names if (found := view.definitions(*key))}


def mark_of(ask: OpenAsk) -> int:
    """Return the mark among the arguments that the ask shows to the user."""
    return next(int(shown.value) for shown in ask.arguments if shown.name == "mark")


@pytest.mark.timeout(stretched(60))
@pytest.mark.requirement("ask-no-way-round")
async def test_no_random_way_of_calling_executes_a_write_without_a_yes(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    async with house(tmp_path, within_s=stretched(30)) as made:
        trial = Trial(made, rng)
        await trial.begin()
        while trial.marks < CALLS:
            for _ in range(AT_ONCE):
                trial.call()
            await settle()
            trial.look()
            trial.answer_some()
            await settle()
            trial.look()
            await trial.happen()
            await settle()
            trial.look()
        for ask in list(made.gateway.asks):
            trial.answer(ask, "deny")
        await settle()
        trial.look()
        assert trial.without == []
        assert max(Counter(mark for *_, mark in trial.executed).values()) == 1
        reads = [one for one in trial.executed if one[1] in READS]
        assert len(reads) > CALLS // 20  # reads pass, so the calls are valid
        assert len(trial.executed) - len(reads) > CALLS // 100  # allowed writes pass, too
        assert trial.by_grant > CALLS // 1000  # some of them because of an earlier answer
        assert len(trial.granted) > CALLS // 200  # such answers were needed again after a new definition or session
        read = [method for fake in trial.net.values() for method, _ in fake.heard if method == "resources/read"]
        assert len(read) > CALLS // 100  # resources were read by calls of tools
