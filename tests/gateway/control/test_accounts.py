"""Sign-ins of a gateway with real HTTP servers and a real authorization server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest

from tests.auth.issuer import Guarded, Issuer, browse, guarded
from tests.auth.places import MemoryEntries
from tests.backends.world import open_untracked
from tests.contract.http_servers import HttpServer
from tests.fixtures.clock import FakeClock
from tests.gateway.world import Client, Wire, as_link
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES
from trayapp.auth.accounts import Accounts
from trayapp.auth.os_keyring import ChunkedRecords
from trayapp.auth.sealed import SealedFile
from trayapp.auth.vault import Vault
from trayapp.catalog.approval_store import FOLDER_NAME
from trayapp.gateway.client import FramePeer
from trayapp.gateway.control.accounts import AccountRequests
from trayapp.gateway.control.server import Control
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.gateway import Gateway, GatewayDependencies
from trayapp.gateway.scopes.projects import NOTHING
from trayapp.model.config import Config, ServerConfig, Settings
from trayapp.model.errors import ConnectFailedError, KeyringUnavailableError, SignInWantedError
from trayapp.model.lifecycle import State

pytestmark = pytest.mark.anyio


@dataclass
class Town:
    """A gateway with real HTTP and a keyring in memory."""

    folder: Path
    tasks: anyio.abc.TaskGroup
    clock: FakeClock = field(default_factory=FakeClock)
    entries: MemoryEntries = field(default_factory=MemoryEntries)
    settings: Settings = field(default_factory=lambda: Settings(expose="tools"))
    environ: dict[str, str] = field(default_factory=lambda: {"TOKEN": "s3cr3t-env", "PATH": "/nowhere"})

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Create a gateway that uses the contents of the keyring."""
        vault = Vault(ChunkedRecords(self.entries), changed=self._keyring_changed)
        self.accounts = Accounts(
            vault, self.tasks, self.clock.time, self.clock.sleep, lambda: self.gateway.services.changes.changed()
        )
        dependencies = GatewayDependencies(
            clock=self.clock,
            environ=self.environ,
            keyring=vault.secrets,
            open=partial(open_untracked, accounts=self.accounts),
            stderr=lambda server, *, further: lambda data: None,
            cache_dir=self.folder,
            approved_dir=self.folder.with_name(FOLDER_NAME),
            state_dir=self.folder.with_name("state"),
            write_switches=lambda found: None,
            look=lambda folder, user: NOTHING,
            accounts=self.accounts,
        )
        self.gateway = gateway = Gateway(dependencies, self.tasks)
        self.requests = AccountRequests(gateway.services, gateway.sign_ins, self.environ, vault.secrets)

    def _keyring_changed(self) -> None:
        """React to a change of the keyring as gateway/main does."""
        self.gateway.services.changes.changed()
        if self.accounts.vault.state == "available" and self.gateway.state == "running":
            self.gateway.services.spawn(self.gateway.sign_ins.keyring_is_back)

    def apply(self, *servers: ServerConfig) -> None:
        """Apply a saved servers.yaml."""
        self.gateway.take_config(Config(self.settings, {server.name: server for server in servers}))

    async def known(self, *servers: ServerConfig) -> None:
        """Configure the servers, start the gateway, and wait until all servers have been discovered."""
        self.apply(*servers)
        self.gateway.start_serving()
        await self.gateway.services.pool.settled()

    def control(self) -> Wire:
        """Return a control connection."""

        async def reload() -> None:
            raise AssertionError("not asked for")

        wire = Wire()
        control = Control(self.gateway, self.requests.handlers, as_link(wire), reload)
        wire.dispatcher = control.dispatcher
        self.tasks.start_soon(control.run)
        return wire

    async def client(self) -> Client:
        """Return a client whose handshake is complete."""
        client = Client()
        peer = FramePeer(client.write)
        client.session = self.gateway.new_session(peer, {}, "stdio")
        client.dispatcher = peer.dispatcher
        self.tasks.start_soon(self.gateway.serve, client.session)
        await client.shake_hands()
        return client

    async def sign_in(self, server: str = "web") -> dict[str, Any]:
        """Sign in with a browser, as `multi-mcp auth` does. Return the final answer."""
        control = self.control()
        begun = await control.result("login", {"server": server})
        await browse(begun["url"])
        result: dict[str, Any] = await control.result("login_wait", {"server": server})
        return result

    def state(self, name: str = "web") -> State:
        return self.gateway.services.pool.find(name).state

    def row(self, name: str = "web") -> dict[str, Any]:
        """Return the server's row of `status --json`."""
        return next(row for row in snapshot_of(self.gateway).to_json()["servers"] if row["name"] == name)

    async def until(self, state: State, name: str = "web") -> None:
        """Wait until the server is in that state."""
        while self.state(name) is not state:
            await self.gateway.services.changes.next()


