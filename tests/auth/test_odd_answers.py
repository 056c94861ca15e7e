"""Tests of answers from sign-in services that are too large, too deeply nested or absurd."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import zlib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from starlette.responses import Response

from tests.auth.issuer import METADATA, RENEWAL, RESOURCE, guarded
from tests.auth.world import Person, person
from tests.patience import stretched
from trayapp.auth.grant import LAST_MOMENT, GrantLostError, SignInError, from_text, lifetime
from trayapp.auth.login import ANSWER_MOST, renew
from trayapp.cli.status import signed_in_words

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
UNPACKED = 1 << 29
GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
PLACES = (RESOURCE, METADATA, "/register", "/token", RENEWAL, "/revoke")
ABSURD = ("1e18", "1000000000000000000", "1" + "0" * 400, "-1", "-9e300", "NaN", "Infinity", '"soon"', "[[[1]]]", "{}",
          "null", "true", '"1e999"')  # fmt: skip


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Return half a megabyte of gzip data that decompresses to half a gigabyte."""
    part = b" " * (1 << 20)
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)  # the same bytes each time
    times = UNPACKED // len(part)
    crc = 0
    for _ in range(times):
        crc = zlib.crc32(part, crc)
    end = b"\x03\x00" + crc.to_bytes(4, "little") + UNPACKED.to_bytes(4, "little")
    return GZIP_HEADER + block * times + end


def packed(body: bytes, status: int = 200) -> Response:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    return Response(body, status, headers)


@pytest.mark.requirement("auth-bounded")
@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
async def test_a_compression_bomb_takes_little_memory(bomb: bytes) -> None:
    """One process tests all places with both statuses, because its imports take most of the time."""
    limit_s = stretched(50)
    async with AsyncExitStack() as stack:
        urls = []
        for place, status in itertools.product(PLACES, (200, 400)):
            server = await stack.enter_async_context(guarded())
            server.issuer.instead[place] = packed(bomb, status)
            urls.append(server.url())
        argv = [sys.executable, "-m", "tests.auth.bombed", *urls]
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=limit_s)
        )
    assert "MemoryError" not in done.stderr
    assert done.stdout.splitlines().count("end") == len(urls), done.stdout + done.stderr


@pytest.mark.requirement("auth-bounded")
@pytest.mark.parametrize("place", PLACES[:-1])
@pytest.mark.parametrize(
    "body",
    [b"x" * (ANSWER_MOST + 1), b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"\xff", b"", b"null", b"[]"],
    ids=["large", "unclosed", "deep", "no text", "empty", "null", "list"],
)
async def test_an_unreadable_answer_ends_a_sign_in_with_a_readable_error(place: str, body: bytes) -> None:
    async with guarded() as server, person() as made:
        server.issuer.instead[place] = Response(body, media_type="application/json")
        with pytest.raises(SignInError) as failed:
            await to_the_end(made, server.url())
        assert "Group" not in failed.value.title
        assert failed.value.hint


@pytest.mark.requirement("auth-bounded")
@pytest.mark.parametrize("member", ["registration_endpoint", "token_endpoint"])
@pytest.mark.parametrize("address", ["http://127.0.0.1:1/" + "a" * 100_000, "http://127.0.0.1:1/\x00", "x:\n", 5, []])
async def test_an_invalid_address_ends_a_sign_in_with_a_readable_error(member: str, address: Any) -> None:
    async with guarded() as server, person() as made:
        server.issuer.also_says = {member: address}
        with pytest.raises(SignInError) as failed:
            await to_the_end(made, server.url())
        assert "See gateway.log" not in failed.value.hint


@pytest.mark.requirement("auth-bounded")
@pytest.mark.parametrize("place", ["/token", RENEWAL])
@pytest.mark.parametrize("token", ["a\nb", "a\0b", "a\rb", " ab", "ab\t", "\u00e9", "\U0001f680", "\ud800"])
async def test_a_token_that_no_header_can_hold_is_ignored(place: str, token: str) -> None:
    said = json.dumps({"access_token": token, "token_type": "Bearer", "refresh_token": "r"})
    async with guarded() as server, person() as made:
        server.issuer.instead[place] = Response(said, media_type="application/json")
        with pytest.raises(SignInError) as failed:
            await to_the_end(made, server.url())
        assert token not in failed.value.title


async def to_the_end(made: Person, url: str) -> None:
    """Sign in, then renew. Raises SignInError if either fails, and AssertionError otherwise."""
    await made.sign_in(url)
    await made.clock.pass_(4000)
    assert await made.accounts.of(url).authorization(url) is None
    raise SignInError("no answer was needed", "none")


