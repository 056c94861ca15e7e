"""However a tool is called, with `ask: writes` no write is executed without a yes, and each yes executes it once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.gateway.world import Client, House, Wire, house, serve, server
from tests.patience import stretched
from trayapp.gateway.asks.asks import AskOverError, Asks, OpenAsk
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Settings
from trayapp.wire import control

pytestmark = pytest.mark.anyio

CALLS = 10_000
AT_ONCE = 25  # calls before the user answers and something happens
SEED = 16
READS = ("get_note", "listNotes")
WRITES = ("write_note", "delete_note", "send-mail", "toggle", "getNoteAndDelete")
LIARS = ("get_secret", "read_all")  # called like readers; their servers say that they are none
PREFIXES = ("server", "short", "none", "mcp")


def definitions(version: int) -> list[dict[str, Any]]:
    """What a server lists."""
    liars = [{**tool(name), "annotations": {"readOnlyHint": False}} for name in LIARS]
    return [*liars, *({**tool(name), "description": f"v{version}"} for name in READS + WRITES)]


class Trial:
    """One gateway, its clients, and what the user allowed. `mark` is an argument that tells calls apart."""

    def __init__(self, made: House, rng: random.Random) -> None:
        self.made = made
        self.rng = rng
        self.clients: list[Client] = []
        self.commands: list[Wire] = []
        self.marks = 0
        self.yes: set[int] = set()  # marks of the calls that the user allowed
        self.granted: set[tuple[str, str]] = set()  # server and tool of `for this session` and `always`
        self.version = 0
        self.there = ExitStack()
        self.servers: list[ServerConfig] = []

    async def begin(self) -> None:
        """Three servers, one of them for each session, and clients of all eras."""
        for name in ("a", "b-mcp", "c", "renamed"):
            self.made.net[name].tools = definitions(0)
            # Resources that are called as tools, one of them by the name of a write.
            docs = tuple({"uri": f"{name}://{doc}", "name": doc} for doc in ("doc", "delete_note"))
            serve(self.made.net[name], resources=docs, tools=tuple(definitions(0)))
        self.servers = [server("a"), server("b-mcp"), server("c", scope="session")]
        await self.made.known(*self.servers, settings=self.settings())
        for protocol, options in (
            ("2025-11-25", {}),
            ("2024-11-05", {"expose": "search"}),
            ("2025-06-18", {"servers": "a,c"}),
        ):
            self.clients.append(await self.made.ready(protocol, **options))
        self.commands = [self.made.control()]
        self.come()

    def settings(self) -> Settings:
        return Settings(expose="tools", ask="writes", tool_prefix=self.rng.choice(PREFIXES))  # type: ignore[arg-type]

    def come(self) -> None:
        """Somebody is there again."""
        self.there.close()
        self.there.enter_context(self.made.gateway.asks.watched())

    # -- ways of calling -----------------------------------------------------------------------------------------

    def call(self) -> None:
        """Call any tool in any way."""
        self.marks += 1
        server_name, name = self.rng.choice(self.servers).name, self.rng.choice(READS + WRITES + LIARS)
        args: dict[str, Any] = {"mark": self.marks}
        ways: list[Callable[[Client, str, str, dict[str, Any]], None]] = [self.plain, self.one_tool, self.command]
        self.rng.choice(ways)(self.rng.choice(self.clients), server_name, name, args)

    def spelling(self, server_name: str, name: str) -> str:
        """One of the ways to write a tool's name."""
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
        """Members beside name and arguments: a task, a progress token, nonsense that looks like an answer of ours."""
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

    # -- what happens meanwhile ----------------------------------------------------------------------------------

    def answer_some(self) -> None:
        """Answer what waits: yes, no, both, or not at all."""
        asks: Asks = self.made.gateway.asks
        for ask in list(asks):
            match self.rng.randrange(8):
                case 0 | 1:
                    self.allow(ask, "once")
                case 2:
                    self.allow(ask, "session" if "session" in ask.answers else "once")
                case 3 | 4:
                    self.answer(ask, "deny")
                case 5:
                    self.answer(ask, "deny")
                    self.answer(ask, "once")  # too late: it changes nothing
                case 6 if ask.asker.session is not None:
                    ask.asker.session.pending.cancel(mark_of(ask))
                    for number in list(ask.asker.session.open_calls):
                        ask.asker.session.open_calls[number].cancel("given up")
                case _:
                    pass

    def allow(self, ask: OpenAsk, answer: Any) -> None:
        assert ask.subject is not None
        self.yes.add(mark_of(ask))
        if answer == "session":
            self.granted.add((ask.subject.server, ask.subject.tool))
        self.answer(ask, answer)

    def answer(self, ask: OpenAsk, answer: Any) -> None:
        with suppress(AskOverError):
            self.made.gateway.asks.answer(ask.id, answer, "a test")

    async def happen(self) -> None:
        """Something that could open a way round."""
        match self.rng.randrange(8):
            case 0:
                self.there.close()  # nobody is there
            case 1:
                net = self.made.net[self.rng.choice(self.servers).name]
                if net.channel is not None and not net.channel.gone.is_set():
                    net.die()
            case 2:
                self.version += 1
                for one in self.servers:
                    serve(self.made.net[one.name], tools=tuple(definitions(self.version)))
                await self.made.gateway.services.pool.settled()
            case 3:
                last = "renamed" if self.servers[0].name == "a" else "a"
                self.servers[0] = server(last)
                self.made.apply(*self.servers, settings=self.settings())
                await self.made.gateway.services.pool.settled()
            case 4:
                self.made.apply(*self.servers, settings=self.settings())
            case _:
                self.come()

    # -- what was executed ---------------------------------------------------------------------------------------

    def executed(self) -> list[tuple[str, str, int]]:
        """Server, tool and mark of each call that reached a server, per-session processes among them."""
        found = []
        for name, fake in self.made.net.servers.items():
            for method, params in fake.heard:
                if method == "tools/call":
                    found.append((name, params["name"], params["arguments"]["mark"]))
        return found


def mark_of(ask: OpenAsk) -> int:
    """The mark among the arguments that the user is shown."""
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
            trial.answer_some()
            await trial.happen()
            await settle()
        for ask in list(made.gateway.asks):
            trial.answer(ask, "deny")
        await settle()
        executed = trial.executed()
        writes = [one for one in executed if one[1] not in READS]
        granted = trial.granted
        without = [one for one in writes if one[2] not in trial.yes and (one[0].split("#")[0], one[1]) not in granted]
        assert without == []
        assert max(Counter(mark for *_, mark in executed).values()) == 1
        assert len(executed) - len(writes) > CALLS // 20  # the calls were calls: reads went through,
        assert len(writes) > CALLS // 100  # and so did what was allowed
        read = [method for fake in made.net.servers.values() for method, _ in fake.heard if method == "resources/read"]
        assert len(read) > CALLS // 100  # and resources, called as tools
