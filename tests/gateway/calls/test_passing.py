"""Unknown methods, notifications and fields of extensions pass through in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.clock import settle
from tests.gateway.calls.test_server_requests import META, enveloped, older, question, said, tool_call
from tests.gateway.world import echo_of, house, serve, server
from trayapp.wire.messages import METHOD_NOT_FOUND
from trayapp.wire.revisions import PROTOCOL_VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("extensions-pass")]

APP = {
    "uri": "ui://a/form",
    "name": "form",
    "mimeType": "text/html;profile=mcp-app",
    "_meta": {"ui": {"csp": {"connectDomains": ["https://x.test"]}, "prefersBorder": True}},
    "x-unknown": [None, {"deep": 1}],
}


async def test_a_request_of_an_unknown_method_reaches_the_only_server_and_its_answer_the_client(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        echo_of(made.net["a"], "acme/do")
        await made.known(server("a"), server("off", disabled=True))
        client = await older(made)
        asked = {"x": [1, None], "_meta": {"y": 2}}
        assert await client.result("acme/do", asked) == {"got": asked}
        assert (await client.error("acme/none"))["code"] == METHOD_NOT_FOUND  # the error comes from the server


@pytest.mark.parametrize("params", [{"uri": "res://b"}, {"name": "b_echo"}])
async def test_among_several_it_reaches_the_server_that_its_params_name(tmp_path: Path, params: dict[str, Any]) -> None:
    async with house(tmp_path) as made:
        serve(made.net["b"], resources=({"uri": "res://b", "name": "b"},))
        for name in ("a", "b"):
            echo_of(made.net[name], "acme/do")
        await made.known(server("a"), server("b"))
        client = await older(made)
        assert await client.result("acme/do", params) == {"got": params}
        assert "acme/do" not in made.net["a"].methods()
        assert (await client.error("acme/do", {"what": "ever"}))["code"] == METHOD_NOT_FOUND


async def test_an_unknown_request_of_a_newer_client_is_answered_in_its_era(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        echo_of(made.net["a"], "acme/do")
        await made.known(server("a"))
        result = await made.client().result("acme/do", enveloped({"x": 1}))
        assert result == {"resultType": "complete", "got": {"x": 1}}


async def test_an_unknown_request_of_a_server_reaches_the_client_whose_call_is_under_way(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_ask", method="acme/ask", params={"x": 1}))
        asked = await question(client, "acme/ask")
        assert asked["params"] == {"x": 1}
        client.send({"id": asked["id"], "result": {"y": [None]}})
        assert said(await client.answer(1)) == {"y": [None]}


async def test_unknown_notifications_pass_in_both_directions(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        await client.call("a_notify", method="notifications/acme/news", params={"x": [1]})
        assert client.told("notifications/acme/news") == [{"x": [1]}]
        client.tell("notifications/acme/seen", {"y": None})
        assert await made.net["a"].heard_of("notifications/acme/seen") == {"y": None}


@pytest.mark.parametrize("modern", [False, True])
async def test_a_notification_of_a_newer_client_reaches_servers_of_both_eras(tmp_path: Path, modern: bool) -> None:
    async with house(tmp_path) as made:
        if modern:
            made.net["a"].modern, made.net["a"].versions = True, ()
        await made.known(server("a"))
        client = made.client()
        client.ask_only(1, "tools/call", enveloped({"name": "a_echo", "arguments": {}}))
        await client.answer(1)
        client.tell("notifications/acme/seen", {"y": None})
        client.tell("notifications/acme/more", enveloped({"y": 1}))
        assert await made.net["a"].heard_of("notifications/acme/seen") == {"y": None}
        more = await made.net["a"].heard_of("notifications/acme/more")
        assert more["y"] == 1
        assert (PROTOCOL_VERSION in more.get("_meta", {})) == modern


async def test_the_resources_of_an_app_and_what_tools_say_of_it_arrive_untouched(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        tool = {"name": "show", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a/form"}}}
        serve(made.net["a"], tools=(tool,), resources=(APP,))
        contents = {"contents": [{**APP, "text": "<html>"}], "_meta": {"kept": 1}}

        async def read(params: dict[str, Any]) -> dict[str, Any]:
            return contents

        made.net["a"].replies["resources/read"] = read
        await made.known(server("a"))
        client = await older(made, {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [APP["mimeType"]]}}})
        assert APP in (await client.result("resources/list"))["resources"]
        (listed,) = (await client.result("tools/list"))["tools"]
        assert listed["_meta"] == tool["_meta"]
        assert await client.result("resources/read", {"uri": "ui://a/form"}) == contents


async def test_extensions_are_announced_across_in_both_directions(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        ui = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
        made.net["a"].capabilities = {"tools": {}, "experimental": {"a": {}}, **ui}
        made.net["b"].capabilities = {"tools": {}, "extensions": {"acme": {"x": 1}}}
        await made.known(server("a"), server("b"))
        client = made.client()
        params = {"protocolVersion": "2025-11-25", "capabilities": ui, "clientInfo": {"name": "n", "version": "1"}}
        known = (await client.result("initialize", params))["capabilities"]
        assert known["extensions"] == {**ui["extensions"], "acme": {"x": 1}}
        assert known["experimental"] == {"a": {}}
        await settle()
        await client.call("a_echo")
        assert (await made.net["a"].heard_of("initialize", 2))["capabilities"] == ui
        discovered = await made.client().result("server/discover", enveloped({}))
        assert discovered["capabilities"]["extensions"] == known["extensions"]
        assert META + "serverInfo" in discovered["_meta"]