@asynccontextmanager
async def town(folder: Path) -> AsyncIterator[Town]:
    """Yield a Town, and stop its gateway at the end of the block."""
    async with anyio.create_task_group() as tasks:
        made = Town(folder, tasks)
        try:
            with anyio.fail_after(stretched(40.0)):
                yield made
        finally:
            await made.gateway.services.pool.stop()
            made.accounts.vault.close()
            tasks.cancel_scope.cancel()


def web(server: HttpServer, name: str = "web", path: str = "/mcp", **more: Any) -> ServerConfig:
    """Return the configuration of that server."""
    return ServerConfig(name, url=server.url(path), **more)


@pytest.mark.requirement("auth-no-browser")
async def test_a_server_that_wants_a_sign_in_waits_for_the_user_and_says_how(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        assert made.state() is State.NEEDS_AUTH
        assert (made.row()["signed_in"], made.row()["auth"]["signed_in"]) == (False, False)
        with pytest.raises(SignInWantedError, match="multi-mcp auth web"):
            await made.gateway.services.pool.find("web").ensure()
        assert [seen.path for seen in server.seen if "well-known" in seen.path] == []
        assert (server.issuer.seen, server.issuer.visits) == ([], [])


@pytest.mark.requirement("auth-sign-in", "auth-reconnect")
@pytest.mark.parametrize(("path", "more"), [("/mcp", {}), ("/sse", {"type": "sse"})])
async def test_after_a_sign_in_the_server_is_connected_at_once(tmp_path: Path, path: str, more: dict[str, Any]) -> None:
    async with guarded(sse=path == "/sse") as server, town(tmp_path) as made:
        await made.known(web(server, path=path, **more))
        assert made.state() is State.NEEDS_AUTH
        client = await made.client()
        assert await client.names() == []
        outcome = await made.sign_in()
        assert (outcome["state"], outcome["error"], outcome["auth"]["signed_in"]) == ("connected", None, True)
        assert (await client.call("web_echo", text="x"))["result"]
        assert "web_echo" in await client.names()
        row = made.row()
        assert (row["state"], row["signed_in"]) == ("connected", True)
        assert snapshot_of(made.gateway).gateway.keyring == "available"
        assert set(server.tokens()) <= {f"Bearer {token}" for token in server.issuer.secrets}


async def test_two_servers_of_one_address_share_the_sign_in(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server), web(server, "again"), web(server, "off", disabled=True))
        await made.sign_in()
        await made.until(State.CONNECTED, "again")
        assert made.state("off") is State.DISABLED
        assert server.issuer.registered == 1


