"""Tests of translating answers between protocol eras, and of the era of each session and server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.calls.test_server_requests import ABLE, META, enveloped, older, tool_call
from tests.gateway.world import echo_of, house, serve, server
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.wire.framing import SMALL_FRAME_BYTES
from trayapp.wire.jsonio import dumps, loads
from trayapp.wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    Reply,
    RpcError,
)
from trayapp.wire.revisions import (
    LIST_TTL_MS,
    RESOURCE_NOT_FOUND,
    as_modern,
    as_older,
    asks_for_input,
    error_as_older,
    with_result_type,
)

pytestmark = pytest.mark.anyio

LARGE = "x" * SMALL_FRAME_BYTES


def large(result: bytes) -> Reply:
    """Return a reply that holds an unparsed frame."""
    return Reply(b'{"jsonrpc":"2.0","id":7,"result":%b}' % result, 22, 23)


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "completion/complete", "resources/read"])
def test_an_older_answer_becomes_a_complete_one_and_keeps_everything(method: str) -> None:
    result = {"content": [], "x": {"y": None}, "_meta": {"a": 1}}
    made = as_modern(Reply.of_result(result), method).result()
    hints = {"ttlMs": 0, "cacheScope": "private"} if method == "resources/read" else {}
    assert made == {"resultType": "complete", **hints, **result}


def test_a_large_older_answer_becomes_complete_without_being_parsed() -> None:
    made = as_modern(large(b'{"content":["%b"]}' % LARGE.encode()), "tools/call")
    assert made.is_large
    assert loads(made.with_id(b'"mine"')) == {
        "jsonrpc": "2.0", "id": "mine", "result": {"resultType": "complete", "content": [LARGE]},
    }  # fmt: skip


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","result":{"a":"%b"},"id":7}',
        b'{"id":7,"jsonrpc":"2.0","result":{"a":"%b"}}',
        b'{"jsonrpc":"2.0","id":7,"result": {"a":"%b"}}',
    ],
)
def test_a_large_older_answer_in_another_order_becomes_complete_too(frame: bytes) -> None:
    data = frame % LARGE.encode()
    start = data.index(b'"id":7') + 5
    made = as_modern(Reply(data, start, start + 1), "tools/call")
    assert made.result() == {"resultType": "complete", "a": LARGE}


def test_an_error_stays_as_it_is_in_both_directions() -> None:
    error = Reply(b"", message={"jsonrpc": "2.0", "id": 1, "error": {"code": -5, "message": "m", "x": 1}})
    assert as_modern(error, "tools/call").message == as_older(error).message == error.message


def test_an_unknown_resource_has_the_code_of_each_era() -> None:
    older = {"code": -32002, "message": "Resource not found", "data": {"uri": "x://1"}, "x": 1}
    answer = Reply(b"", message={"jsonrpc": "2.0", "id": 1, "error": older})
    assert as_modern(answer, "resources/read").message["error"] == {**older, "code": INVALID_PARAMS}
    assert as_modern(answer, "tools/call").message["error"] == older


async def test_a_resource_that_nobody_has_is_refused_as_the_client_s_era_has_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        serve(made.net["b"])
        await made.known(server("a"), server("b"))
        read = {"uri": "x://nowhere"}
        error = await made.client().error("resources/read", enveloped(read))
        assert (error["code"], error["data"]) == (INVALID_PARAMS, read)
        assert (await (await older(made)).error("resources/read", read))["code"] == RESOURCE_NOT_FOUND


def test_a_newer_answer_loses_only_what_belongs_to_the_newer_envelope() -> None:
    result = {"resultType": "complete", "content": [], "_meta": {META + "serverInfo": {}, "kept": 1}, "x": 2}
    assert as_older(Reply.of_result(result)).result() == {"content": [], "_meta": {"kept": 1}, "x": 2}
    bare = {"resultType": "complete", "_meta": {META + "serverInfo": {}}}
    assert as_older(Reply.of_result(bare)).result() == {}


OTHERS = [("[1,2]", "[1,2]"), ('"text"', '"text"'), ("5", "5"), ("null", "null")]


@pytest.mark.requirement("answers-of-each-era")
@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize(("value", "text"), OTHERS)
def test_a_structured_value_that_older_clients_refuse_is_a_text_to_them(value: str, text: str, size: str) -> None:
    """Before revision 2026-07-28, the value must be an object (SEP-2106)."""
    more = LARGE if size == "large" else "s"
    frame = large(b'{"content":[],"structuredContent": %b,"x":"%b"}' % (value.encode(), more.encode()))
    assert as_older(frame).result() == {"content": [{"type": "text", "text": text}], "x": more}
    said = large(b'{"content":["said"],"structuredContent":%b,"x":"%b"}' % (value.encode(), more.encode()))
    assert as_older(said).result() == {"content": ["said"], "x": more}


@pytest.mark.requirement("answers-of-each-era")
def test_a_large_answer_with_a_structured_object_passes_unparsed() -> None:
    reply = large(b'{"resultType":"complete","structuredContent": {"a":"%b"}}' % LARGE.encode())
    assert as_older(reply) is reply
    assert reply.is_large


@pytest.mark.parametrize(("result", "asks"), [
    ({"resultType": "input_required", "inputRequests": {}}, True),
    ({"resultType": "complete", "content": [{"text": '"input_required"'}]}, False),
    ({"content": ["input_required"]}, False),
])  # fmt: skip
def test_an_answer_that_is_a_question_is_told_from_others(result: dict[str, Any], asks: bool) -> None:
    assert asks_for_input(Reply.of_result(result)) is asks
    assert asks_for_input(large(dumps(result))) is asks


# -- sessions --------------------------------------------------------------------------------------------------------


async def test_a_newer_client_discovers_us_and_every_list_has_its_hints(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        await made.known(server("a"))
        client = made.client()
        result = await client.result("server/discover", enveloped({}))
        assert result["supportedVersions"] == ["2026-07-28"]
        assert result["resultType"] == "complete"
        assert result["_meta"][META + "serverInfo"]["name"] == "multi-mcp"
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            listed = await client.result(method, enveloped({}))
            assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", LIST_TTL_MS, "private")
        (status,) = snapshot_of(made.gateway).gateway.sessions
        assert (status.protocol, status.client) == ("2026-07-28", "new")


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe", "nope"])
async def test_what_2026_07_28_does_not_have_is_no_method_for_its_clients(tmp_path: Path, method: str) -> None:
    async with house(tmp_path) as made:
        made.start()
        assert (await made.client().error(method, enveloped({})))["code"] == METHOD_NOT_FOUND


async def test_a_request_without_its_envelope_is_refused_in_a_newer_session(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        client = made.client()
        await client.result("tools/list", enveloped({}))
        error = await client.error("tools/list", {})
        assert error["code"] == INVALID_PARAMS
        assert "protocolVersion" in error["message"]


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({META + "protocolVersion": "2026-07-28"}, INVALID_PARAMS),
        ({META + "protocolVersion": 5, META + "clientCapabilities": {}}, INVALID_PARAMS),
        ({META + "protocolVersion": "2026-07-28", META + "clientCapabilities": []}, INVALID_PARAMS),
        ({META + "protocolVersion": "2199-01-01", META + "clientCapabilities": {}}, UNSUPPORTED_PROTOCOL_VERSION),
    ],
)
async def test_a_wrong_envelope_is_refused(tmp_path: Path, meta: dict[str, Any], code: int) -> None:
    async with house(tmp_path) as made:
        made.start()
        error = await made.client().error("tools/list", {"_meta": meta})
        assert error["code"] == code
        if code == UNSUPPORTED_PROTOCOL_VERSION:
            assert error["data"] == {"supported": ["2026-07-28"], "requested": "2199-01-01"}


async def test_the_two_eras_do_not_mix_in_one_session(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        old, new = await older(made), made.client()
        assert (await old.error("tools/list", enveloped({})))["code"] == INVALID_REQUEST
        await new.result("tools/list", enveloped({}))
        assert (await new.error("initialize", {"protocolVersion": "2025-11-25"}))[
            "code"
        ] == UNSUPPORTED_PROTOCOL_VERSION


async def test_an_older_server_never_sees_the_envelope_of_a_newer_client(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        call = {**tool_call("a_echo"), "inputResponses": {}, "requestState": "not ours"}
        params = enveloped(call)
        params["_meta"] = {**params["_meta"], "x-kept": 1, META + "logLevel": "debug"}
        await made.client().result("tools/call", params)
        heard = await made.net["a"].heard_of("tools/call")
        assert heard == {"name": "echo", "arguments": {}, "_meta": {"x-kept": 1}}


# -- the era of each server ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newer_first", [True, False])
async def test_a_server_of_both_eras_is_used_the_older_way_for_older_clients(tmp_path: Path, newer_first: bool) -> None:
    async with house(tmp_path) as made:
        made.net["a"].modern = True
        await made.known(server("a"))
        made.net["a"].heard.clear()
        if newer_first:
            await made.client().result("tools/list", enveloped({}))
        await (await older(made)).call("a_echo")
        assert "server/discover" not in made.net["a"].methods()


async def test_a_server_of_both_eras_is_used_the_newer_way_when_all_its_clients_are_newer(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].modern = True
        await made.known(server("a"))
        made.net["a"].heard.clear()
        await made.client().result("tools/call", enveloped(tool_call("a_echo")))
        assert "initialize" not in made.net["a"].methods()
        heard = await made.net["a"].heard_of("tools/call")
        assert heard["_meta"][META + "clientCapabilities"] == ABLE


async def test_a_server_that_speaks_the_newer_era_alone_serves_older_clients(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].modern, made.net["a"].versions = True, ()
        echo_of(made.net["a"], "prompts/get")
        await made.known(server("a"))
        assert "result" in await (await older(made)).call("a_echo")


# -- logs ------------------------------------------------------------------------------------------------------------


async def test_a_newer_client_hears_logs_with_the_requests_that_asked_for_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        echo_of(made.net["a"], "logging/setLevel")
        await made.known(server("a"))
        client = made.client()
        for level, wanted in ((None, []), ("error", []), ("info", ["warning"])):
            arguments = {"method": "notifications/message", "params": {"level": "warning", "data": "d"}}
            params = enveloped(tool_call("a_notify", **arguments))
            if level is not None:
                params["_meta"] = {**params["_meta"], META + "logLevel": level}
            await client.result("tools/call", params)
            assert [told["level"] for told in client.told("notifications/message")] == wanted
        assert (await made.net["a"].heard_of("logging/setLevel"))["level"] in ("error", "info")


async def test_a_newer_server_hears_the_level_of_an_older_client_with_each_request(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].modern, made.net["a"].versions = True, ()
        await made.known(server("a"))
        client = await older(made)
        await client.result("logging/setLevel", {"level": "notice"})
        await client.call("a_echo")
        heard = await made.net["a"].heard_of("tools/call")
        assert heard["_meta"][META + "logLevel"] == "notice"


@pytest.mark.requirement("answers-of-each-era")
def test_a_newer_servers_answer_without_a_result_type_gets_one_and_any_other_stays() -> None:
    data = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'
    place = data.index(b"7")
    made = with_result_type(Reply(data, place, place + 1), "tools/call")
    assert made.with_id(b"1") == b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}\n'
    for whole in (
        b'{"jsonrpc":"2.0","id":7,"result":{"resultType":"x","content":[]}}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}',
    ):
        reply = Reply(whole, place, place + 1)
        assert with_result_type(reply, "tools/call") is reply
    assert with_result_type(Reply.of_result({"x": 1}), "prompts/get").result() == {"resultType": "complete", "x": 1}
    inside = b'{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"resultType":"x"}}}'
    parsed = with_result_type(Reply(inside, place, place + 1, loads(inside)), "tools/call")
    assert parsed.result() == {"resultType": "complete", "structuredContent": {"resultType": "x"}}


@pytest.mark.requirement("answers-of-each-era")
def test_a_missing_resource_of_a_newer_server_has_the_code_of_older_revisions() -> None:
    error = Reply.of_error(RpcError(INVALID_PARAMS, "Resource not found", {"uri": "x://y"}))
    made = error_as_older(error).message["error"]
    assert made == {"code": RESOURCE_NOT_FOUND, "message": "Resource not found", "data": {"uri": "x://y"}}
    other = Reply.of_error(RpcError(-32603, "broken"))
    assert error_as_older(other) is other
