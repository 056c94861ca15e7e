"""The wire format of revisions with a handshake over HTTP. test_clients tests it with SDK clients."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.e2e.http_client import STREAMS, HttpClient, http_client
from tests.gateway.http.place import TOKEN, Place, place, until
from tests.gateway.world import serve, server
from tests.wire.pair import Waiting
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.http.sessions import GONE_S
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from trayapp.wire.revisions import HANDSHAKE_VERSIONS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-both-eras")]

OLDER = "2025-11-25"
ABLE = {"roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}
OPENING = {"protocolVersion": OLDER, "capabilities": ABLE, "clientInfo": {"name": "plain", "version": "1"}}
ACCESS = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}


def message(method: str, params: Any = None, request_id: Any = 1) -> dict[str, Any]:
    """Return a request, or a notification if `request_id` is None."""
    whole = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return {name: value for name, value in whole.items() if value is not None}


def call(tool: str, request_id: Any, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", {"name": tool, "arguments": arguments}, request_id)


async def opened(http: httpx2.AsyncClient, version: str = OLDER) -> dict[str, str]:
    """Open a session and return the headers for its further requests."""
    params = {**OPENING, "protocolVersion": version}
    answer = await http.post("/mcp", json=message("initialize", params), headers={"Accept": STREAMS})
    assert answer.json()["result"]["protocolVersion"] == version
    headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": version, "Accept": STREAMS}
    told = await http.post("/mcp", json=message("notifications/initialized", request_id=None), headers=headers)
    assert (told.status_code, told.content, told.headers["mcp-session-id"]) == (202, b"", headers["Mcp-Session-Id"])
    return headers


async def known(at: Place) -> None:
    serve(at.made.net["a"])
    await at.made.known(server("a"))


class Events:
    """A reader of a response's events."""

    def __init__(self, answer: httpx2.Response) -> None:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        self._lines = answer.aiter_lines()

    async def next(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        async for line in self._lines:
            if not line and fields:
                return fields
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        raise EOFError

    async def message(self) -> Any:
        """Return the message of the next event that has data."""
        while not (data := (await self.next()).get("data", "").strip()):
            pass
        return json.loads(data)


# -- sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_a_session_is_opened_used_and_ended_without_a_stream(tmp_path: Path, version: str) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http, version)
        answer = await http.post("/mcp", json=message("tools/list", request_id="l"), headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["id"] == "l"
        assert "a_echo" in [tool["name"] for tool in answer.json()["result"]["tools"]]
        (status,) = snapshot_of(at.made.gateway).gateway.sessions
        assert (status.client, status.protocol, status.transport) == ("plain", version, "http")
        assert (await http.delete("/mcp", headers=headers)).status_code == 200
        await until(lambda: not at.made.gateway.sessions)
        for again in (
            await http.post("/mcp", json=message("tools/list"), headers=headers),
            await http.get("/mcp", headers=headers),
            await http.delete("/mcp", headers=headers),
        ):
            assert (again.status_code, again.json()["error"]["code"]) == (404, INVALID_REQUEST)


async def test_a_handshake_is_answered_as_behind_the_shim(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(Accept=STREAMS) as http:
        await at.made.known(server("a"))
        options: list[dict[str, Any]] = [{}, {"profile": "nobody"}, {"servers": ""}, {"profile": ""}, {"server": "a"}]
        for one in options:
            wanted = await at.made.client(**one).ask("initialize", OPENING)
            answer = await http.post("/mcp", params=one, json=message("initialize", OPENING))
            assert answer.json() == wanted
            assert ("mcp-session-id" in answer.headers) == ("error" not in wanted) == (one == {})
        assert len(at.made.gateway.sessions) == len(options) + 1  # the sessions behind the shim, and the one over HTTP


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (message("ping"), {}, 400, INVALID_REQUEST),
        (message("notifications/initialized", request_id=None), {}, 400, INVALID_REQUEST),
        ([message("initialize", OPENING)], {}, 400, INVALID_REQUEST),
        (message("initialize", OPENING, request_id=True), {}, 400, INVALID_REQUEST),
        (message("initialize", []), {}, 400, INVALID_PARAMS),
        (b"{", {}, 400, PARSE_ERROR),
        (message("initialize", OPENING), {"Mcp-Session-Id": "unknown"}, 404, INVALID_REQUEST),
        (message("initialize", OPENING), {"Accept": "application/json"}, 406, INVALID_REQUEST),
        (message("initialize", OPENING), {"Content-Type": "text/plain"}, 415, INVALID_REQUEST),
    ],
)
async def test_nothing_but_a_handshake_opens_a_session(
    tmp_path: Path, body: Any, headers: dict[str, str], status: int, code: int
) -> None:
    async with place(tmp_path) as at, at.http(Accept=STREAMS) as http:
        at.made.start()
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = await http.post("/mcp", **sent, headers={**JSON, **headers})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        for verb in ("GET", "DELETE"):
            assert (await http.request(verb, "/mcp")).status_code == 400
        refused = await http.put("/mcp")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST, DELETE")
        assert at.made.gateway.sessions == {}


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (message("ping"), {}, 200, None),
        (message("ping"), {"Accept": "*/*"}, 200, None),
        (message("ping"), {"Accept": "application/*, text/*;q=0.5"}, 200, None),
        (message("ping"), {"Content-Type": "application/json; charset=utf-8"}, 200, None),
        (message("notifications/initialized", request_id=None), {}, 202, None),
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, {}, 202, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}', {}, 200, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%b}}' % (b"[" * 300 + b"]" * 300), {}, 200, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%b}}' % (b"[" * 9000), {}, 400, PARSE_ERROR),
        (b"not JSON at all", {}, 400, PARSE_ERROR),
        (b"null", {}, 400, INVALID_REQUEST),
        (b"5", {}, 400, INVALID_REQUEST),
        ([message("ping")], {}, 400, INVALID_REQUEST),
        ({**message("ping"), "params": [1]}, {}, 400, INVALID_PARAMS),
        ({**message("notifications/initialized", request_id=None), "params": []}, {}, 400, INVALID_PARAMS),
        ({**message("ping"), "jsonrpc": "1.0"}, {}, 400, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 7}, {}, 400, INVALID_REQUEST),
        (message("ping"), {"Accept": "application/json"}, 406, INVALID_REQUEST),
        (message("ping"), {"Accept": "application/jsonl, text/event-stream"}, 406, INVALID_REQUEST),
        (message("ping"), {"Content-Type": "text/plain"}, 415, INVALID_REQUEST),
        (message("ping"), {"Mcp-Session-Id": "another"}, 404, INVALID_REQUEST),
    ],
)
async def test_what_a_message_of_a_session_must_be(
    tmp_path: Path, body: Any, headers: dict[str, str], status: int, code: int | None
) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        session = await opened(http)
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = await http.post("/mcp", **sent, headers={**session, **JSON, **headers})
        assert answer.status_code == status, answer.text
        assert (answer.json().get("error", {}).get("code") if answer.content else None) == code
        assert (await http.post("/mcp", json=message("ping"), headers=session)).status_code == 200