@pytest.mark.requirement("auth-renew")
async def test_twenty_calls_over_an_expiry_are_all_answered_with_one_renewal(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        server.issuer.now = made.clock.time
        await made.known(web(server))
        await made.sign_in()
        client = await made.client()
        for round_ in range(1, 6):
            made.clock.jump(4000)
            for number in range(20):
                client.call_only("web_echo", f"{round_}-{number}", text="x")
            answers = [await client.answer(f"{round_}-{number}") for number in range(20)]
            assert all("result" in answer for answer in answers)
            assert server.issuer.refreshes() == round_
        assert len(server.issuer.visits) == 1


@pytest.mark.requirement("auth-renew")
async def test_a_token_that_the_server_does_not_take_any_more_is_renewed_in_the_middle_of_a_session(
    tmp_path: Path,
) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        client = await made.client()
        made.clock.jump(60)
        server.issuer.access.clear()
        for number in range(5):
            client.call_only("web_echo", number, text="x")
        assert all(["result" in await client.answer(number) for number in range(5)])
        assert (server.issuer.refreshes(), made.state()) == (1, State.CONNECTED)


@pytest.mark.requirement("auth-no-browser")
async def test_a_sign_in_that_was_revoked_makes_the_server_wait_for_the_user(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        client = await made.client()
        made.clock.jump(60)
        server.issuer.end_all()
        answer = await client.call("web_echo", text="x")
        assert "multi-mcp auth web" in answer["error"]["message"]
        assert answer["error"]["data"]["exit_code"] == 6
        await made.until(State.NEEDS_AUTH)
        again = await client.call("web_echo", text="x")
        assert "multi-mcp auth web" in str(again)
        assert len(server.issuer.visits) == 1
        await made.sign_in()
        assert "result" in await client.call("web_echo", text="x")


async def test_a_sign_in_service_that_is_down_fails_calls_and_keeps_the_sign_in(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        server.issuer.now = made.clock.time
        await made.known(web(server))
        await made.sign_in()
        client = await made.client()
        made.clock.jump(4000)
        server.issuer.token_status = 500
        answer = await client.call("web_echo", text="x")
        assert "Cannot renew the sign-in" in str(answer)
        assert "HTTP 500" in str(answer)
        server.issuer.token_status = 200
        made.clock.jump(30)
        assert "result" in await client.call("web_echo", text="x")
        assert made.state() is State.CONNECTED


@pytest.mark.requirement("auth-step-up")
async def test_a_call_that_needs_more_says_so_and_the_next_sign_in_brings_it(tmp_path: Path) -> None:
    async with guarded(challenge_scope="read", needs={"tools/call": "write"}) as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        client = await made.client()
        answer = await client.call("web_echo", text="x")
        assert "write" in str(answer)
        assert "multi-mcp auth web" in str(answer)
        assert answer["error"]["data"]["code"] == "needs_auth"
        assert (made.state(), made.row()["auth"]["wanted"]) == (State.CONNECTED, "write")
        assert len(server.issuer.visits) == 1
        await made.sign_in()
        assert server.issuer.visits[-1]["scope"] == "read write"
        assert "result" in await client.call("web_echo", text="x")
        assert made.row()["auth"]["wanted"] is None


@pytest.mark.requirement("auth-no-browser")
async def test_lists_and_calls_at_the_moment_of_a_401_all_say_how_to_sign_in(tmp_path: Path) -> None:
    async with guarded(open_methods={"initialize", "notifications/initialized"}) as server, town(tmp_path) as made:
        made.apply(web(server))
        made.gateway.start_serving()
        connection, errors = made.gateway.services.pool.find("web"), list[str]()

        async def look() -> None:
            with pytest.raises(SignInWantedError) as error:
                await connection.fetch(explicit=True)
            errors.append(error.value.hint)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(look)
        assert errors == ["Sign in with: multi-mcp auth web"] * 5
        await made.until(State.NEEDS_AUTH)


@pytest.mark.requirement("auth-step-up")
async def test_a_server_that_lets_nobody_in_without_a_scope_waits_for_the_user(tmp_path: Path) -> None:
    async with guarded(needs={"initialize": "write"}) as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        await made.until(State.NEEDS_AUTH)
        outcome = await made.sign_in()
        assert (outcome["state"], server.issuer.visits[-1]["scope"]) == ("connected", "write")


@pytest.mark.requirement("auth-no-browser")
@pytest.mark.parametrize("arguments", [{}, {"connect": "web"}, {"server": "web"}])
async def test_the_one_tool_says_how_to_sign_in(tmp_path: Path, arguments: dict[str, Any]) -> None:
    async with guarded() as server, town(tmp_path) as made:
        made.settings = Settings(expose="search")
        await made.known(web(server))
        client = await made.client()
        answer = await client.call("mcp", **arguments)
        assert "multi-mcp auth web" in str(answer)
        assert server.issuer.visits == []


# -- without a sign-in -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-bearer")
@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({"bearer_token_env": "TOKEN"}, "Bearer s3cr3t-env"),
        ({"auth": "bearer", "bearer_token_env": "TOKEN"}, "Bearer s3cr3t-env"),
        ({"headers": {"Authorization": "Bearer mine"}}, "Bearer mine"),
        ({"headers": {"authorization": "Token ${TOKEN}"}}, "Token s3cr3t-env"),
        ({"auth": "none"}, None),
        ({"auth": "none", "headers": {"X-Key": "k"}}, None),
    ],
)
async def test_sec_22_a_token_of_the_users_own_is_sent_and_no_sign_in_is_started(
    tmp_path: Path, more: dict[str, Any], sent: str | None
) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server, **more))
        assert made.state() is State.FAILED
        assert set(server.tokens()) == ({sent} if sent else set())
        with pytest.raises(ConnectFailedError, match="refused access"):
            await made.gateway.services.pool.find("web").ensure(explicit=True)
        error = await made.control().error("login", {"server": "web"})
        assert "Cannot sign in to web: its auth is" in error["message"]
        assert server.issuer.seen == []
        assert made.row().get("auth") is None


