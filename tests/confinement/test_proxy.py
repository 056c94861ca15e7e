"""A list of hosts in `confine`: the proxy connects to these hosts only, reports all others and is the only way out."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.backends.world import real_connection
from tests.confinement.hostile import WAYS
from tests.confinement.test_hostile import IN_NAMESPACES, in_vain, needs, outcomes
from tests.confinement.world import made_world
from trayapp.backends.confinements import Confinements
from trayapp.confinement import landlock
from trayapp.confinement.proxy import HostProxy
from trayapp.model.config import Confine, ServerConfig

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("confine-hosts")]
linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp")
ROOT = Path(__file__).resolve().parents[2]
FETCHING = """
import json, sys, urllib.request, urllib.error
def fetch(url):
    try:
        return urllib.request.urlopen(url, timeout=10).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame: continue
    params = frame.get("params") or {}
    result = {"content": [{"type": "text", "text": fetch(params.get("arguments", {}).get("url", ""))}]}
    if frame["method"] == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "f", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("api.example.com", True),
        ("API.Example.com.", True),
        ("a.b.example.org", True),
        ("example.org", False),
        ("evilexample.org", False),
        ("api.example.com.evil.net", False),
        ("[::1]", True),
        ("127.0.0.1", False),
        ("", False),
    ],
)
async def test_a_host_is_allowed_by_its_whole_name_or_below_a_star(host: str, allowed: bool) -> None:
    assert HostProxy(("api.example.com", "*.example.org", "::1"), print).allows(host) is allowed


async def test_a_name_that_leads_back_to_this_machine_is_refused_unless_it_is_one_of_its_names() -> None:
    """In DNS rebinding, somebody else controls a name such as `rebound.test` and makes it resolve to this machine."""
    seen: list[str] = []
    proxy = HostProxy(("localhost", "rebound.test"), seen.append)
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def resolve(host: str, *args: object, **more: object) -> object:
        return await real("127.0.0.1" if host == "rebound.test" else host, *args, **more)  # type: ignore[arg-type]

    site = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = site.sockets[0].getsockname()[1]
    loop.getaddrinfo = resolve  # type: ignore[method-assign,assignment]
    at = await proxy.start()
    try:
        answers = {
            host: await _first_line(at, f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n")
            for host in ("rebound.test", "localhost", "x.y")
        }
    finally:
        loop.getaddrinfo = real  # type: ignore[method-assign]
        await proxy.close()
        site.close()
    assert answers["rebound.test"].startswith("HTTP/1.1 502")
    assert answers["localhost"].startswith("HTTP/1.1 200")
    assert answers["x.y"].startswith("HTTP/1.1 403")
    assert seen == ["x.y"]


async def _first_line(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    line = (await reader.readline()).decode()
    writer.close()
    return line


@linux
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["landlock", "bubblewrap"])
async def test_a_server_reaches_its_hosts_and_no_other_and_no_way_leads_past_the_proxy(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = Confine(network=("localhost",))
    needs(IN_NAMESPACES if way == "bubblewrap" else hosts)
    if way == "bubblewrap":
        monkeypatch.setattr(landlock, "abi", lambda: 0)

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    site = await asyncio.start_server(page, "127.0.0.1", 0)
    port = site.sockets[0].getsockname()[1]
    kept = Confinements()
    server = ServerConfig("f", command=sys.executable, args=("-c", FETCHING), cwd=str(tmp_path), confine=hosts)
    async with real_connection(server, confinements=kept) as (connection, _):
        said = {}
        for url in (f"http://localhost:{port}/", f"http://127.0.0.1:{port}/", "https://example.com/"):
            result = await connection.request("tools/call", {"name": "fetch", "arguments": {"url": url}})
            said[url] = result["content"][0]["text"]
    site.close()
    assert said[f"http://localhost:{port}/"] == "hello"
    assert "127.0.0.1 is not among the hosts" in said[f"http://127.0.0.1:{port}/"]
    assert "403" in said["https://example.com/"]
    status = kept.status("f")
    assert status is not None
    assert status.way == way
    assert {(one.what, one.allow) for one in status.refused} == {
        ("127.0.0.1", "confine: {network: [localhost, 127.0.0.1]}"),
        ("example.com", "confine: {network: [localhost, example.com]}"),
    }
    with made_world() as world:
        found = await outcomes(world, Confine(network=("example.com",)), list(WAYS))
        found |= {f"write_{name}": "in vain" for name in in_vain(world, found)}
    assert [name for name, words in found.items() if words == "out"] == []
