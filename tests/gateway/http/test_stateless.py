"""The wire format of 2026-07-28 over HTTP. test_clients tests it with SDK clients."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.http_client import STREAMS
from tests.gateway.http.place import Place, place
from tests.gateway.world import serve, server
from trayapp.gateway.http.asgi import Headers
from trayapp.gateway.http.streamable import compare_arguments
from trayapp.wire.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    RpcError,
)
from trayapp.wire.mirror_headers import decoded
from trayapp.wire.revisions import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-both-eras")]

MODERN, OLDER = "2026-07-28", "2025-11-25"
META = {PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: {}, CLIENT_INFO: {"name": "plain", "version": "1"}}
LISTS = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
HEAD = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list", "Accept": STREAMS}


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "m", "method": method, "params": {"_meta": META, **params}}


async def known(at: Place) -> None:
    serve(at.made.net["a"], prompts=({"name": "p"},), resources=({"uri": "x://r", "name": "r"},))
    await at.made.known(server("a"))


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("query", ["", "?profile=nobody", "?expose=search"])
async def test_lists_are_answered_as_behind_the_shim(tmp_path: Path, method: str, query: str) -> None:
    async with place(tmp_path) as at:
        await known(at)
        name, _, value = query.removeprefix("?").partition("=")
        options: dict[str, Any] = {name: value} if name else {}
        wanted = await at.made.client(**options).ask(method, {"_meta": META}, "m")
        async with at.http(**{**HEAD, "Mcp-Method": method}) as http:
            answer = await http.post(f"/mcp{query}", json=message(method))
        assert answer.json() == wanted
        assert answer.status_code == (400 if "error" in wanted else 200)
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (message("tools/list"), {}, 200, None),
        (b"not JSON", {}, 400, PARSE_ERROR),
        (b"null", {}, 400, INVALID_REQUEST),
        ([message("tools/list")], {}, 400, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 400, INVALID_REQUEST),
        ({**message("tools/list"), "id": None}, {}, 400, INVALID_REQUEST),
        ({**message("tools/list"), "id": 1.5}, {}, 400, INVALID_REQUEST),
        ({**message("tools/list"), "jsonrpc": "1.0"}, {}, 400, INVALID_REQUEST),
        ({**message("tools/list"), "params": []}, {}, 400, INVALID_REQUEST),
        ({**message("tools/list"), "params": {}}, {}, 400, INVALID_PARAMS),
        (message("tools/list", _meta={PROTOCOL_VERSION: MODERN}), {}, 400, INVALID_PARAMS),
        (message("tools/list", _meta={**META, CLIENT_CAPABILITIES: None}), {}, 400, INVALID_PARAMS),
        (message("tools/list", _meta={**META, PROTOCOL_VERSION: OLDER}), {}, 400, HEADER_MISMATCH),
        (message("prompts/list"), {}, 400, HEADER_MISMATCH),
        (message("tools/call", name="a_echo"), {"Mcp-Method": "tools/call"}, 400, HEADER_MISMATCH),
        (message("tools/call", name="a_echo"), {"Mcp-Method": "tools/call", "Mcp-Name": "b"}, 400, HEADER_MISMATCH),
        (message("tools/call", name="a_echo"), {"Mcp-Method": "tools/call", "Mcp-Name": "a_echo"}, 200, None),
        (message("no/such"), {"Mcp-Method": "no/such"}, 404, METHOD_NOT_FOUND),
        (message("tools/list"), {"Accept": "application/json"}, 406, INVALID_REQUEST),
        (message("tools/list"), {"Content-Type": "text/plain"}, 415, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, {}, 202, None),
        ({"jsonrpc": "2.0", "method": 5}, {}, 400, INVALID_REQUEST),
    ],
)
async def test_what_a_request_must_be(
    tmp_path: Path, body: Any, headers: dict[str, str], status: int, code: int | None
) -> None:
    async with place(tmp_path) as at:
        await known(at)
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        async with at.http(**{"Content-Type": "application/json", **HEAD, **headers}) as http:
            answer = await http.post("/mcp", **sent)
        assert answer.status_code == status
        assert (answer.json().get("error", {}).get("code") if answer.content else None) == code
        assert "mcp-session-id" not in answer.headers


async def test_a_revision_that_nobody_knows_is_told_which_there_are(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(**{**HEAD, "Mcp-Protocol-Version": "1999-01-01"}) as http:
        at.made.start()
        for body in (
            message("tools/list", _meta={**META, PROTOCOL_VERSION: "1999-01-01"}),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ):
            answer = await http.post("/mcp", json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (400, UNSUPPORTED_PROTOCOL_VERSION)
            assert error["data"] == {"supported": [MODERN], "requested": "1999-01-01"}


async def test_there_is_nothing_but_post(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(**HEAD) as http:
        for verb in ("GET", "DELETE"):
            answer = await http.request(verb, "/mcp")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_header_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        at.made.start()
        answer = await http.post("/mcp", json=message("tools/list"), headers=[*HEAD.items(), ("Mcp-Method", "x")])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, HEADER_MISMATCH)


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
        "free": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"),
    [
        ({"free": "x"}, {}, True),
        ({"region": "eu"}, {"region": "eu"}, True),
        ({"region": "eu"}, {}, False),
        ({"region": "eu"}, {"region": "us"}, False),
        ({"region": None}, {}, True),
        ({}, {"region": "eu"}, False),
        ({"region": "ü"}, {"region": "=?base64?w7w=?="}, True),
        ({"region": "ü"}, {"region": "=?base64?w7w?="}, False),
        ({"region": ["eu"]}, {"region": "eu"}, False),
        ({"region": ["eu"]}, {}, True),
        ({"count": 42}, {"count": "42"}, True),
        ({"count": 42}, {"count": "42.0"}, True),
        ({"count": 42.0}, {"count": "42"}, True),
        ({"count": 42.5}, {"count": "42"}, False),
        ({"count": 42}, {"count": "42.5"}, False),
        ({"count": 42}, {"count": "4.2e1"}, False),
        ({"count": 42}, {"count": "9" * 5000}, False),
        ({"count": "42"}, {"count": "42.0"}, False),
        ({"count": True}, {"count": "true"}, True),
        ({"count": 10**5000}, {}, True),
        ({"deep": {"on": True}}, {"on": "true"}, True),
        ({"deep": {"on": True}}, {"on": "True"}, False),
        ({"deep": "no object"}, {}, True),
    ],
)
def test_arguments_that_headers_repeat(arguments: dict[str, Any], headers: dict[str, str], fits: bool) -> None:
    lines = [(f"mcp-param-{name}".encode(), value.encode("latin-1")) for name, value in headers.items()]
    try:
        compare_arguments(Headers({"headers": lines}), arguments, SCHEMA)
        fault = None
    except RpcError as error:
        fault = error.code
    assert fault == (None if fits else HEADER_MISMATCH)


def test_a_header_that_repeats_an_argument_twice_fits_nothing() -> None:
    twice = Headers({"headers": [(b"mcp-param-region", b"eu")] * 2})
    with pytest.raises(RpcError, match="more than once"):
        compare_arguments(twice, {"region": "eu"}, SCHEMA)
    compare_arguments(twice, {"region": "eu"}, None)  # the schema of an unlisted tool is unknown


@pytest.mark.parametrize("text", ["", "plain", "=?base64?", "ü"])
def test_a_header_s_text_is_plain_or_in_base64(text: str) -> None:
    assert decoded(f"=?base64?{base64.b64encode(text.encode()).decode()}?=") == text
    assert decoded("plain") == "plain"
    assert decoded("=?base64?/?=") is None
    assert decoded("=?base64?/w==?=") is None
    assert decoded(None) is None


async def test_a_notification_of_an_extension_reaches_the_servers(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with at.http(**{**HEAD, "Mcp-Method": "notifications/acme/seen"}) as http:
            called = message("tools/call", name="a_echo", arguments={})
            await http.post("/mcp", json=called, headers={"Mcp-Method": "tools/call", "Mcp-Name": "a_echo"})
            told = {"jsonrpc": "2.0", "method": "notifications/acme/seen", "params": {"y": [None]}}
            answer = await http.post("/mcp", json=told)
            assert (answer.status_code, answer.content) == (202, b"")
            assert await at.made.net["a"].heard_of("notifications/acme/seen") == {"y": [None]}
