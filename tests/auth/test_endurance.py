"""Tests that sign-ins survive a thousand renewals with restarts, and a crash at any write."""

from __future__ import annotations

import random

import anyio
import pytest

from tests.auth.issuer import Issuer, guarded
from tests.auth.places import ForgetfulEntries
from tests.auth.world import Person, person
from trayapp.auth.grant import record_key

pytestmark = pytest.mark.anyio

EXPIRIES = 1_000
WAITING = 20
LIFETIME_S = 3600


async def all_of(made: Person, url: str) -> set[str | None]:
    """Return the distinct Authorization values that `WAITING` simultaneous requests get."""
    got: set[str | None] = set()

    async def ask() -> None:
        got.add(await made.accounts.of(url).authorization(url))

    async with anyio.create_task_group() as tasks:
        for _ in range(WAITING):
            tasks.start_soon(ask)
    return got


@pytest.mark.timeout(180)
@pytest.mark.requirement("auth-thousand")
async def test_a_thousand_expiries_with_restarts_and_rotation_open_no_browser_and_lose_no_token() -> None:
    dice = random.Random(7)
    async with guarded(issuer=Issuer(lifetime=LIFETIME_S)) as server, person(limit_s=170) as made:
        issuer = server.issuer
        issuer.now = made.clock.time
        await made.sign_in(server.url())
        for expiry in range(1, EXPIRIES + 1):
            made.clock.jump(LIFETIME_S + dice.random() * 100)
            if dice.random() < 0.2:
                made.restart()
            (header,) = await all_of(made, server.url())
            assert header is not None
            assert await issuer.load_access_token(header.removeprefix("Bearer ")) is not None
            assert issuer.refreshes() == expiry
            issuer.access = dict(list(issuer.access.items())[-1:])
        assert (made.opened, len(issuer.visits), issuer.registered) == (1, 1, 1)
        assert len(issuer.refresh) == 1
        assert next(iter(issuer.refresh)) in made.kept()


@pytest.mark.requirement("vault-torn", "auth-rotation")
@pytest.mark.parametrize("writes", range(0, 36, 3))
async def test_a_crash_at_any_write_of_a_renewal_leaves_a_sign_in_or_requests_one(writes: int) -> None:
    entries = ForgetfulEntries()
    async with guarded(issuer=Issuer(token_padding=8_000)) as server, person(entries) as made:
        url = server.url()
        await made.sign_in(url)
        entries.writes_left = writes
        made.clock.jump(4000)
        assert await made.accounts.of(url).authorization(url) is not None
        entries.writes_left = 1 << 30
        made.restart()
        made.clock.jump(4000)
        header = await made.accounts.of(url).authorization(url)
        status = made.accounts.status(url)
        assert status is not None
        if header is None:
            assert not status.signed_in  # its refresh token is no longer valid, so the user must sign in
        else:
            assert header.removeprefix("Bearer ") in server.issuer.access
        assert (record_key(url) in entries.texts, made.opened) == (True, 1)
        await made.sign_in(url)
        assert await made.accounts.of(url).authorization(url) is not None
