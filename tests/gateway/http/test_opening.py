"""What clients over HTTP get before the SDK is loaded: it is what they would get from it, and it goes on from there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.e2e.http_client import STREAMS, HttpClient, http_client
from tests.fixtures.clock import settle
from tests.gateway.http.place import TOKEN, Place, place, until
from tests.gateway.world import house, serve, server
from tests.wire.pair import Waiting
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import Headers, replayed, respond
from trayapp.gateway.http.opening import FORGOTTEN_S, HANDED_ON_S, Opening, Standing, handshake_in, session_line
from trayapp.gateway.http.presence import GONE_S, Presence
from trayapp.gateway.http.single import METHODS, is_list, request_in
from trayapp.wire.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from trayapp.wire.messages import RpcError
from trayapp.wire.revisions import HANDSHAKE_VERSIONS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-both-eras")]

MODERN, OLDER = "2026-07-28", "2025-11-25"
ABOUT = {"name": "plain", "version": "1"}
ABLE = {"roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}
OPENING = {"protocolVersion": OLDER, "capabilities": ABLE, "clientInfo": ABOUT}
META = {PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: ABLE, CLIENT_INFO: ABOUT}
ANYTHING = "*/*"  # accepted so, an answer is the SDK's


def message(method: str, params: Any = None, request_id: Any = 1) -> dict[str, Any]:
    """A request; a notification without an id."""
    whole = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return {name: value for name, value in whole.items() if value is not None}


def answer_in(response: httpx2.Response) -> Any:
    """The message of an answer, however it is written."""
    assert response.status_code < 500, response.text
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1])


async def opened(at: Place, http: httpx2.AsyncClient, accept: str = STREAMS) -> dict[str, str]:
    """The headers of a session that was opened."""
    answer = await http.post("/mcp", json=message("initialize", OPENING), headers={"Accept": accept})
    headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": OLDER, "Accept": accept}
    said = await http.post("/mcp", json=message("notifications/initialized", request_id=None), headers=headers)
    assert (said.status_code, said.headers["mcp-session-id"]) == (202, headers["Mcp-Session-Id"])
    return headers


def test_what_listens_loads_nothing_of_the_sdk() -> None:
    program = "import sys, trayapp.gateway.main, trayapp.gateway.http.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "trayapp.gateway.http.opening" in loaded
    large = ("mcp", "mcp_types", "pydantic", "pydantic_core", "starlette", "sse_starlette", "httpx2")
    assert [name for name in large if name in loaded] == []


# -- older clients ---------------------------------------------------------------------------------------------------


async def test_a_session_is_opened_used_and_ended_without_a_stream(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        serve(at.made.net["a"])
        await at.made.known(server("a"))
        headers = await opened(at, http)
        answer = await http.post("/mcp", json=message("tools/list", request_id="l"), headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert "a_echo" in [tool["name"] for tool in answer.json()["result"]["tools"]]
        (status,) = snapshot_of(at.made.gateway).gateway.sessions
        assert (status.client, status.protocol, status.transport) == ("plain", OLDER, "http")
        assert (await http.delete("/mcp", headers=headers)).status_code == 200
        await until(lambda: not at.made.gateway.sessions)
        again = await http.post("/mcp", json=message("tools/list"), headers=headers)
        assert again.status_code == 404


async def test_the_handshake_is_answered_as_through_the_sdk(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        answers = []
        for accept in (STREAMS, ANYTHING):
            headers = {"Accept": accept}
            for query in ("", "?profile=nobody", "?servers=", "?profile=", "?server=a"):
                given = await http.post(f"/mcp{query}", json=message("initialize", OPENING), headers=headers)
                answers.append(answer_in(given))
        assert answers[:5] == answers[5:]
        assert ["error" in answer for answer in answers[:5]] == [False, True, True, True, True]


@pytest.mark.parametrize("after", ["call", "stream", "time"])
async def test_the_sdk_goes_on_with_a_session_that_was_opened_before_it(tmp_path: Path, after: str) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        serve(at.made.net["a"])
        async with http_client(f"{at.url}/mcp", OLDER, {"Authorization": f"Bearer {TOKEN}"}) as client:
            assert isinstance(client, HttpClient)
            if after == "stream":
                await client.initialize(OLDER, **ABLE)
            else:
                result = await super(HttpClient, client).initialize(OLDER, **ABLE)
                client._headers["Mcp-Protocol-Version"] = result["protocolVersion"]
            if after == "time":
                await at.made.clock.pass_(HANDED_ON_S)
            session = client.session
            asked = {"name": "a_hold", "arguments": {"key": "k"}}
            waiting = client.ask("tools/call", asked, "mine")
            await at.made.net["a"].heard_of("held")
            await client.call("a_release", key="k")
            assert "result" in await waiting
            assert client.session == session
            assert [one.client for one in snapshot_of(at.made.gateway).gateway.sessions] == ["test client"]


async def test_what_is_told_before_the_sdk_is_there_comes_by_the_stream(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        async with http_client(f"{at.url}/mcp", OLDER, {"Authorization": f"Bearer {TOKEN}"}) as client:
            await client.initialize(OLDER)
            await client.request("tools/list")
            await until(lambda: any(session.client.ready for session in at.made.gateway.sessions))
            at.made.apply(server("a"), server("b"))
            await at.made.gateway.services.pool.settled()
            with anyio.fail_after(20):
                while not client.told:
                    await at.made.told()
            assert "notifications/tools/list_changed" in {one["method"] for one in client.told}


async def test_what_is_asked_beside_all_requests_is_asked_by_the_stream_that_was_there_before_the_sdk(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        async with http_client(f"{at.url}/mcp", OLDER, {"Authorization": f"Bearer {TOKEN}"}) as client:
            await client.initialize(OLDER, **ABLE)
            await until(lambda: any(session.client.ready for session in at.made.gateway.sessions))
            (session,) = at.made.gateway.sessions
            waiting = Waiting()
            session.peer.relay("roots/list", None, waiting)
            await until(lambda: bool(client.requests))
            client.send({"id": client.requests[0]["id"], "result": {"roots": []}})
            await until(lambda: bool(waiting.replies))
            assert waiting.replies[0].result() == {"roots": []}
            session.notify("notifications/tools/list_changed")
            await until(lambda: bool(client.told))
        await until(lambda: GONE_S in at.made.clock.slept)  # the gateway has seen the stream's end


async def test_a_session_that_was_never_handed_on_is_forgotten_long_after_its_client_went(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        headers = await opened(at, http)
        async with http.stream("GET", "/mcp", headers={**headers, "Accept": "text/event-stream"}):
            pass
        await until(lambda: GONE_S in at.made.clock.slept)
        await at.made.clock.pass_(HANDED_ON_S)
        await until(lambda: FORGOTTEN_S in at.made.clock.slept)
        await at.made.clock.pass_(FORGOTTEN_S)
        assert (await http.post("/mcp", json=message("tools/list"), headers=headers)).status_code == 404


async def test_what_is_no_part_of_a_session_is_judged_by_the_sdk_and_does_not_end_it(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        headers = await opened(at, http)
        newer = {**headers, "Mcp-Protocol-Version": MODERN, "Mcp-Method": "no/such"}
        for _ in range(2):
            answer = await http.post("/mcp", json=message("no/such", {"_meta": META}), headers=newer)
            assert (answer.status_code, answer.headers.get("mcp-session-id")) == (404, None)
            wrong = {**message("notifications/initialized", request_id=None), "params": []}
            assert (await http.post("/mcp", json=wrong, headers=headers)).status_code == 400
        assert (await http.delete("/mcp", headers=headers)).status_code == 200


async def test_a_session_that_its_client_ends_while_the_sdk_is_loaded_is_not_introduced_to_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made, anyio.create_task_group() as tasks:
        made.start()
        loaded, heard = anyio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            heard.append((scope["method"], Headers(scope).get("mcp-session-id")))
            await respond(send, b"", 404)

        async def sdk() -> Any:
            await loaded.wait()
            return app

        clock = made.gateway.services.clock
        opening = Opening(Arrivals(made.gateway, tasks), Presence(clock, tasks), sdk, tasks).around(app)

        async def ask(method: str, body: Any, *more: tuple[bytes, bytes]) -> str | None:
            start: dict[str, Any] = {}

            async def send(event: Any) -> None:
                start.update(event)

            content = json.dumps(body).encode()
            lines = [(b"accept", STREAMS.encode()), (b"content-type", b"application/json"), *more]
            lines.append((b"content-length", str(len(content)).encode()))
            scope = {"type": "http", "method": method, "headers": lines}
            await opening(scope, replayed(content, anyio.sleep_forever), send)
            return Headers(start).get("mcp-session-id")

        session = await ask("POST", message("initialize", OPENING))
        assert session is not None
        tasks.start_soon(ask, "POST", message("ping"), session_line(session))
        await settle()
        await ask("DELETE", None, session_line(session))
        loaded.set()
        await until(lambda: bool(heard))
        await settle()
        assert heard == [("POST", session)]
        tasks.cancel_scope.cancel()


async def test_a_stream_can_be_opened_again_and_ends_with_its_session(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        headers = await opened(at, http)
        streaming = {**headers, "Accept": "text/event-stream"}
        async with http.stream("GET", "/mcp", headers=streaming) as first:
            assert (first.status_code, first.headers["mcp-session-id"]) == (200, headers["Mcp-Session-Id"])
        await until(lambda: GONE_S in at.made.clock.slept)  # the gateway has seen its end
        async with http.stream("GET", "/mcp", headers=streaming) as second, at.http() as other:
            assert second.status_code == 200
            assert (await other.get("/mcp", headers=streaming)).status_code == 409  # as the SDK has it
            await other.delete("/mcp", headers=headers)
            assert [line async for line in second.aiter_lines()] == []


async def test_a_question_that_belongs_to_no_request_is_asked_by_the_sdk() -> None:
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    class Sdk:
        async def notify(self, method: str, params: Any) -> None:
            raise AssertionError(method)

        async def send_raw_request(self, method: str, params: Any) -> dict[str, Any]:
            return {"asked": method}

    async def hand_on() -> Sdk:
        return Sdk()

    async def refused() -> None:
        """The SDK does not take the session."""

    way = Standing(send, hand_on)
    assert await way.send_raw_request("roots/list", None) == {"asked": "roots/list"}
    await way.notify("told", {"a": "\r"})
    await way.notify("told", None)
    data = [json.loads(one["body"].split(b"data: ")[1]) for one in sent]
    assert data == [{"jsonrpc": "2.0", "method": "told", "params": {"a": "\r"}}, {"jsonrpc": "2.0", "method": "told"}]
    with pytest.raises(RpcError, match="cannot be asked"):
        await Standing(send, refused).send_raw_request("roots/list", None)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_handshakes_that_are_taken(version: str) -> None:
    params = {**OPENING, "protocolVersion": version}
    assert handshake_in(json.dumps(message("initialize", params, "i")).encode()) == ("i", params)


@pytest.mark.parametrize(
    "given",
    [
        b"not JSON",
        [message("initialize", OPENING)],
        {**message("initialize", OPENING), "jsonrpc": "1.0"},
        message("initialize", OPENING, request_id=None),
        message("initialize", OPENING, request_id=True),
        message("initialize", OPENING, request_id=1.5),
        message("ping", OPENING),
        message("initialize"),
        message("initialize", {**OPENING, "_meta": {}}),
        message("initialize", {**OPENING, "protocolVersion": MODERN}),
        message("initialize", {**OPENING, "protocolVersion": "1999-01-01"}),
        message("initialize", {**OPENING, "protocolVersion": ["2025-11-25"]}),
        message("initialize", {**OPENING, "clientInfo": {"name": "plain"}}),
        message("initialize", {**OPENING, "clientInfo": {**ABOUT, "version": 1}}),
        message("initialize", {**OPENING, "clientInfo": {**ABOUT, "icons": []}}),
        message("initialize", {**OPENING, "clientInfo": None}),
        message("initialize", {**OPENING, "capabilities": []}),
        message("initialize", {**OPENING, "capabilities": {"roots": {"listChanged": "yes"}}}),
        message("initialize", {**OPENING, "capabilities": {"roots": True}}),
        message("initialize", {**OPENING, "capabilities": {"sampling": {"tools": 1}}}),
        message("initialize", {**OPENING, "capabilities": {"tasks": {}}}),
    ],
)
def test_what_is_no_certain_handshake_is_left_to_the_sdk(given: Any) -> None:
    assert handshake_in(given if isinstance(given, bytes) else json.dumps(given).encode()) is None


# -- clients of 2026-07-28 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("query", ["", "?profile=nobody", "?expose=search"])
async def test_lists_are_answered_as_through_the_sdk(tmp_path: Path, method: str, query: str) -> None:
    async with place(tmp_path) as at:
        serve(at.made.net["a"], prompts=({"name": "p"},), resources=({"uri": "x://r", "name": "r"},))
        await at.made.known(server("a"))
        answers = []
        for accept in (STREAMS, ANYTHING):
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Accept": accept}
            async with at.http(**headers) as http:
                answer = await http.post(f"/mcp{query}", json=message(method, {"_meta": META}, "l"))
            answers.append((answer.status_code, answer.json()))
        assert answers[0] == answers[1]
        assert at.made.gateway.sessions == {}


HEAD = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}


def taken(given: Any, **headers: str) -> bool:
    lines = [(name.encode(), value.encode()) for name, value in {**HEAD, **headers}.items()]
    return request_in(json.dumps(given).encode(), Headers({"headers": lines})) is not None


def test_a_body_in_chunks_is_left_to_the_sdk_which_counts_them() -> None:
    headers = {**HEAD, "accept": STREAMS, "content-type": "application/json", "content-length": "9"}
    for chunked in ({}, {"transfer-encoding": "chunked"}):
        lines = [(name.encode(), value.encode()) for name, value in {**headers, **chunked}.items()]
        assert is_list(Headers({"headers": lines})) == (not chunked)


@pytest.mark.parametrize(
    "given",
    [
        [message("tools/list", {"_meta": META})],
        message("tools/list", {"_meta": META}, None),
        message("tools/list", {"_meta": META}, 1.5),
        message("tools/list", {"_meta": META, "cursor": "c"}),
        message("tools/list"),
        message("prompts/list", {"_meta": META}),
        {**message("tools/list", {"_meta": META}), "more": 1},
        message("tools/list", {"_meta": {**META, PROTOCOL_VERSION: OLDER}}),
        message("tools/list", {"_meta": {**META, CLIENT_CAPABILITIES: None}}),
        message("tools/list", {"_meta": {**META, CLIENT_INFO: {}}}),
        message("tools/list", {"_meta": {**META, "progressToken": 1}}),
        message("tools/list", {"_meta": {PROTOCOL_VERSION: MODERN}}),
        message("tools/list", {"_meta": []}),
    ],
)
def test_what_is_no_certain_list_is_left_to_the_sdk(given: Any) -> None:
    assert taken(message("tools/list", {"_meta": META}))
    assert not taken(given)
