"""Within a session, lists change only if the user or a server changes something. Clients cache the first lists."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.gateway.world import Client, House, Message, house, serve, server
from trayapp.backends.connection import NOTICE_S
from trayapp.gateway.sessions.session import LISTS
from trayapp.model.config import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("lists-steady")]

CALLS = 1_000
TOOLS = ("echo", "add", "ask", "notify", "boom", "none")
SERVERS = ("a", "b-mcp", "c")


async def lists(client: Client) -> list[bytes]:
    """Request all lists and return the answers as raw frames."""
    for method in LISTS:
        await client.ask(method, number=f"of {method}")
    return [next(f for f in reversed(client.frames) if f'"of {m}"'.encode() in f) for m in LISTS]


def random_request(some: random.Random, number: int) -> tuple[str, Message]:
    """Return a random request, valid or not, for a tool, a resource or a prompt, directly or through the one tool."""
    name = some.choice(SERVERS)
    tool = some.choice(TOOLS)
    spelled = some.choice((f"{name}_{tool}", tool, f"mcp__{name}__{tool}", f"{name.removesuffix('-mcp')}_{tool}"))
    one: Message = some.choice(
        (
            {"tool": spelled, "args": {"n": number}},
            {"search": some.choice(("echo", "add numbers", "nothing of that kind"))},
            {"describe": spelled},
            {"server": some.choice((*SERVERS, "nobody"))},
            {"connect": name},
            {},
        )
    )
    return some.choice(
        (
            ("tools/call", {"name": spelled, "arguments": {"n": number}}),
            ("tools/call", {"name": "mcp", "arguments": one}),
            ("resources/read", {"uri": some.choice(("res://x", "res://none", "multi-mcp://index"))}),
            ("prompts/get", {"name": some.choice(("a_p", "p", "none"))}),
        )
    )


def stocked(made: House) -> None:
    for name in SERVERS:
        serve(made.net[name], prompts=({"name": "p"},), resources=({"uri": "res://x", "name": "x"},))


@pytest.mark.parametrize("expose", ["tools", "search", "auto"])
async def test_a_thousand_random_calls_leave_every_list_as_it_was_to_the_byte(tmp_path: Path, expose: str) -> None:
    some = random.Random(expose)
    async with house(tmp_path) as made:
        stocked(made)
        await made.known(*(server(name) for name in SERVERS), settings=Settings(expose=expose))  # type: ignore[arg-type]
        client = await made.ready()
        await made.told()
        before = await lists(client)
        client.heard.clear()
        answered = 0
        for number in range(CALLS):
            answered += "result" in await client.ask(*random_request(some, number), number="call")
            made.clock.jump(NOTICE_S)  # so that no search waits for an announcement
            client.heard.clear()
            client.frames.clear()
        assert answered > CALLS / 4  # enough of the requests succeed
        await made.told()
        assert client.list_changes() == []
        assert await lists(client) == before
        assert await lists(await made.ready()) == before