async def test_a_request_of_another_revision_is_no_part_of_a_session_and_does_not_end_it(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        at.made.start()
        headers = await opened(http)
        newer = {**headers, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "no/such"}
        key = "io.modelcontextprotocol/"
        meta = {f"{key}protocolVersion": "2026-07-28", f"{key}clientCapabilities": {}}
        for _ in range(2):
            answer = await http.post("/mcp", json=message("no/such", {"_meta": meta}), headers=newer)
            assert (answer.status_code, answer.headers.get("mcp-session-id")) == (404, None)
        assert (await http.delete("/mcp", headers=headers)).status_code == 200


# -- answers ---------------------------------------------------------------------------------------------------------


async def test_an_answer_that_comes_at_once_is_one_json_body(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)
        await http.post("/mcp", json=call("a_echo", 1), headers=headers)  # starts the server
        answer = await http.post("/mcp", json=call("a_echo", "c", x=1), headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.json()["result"]["content"][0]["text"])["arguments"] == {"x": 1}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_an_answer_with_something_before_it_is_the_last_event_of_a_stream(tmp_path: Path, version: str) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http, version)
        asked = call("a_progress", "c")
        asked["params"]["_meta"] = {"progressToken": "t"}
        answer = await http.post("/mcp", json=asked, headers=headers)
        events = [block for block in answer.text.split("\r\n\r\n") if block]
        primed = version == OLDER
        assert [event.startswith("id:") for event in events] == [primed] * primed + [False] * 4
        if primed:
            assert events[0].split("\r\n")[1:] == ["retry: 1000", "data: "]
        numbers = [int(line.partition("-")[2]) for line in answer.text.split("\r\n") if line.startswith("id: ")]
        assert numbers == sorted(set(numbers))  # a client can resume after each of these ids
        messages = [json.loads(event.rpartition("data: ")[2]) for event in events[primed:]]
        assert [one.get("method", one.get("id")) for one in messages] == ["notifications/progress"] * 3 + ["c"]