async def test_a_server_that_wants_nobody_to_sign_in_is_asked_for_nothing(tmp_path: Path) -> None:
    server = HttpServer()
    async with server.running(), town(tmp_path) as made:
        await made.known(web(server))
        connection = made.gateway.services.pool.find("web")
        await connection.ensure()
        assert (made.state(), "authorization" in str([seen.headers for seen in server.seen])) == (
            State.CONNECTED,
            False,
        )


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-bound")
async def test_sec_20_another_address_gets_no_token_of_the_old_one(tmp_path: Path) -> None:
    other = Guarded()
    async with guarded() as server, other.running(), town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        made.apply(web(other))
        with pytest.raises(SignInWantedError):
            await made.gateway.services.pool.find("web").ensure(explicit=True)
        assert other.seen
        assert other.tokens() == []
        made.apply(web(server))
        await made.gateway.services.pool.find("web").ensure(explicit=True)


@pytest.mark.requirement("auth-bound")
@pytest.mark.parametrize("place", ["elsewhere", "path", "query"])
async def test_a_redirect_takes_no_token_along(tmp_path: Path, place: str) -> None:
    other = Guarded()
    async with guarded() as server, other.running(), town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        await made.gateway.services.pool.find("web").close()
        places = {"elsewhere": other.url(), "path": server.url("/tenant/mcp"), "query": server.url("/mcp?tenant=b")}
        server.redirect_to = places[place]
        before = len(server.seen)
        with pytest.raises((SignInWantedError, ConnectFailedError)):
            await made.gateway.services.pool.find("web").ensure(explicit=True)
        assert other.tokens() == []
        came = [seen for seen in server.seen[before:] if "authorization" in seen.headers]
        assert {seen.path for seen in came} == {"/mcp"}
        assert len(came) == 1  # only the first request, which goes to the address itself


