"""A client can read why its request was refused before the connection ends."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from tests.e2e.http_client import STREAMS
from tests.gateway.http.place import TOKEN, Place, place
from tests.gateway.http.test_streamable import OPENING, call, known, message, opened
from trayapp.gateway.http.asgi import JSON
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST

REGISTRATION = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:9/callback")])
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-refusals")]


def spoken(at: Place, head: str, body_bytes: int = 0) -> bytes:
    """Send the whole head and body before reading anything, and return the answer."""
    where = urlsplit(at.url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as sock:
        sock.sendall(head.encode())
        block = b" " * 65_536
        for _ in range(0, body_bytes, len(block)):
            sock.sendall(block)
        return answered(sock)


def answered(sock: socket.socket) -> bytes:
    """Read and return a whole answer with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65_536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: "))
    while len(body) < length:
        body += sock.recv(65_536) or b" " * length
    return head + b"\r\n\r\n" + body


def head_of(at: Place, *lines: str) -> str:
    known_lines = (
        "POST /mcp HTTP/1.1",
        f"Host: {urlsplit(at.url).netloc}",
        f"Authorization: Bearer {TOKEN}",
        f"Accept: {STREAMS}",
        "Content-Type: application/json",
    )
    return "\r\n".join((*known_lines, *lines, "", ""))


async def test_a_long_header_is_named_and_the_client_can_read_that(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        head = head_of(at, f"X-Long: {'x' * 200_000}", "Content-Length: 0")
        answer = await anyio.to_thread.run_sync(spoken, at, head)
        assert answer.startswith(b"HTTP/1.1 431 "), answer[:200]
        assert b"too many headers, or they are too long" in answer


async def test_blanks_around_the_value_of_a_header_are_no_part_of_it(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        lines = f"Host:\t {urlsplit(at.url).netloc} \t", f"Authorization:  Bearer {TOKEN} \t "
        head = "\r\n".join(("GET /health HTTP/1.1", *lines, "", ""))
        assert (await anyio.to_thread.run_sync(spoken, at, head))[:13] in (b"HTTP/1.1 200 ", b"HTTP/1.1 503 ")


@pytest.mark.requirement("safe-limits")
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param("GET /mcp HTTP/1.1\r\nX-Long: ", id="head"),
        pytest.param("GET /", id="path"),
        pytest.param("POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Long: ", id="trailers"),
    ],
)
async def test_a_head_that_does_not_end_is_refused(tmp_path: Path, begun: str) -> None:
    def all_answers(url: str) -> bytes:
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port), timeout=20) as sock:
            sock.sendall(begun.encode() + b"x" * 600_000)
            return b"".join(iter(lambda: sock.recv(65_536), b""))

    async with place(tmp_path) as at:
        assert b"HTTP/1.1 431 " in await anyio.to_thread.run_sync(all_answers, at.url)


async def test_a_client_that_sends_a_huge_body_first_reads_why_it_is_refused(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        size = MAX_FRAME_BYTES + 6 * 1024 * 1024
        head = head_of(at, f"Content-Length: {size}")
        answer = await anyio.to_thread.run_sync(spoken, at, head, size)
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]


async def test_a_client_that_keeps_its_connection_goes_on_after_a_body_that_was_too_large(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)
        for _ in range(2):
            too_large = await http.post("/mcp", content=b" " * (MAX_FRAME_BYTES + 1024), headers=headers)
            assert too_large.status_code == 413
            assert "large" in too_large.text
        answer = await http.post("/mcp", json=call("a_echo", 2, n=1), headers=headers)
        assert answer.status_code == 200


@pytest.mark.parametrize("request_id", [1.5, True, [], {}])
async def test_an_id_that_is_none_is_refused_at_once(tmp_path: Path, request_id: Any) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)
        wrong = {"jsonrpc": "2.0", "id": request_id, "method": "tools/list"}
        answer = await http.post("/mcp", json=wrong, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (400, None)
        assert answer.json()["error"]["code"] == INVALID_REQUEST


async def test_a_request_whose_id_is_null_is_no_notification(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)
        wrong = {"jsonrpc": "2.0", "id": None, "method": "tools/list"}
        answer = await http.post("/mcp", json=wrong, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (400, None)
        assert answer.json()["error"]["code"] == INVALID_REQUEST


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
async def test_a_cursor_that_nobody_gave_is_invalid(tmp_path: Path, method: str) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)
        answer = await http.post("/mcp", json=message(method, {"cursor": "made-up"}), headers=headers)
        assert answer.json()["error"]["code"] == INVALID_PARAMS
        for first in ({}, {"cursor": None}):
            answer = await http.post("/mcp", json=message(method, first), headers=headers)
            assert "result" in answer.json()


@pytest.mark.requirement("safe-limits")
async def test_a_body_of_unknown_length_is_refused_so_that_a_client_can_read_it(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        await known(at)
        headers = await opened(http)

        async def blocks() -> AsyncIterator[bytes]:
            for _ in range(70):
                yield b" " * 1024 * 1024

        for _ in range(2):
            too_large = await http.post("/mcp", content=blocks(), headers={**headers, "Content-Type": JSON})
            assert too_large.status_code == 413
            assert "larger than" in too_large.text
        answer = await http.post("/mcp", json=call("a_echo", 2, n=1), headers=headers)
        assert answer.status_code == 200


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_clients_say_that_the_token_is_wrong_whether_they_know_oauth_or_not(tmp_path: Path, token: str) -> None:
    async with place(tmp_path) as at:
        async with at.http(token) as http:
            answer = await http.post("/mcp", json=message("initialize", OPENING), headers={"Accept": STREAMS})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
            assert "resource_metadata" not in answer.headers["www-authenticate"]
            with pytest.raises(MCPError, match="The token is missing or wrong"):
                await connect_only(at, http)
        async with at.http(token) as http:
            http.auth = OAuthClientProvider(at.url, REGISTRATION, InMemory(), _never, _never)
            with pytest.raises(OAuthRegistrationError, match="The token is missing or wrong"):
                await connect_only(at, http)


async def connect_only(at: Place, http: httpx2.AsyncClient) -> None:
    """Connect an SDK client. Raises the first error that it reports."""
    try:
        async with Client(streamable_http_client(f"{at.url}/mcp", http_client=http), mode="legacy"):
            pass
    except BaseExceptionGroup as group:
        raise first_of(group) from None


def first_of(error: BaseException) -> BaseException:
    return first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _never(*given: Any) -> Any:
    """Fail the test if a sign-in begins."""
    raise AssertionError(given)


class InMemory:
    """An SDK TokenStorage that holds nothing."""

    async def get_tokens(self) -> None:
        """Return None, because no token is stored."""

    async def set_tokens(self, tokens: Any) -> None:
        raise AssertionError(tokens)

    async def get_client_info(self) -> None:
        """Return None, because no client is registered."""

    async def set_client_info(self, info: Any) -> None:
        raise AssertionError(info)