@pytest.mark.requirement("http-resume")
async def test_a_stream_that_broke_off_is_resumed_and_goes_on(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http, at.http() as other:
        await known(at)
        headers = await opened(http)
        async with http.stream("POST", "/mcp", json=call("a_hold", "c", key="k"), headers=headers) as answer:
            first = (await Events(answer).next())["id"]
            await at.made.net["a"].heard_of("held")
        again = {**headers, "Accept": "text/event-stream", "Last-Event-ID": first}
        async with http.stream("GET", "/mcp", headers=again) as resumed:
            events = Events(resumed)
            second = (await events.next())["id"]  # the stream can be resumed from here again
            assert second != first
            await other.post("/mcp", json=call("a_release", "r", key="k"), headers=headers)
            message = await events.message()
            assert (message["id"], "result" in message) == ("c", True)
            with pytest.raises(EOFError):
                await events.next()
        async with http.stream("GET", "/mcp", headers={**again, "Last-Event-ID": second}) as over:
            assert (await Events(over).message())["id"] == "c"  # an ended stream can still be resumed
        for unknown in ("9999-9999", f"{second.partition('-')[0]}-9999", "x", "1-", "-", "1" * 50):
            answer = await http.get("/mcp", headers={**again, "Last-Event-ID": unknown})
            assert answer.status_code == 400
        stranger = {**await opened(http), "Accept": "text/event-stream", "Last-Event-ID": first}
        assert (await http.get("/mcp", headers=stranger)).status_code == 400


async def test_a_cancelled_request_ends_its_stream(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http, at.http() as other:
        await known(at)
        headers = await opened(http)
        async with http.stream("POST", "/mcp", json=call("a_hold", "c", key="k"), headers=headers) as answer:
            events = Events(answer)
            await at.made.net["a"].heard_of("held")
            cancelled = message("notifications/cancelled", {"requestId": "c"}, None)
            assert (await other.post("/mcp", json=cancelled, headers=headers)).status_code == 202
            assert (await events.message())["error"]["code"] == -32800
        await at.made.net["a"].cancelled_of("k")


async def test_an_id_that_is_under_way_is_refused_and_the_first_request_goes_on(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http, at.http() as other:
        await known(at)
        headers = await opened(http)
        async with http.stream("POST", "/mcp", json=call("a_hold", "c", key="k"), headers=headers) as answer:
            await at.made.net["a"].heard_of("held")
            refused = await other.post("/mcp", json=call("a_echo", "c"), headers=headers)
            assert "already in progress" in refused.json()["error"]["message"]
            await other.post("/mcp", json=call("a_release", "r", key="k"), headers=headers)
            assert "result" in await Events(answer).message()


async def test_who_waits_for_an_answer_when_the_session_ends_gets_an_error(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http, at.http() as other:
        await known(at)
        headers = await opened(http)
        async with http.stream("POST", "/mcp", json=call("a_hold", "c", key="k"), headers=headers) as answer:
            await at.made.net["a"].heard_of("held")
            assert (await other.delete("/mcp", headers=headers)).status_code == 200
            message = await Events(answer).message()
            assert (message["id"], message["error"]["message"]) == ("c", "The session has ended")
        await at.made.net["a"].cancelled_of("k")


# -- messages outside requests ---------------------------------------------------------------------------------------


async def test_what_is_told_before_the_stream_is_there_comes_by_it(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        headers = await opened(http)
        await http.post("/mcp", json=message("tools/list"), headers=headers)
        at.made.apply(server("a"), server("b"))
        await at.made.gateway.services.pool.settled()
        await at.made.told()
        async with http.stream("GET", "/mcp", headers=headers) as stream:
            assert stream.headers["mcp-session-id"] == headers["Mcp-Session-Id"]
            with anyio.fail_after(20):
                assert (await Events(stream).message())["method"] == "notifications/tools/list_changed"


async def test_what_is_asked_beside_all_requests_is_asked_by_the_stream(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        async with http_client(f"{at.url}/mcp", OLDER, ACCESS) as client:
            assert isinstance(client, HttpClient)
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
        await until(lambda: GONE_S in at.made.clock.slept)  # the gateway has noticed the end of the stream


async def test_a_stream_can_be_opened_again_and_ends_with_its_session(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        headers = await opened(http)
        streaming = {**headers, "Accept": "text/event-stream"}
        async with http.stream("GET", "/mcp", headers=streaming) as first:
            assert (first.status_code, first.headers["mcp-session-id"]) == (200, headers["Mcp-Session-Id"])
        await until(lambda: GONE_S in at.made.clock.slept)  # the gateway has noticed the end of the stream
        async with http.stream("GET", "/mcp", headers=streaming) as second, at.http() as other:
            assert second.status_code == 200
            assert (await other.get("/mcp", headers=streaming)).status_code == 409
            assert (await other.get("/mcp", headers={**headers, "Accept": "application/json"})).status_code == 406
            await other.delete("/mcp", headers=headers)
            assert [line async for line in second.aiter_lines()] == []


# -- hostile clients -------------------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, "", "x", "\ud800", [], [1], {}, {"a": 1}),
    *("tools/call", "initialize", "notifications/cancelled", "notifications/progress", "resources/read"),
    *({"requestId": 1}, {"requestId": True}, {"progressToken": 1, "progress": 1}, {"name": "a_echo", "arguments": []}),
    *({"_meta": []}, {"_meta": {"progressToken": {}}}, {"_meta": {"io.modelcontextprotocol/protocolVersion": 1}}),
)


@pytest.mark.requirement("safe-limits")
@pytest.mark.parametrize("version", ["2025-03-26", OLDER, "2026-07-28"])
async def test_whatever_members_a_message_has_the_server_goes_on(tmp_path: Path, version: str, caplog: Any) -> None:
    """No answer has a 5xx status, nothing is logged as an error, and the session survives."""
    dice = random.Random(version)

    def part() -> Any:
        names = [name for name in ("jsonrpc", "id", "method", "params", "result", "error") if dice.random() < 0.7]
        return {name: "2.0" if name == "jsonrpc" else dice.choice(ODD) for name in names}

    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        session = await opened(http, min(version, OLDER))
        sent = {**session, **JSON, "Mcp-Protocol-Version": version}
        for _ in range(400):
            body = part() if dice.random() < 0.8 else [part() for _ in range(dice.randrange(4))]
            headers = (
                {**sent, "Mcp-Method": body["method"]} if isinstance(body, dict) and body.get("method") == "x" else sent
            )
            answer = await http.post("/mcp", content=json.dumps(body).encode(), headers=headers)
            assert answer.status_code < 500, (body, answer.text)
        assert (await http.post("/mcp", json=message("ping"), headers=session)).status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
