"""The HTTP port, who may come in, and the management requests."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.gateway.http.place import OWNER, TOKEN, place, until
from tests.gateway.world import server
from trayapp.config.urls import is_forbidden_place
from trayapp.gateway.http.port import bind
from trayapp.model.plan import Config
from trayapp.model.settings import HttpSettings, Settings
from trayapp.model.status import Problem

pytestmark = pytest.mark.anyio

POST = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


# -- the guard -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("http-guard")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Referer": "https://evil.example/page"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "127.0.0.1:1"}, 200),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "evil.example@127.0.0.1"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/health", "/mcp_tools"])
async def test_who_may_come_in(tmp_path: Path, headers: dict[str, str], status: int, path: str) -> None:
    async with place(tmp_path) as at, at.http(**headers) as http:
        assert (await http.get(path)).status_code == status


@pytest.mark.requirement("http-guard")
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/?session_id=0", "/nowhere"])
async def test_nothing_is_routed_before_the_guard(tmp_path: Path, path: str) -> None:
    async with place(tmp_path) as at, at.http("") as http:
        assert (await http.post(path, content=b"{", headers=POST)).status_code == 401
        assert (await http.get(path, headers={"Origin": "https://evil.example"})).status_code == 403


async def test_the_token_can_be_switched_off_and_the_rest_of_the_guard_stays(tmp_path: Path) -> None:
    async with place(tmp_path, HttpSettings(port=0, token=False)) as at, at.http("") as http:
        assert (await http.get("/health")).status_code == 200
        assert (await http.get("/health", headers={"Origin": "https://evil.example"})).status_code == 403


@pytest.mark.requirement("http-guard")
@pytest.mark.parametrize(
    ("verb", "path"), [("POST", "/mcp_servers"), ("POST", "/mcp_servers/"), ("DELETE", "/mcp_servers/a")]
)
async def test_an_ai_tool_s_token_adds_and_removes_no_server(tmp_path: Path, verb: str, path: str) -> None:
    async with place(tmp_path) as at:
        async with at.http() as http:
            answer = await http.request(verb, path, json={"name": "n", "command": "x"})
            assert (answer.status_code, "endpoint.json" in answer.json()["error"]) == (403, True)
            assert (await http.get("/mcp_servers")).status_code == 200
        async with at.http(OWNER) as http:
            assert (await http.get("/mcp_tools")).status_code == 200
    assert (at.edits.entries, at.edits.reloads) == ({}, 0)


@pytest.mark.requirement("http-guard")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Content-Type": "application/json; charset=utf-8"}, 201),
        ({"Origin": "http://localhost:PORT"}, 201),
        ({"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=application/json"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://localhost"}, 403),
        ({"Origin": "https://localhost:PORT"}, 403),
        ({"Origin": "null"}, 403),
        ({"Referer": "http://localhost:3000/page"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_without_a_token_no_page_of_another_local_server_comes_in(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with place(tmp_path, HttpSettings(port=0, token=False)) as at, at.http("") as http:
        port = at.url.rpartition(":")[2]
        sent = {"Content-Type": "application/json", **{k: v.replace("PORT", port) for k, v in headers.items()}}
        answer = await http.post("/mcp_servers", content=b'{"name": "n", "command": "x"}', headers=sent)
        assert answer.status_code == status, answer.text
        assert list(at.edits.entries) == (["n"] if status == 201 else [])


# -- management ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("http-manage")
async def test_health_counts_servers_and_says_when_the_gateway_is_not_ready(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("up"), server("idle"), server("other"), server("off", disabled=True))
        await (await at.made.ready()).call("up_echo")
        answer = await http.get("/health")
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok", "connected_servers": 1, "pending_servers": 0}
        at.made.gateway.state = "stopping"
        assert (await http.get("/health")).status_code == 503


@pytest.mark.requirement("http-manage")
async def test_servers_and_tools_are_those_of_the_command_line(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await at.made.known(server("a"))
        servers = (await http.get("/mcp_servers")).json()["servers"]
        assert [one["name"] for one in servers] == ["a"]
        assert servers == at.made.gateway.snapshot().to_json()["servers"]
        tools = (await http.get("/mcp_tools")).json()["tools"]
        assert {"a_echo"} <= {tool["exposed_name"] for tool in tools}


@pytest.mark.requirement("http-manage")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not JSON", 400),
        (b"[]", 422),
        (b'{"command": "x"}', 422),
        (b'{"name": "", "command": "x"}', 422),
        (b'{"name": "n"}', 422),
        (b'{"name": "n", "command": 5}', 422),
        (b'{"name": "n", "command": "x", "url": "https://y.test"}', 422),
        (b'{"name": "n", "url": "ftp://y.test"}', 422),
        (b'{"name": "n", "url": "http://169.254.169.254/"}', 403),
        (b'{"name": "n", "url": null, "serverUrl": " http://169.254.169.254/"}', 403),
        (b'{"name": "n", "url": "${X:-http://169.254.169.254}/"}', 403),
        (b'{"name": "n", "url": "http://y.test/mcp"}', 422),
        (b'{"name": "n", "url": "https://y\\u200b.test/mcp"}', 422),
        (b'{"name": "n", "url": "http://${HOST}/mcp"}', 422),
        (b'{"name": "n", "url": "${X:-http://y.test}/mcp"}', 422),
        (b'{"name": "n", "url": "http://127.0.0.1:3000/mcp"}', 201),
        (b'{"name": "n", "serverUrl": "https://y.test/mcp"}', 201),
        (b'{"name": "n/m", "command": "x"}', 422),
        (b'{"name": "\\ud800", "command": "x"}', 422),
        (b'{"name": "' + b"n" * 200 + b'", "command": "x"}', 422),
        (b'{"name": "a", "command": "x"}', 409),
        (b'{"name": "n", "command": "x", "args": ["-y"]}', 201),
        (b'{"name": "n", "url": "https://y.test/mcp"}', 201),
        (b'{"name": "n", "command": "' + b"x" * 300_000 + b'"}', 413),
    ],
)
async def test_adding_a_server(tmp_path: Path, body: bytes, status: int) -> None:
    async with place(tmp_path) as at, at.http(OWNER) as http:
        await at.made.known(server("a"))
        answer = await http.post("/mcp_servers", content=body)
        assert answer.status_code == status, answer.text
        added = status == 201
        assert (list(at.edits.entries), at.edits.reloads) == ((["n"], 1) if added else ([], 0))
        assert added or answer.json()["error"]


@pytest.mark.requirement("http-manage")
async def test_removing_a_server(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(OWNER) as http:
        await at.made.known(server("a"), server("b/c"))
        at.edits.entries = {"a": {}, "b/c": {}}
        assert (await http.delete("/mcp_servers/unknown")).status_code == 404
        assert (await http.delete("/mcp_servers/b%2Fc")).status_code == 200
        assert list(at.edits.entries) == ["a"]


@pytest.mark.requirement("http-manage")
async def test_a_server_that_cannot_be_used_is_removed_and_that_of_another_file_is_told(tmp_path: Path) -> None:
    """http-17."""
    problem = Problem("servers.yaml", 3, "broken has neither command nor url", server="broken")
    config = Config(Settings(), {"theirs": server("theirs")}, (problem,), foreign={"theirs": "~/.cursor/mcp.json"})
    async with place(tmp_path) as at, at.http(OWNER) as http:
        at.made.gateway.take_config(config)
        assert (await http.delete("/mcp_servers/broken")).status_code == 200
        answer = await http.delete("/mcp_servers/theirs")
        assert (answer.status_code, "~/.cursor/mcp.json" in answer.json()["error"]) == (409, True)


@pytest.mark.parametrize(
    ("url", "forbidden"),
    [
        ("http://169.254.169.254/", True), ("http://0xa9fea9fe/", True), ("http://2852039166/", True),
        ("http://[fe80::1%25eth0]/", True), ("http://[::ffff:169.254.1.1]/", True), ("http://100.100.100.200/", True),
        ("http://metadata.google.internal./", True), ("http://[fd00:ec2::254]/", True),
        ("http://169\u3002254\uff0e169\u3002254/", True), ("http://\u2460\u2465\u2468.254.169.254/", True),
        ("http://[64:ff9b::a9fe:a9fe]/", True), ("http://[2002:a9fe:a9fe::]/", True),
        ("http://instance-data.ec2.internal/", True), ("http://METADATA.azure.internal./", True),
        ("http://metadata.platformequinix.com/", True), ("http://[fd20:ce::254]/", True),
        ("http://instance-data/", True), ("http://169.254.169.254\u00ad/", True), ("http://meta\u200bdata/", True),
        ("http://[64:ff9b:1::a9fe:a9fe]/", True), ("http://[::ffff:0:a9fe:a9fe]/", True),
        ("http://[FD00:EC2:0:0::254]/", True), ("http://169.254.43518/", True), ("http://0251.0376.0251.0376/", True),
        ("http://%31%36%39.254.169.254/", True), ("http://metadata.example.com/", False),
        ("http://[64:ff9b::808:808]/", False), ("http://host.docker.internal:3000/", False),
        ("http://127.0.0.1:3000/mcp", False), ("https://mcp.example.com/mcp", False), ("http://192.168.1.5/", False),
        ("http://[::1]/", False), ("http://[", False),
    ],
)  # fmt: skip
def test_link_local_and_metadata_addresses_in_every_spelling(url: str, forbidden: bool) -> None:
    assert is_forbidden_place(url) is forbidden


# -- the port --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("http-port")
def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    first = bind(0)
    assert first is not None
    with first.sock:
        second = bind(first.port)
        assert second is not None
        with second.sock:
            assert second.port != first.port
            assert second.sock.getsockname()[0] == "127.0.0.1"


@pytest.mark.requirement("http-port")
async def test_a_port_that_is_switched_off_is_closed_and_opens_again(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200
        port = int(at.url.rpartition(":")[2])
        at.port.follow(HttpSettings(enabled=False))
        await until(lambda: at.urls[-1] is None)
        assert not is_open(port)
        at.port.follow(HttpSettings(port=port))
        await until(lambda: at.urls[-1] is not None)
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
