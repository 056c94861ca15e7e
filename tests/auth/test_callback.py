"""Tests of the callback listener, contacted by browsers and by misbehaving peers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools import NO_CERTIFICATES
from trayapp.auth.callback import HEAD_MAX, AuthorizationResponse, Callback, Expected, listening
from trayapp.auth.grant import SignInError

pytestmark = pytest.mark.anyio

STATE = "st4te"
ISSUER = "https://as.example"


@asynccontextmanager
async def expecting(issuer: str | None = ISSUER, *, iss_required: bool = False) -> AsyncIterator[Callback]:
    async with listening("web") as callback:
        callback.expect(Expected(STATE, issuer, iss_required))
        with anyio.fail_after(20):
            yield callback


async def visit(callback: Callback, query: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=NO_CERTIFICATES, timeout=10) as browser:
        return await browser.get(f"{callback.redirect_uri}?{query}", headers=headers)


async def raw(callback: Callback, data: bytes) -> bytes:
    """Send the bytes unchanged to the callback listener, and return its response."""
    port = int(callback.redirect_uri.split(":")[2].split("/")[0])
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(data)
        got = b""
        try:
            while True:
                got += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return got


@pytest.mark.requirement("auth-callback")
async def test_the_answer_arrives_and_the_page_waits_for_the_outcome() -> None:
    async with expecting() as callback, anyio.create_task_group() as tasks:
        pages: list[httpx2.Response] = []

        async def browser() -> None:
            pages.append(await visit(callback, f"code=c0de&state={STATE}&iss={ISSUER}"))

        tasks.start_soon(browser)
        assert await callback.answer() == AuthorizationResponse("c0de", STATE, ISSUER)
        assert pages == []
        callback.decide(None)
        await callback.shown()
        while not pages:
            await anyio.lowlevel.checkpoint()
        assert pages[0].status_code == 200
        assert "Signed in to web" in pages[0].text
        assert pages[0].headers["cache-control"] == "no-store"
        assert pages[0].headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in pages[0].headers["content-security-policy"]


@pytest.mark.requirement("auth-callback")
@pytest.mark.parametrize("query", ["", "code=x", "code=x&state=", "code=x&state=other", f"code=x&state={STATE}x"])
async def test_sec_19_an_answer_with_another_state_is_ignored(query: str) -> None:
    async with expecting() as callback:
        page = await visit(callback, query)
        assert page.status_code == 410
        assert "This sign-in is over" in page.text
        callback.paste(f"code=good&state={STATE}")
        assert (await callback.answer()).code == "good"


@pytest.mark.requirement("auth-callback")
async def test_a_second_answer_is_too_late() -> None:
    async with expecting() as callback:
        callback.paste(f"?code=first&state={STATE}")
        assert (await visit(callback, f"code=second&state={STATE}")).status_code == 410
        assert (await callback.answer()).code == "first"


@pytest.mark.requirement("auth-mixup")
@pytest.mark.parametrize(
    ("issuer", "required", "said", "good"),
    [
        (ISSUER, False, "", True),
        (ISSUER, True, f"&iss={ISSUER}", True),
        (ISSUER, True, "", False),
        (ISSUER, False, "&iss=https://evil.example", False),
        (ISSUER, False, f"&iss={ISSUER}/", False),
        (None, False, f"&iss={ISSUER}", False),
    ],
)
async def test_the_issuer_must_be_the_expected_one(issuer: str | None, required: bool, said: str, good: bool) -> None:
    async with expecting(issuer, iss_required=required) as callback:
        callback.paste(f"code=x&state={STATE}{said}")
        if good:
            assert (await callback.answer()).code == "x"
        else:
            with pytest.raises(SignInError, match="a different sign-in service"):
                await callback.answer()


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("error=access_denied", "was declined"),
        ("error=server_error&error_description=<b>x", "rejected the sign-in: server_error"),
        ("error=<script>alert(1)", "rejected the sign-in: scriptalert1"),
        ("error=", r"no reason given"),
        ("nothing=here", "no code"),
    ],
)
async def test_a_refusal_has_its_reason(said: str, title: str) -> None:
    async with expecting() as callback:
        callback.paste(f"{said}&state={STATE}")
        with pytest.raises(SignInError, match=title):
            await callback.answer()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"])
async def test_a_request_with_a_foreign_host_gets_nothing(host: str) -> None:
    async with expecting() as callback:
        answer = await visit(callback, f"code=x&state={STATE}", host=host)
        assert (answer.status_code, answer.content) == (400, b"")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /callback?state=st4te HTTP/1.1\r\nHost: {host}\r\n\r\n", b"405"),
        (b"GET /favicon.ico HTTP/1.1\r\nHost: {host}\r\n\r\n", b"404"),
        (b"GET /callback/../callback2 HTTP/1.1\r\nHost: {host}\r\n\r\n", b"404"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET //[ HTTP/1.1\r\nHost: {host}\r\n\r\n", b"404"),
        (b"GET /callback?state=%ff%00&state[]=\xff&&&=&%zz HTTP/1.1\r\nHost: {host}\r\n\r\n", b"410"),
        (b"GET /" + b"x" * HEAD_MAX + b"\r\n\r\n", b""),
    ],
)
async def test_other_requests_are_refused_and_the_listener_goes_on(sent: bytes, status: bytes) -> None:
    async with expecting() as callback:
        host = callback.redirect_uri.split("/")[2].encode()
        got = await raw(callback, sent.replace(b"{host}", host))
        assert got[9:12] == status
        callback.paste(f"code=x&state={STATE}")
        assert (await callback.answer()).code == "x"


async def test_an_answer_before_the_request_is_ignored() -> None:
    async with listening("web") as callback:
        assert (await visit(callback, "code=x&state=")).status_code == 410


async def test_a_port_in_use_is_an_error() -> None:
    async with listening("web") as first:
        port = int(first.redirect_uri.split(":")[2].split("/")[0])
        with pytest.raises(SignInError, match=f"port {port}"):
            async with listening("web", port):
                raise AssertionError("two listeners on one port")


@given(st.binary(max_size=200), st.sampled_from([b"", b"GET /callback?", b"GET /callback?state=st4te&", b"POST "]))
@settings(max_examples=60, deadline=None)
def test_no_bytes_end_the_listener(junk: bytes, start: bytes) -> None:
    async def live() -> None:
        async with expecting() as callback:
            host = callback.redirect_uri.split("/")[2].encode()
            head = start + junk.replace(b"\r\n\r\n", b"") + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
            callback.paste(f"code=x&state={STATE}")
            callback.decide(None)
            await raw(callback, head)
            assert (await callback.answer()).code == "x"

    anyio.run(live)
