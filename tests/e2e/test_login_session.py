"""The programs that an AI tool starts with six variables, in a real login session with a real keyring."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import pytest

from tests.auth.issuer import Guarded, browse, guarded
from tests.e2e.client import RawClient, RpcFailure
from tests.e2e.login_session import LoginSession, login_session
from tests.fixtures.odd import until
from trayapp.wire.control import LOGIN, LOGIN_WAIT, SETTLE, SNAPSHOT, ControlClient

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


def configure(session: LoginSession, server: Guarded) -> None:
    """Configure the server `web`."""
    settings = {"expose": "tools", "http": {"enabled": False}}
    session.write(json.dumps({"settings": settings, "servers": {"web": {"url": server.url()}}}))


async def row(session: LoginSession) -> Any:
    """Return the snapshot's row of `web`."""
    snapshot: Any = await ask(session, SNAPSHOT)
    return snapshot["servers"][0]


async def ask(session: LoginSession, method: str, **params: str) -> dict[str, object]:
    """Send the session's gateway a control request and return its result."""

    def work() -> dict[str, object]:
        with ControlClient(session.gateway_run, 60) as client:
            answer: dict[str, object] = client.call(method, params)
            return answer

    return await anyio.to_thread.run_sync(work)


@asynccontextmanager
async def signed_in() -> AsyncIterator[tuple[LoginSession, Guarded]]:
    """Yield a login session and the server `web`, to which the user has signed in once."""
    async with guarded() as server:
        with login_session() as session:
            configure(session, server)
            async with session.client():
                begun = await ask(session, LOGIN, server="web")
                await browse(str(begun["url"]))
                await ask(session, LOGIN_WAIT, server="web")
            yield session, server


@pytest.mark.requirement("desk-session-found")
async def test_a_gateway_that_an_ai_tool_starts_with_six_variables_keeps_the_user_signed_in() -> None:
    async with signed_in() as (session, server):
        visits = len(server.issuer.visits)
        await anyio.to_thread.run_sync(session.kill_gateway)
        async with session.client() as client:
            first = await still_signed_in(session, client)
            await anyio.to_thread.run_sync(session.kill_gateway)
            await until(lambda: session.gateway_pid() not in (0, first))  # the shim starts another gateway
            await still_signed_in(session, client)
        assert len(server.issuer.visits) == visits
        doctor = await anyio.to_thread.run_sync(session.verb, "doctor")
        assert "There is no session bus" not in doctor.stdout


async def still_signed_in(session: LoginSession, client: RawClient) -> int:
    """Check that a call succeeds without a new sign-in and that the keyring is available. Return the gateway's pid."""
    answer = await client.call("web_echo", text="still here")
    assert "still here" in answer["content"][0]["text"]
    gateway: Any = (await ask(session, SNAPSHOT))["gateway"]
    assert gateway["keyring"] == "available"
    return int(gateway["pid"])


@pytest.mark.requirement("auth-locked", "vault-follows")
async def test_while_the_keyring_is_locked_everybody_is_told_so_and_once_it_opens_the_user_is_signed_in() -> None:
    async with signed_in() as (session, server):
        visits = len(server.issuer.visits)
        session.desk.lock()
        await anyio.to_thread.run_sync(session.kill_gateway)
        async with session.client() as client:
            with pytest.raises(RpcFailure, match="web cannot be used: The keyring is locked") as failed:
                await client.call("web_echo", text="x")
            assert "sign-in" not in str(failed.value.error)
            assert (await row(session))["state"] == "keyring_locked"
            status = await anyio.to_thread.run_sync(session.verb, "status")
            assert "keyring locked" in status.stdout
            doctor = await anyio.to_thread.run_sync(session.verb, "doctor")
            assert "web cannot be used: The keyring is locked" in doctor.stdout
            session.desk.unlock()
            await until(lambda: "connected" in session.verb("status").stdout)
            await still_signed_in(session, client)
        assert len(server.issuer.visits) == visits


@pytest.mark.requirement("vault-one-dialog")
async def test_a_keyring_that_was_never_made_is_not_made_to_look_into_it() -> None:
    async with guarded() as server:
        with login_session(password="") as session:
            configure(session, server)
            async with session.client():
                await ask(session, SETTLE)
                assert (await row(session))["state"] == "needs_auth"
                gateway: Any = (await ask(session, SNAPSHOT))["gateway"]
                assert gateway["keyring"] == "available"
            log = (session.home / ".local" / "state" / "multi-mcp" / "log" / "gateway.log").read_text()
            assert " ERROR " not in log