async def test_a_redirect_to_the_same_address_with_a_slash_keeps_the_token(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        account = made.accounts.of(server.url())
        assert await account.authorization(server.url("/mcp/")) is not None
        assert await account.authorization(server.url("/mcp//x")) is None


async def test_an_address_with_variables_is_known_by_what_it_comes_to(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        made.environ["PORT"] = str(server.port)
        entry = ServerConfig("web", url="http://127.0.0.1:${PORT}/mcp")
        await made.known(entry, ServerConfig("kept", url="http://127.0.0.1:${keyring:port}/mcp"))
        await made.sign_in()
        assert made.row()["signed_in"] is True
        assert made.row("kept").get("auth") is None
        made.environ["PORT"] = "1"
        assert made.row().get("auth") is None


# -- control requests ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-callback")
async def test_the_address_can_be_pasted_back(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        control = made.control()
        begun = await control.result("login", {"server": "web"})
        wrong = await control.error("login_answer", {"server": "web", "url": "http://127.0.0.1/?code=x&state=y"})
        assert wrong["data"]["code"] == "sign_in_failed"
        async with httpx2.AsyncClient(verify=NO_CERTIFICATES) as browser:
            answer = str((await browser.get(begun["url"])).headers["location"])
        await control.result("login_answer", {"server": "web", "url": answer})
        outcome = await control.result("login_wait", {"server": "web"})
        assert outcome["state"] == "connected"


async def test_a_sign_in_that_fails_is_an_error_that_says_why(tmp_path: Path) -> None:
    async with guarded(issuer=Issuer(denies="access_denied")) as server, town(tmp_path) as made:
        await made.known(web(server))
        control = made.control()
        await browse((await control.result("login", {"server": "web"}))["url"])
        error = await control.error("login_wait", {"server": "web"})
        assert (error["data"]["code"], error["data"]["exit_code"]) == ("sign_in_failed", 6)
        assert "declined" in error["message"]
        assert made.state() is State.NEEDS_AUTH


@pytest.mark.requirement("auth-sign-out")
async def test_signing_out_closes_the_server_and_forgets(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        control = made.control()
        assert await control.result("logout", {"server": "web"}) == {"signed_out": True}
        assert await control.result("logout", {"server": "web"}) == {"signed_out": False}
        with pytest.raises(SignInWantedError):
            await made.gateway.services.pool.find("web").ensure(explicit=True)
        assert (server.issuer.revoked, made.entries.texts, made.row()["signed_in"]) == (1, {}, False)


@pytest.mark.requirement("auth-account")
async def test_two_accounts_at_one_address_are_two_sign_ins(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(
            web(server, "private"), web(server, "work", account="work"), web(server, "also", account="work")
        )
        assert [made.state(name) for name in ("private", "work", "also")] == [State.NEEDS_AUTH] * 3
        await made.sign_in("work")
        await made.until(State.CONNECTED, "also")
        assert (made.state("work"), made.state("private")) == (State.CONNECTED, State.NEEDS_AUTH)
        await made.sign_in("private")
        tokens = [made.accounts.of(server.url(), name) for name in ("", "work")]
        one, other = [await account.authorization(server.url()) for account in tokens]
        assert len({None, one, other}) == 3
        assert len(made.entries.texts) == 2
        await made.control().result("logout", {"server": "private"})
        assert len(made.entries.texts) == 1
        assert [made.row(name)["signed_in"] for name in ("private", "work", "also")] == [False, True, True]


@pytest.mark.parametrize("method", ["login", "login_wait", "logout"])
async def test_a_program_has_no_sign_in(tmp_path: Path, method: str) -> None:
    async with town(tmp_path) as made:
        await made.known(ServerConfig("tool", command="/bin/false", disabled=True))
        error = await made.control().error(method, {"server": "tool"})
        assert error["data"]["code"] == "usage"
        missing = await made.control().error(method, {"server": "nobody"})
        assert missing["data"]["code"] == "server_not_found"


async def test_waiting_for_no_sign_in_is_an_error(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        error = await made.control().error("login_wait", {"server": "web"})
        assert "in progress" in error["message"]


@pytest.mark.requirement("secret-verbs", "var-keyring")
async def test_a_secret_that_is_set_starts_the_server_that_failed_for_want_of_it(tmp_path: Path) -> None:
    server = HttpServer()
    async with server.running(), town(tmp_path) as made:
        await made.known(web(server, headers={"X-Key": "${keyring:mine}"}))
        assert made.state() is State.FAILED
        assert "multi-mcp secret set mine" in made.row()["error"]["hint"]
        control = made.control()
        assert await control.result("secret_set", {"name": "mine", "value": "s3cr3t"}) == {
            "kept": True,
            "keyring": "available",
        }
        client = await made.client()
        assert "result" in await client.call("web_echo", text="x") or made.state() is State.CONNECTED
        await made.gateway.services.pool.find("web").ensure()
        assert server.seen[-1].headers["x-key"] == "s3cr3t"
        assert (await control.result("secret_list"))["names"] == ["mine"]
        assert await control.result("secret_delete", {"name": "mine"}) == {"deleted": True}
        assert await control.result("secret_delete", {"name": "mine"}) == {"deleted": False}
        refused = await control.error("secret_set", {"name": "a:b", "value": "s3cr3t"})
        assert "s3cr3t" not in str(refused)


@pytest.mark.requirement("vault-states")
async def test_an_encrypted_file_that_does_not_open_is_told_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "secrets.sealed"
    SealedFile(path, "right").write("x", "y")
    async with guarded() as server, town(tmp_path) as made:
        made.settings = Settings(token_store="file")
        made.accounts.use(SealedFile(path, "wrong"))
        await made.known(web(server))
        shown = snapshot_of(made.gateway).gateway
        assert (shown.keyring, shown.keyring_error is not None) == ("locked", True)
        assert shown.keyring_error is not None
        assert "does not open" in shown.keyring_error["title"]
        assert "MULTI_MCP_PASSPHRASE" in shown.keyring_error["hint"]
        assert (made.state(), "does not open" in made.row()["error"]["title"]) == (State.KEYRING_LOCKED, True)
        await made.sign_in()
        assert (made.state(), made.row()["auth"]["kept"]) == (State.CONNECTED, False)


class Locked(ChunkedRecords):
    """Keyring records that can be locked."""

    open = False

    def read(self, key: str) -> str | None:
        if not self.open:
            raise KeyringUnavailableError("The keyring is locked", "Unlock it", "locked")
        return super().read(key)


@pytest.mark.requirement("vault-memory")
async def test_once_the_keyring_is_unlocked_the_servers_that_need_it_are_served(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        named = web(server, "named", headers={"Authorization": "Bearer ${keyring:mine}"})
        await made.known(web(server))
        await made.sign_in()
        await made.accounts.vault.set_secret("mine", next(iter(server.issuer.access)))
        await made.gateway.services.pool.stop()
        records = Locked(made.entries)
        made.start()
        made.accounts.use(records)
        await made.known(web(server), named)
        await made.control().result("refresh")  # servers with cached lists connect only on a refresh
        assert (made.state(), made.state("named")) == (State.KEYRING_LOCKED, State.KEYRING_LOCKED)
        for name in ("web", "named"):
            assert made.row(name)["error"]["title"] == f"{name} cannot be used: The keyring is locked"
        client = await made.client()
        for _ in range(2):
            answer = await client.call("web_echo", text="x")
            assert ("keyring is locked" in str(answer), "sign-in" in str(answer)) == (True, False)
        assert "locked" in (await made.control().error("secret_list"))["message"]
        assert (await made.control().result("keyring"))["error"]["title"] == "The keyring is locked"
        records.open = True
        unlocked = await made.control().result("keyring", {"unlock": True})
        assert unlocked == {"keyring": "available", "error": None}
        await made.gateway.sign_ins.keyring_is_back()
        await made.until(State.CONNECTED)
        await made.gateway.services.pool.find("named").ensure()
        assert len(server.issuer.visits) == 1


@pytest.mark.requirement("auth-locked")
@pytest.mark.parametrize("kept", [True, False])
async def test_a_sign_in_looks_into_the_keyring_before_it_opens_a_browser(tmp_path: Path, kept: bool) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        if kept:
            await made.sign_in()
        await made.gateway.services.pool.stop()
        records = OnceAsked(made.entries)
        made.start()
        made.accounts.use(records)
        await made.known(web(server))
        assert made.row()["state"] == "keyring_locked"
        begun = await made.control().result("login", {"server": "web"})
        assert (begun["url"] is None, records.asked) == (kept, True)
        if kept:
            assert (begun["outcome"]["state"], begun["outcome"]["auth"]["signed_in"]) == ("connected", True)
        assert len(server.issuer.visits) == kept


class OnceAsked(ChunkedRecords):
    """Records in a keyring that is locked until the user is asked."""

    asked = False

    def would_ask(self, *, writing: bool) -> bool:
        return not self.asked

    def read(self, key: str) -> str | None:
        self.asked = True
        return super().read(key)


# -- idle servers ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-not-ready")
async def test_a_server_that_rests_is_not_ready_once_its_sign_in_is_gone(tmp_path: Path) -> None:
    public = HttpServer()
    async with guarded() as server, public.running(), town(tmp_path) as made:
        await made.known(web(server), web(public, "public"))
        await made.sign_in()
        await made.gateway.services.pool.find("web").fetch()
        await made.gateway.services.pool.find("web").close()
        await made.gateway.services.pool.find("public").close()
        with anyio.fail_after(stretched(10.0)):
            while (made.row()["state"], made.row("public")["state"]) != ("idle", "idle"):  # noqa: ASYNC110 (probes end)
                await anyio.sleep(0.01)
        await made.control().result("logout", {"server": "web"})
        assert made.row()["state"] == "needs_auth"
        assert made.row("public")["state"] != "needs_auth"  # a probe may connect it at any time
        assert "multi-mcp auth web" in made.row()["error"]["hint"]


@pytest.mark.requirement("auth-not-ready")
async def test_a_sign_in_that_was_in_memory_only_is_missed_by_the_next_gateway(tmp_path: Path) -> None:
    async with guarded() as server, town(tmp_path) as made:
        await made.known(web(server))
        await made.sign_in()
        await made.gateway.services.pool.find("web").fetch()
        await made.gateway.services.writer.written()
        await made.gateway.services.pool.stop()
        made.entries = MemoryEntries()
        made.start()
        made.apply(web(server))
        await made.gateway.sign_ins.look()
        assert (made.state(), made.row()["state"]) == (State.IDLE, "needs_auth")
        await made.sign_in()
        assert made.row()["state"] == "connected"
