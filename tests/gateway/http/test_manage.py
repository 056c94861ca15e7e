"""Management requests over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.http.place import OWNER, place
from tests.gateway.world import server
from trayapp.config.urls import is_forbidden_place
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.model.config import Config, Settings
from trayapp.model.errors import Problem

pytestmark = pytest.mark.anyio


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
        assert servers == snapshot_of(at.made.gateway).to_json()["servers"]
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
        (b'{"name": "bad name", "command": "x"}', 422),
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
        assert (at.edits.servers, len(at.edits.taken)) == ((["n"], 1) if added else ([], 0))
        assert added or answer.json()["error"]


@pytest.mark.requirement("http-manage")
async def test_removing_a_server(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(OWNER) as http:
        await at.made.known(server("a"), server("b/c"))
        at.edits.path.write_text("servers:\n  a: {command: x}\n  b/c: {command: y}\n")
        assert (await http.delete("/mcp_servers/unknown")).status_code == 404
        assert (await http.delete("/mcp_servers/b%2Fc")).status_code == 200
        assert at.edits.servers == ["a"]


@pytest.mark.requirement("http-manage")
async def test_a_server_that_cannot_be_used_is_removed_and_that_of_another_file_is_told(tmp_path: Path) -> None:
    problem = Problem("servers.yaml", 3, "broken has neither command nor url", server="broken")
    config = Config(Settings(), {"theirs": server("theirs")}, (problem,), foreign={"theirs": "~/.cursor/mcp.json"})
    async with place(tmp_path) as at, at.http(OWNER) as http:
        at.made.gateway.take_config(config)
        at.edits.path.write_text("servers:\n  broken: {}\n")
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


@pytest.mark.requirement("http-manage")
@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/mcp_servers/a", 405),
        ("DELETE", "/mcp_servers", 405),
        ("POST", "/health", 405),
        ("HEAD", "/health", 200),
        ("GET", "/health/", 200),
    ],
)
async def test_other_places_and_methods(tmp_path: Path, verb: str, path: str, status: int) -> None:
    async with place(tmp_path) as at, at.http(OWNER) as http:
        at.made.start()
        answer = await http.request(verb, path)
        assert (answer.status_code, "allow" in answer.headers) == (status, status == 405)
        assert at.edits.taken == []
