"""Access control: the rules for Host, Origin and Referer, and the guard that checks every request first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.http.place import OWNER, TOKEN, place
from trayapp.gateway.http.guard import HOST, ORIGIN, REFERER, is_own
from trayapp.model.config import HttpSettings

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-guard")]

POST = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HOSTS = ("127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.0.0.1:7461", "localhost:1", "[::1]:65535")
FOREIGN = (
    *("", "evil.test", "127.0.0.1.evil.test", "localhost.", "localhost.evil.test", "[::1].evil", "[::1]evil", "::1"),
    *(
        "127.0.0.1/evil",
        "127.0.0.1/",
        "localhost:80:80",
        "localhost:",
        "localhost:x",
        "localhost:65536",
        "localhost:-1",
    ),
    *("evil@127.0.0.1", "127.0.0.1@evil.test", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\t", "127.0.0.1#", "127.0.0.1?"),
    *("127.0.0.2", "127.1", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "[::1%25lo]", "localhost,evil.test"),
    *("localhost\\evil", "local\u212ahost", "localhost:\u0667", "localhost:80\n", "null"),
)


@pytest.mark.parametrize("host", HOSTS)
def test_this_machine_by_loopback(host: str) -> None:
    assert is_own(HOST, host)
    assert is_own(ORIGIN, f"http://{host}")
    assert is_own(ORIGIN, f"https://{host}")
    assert is_own(REFERER, f"http://{host}/a?b#c")
    assert is_own(REFERER, f"http://{host}")


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_spelling_is_foreign(host: str) -> None:
    assert not is_own(HOST, host)
    assert not is_own(ORIGIN, f"http://{host}")
    if not host.startswith("127.0.0.1") or host[9:10] not in ("/", "#", "?"):
        assert not is_own(REFERER, f"http://{host}/page")


@pytest.mark.parametrize(
    "origin", ["null", "file://localhost", "ftp://localhost", "localhost", "http://localhost/", "x"]
)
def test_an_origin_is_a_scheme_and_an_authority(origin: str) -> None:
    assert not is_own(ORIGIN, origin)


def test_with_a_port_only_the_server_there() -> None:
    assert is_own(ORIGIN, "http://localhost:7461", 7461)
    assert is_own(ORIGIN, "http://localhost", 80)
    assert not is_own(ORIGIN, "http://localhost", 7461)
    assert not is_own(ORIGIN, "https://localhost:7461", 7461)
    assert not is_own(REFERER, "http://localhost:3000/", 7461)


# -- the guard in front of every request ----------------------------------------------------------------------------


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


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/?session_id=0", "/nowhere"])
async def test_nothing_is_routed_before_the_guard(tmp_path: Path, path: str) -> None:
    async with place(tmp_path) as at, at.http("") as http:
        assert (await http.post(path, content=b"{", headers=POST)).status_code == 401
        assert (await http.get(path, headers={"Origin": "https://evil.example"})).status_code == 403


async def test_the_token_can_be_switched_off_and_the_rest_of_the_guard_stays(tmp_path: Path) -> None:
    async with place(tmp_path, HttpSettings(port=0, token=False)) as at, at.http("") as http:
        assert (await http.get("/health")).status_code == 200
        assert (await http.get("/health", headers={"Origin": "https://evil.example"})).status_code == 403


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
    assert (at.edits.servers, at.edits.taken) == ([], [])


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
        assert at.edits.servers == (["n"] if status == 201 else [])
