"""Questions of servers that a client cannot answer: the user answers them, and nothing is answered automatically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.clock import settle
from tests.gateway.asks.test_gate import answered, opened, somebody_there
from tests.gateway.calls.test_server_requests import asking, enveloped, tool_call
from tests.gateway.world import Client, House, house, server
from trayapp.model.config import Settings
from trayapp.wire import control
from trayapp.wire.capabilities import EVERYTHING

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
FORM = {"message": "Who\u202e are you?", "requestedSchema": SCHEMA}
PAGE = {"mode": "url", "message": "Pay here", "url": "https://pay.test/1", "elicitationId": "e"}


async def unable(made: House, ask_timeout: float = 120.0) -> Client:
    """Configure a server `a` and return a client that cannot answer questions."""
    await made.known(server("a"), settings=Settings(expose="tools", ask="off", ask_timeout=ask_timeout))
    return await made.ready(name="Claude Code")


def ask(client: Client, question: dict[str, Any], number: int = 5) -> None:
    """Call the tool that sends `question` to the client and returns the answer."""
    params = {"method": "elicitation/create", "params": question}
    client.call_only("a_ask", number, **params)


async def got(client: Client, number: int = 5) -> Any:
    """Return the answer that the server received."""
    return json.loads((await client.answer(number))["result"]["content"][0]["text"])


@pytest.mark.requirement("ask-questions")
async def test_a_form_is_shown_and_its_answer_goes_to_the_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await unable(made)
        with somebody_there(made):
            ask(client, FORM)
            await opened(made)
            (row,) = (await answered(made, control.ASKS))["asks"]
            told = (row["kind"], row["client"], row["server"], row["message"], row["schema"])
            assert told == ("question", "Claude Code", "a", "Who<U+202E> are you?", SCHEMA)
            (status,) = (await answered(made, control.SNAPSHOT))["asks"]
            assert status["form"] is True
            for wrong in ({}, {"name": "Ann", "age": "old"}):
                refused = await made.control().error(control.ALLOW, {"id": row["id"], "content": wrong})
                assert refused["data"]["code"] == "unfit_answer"
            content, typed = {"name": 7, "age": 8}, {"name": "7", "age": "8"}
            await answered(made, control.ALLOW, id=row["id"], content=content, typed=typed)
            assert await got(client) == {"action": "accept", "content": {"name": "7", "age": 8}}


@pytest.mark.requirement("ask-questions")
async def test_a_page_is_accepted_and_a_question_declined(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await unable(made)
        with somebody_there(made):
            ask(client, PAGE)
            (page,) = await opened(made)
            assert page.row()["url"] == "https://pay.test/1"
            await answered(made, control.ALLOW, id=page.id)
            assert await got(client) == {"action": "accept"}
            ask(client, FORM, 6)
            (form,) = await opened(made)
            await answered(made, control.DENY, id=form.id)
            assert await got(client, 6) == {"action": "decline"}


@pytest.mark.requirement("ask-questions")
@pytest.mark.parametrize("why", ["nobody is there", "nobody answers", "no page"])
async def test_without_an_answer_the_server_gets_an_error(tmp_path: Path, why: str) -> None:
    async with house(tmp_path) as made:
        client = await unable(made, ask_timeout=0.05)
        if why == "nobody is there":
            ask(client, FORM)
            answer = await client.answer(5)
        else:
            with somebody_there(made):
                ask(client, FORM if why == "nobody answers" else {**PAGE, "url": "file:///etc/passwd"})
                answer = await client.answer(5)
        assert "action" not in json.dumps(answer)
        assert list(made.gateway.asks) == []


@pytest.mark.requirement("ask-questions")
@pytest.mark.parametrize("through_mcp", [True, False])
async def test_a_newer_server_s_question_goes_to_the_user_if_its_newer_client_cannot_answer(
    tmp_path: Path, through_mcp: bool
) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "elicitation/create", "params": FORM})
        await made.known(server("a"), settings=Settings(expose="tools", ask="off"))
        client = made.client()
        call = tool_call("mcp", tool="a_echo", args={}) if through_mcp else tool_call("a_echo")
        unable_: list[dict[str, Any]] = [{}, {"elicitation": {"url": {}}}, {"roots": {}}]
        for number, capabilities in enumerate(unable_, 5):
            with somebody_there(made):
                client.ask_only(number, "tools/call", enveloped(call, capabilities))
                (form,) = await opened(made)
                assert form.row()["schema"] == SCHEMA
                await answered(made, control.ALLOW, id=form.id, content={"name": "Ann"})
                got_ = {"action": "accept", "content": {"name": "Ann"}}
                assert await got(client, number) == {"got": got_, "state": "theirs"}
        with somebody_there(made):
            able = await client.result("tools/call", enveloped(call, {"elicitation": {}}), 8)
        assert able["resultType"] == "input_required"
        assert list(made.gateway.asks) == []


@pytest.mark.requirement("ask-questions")
async def test_a_newer_server_s_question_ends_with_its_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "elicitation/create", "params": FORM})
        await made.known(server("a"), settings=Settings(expose="tools", ask="off"))
        client = made.client()
        with somebody_there(made):
            client.ask_only(5, "tools/call", enveloped(tool_call("a_echo"), {}))
            await opened(made)
            client.tell("notifications/cancelled", {"requestId": 5})
            with anyio.fail_after(10):
                while list(made.gateway.asks):
                    await settle()
        assert made.in_flight() == {}


@pytest.mark.requirement("ask-questions")
async def test_a_question_ends_with_its_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await unable(made)
        with somebody_there(made):
            ask(client, FORM)
            (open_ask,) = await opened(made)
            client.end()
            with anyio.fail_after(10):
                while list(made.gateway.asks):
                    await settle()
            late = await made.control().error(control.ALLOW, {"id": open_ask.id, "content": {"name": "x"}})
            assert late["data"]["code"] == "ask_over"


@pytest.mark.requirement("ask-questions")
async def test_a_server_is_told_of_the_user_only_while_somebody_is_there(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client = await unable(made)
        assert client.session is not None
        made.gateway._capabilities.wanted_by(client.session, "a")
        of_clients = made.gateway._capabilities.of_clients
        assert (of_clients("a"), client.session.capabilities) == ({}, {})
        with somebody_there(made):
            elicitation = {"elicitation": EVERYTHING["elicitation"]}
            assert (of_clients("a"), client.session.capabilities) == (elicitation, elicitation)