@pytest.mark.requirement("auth-odd-times")
@pytest.mark.parametrize("said", ABSURD)
async def test_a_token_with_an_absurd_lifetime_is_used_until_it_is_refused(said: str) -> None:
    async with guarded() as server, person() as made:
        server.issuer.expires_in = said
        try:
            await made.sign_in(server.url())
        except SignInError:  # the JSON parser rejects a number of 400 digits
            assert len(said) > 300
            return
        account = made.accounts.of(server.url())
        first = await account.authorization(server.url())
        assert first is not None
        await made.clock.pass_(4000)
        assert await account.authorization(server.url()) == first
        assert await account.authorization_after(first, server.url()) not in (None, first)
        assert signed_in_words(shown(made.accounts.status(server.url()))).startswith("signed in")


@pytest.mark.parametrize("said", ["3600.0", '"3600"', "3600.5"])
async def test_a_slightly_wrong_lifetime_is_read(said: str) -> None:
    async with guarded() as server, person() as made:
        server.issuer.expires_in = said
        await made.sign_in(server.url())
        status = made.accounts.status(server.url())
        assert status is not None
        assert status.until == pytest.approx(made.clock.time() + 3600)


def shown(status: Any) -> dict[str, Any]:
    return {name: getattr(status, name) for name in ("signed_in", "until", "renews", "kept")}


@pytest.mark.parametrize("seconds", [0, 1, 3600, 86_400 * 365])
def test_a_valid_lifetime_is_unchanged(seconds: int) -> None:
    assert lifetime(seconds) == seconds


# -- stored records ----------------------------------------------------------------------------------------------

RECORD: dict[str, Any] = {
    "form": 1, "url": "https://a.example/mcp", "access_token": "t", "client": {"id": "c"}, "issued_at": 1.0,
    "refresh_token": "r", "expires_at": 5.0,
}  # fmt: skip


@pytest.mark.requirement("auth-odd-times")
@pytest.mark.parametrize("field", ["expires_at", "issued_at"])
@pytest.mark.parametrize("value", [1e18, 10**18, 10**400, -1e18, float("nan"), float("inf"), "x", [1], {}, True, None])
def test_an_absurd_time_in_a_record_is_ignored(field: str, value: Any) -> None:
    grant = from_text(json.dumps({**RECORD, field: value}), RECORD["url"])
    assert grant is not None
    assert grant.expires_at in (None, 5.0)
    assert 0 <= grant.issued_at <= LAST_MOMENT
    grant.due(9.0)


@pytest.mark.requirement("auth-odd-times")
@pytest.mark.parametrize(
    "more",
    [{"refresh_token": 5}, {"scope": []}, {"issuer": "x"}, {"resource": 1}, {"access_token": None}, {"client": {}},
     {"client": {"id": 7}}, {"client": None}],
)  # fmt: skip
def test_a_record_of_another_form_is_ignored(more: dict[str, Any]) -> None:
    assert from_text(json.dumps({**RECORD, **more}), RECORD["url"]) is None


@pytest.mark.requirement("auth-renew")
async def test_a_record_with_invalid_metadata_cannot_be_renewed() -> None:
    grant = from_text(json.dumps({**RECORD, "issuer": {"issuer": 5}}), RECORD["url"])
    assert grant is not None
    with pytest.raises(GrantLostError, match="cannot be used"):
        await renew(grant, lambda: 9.0)


def test_a_record_that_is_nested_too_deeply_is_ignored() -> None:
    assert from_text("[" * 100_000, RECORD["url"]) is None


@pytest.mark.parametrize("until", [1e18, -1e18, float("nan"), float("inf"), "x"])
def test_status_shows_a_sign_in_with_any_expiry(until: Any) -> None:
    auth = {"signed_in": True, "until": until, "renews": True, "kept": True}
    assert signed_in_words(auth) == "signed in, renewed automatically"


# -- a clock that is set back ------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-renew")
async def test_a_refused_token_is_renewed_after_the_clock_was_set_back() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        first = await account.authorization(server.url())
        assert first is not None
        made.clock.jump(-100_000)
        second = await account.authorization_after(first, server.url())
        assert second not in (None, first)
        assert await account.authorization_after(second, server.url()) is None  # this token was renewed too recently


@pytest.mark.requirement("auth-renew")
async def test_a_renewal_that_failed_is_tried_again_after_the_clock_was_set_back() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        first = await account.authorization(server.url())
        await made.clock.pass_(20)
        server.issuer.token_status = 503
        with pytest.raises(SignInError):
            await account.authorization_after(first, server.url())
        server.issuer.token_status = 200
        made.clock.jump(-100_000)
        assert await account.authorization_after(first, server.url()) not in (None, first)
