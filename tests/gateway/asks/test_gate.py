"""The gate before calls: which calls need an answer, what each answer does, and what happens without an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.gateway.calls.test_server_requests import asking, enveloped, tool_call
from tests.gateway.catalogue import mcp, refused, text_of
from tests.gateway.world import Client, House, Message, Wire, house, serve, server
from trayapp.catalog import approval_store
from trayapp.gateway.asks import OpenAsk
from trayapp.model.config import AskMode, Settings, ToolSwitch
from trayapp.wire import control
from trayapp.wire.messages import METHOD_NOT_FOUND

pytestmark = pytest.mark.anyio

TOOLS = ("get_note", "write_note", "delete_note")
CLASSES = {"get_note": "read", "write_note": "write", "delete_note": "destructive"}


@contextmanager
def somebody_there(made: House) -> Iterator[None]:
    """Act as a watching tray."""
    with made.gateway.asks.watched():
        yield


async def notes(made: House, ask: AskMode = "writes", expose: str = "tools", **more: Any) -> Client:
    """Configure a server with a tool of each class and return a client."""
    made.net["a"].tools = [tool(name) for name in TOOLS]
    settings = Settings(expose=expose, ask=ask, **more)  # type: ignore[arg-type]  # one of the modes
    await made.known(server("a"), settings=settings)
    return await made.ready(name="Claude Code", cwd="/src/site")


def called(made: House, name: str = "a") -> list[str]:
    """Return the names of the tools that the server has executed."""
    return [params["name"] for method, params in made.net[name].heard if method == "tools/call"]


async def opened(made: House, count: int = 1) -> list[OpenAsk]:
    """Wait until `count` asks are open. Return all open asks."""
    with anyio.fail_after(10):
        while len(asks := list(made.gateway.asks)) < count:
            await settle()
    return asks


async def ask_of(made: House, client: Client, name: str = "a_write_note") -> OpenAsk:
    """Call a tool with the request id 5 and return the ask that this opens."""
    client.call_only(name, 5)
    (ask,) = await opened(made)
    return ask


def code_of(answer: Message) -> str:
    """Return the stable code of a refused call."""
    assert answer["result"]["isError"] is True, answer
    code: str = answer["result"]["_meta"]["multi-mcp/error"]
    return code


async def answered(made: House, method: str, **params: Any) -> Any:
    return await made.control().result(method, params)


@pytest.mark.requirement("ask-settings")
@pytest.mark.parametrize(
    ("ask", "through_mcp", "asking"),
    [
        ("off", True, []),
        ("auto", True, ["delete_note"]),
        ("auto", False, []),
        ("destructive", True, ["delete_note"]),
        ("destructive", False, ["delete_note"]),
        ("writes", True, ["write_note", "delete_note"]),
        ("writes", False, ["write_note", "delete_note"]),
        ("all", True, list(TOOLS)),
        ("all", False, list(TOOLS)),
    ],
)
async def test_a_setting_asks_before_these_classes(
    tmp_path: Path, ask: AskMode, through_mcp: bool, asking: list[str]
) -> None:
    async with house(tmp_path) as made:
        client = await notes(made, ask)
        with somebody_there(made):
            for number, name in enumerate(TOOLS, 10):
                if through_mcp:
                    client.call_only("mcp", number, tool=name, args={})
                else:
                    client.call_only(f"a_{name}", number)
            await settle()
            open_asks = [ask.subject for ask in made.gateway.asks]
            assert [one.tool for one in open_asks if one] == asking
            assert [one.tool_class for one in open_asks if one] == [CLASSES[name] for name in asking]
            assert called(made) == [name for name in TOOLS if name not in asking]


@pytest.mark.requirement("ask-settings")
@pytest.mark.parametrize("through_mcp", [True, False])
async def test_a_setting_holds_for_the_next_call_of_a_tool_in_use(tmp_path: Path, through_mcp: bool) -> None:
    async with house(tmp_path) as made:
        client = await notes(made, "off")
        call = (
            {"name": "mcp", "arguments": {"tool": "write_note", "args": {}}}
            if through_mcp
            else {"name": "a_write_note"}
        )
        for number in range(10, 13):  # later calls take the same route as the first
            client.ask_only(number, "tools/call", dict(call))
            assert "isError" not in (await client.answer(number))["result"]
        made.apply(server("a"), settings=Settings(expose="tools", ask="writes"))
        with somebody_there(made):
            client.ask_only(13, "tools/call", dict(call))
            await opened(made)
        assert called(made) == ["write_note"] * 3


@pytest.mark.requirement("ask-settings")
async def test_a_tool_wins_over_its_server_and_that_over_the_setting(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].tools = [tool(name) for name in TOOLS]
        switches = {"get_note": ToolSwitch(ask="all"), "delete_note": ToolSwitch(ask="off")}
        await made.known(server("a", ask="writes", tools=switches), settings=Settings(expose="tools", ask="off"))
        client = await made.ready()
        with somebody_there(made):
            for number, name in enumerate(("get_note", "delete_note"), 10):
                client.call_only(f"a_{name}", number)
            await settle()
            assert [ask.subject.tool for ask in made.gateway.asks if ask.subject] == ["get_note"]


@pytest.mark.requirement("ask-auto")
async def test_auto_asks_for_a_tool_that_the_client_does_not_list(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made, "auto", expose="search")
        with somebody_there(made):
            client.call_only("a_delete_note", 5)  # called directly, although the client does not list it
            assert [ask.subject.tool for ask in await opened(made) if ask.subject] == ["delete_note"]


@pytest.mark.requirement("ask-nobody")
async def test_with_nobody_there_auto_runs_and_every_other_setting_refuses(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made, "auto")
        assert "isError" not in await mcp(client, tool="delete_note", args={})
        made.apply(server("a"), settings=Settings(expose="tools", ask="destructive"))
        code, words = await refused(client, tool="delete_note", args={})
        assert code == "ask_nobody"
        assert "Nothing was executed" in words
        assert code_of(await client.call("a_delete_note")) == "ask_nobody"
        assert called(made) == ["delete_note"]


@pytest.mark.requirement("ask-shown")
async def test_an_ask_says_who_what_and_with_which_arguments(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            client.call_only("a_delete_note", 5, path="/a\u202eb", password="hunter2abc", text="x" * 5000)
            await opened(made)
            (row,) = (await answered(made, control.ASKS))["asks"]
            assert (row["client"], row["project"], row["server"], row["tool"], row["class"]) == (
                "Claude Code",
                "/src/site",
                "a",
                "delete_note",
                "destructive",
            )
            shown = {one["name"]: one["value"] for one in row["arguments"]}
            assert next(one["length"] for one in row["arguments"] if one["name"] == "text") == 5002
            assert shown["path"] == '"/a<U+202E>b"'
            assert "hunter2abc" not in str(row)
            assert "(5,002 characters)" in shown["text"]
            assert len(shown["text"]) < 500


@pytest.mark.requirement("ask-answers")
async def test_once_is_for_one_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            assert called(made) == []
            await answered(made, control.ALLOW, id=ask.id)
            assert "isError" not in (await client.answer(5))["result"]
            client.call_only("a_write_note", 6)
            await opened(made)
            assert called(made) == ["write_note"]


@pytest.mark.requirement("ask-answers")
async def test_for_the_session_covers_that_tool_and_session_and_what_waits(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client, other = await notes(made), await made.ready()
        with somebody_there(made):
            client.call_only("a_write_note", 5)
            client.call_only("mcp", 6, tool="write_note", args={})
            other.call_only("a_write_note", 5)
            first, *_ = await opened(made, 3)
            await answered(made, control.ALLOW, id=first.id, answer="session")
            assert {"result"} <= (await client.answer(5)).keys() & (await client.answer(6)).keys()
            assert "isError" not in (await client.call("a_write_note", 7))["result"]
            client.call_only("a_delete_note", 8)
            left = [(ask.asker.session, ask.subject and ask.subject.tool) for ask in await opened(made, 2)]
            assert left == [(other.session, "write_note"), (client.session, "delete_note")]


@pytest.mark.requirement("ask-answers")
async def test_always_outlives_the_gateway_and_ends_with_the_definition(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client, "a_delete_note")
            await answered(made, control.ALLOW, id=ask.id, answer="always")
            await client.answer(5)
        folder = made.folder.with_name(approval_store.FOLDER_NAME)
        assert ask.subject is not None
        assert approval_store.load(folder, "a").allowed == {"delete_note": ask.subject.hash}
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            assert "isError" not in (await client.call("a_delete_note"))["result"]
            changed = {**tool("delete_note"), "description": "Delete a note, and all that link to it"}
            made.net["a"].tools = [tool("get_note"), tool("write_note"), changed]
            await answered(made, control.REFRESH, server="a")
            client.call_only("a_delete_note", 6)
            await opened(made)
            assert called(made) == ["delete_note"]
        assert (await answered(made, control.ASKS))["always"] == [{"server": "a", "tool": "delete_note"}]
        await answered(made, control.DENY, server="a", tool="delete_note")
        assert (await answered(made, control.ASKS))["always"] == []


@pytest.mark.requirement("ask-refused")
async def test_a_denied_call_gets_one_error_and_never_reaches_the_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            await answered(made, control.DENY, id=ask.id)
            answer = await client.answer(5)
        assert code_of(answer) == "ask_denied"
        assert "Nothing was executed" in text_of(answer["result"])
        assert called(made) == []
        assert len(client.answers(5)) == 1


@pytest.mark.requirement("ask-refused")
async def test_a_call_that_nobody_allows_in_time_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made, ask_timeout=0.05)
        with somebody_there(made):
            ask = await ask_of(made, client)
            assert code_of(await client.answer(5)) == "ask_timed_out"
            late = await made.control().error(control.ALLOW, {"id": ask.id})
            assert late["data"]["code"] == "ask_over"
            assert "nobody answered in time" in late["message"]
            await settle()
        assert called(made) == []


@pytest.mark.requirement("ask-refused")
@pytest.mark.parametrize("ends", ["cancelled", "gone"])
async def test_a_call_given_up_while_the_user_is_asked_is_forgotten(tmp_path: Path, ends: str) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            if ends == "cancelled":
                client.tell("notifications/cancelled", {"requestId": 5})
            else:
                client.end()
            await settle()
            assert list(made.gateway.asks) == []
            late = await made.control().error(control.ALLOW, {"id": ask.id})
            assert (late["data"]["code"], "its call was cancelled" in late["message"]) == ("ask_over", True)
            await settle()
        assert client.answers(5) == []
        assert called(made) == []
        assert made.in_flight() == {}


@pytest.mark.requirement("ask-once")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (control.ALLOW, control.ALLOW),
        (control.ALLOW, control.DENY),
        (control.DENY, control.ALLOW),
        (control.DENY, control.DENY),
    ],
)
async def test_of_two_answers_the_first_counts_and_the_other_is_told(tmp_path: Path, first: str, second: str) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            one, two = made.control(), made.control()
            one.ask_only(1, first, {"id": ask.id, "by": "the tray"})
            two.ask_only(1, second, {"id": ask.id})
            won, lost = await one.answer(1), await two.answer(1)
            assert "result" in won
            assert lost["error"]["data"]["code"] == "ask_over"
            assert "by the tray" in lost["error"]["message"]
            await client.answer(5)
        assert called(made) == (["write_note"] if first == control.ALLOW else [])


@pytest.mark.requirement("ask-progress")
async def test_a_client_with_a_token_hears_that_its_call_waits(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            client.ask_only(5, "tools/call", {"name": "a_write_note", "_meta": {"progressToken": "t"}})
            await opened(made)
            (told,) = client.told("notifications/progress")
            assert told["progressToken"] == "t"
            assert 0 < told["progress"] < 1
            assert "a/write_note" in told["message"]


@pytest.mark.requirement("ask-bound")
async def test_a_definition_that_changes_while_the_user_thinks_is_asked_about_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            changed = {**tool("write_note"), "description": "Write a note and send it to everybody"}
            made.net["a"].tools = [tool("get_note"), changed]
            await answered(made, control.REFRESH, server="a")
            await answered(made, control.ALLOW, id=ask.id)
            (again,) = await opened(made)
            assert again.id != ask.id
            assert called(made) == []
            await answered(made, control.ALLOW, id=again.id)
            await client.answer(5)
        assert called(made) == ["write_note"]


@pytest.mark.requirement("ask-bound")
@pytest.mark.parametrize("taken", ["switched off", "disabled", "renamed", "started in another way"])
async def test_what_is_taken_away_while_the_user_thinks_is_not_called(tmp_path: Path, taken: str) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            made.net["b"].tools = made.net["a"].tools
            now = {
                "switched off": server("a", tools={"write_note": ToolSwitch(enabled=False)}),
                "disabled": server("a", disabled=True),
                "renamed": server("b"),
                "started in another way": server("a", args=("--other",)),
            }[taken]
            made.apply(now, settings=Settings(expose="tools", ask="writes"))
            await settle()
            await answered(made, control.ALLOW, id=ask.id)
            assert code_of(await client.answer(5)) != ""
        assert called(made) + called(made, "b") == []


@pytest.mark.requirement("ask-bound")
async def test_a_call_that_is_sent_again_is_asked_about_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await notes(made)
        with somebody_there(made):
            ask = await ask_of(made, client)
            before = made.net["a"].opened
            made.net["a"].die()
            await settle()
            await answered(made, control.ALLOW, id=ask.id)
            assert "isError" not in (await client.answer(5))["result"]
        assert called(made) == ["write_note"]
        assert made.net["a"].opened == before + 1


@pytest.mark.requirement("ask-bound")
@pytest.mark.parametrize("through_mcp", [True, False])
async def test_a_call_whose_newer_server_asks_its_newer_client_is_asked_about_once(
    tmp_path: Path, through_mcp: bool
) -> None:
    question = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "elicitation/create", "params": question})
        await made.known(server("a"), settings=Settings(expose="tools", ask="all"))
        client = made.client()

        def ask(number: int, text: str, **more: Any) -> None:
            call = (
                tool_call("mcp", tool="a_echo", args={"text": text}) if through_mcp else tool_call("a_echo", text=text)
            )
            client.ask_only(number, "tools/call", enveloped({**call, **more}, {"elicitation": {}}))

        with somebody_there(made):
            ask(5, "x")
            (first,) = await opened(made)
            await answered(made, control.ALLOW, id=first.id)
            assert (await client.answer(5))["result"]["requestState"] == "theirs"
            answers = {"inputResponses": {"k": {"action": "accept", "content": {}}}, "requestState": "theirs"}
            ask(6, "y", **answers)
            (other,) = await opened(made)
            await answered(made, control.DENY, id=other.id)
            ask(7, "x", **answers)
            assert "got" in (await client.answer(7))["result"]["content"][0]["text"]
            ask(8, "x", **answers)
            (again,) = await opened(made)
            await answered(made, control.DENY, id=again.id)
        assert called(made) == ["echo", "echo"]


@pytest.mark.requirement("ask-every-way")
async def test_a_resource_passes_the_gate_as_a_tool_and_plainly(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"], resources=({"uri": "x://1", "name": "one"},))
        await made.known(server("a"), settings=Settings(expose="search", ask="all"))
        client = await made.ready()
        code, _ = await refused(client, tool="a_read_one")
        assert code == "ask_nobody"
        assert "no user is available" in (await client.error("resources/read", {"uri": "x://1"}))["message"]
        assert "resources/read" not in made.net["a"].methods()


@pytest.mark.requirement("ask-every-way")
async def test_no_other_message_of_a_client_reaches_a_server_as_a_call(tmp_path: Path) -> None:
    """A lax server might execute such a message."""
    async with house(tmp_path) as made:
        client = await notes(made)
        assert "isError" not in (await client.call("a_get_note"))["result"]
        params = {"name": "write_note", "arguments": {}}
        for method in ("tools/call", "Tools/Call", "tools/call ", "tools//call", "resources/read"):
            client.tell(method, params)
            client.send({"id": None, "method": method, "params": params})
        for method in ("TOOLS/CALL", " tools/call", "tools//call", "tools/call\x00", "toolsCall", "Resources/Read"):
            assert (await client.error(method, {**params, "name": "a_write_note"}))["code"] == METHOD_NOT_FOUND
        await settle()
        assert called(made) == ["get_note"]
        heard = {method.casefold() for method in made.net["a"].methods()}
        assert not any(("call" in method and method != "tools/call") or "read" in method for method in heard)


@pytest.mark.requirement("ask-every-way")
async def test_a_command_waits_among_the_asks_or_asks_where_it_runs(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await notes(made)
        call = {"tool": "write_note", "args": {"text": "t"}}
        refusal = await made.control().error(control.CALL, call)
        assert refusal["data"]["code"] == "ask_nobody"
        with somebody_there(made):
            wire: Wire = made.control()
            wire.ask_only(1, control.CALL, call)
            (ask,) = await opened(made)
            assert ask.answers == ("once", "always", "deny")
            await answered(made, control.ALLOW, id=ask.id)
            assert "result" in await wire.answer(1)
            assert called(made) == ["write_note"]
        asked = await answered(made, control.CALL, **call, asks=True)
        assert (asked["ask"]["tool"], asked["ask"]["arguments"]) == (
            "write_note",
            [{"name": "text", "value": '"t"', "length": 3}],
        )
        assert called(made) == ["write_note"]
        await answered(made, control.CALL, **call, asks=True, allowed=asked["ask"]["hash"])
        assert called(made) == ["write_note", "write_note"]


@pytest.mark.requirement("ask-bound")
async def test_a_command_does_not_call_what_was_taken_away_while_its_server_started(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await notes(made)
        call = {"tool": "write_note", "args": {}, "asks": True}
        asked = await answered(made, control.CALL, **call)
        made.net["a"].die()
        await settle()
        start = made.net["a"].hold_start()
        wire = made.control()
        wire.ask_only(1, control.CALL, {**call, "allowed": asked["ask"]["hash"]})
        await settle()
        switched_off = server("a", tools={"write_note": ToolSwitch(enabled=False)})
        made.apply(switched_off, settings=made.config.settings)
        start.set()
        assert (await wire.answer(1))["error"]["data"]["code"] == "ask_gone"
        assert called(made) == []


@pytest.mark.requirement("ask-list")
async def test_three_ai_tools_make_one_list_oldest_first_each_named(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await notes(made)
        clients = [await made.ready(name=name) for name in ("Claude Code", "Codex", "Cursor")]
        with ExitStack() as there:
            there.enter_context(somebody_there(made))
            for number, client in enumerate(clients, 5):
                client.call_only("a_write_note", number)
            await opened(made, 3)
            rows = (await answered(made, control.ASKS))["asks"]
            assert [row["client"] for row in rows] == ["Claude Code", "Codex", "Cursor"]
            snapshot = await answered(made, control.SNAPSHOT)
            assert [ask["id"] for ask in snapshot["asks"]] == [row["id"] for row in rows]


async def test_a_watcher_makes_somebody_there_unless_it_shows_no_asks(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await notes(made)
        await answered(made, control.WATCH, asks=False)
        await settle()
        assert not made.gateway.asks.someone_is_there
        watcher = made.control()
        await watcher.result(control.WATCH, {})
        await settle()
        assert made.gateway.asks.someone_is_there
        assert watcher.dispatcher is not None
        watcher.dispatcher.close()
        await settle()
        assert not made.gateway.asks.someone_is_there
