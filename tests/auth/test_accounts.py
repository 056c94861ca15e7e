"""Signing in, renewing and signing out against a real authorization server."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from tests.auth.issuer import Guarded, Issuer, SelfIssuing, browse, guarded
from tests.auth.world import Person, person
from tests.fixtures.clock import settle
from tests.tools import NO_CERTIFICATES
from trayapp.auth.grant import EXPIRES_S, ClientSettings, SignInError, record_key

pytestmark = pytest.mark.anyio


class AnyRedirect(OAuthClientInformationFull):
    """A manually registered client whose redirects may use any loopback port (RFC 8252 7.3)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        assert redirect_uri.host == "127.0.0.1"
        return redirect_uri

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        return requested_scope.split() if requested_scope else None


async def where_it_ends(url: str) -> str:
    """Return the URL that the service redirects a browser to, without following it."""
    async with httpx2.AsyncClient(verify=NO_CERTIFICATES) as browser:
        return str((await browser.get(url)).headers["location"])


async def token(made: Person, server: Guarded) -> str | None:
    """Return the current Authorization value for a request to the server."""
    return await made.accounts.of(server.url()).authorization(server.url())


# -- signing in ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-sign-in")
async def test_a_sign_in_ends_with_a_token_for_that_address_and_a_page() -> None:
    async with guarded() as server, person() as made:
        assert await token(made, server) is None
        begun = await made.sign_in(server.url())
        header = await token(made, server)
        assert header is not None
        assert header.removeprefix("Bearer ") in server.issuer.access
        assert "Signed in to web" in made.pages[0]
        assert made.accounts._in_progress == {}
        assert begun.error is None
        status = made.accounts.status(server.url())
        assert status is not None
        assert (status.signed_in, status.renews, status.kept) == (True, True, True)
        assert status.until == pytest.approx(made.clock.time() + 3600)


@pytest.mark.requirement("auth-sign-in")
async def test_a_sign_in_sends_pkce_state_and_the_resource() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        visit = server.issuer.visits[0]
        assert visit["code_challenge_method"] == "S256"
        assert len(visit["state"]) >= 32
        assert visit["resource"] == server.url()
        (kind, form), *_ = server.issuer.asked
        assert (kind, form["resource"]) == ("authorization_code", server.url())
        assert len(form["code_verifier"]) >= 43


@pytest.mark.parametrize(
    "switches",
    [
        {"describes_itself": True, "points": False},
        {"resource_scopes": ["a", "b"]},
        {"challenge_scope": "c d"},
        {"open_methods": {"ping"}},
    ],
    ids=["well-known only", "scopes by metadata", "scopes by challenge", "refuses only some requests"],
)
async def test_the_sign_in_service_is_found(switches: dict[str, Any]) -> None:
    async with guarded(**switches) as server, person() as made:
        await made.sign_in(server.url())
        assert await token(made, server) is not None
        wanted = switches.get("challenge_scope") or " ".join(switches.get("resource_scopes", []))
        assert server.issuer.visits[0].get("scope", "") == wanted


@pytest.mark.parametrize("path", ["", "/oauth"])
async def test_a_server_may_be_its_own_sign_in_service_as_in_2025_03_26(path: str) -> None:
    issuer = Issuer()
    server = SelfIssuing(issuer=issuer, describes_itself=False)
    async with server.running(), person() as made:
        issuer.at(server.port)
        issuer.other_issuer = issuer.other_iss = f"{issuer.url}{path}" if path else None
        await made.sign_in(server.url())
        assert await token(made, server) is not None
        await made.clock.pass_(4000)
        assert await token(made, server) is not None


@pytest.mark.requirement("auth-clients")
async def test_each_sign_in_registers_a_client_with_its_own_port() -> None:
    async with guarded() as server, person() as made:
        first = await made.sign_in(server.url())
        second = await made.sign_in(server.url())
        assert server.issuer.registered == 2
        assert first.redirect_uri != second.redirect_uri


@pytest.mark.requirement("auth-clients")
async def test_a_stale_registration_is_replaced_once() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        server.issuer.forget_clients()
        await made.clock.pass_(4000)
        assert await token(made, server) is None
        assert await token(made, server) is None
        assert server.issuer.refreshes() == 1
        await made.sign_in(server.url())
        assert server.issuer.registered == 2
        assert await token(made, server) is not None


@pytest.mark.requirement("auth-clients")
@pytest.mark.parametrize("methods", [["client_secret_post"], ["client_secret_basic"]])
async def test_the_users_own_client_authenticates_by_a_method_of_the_service(methods: list[str]) -> None:
    issuer = Issuer(registers=False, token_methods=methods)
    async with guarded(issuer=issuer) as server, person() as made:
        issuer.clients["mine"] = AnyRedirect(
            client_id="mine", client_secret="s3cr3t-mine", token_endpoint_auth_method=methods[0]
        )
        settings = ClientSettings("mine", "s3cr3t-mine", ("a",))
        await made.sign_in(server.url(), client=settings)
        assert issuer.visits[0]["scope"] == "a"
        assert "s3cr3t-mine" not in made.kept()
        made.restart()
        made.accounts.of(server.url()).settings = settings
        await made.clock.pass_(4000)
        assert await token(made, server) is not None
        assert issuer.refreshes() == 1


async def test_a_service_without_registration_is_an_error_with_a_hint() -> None:
    async with guarded(issuer=Issuer(registers=False)) as server, person() as made:
        with pytest.raises(SignInError, match="does not register new clients") as caught:
            await made.sign_in(server.url())
        assert "client_id" in caught.value.hint


@pytest.mark.requirement("auth-clients")
async def test_a_metadata_document_is_the_client_id_if_the_service_supports_it() -> None:
    document = "https://multi-mcp.example/client.json"
    async with guarded(issuer=Issuer(takes_documents=True)) as server, person() as made:
        await made.sign_in(server.url(), document_url=document)
        assert server.issuer.visits[0]["client_id"] == document
        assert server.issuer.registered == 0
    async with guarded() as server, person() as made:
        await made.sign_in(server.url(), document_url=document)
        assert server.issuer.registered == 1


async def test_one_sign_in_at_a_time_for_an_address() -> None:
    async with guarded() as server, person() as made:
        first, second = made.start(server.url()), made.start(server.url() + "#x")
        assert first is second
        await browse(await first.shown())
        await second.finished()


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-refused")
@pytest.mark.parametrize(
    ("switches", "title"),
    [
        ({"denies": "access_denied"}, "was declined"),
        ({"denies": "server_error"}, "rejected the sign-in: server_error"),
        ({"other_iss": "https://evil.example"}, "a different sign-in service"),
        ({"other_issuer": "https://evil.example"}, "issuer mismatch"),
        ({"metadata_status": 500}, "failed .HTTP 500"),
        ({"metadata_status": 404}, "publishes no metadata"),
        ({"token_status": 500}, "rejected the sign-in: temporarily_unavailable"),
        ({"methods": ["plain"]}, "PKCE"),
    ],
)
async def test_a_failed_sign_in_has_its_reason_in_page_and_error(switches: dict[str, Any], title: str) -> None:
    async with guarded(issuer=Issuer(**switches)) as server, person() as made:
        with pytest.raises(SignInError, match=title) as caught:
            await made.sign_in(server.url())
        assert caught.value.hint
        assert await token(made, server) is None
        assert made.kept() == ""
        for page in made.pages:
            assert "Signed in to" not in page
            assert "Not signed in" in page or "failed" in page


async def test_an_answer_without_issuer_is_refused_if_the_service_promises_one() -> None:
    async with guarded() as server, person() as made:
        begun = made.start(server.url())
        await begun.shown()
        state = parse_qs(urlsplit(begun.url).query)["state"][0]
        page = await browse(f"{begun.redirect_uri}?code=x&state={state}")
        assert "a different sign-in service" in page
        with pytest.raises(SignInError, match="a different sign-in service"):
            await begun.finished()


@pytest.mark.parametrize("switches", [{"other_resource": "https://evil.example/mcp"}, {"resource_status": 500}])
async def test_no_sign_in_to_a_server_with_wrong_metadata(switches: dict[str, Any]) -> None:
    async with guarded(**switches) as server, person() as made:
        with pytest.raises(SignInError):
            await made.sign_in(server.url())
        assert server.issuer.seen == []


async def test_an_unreachable_server_is_an_error() -> None:
    async with person() as made:
        with pytest.raises(SignInError, match="Cannot reach"):
            await made.sign_in("http://127.0.0.1:1/mcp")


async def test_nothing_is_sent_to_a_service_without_encryption() -> None:
    async with guarded() as server, person() as made:
        server.issuer.also_says = {"registration_endpoint": "http://example.org/register"}
        with pytest.raises(SignInError, match="not encrypted"):
            await made.sign_in(server.url())


@pytest.mark.requirement("auth-mixup")
async def test_the_users_own_client_is_not_used_at_another_service() -> None:
    evil = Issuer()
    async with guarded() as server, evil.running(), person() as made:
        server.issuer.clients["mine"] = evil.clients["mine"] = AnyRedirect(
            client_id="mine", client_secret="s3cr3t-mine", token_endpoint_auth_method="client_secret_basic"
        )
        settings = ClientSettings("mine", "s3cr3t-mine")
        await made.sign_in(server.url(), client=settings)
        good, server.issuer = server.issuer, evil
        with pytest.raises(SignInError, match="another sign-in service"):
            await made.sign_in(server.url(), client=settings)
        assert (evil.asked, evil.visits) == ([], [])
        await made.clock.pass_(4000)
        await token(made, server)
        assert (good.refreshes(), evil.asked) == (1, [])


@pytest.mark.requirement("auth-callback")
async def test_five_minutes_without_an_answer_end_the_listener() -> None:
    async with guarded() as server, person() as made:
        begun = made.start(server.url())
        await begun.shown()
        await made.clock.pass_(EXPIRES_S)
        with pytest.raises(SignInError, match="five minutes"):
            await begun.finished()
        with pytest.raises(Exception, match="onnect"):
            await browse(begun.redirect_uri)


@pytest.mark.requirement("auth-callback")
async def test_a_pasted_address_completes_the_sign_in_like_the_browser() -> None:
    async with guarded() as server, person() as made:
        begun = made.start(server.url())
        answer = await where_it_ends(await begun.shown())
        for wrong in ("", "nonsense", "http://127.0.0.1/callback?code=x&state=y", answer.replace("state=", "state=x")):
            with pytest.raises(SignInError, match="not the address"):
                begun.paste(wrong)
        begun.paste(f"  {answer}\n")
        await begun.finished()
        with pytest.raises(SignInError):
            begun.paste(answer)
        assert await token(made, server) is not None


async def test_the_page_waits_for_a_slow_service_and_then_shows_the_outcome() -> None:
    async with guarded() as server, person() as made:
        server.issuer.delay = anyio.Event()
        begun = made.start(server.url())
        address = await begun.shown()
        async with anyio.create_task_group() as tasks:

            async def browser() -> None:
                made.pages.append(await browse(address))

            tasks.start_soon(browser)
            while not server.issuer.asked:
                await settle()
            assert made.pages == []
            server.issuer.delay.set()
            await begun.finished()
        assert "Signed in to web" in made.pages[0]


# -- renewing --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-renew")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_token_is_renewed_before_it_expires_also_after_a_restart(restart: bool) -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        first = await token(made, server)
        await made.clock.pass_(3500)
        assert await token(made, server) == first
        await made.clock.pass_(50)
        if restart:
            made.restart()
        assert await token(made, server) not in (first, None)
        assert (server.issuer.refreshes(), made.opened) == (1, 1)
        assert server.issuer.asked[-1][1]["resource"] == server.url()


@pytest.mark.requirement("auth-renew")
async def test_twenty_requests_share_one_renewal_even_if_the_first_is_cancelled() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        await made.clock.pass_(4000)
        server.issuer.delay = anyio.Event()
        got: list[str | None] = []

        async def ask(scope: anyio.CancelScope) -> None:
            with scope:
                got.append(await token(made, server))

        scopes = [anyio.CancelScope() for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(ask, scope)
            while not server.issuer.refreshes():
                await settle()
            scopes[0].cancel()
            await settle()
            server.issuer.delay.set()
        assert len(got) == 19
        assert len(set(got)) == 1
        assert server.issuer.refreshes() == 1


@pytest.mark.requirement("auth-rotation")
@pytest.mark.parametrize("answered", [True, False])
async def test_a_gateway_that_ends_waits_a_moment_for_a_renewal_in_flight(answered: bool) -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        made.clock.jump(4000)
        server.issuer.delay = anyio.Event()
        async with anyio.create_task_group() as gateway:
            made.restart(gateway)
            gateway.start_soon(token, made, server)
            while not server.issuer.refreshes():
                await settle()
            await made.accounts.close()
            gateway.cancel_scope.cancel()
            if answered:
                server.issuer.delay.set()
        kept = [one for one in server.issuer.refresh if one in made.kept()]
        assert bool(kept) == (answered or not server.issuer.delay.is_set())
        server.issuer.delay = None
        made.restart()
        assert (await token(made, server) is not None) == bool(kept)


@pytest.mark.requirement("auth-renew")
async def test_after_a_401_the_token_is_renewed_once_and_then_not_for_a_while() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        first = await token(made, server)
        await made.clock.pass_(100)
        server.issuer.access.clear()
        second = await account.authorization_after(first, server.url())
        assert second not in (first, None)
        assert await account.authorization_after(first, server.url()) == second
        assert await account.authorization_after(second, server.url()) is None
        assert server.issuer.refreshes() == 1


@pytest.mark.requirement("auth-renew")
@pytest.mark.parametrize("status", [500, 503, 429, 403])
async def test_a_temporary_failure_of_the_service_keeps_the_sign_in(status: int) -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        server.issuer.token_status = status
        await made.clock.pass_(3580)
        first = await token(made, server)
        assert first is not None  # the token is still valid
        await made.clock.pass_(100)
        for _ in range(5):
            with pytest.raises(SignInError, match=f"HTTP {status}"):
                await token(made, server)
        assert server.issuer.refreshes() == 2  # the five calls sent only one request
        server.issuer.token_status = 200
        await made.clock.pass_(10)
        assert await token(made, server) not in (first, None)


async def test_a_revoked_sign_in_has_ended_and_opens_no_browser() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        server.issuer.end_all()
        await made.clock.pass_(4000)
        for _ in range(3):
            assert await token(made, server) is None
        assert (server.issuer.refreshes(), made.opened) == (1, 1)
        status = made.accounts.status(server.url())
        assert status is not None
        assert not status.signed_in
        made.restart()
        assert await token(made, server) is None
        assert server.issuer.refreshes() == 1


@pytest.mark.parametrize("rotates", [True, False])
@pytest.mark.parametrize("lifetime", [None, 5, 3600])
async def test_tokens_of_every_kind_of_service_are_renewed(rotates: bool, lifetime: int | None) -> None:
    async with guarded(issuer=Issuer(rotates=rotates, lifetime=lifetime)) as server, person() as made:
        server.issuer.now = made.clock.time
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        for _ in range(3):
            await made.clock.pass_(4000)
            if lifetime is None:
                server.issuer.access.clear()
                await account.authorization_after(await token(made, server), server.url())
            header = await token(made, server)
            assert header is not None
            assert await server.issuer.load_access_token(header.removeprefix("Bearer ")) is not None


async def test_without_refresh_tokens_the_user_signs_in_again() -> None:
    async with guarded(issuer=Issuer(renewable=False)) as server, person() as made:
        await made.sign_in(server.url())
        await made.clock.pass_(4000)
        assert await token(made, server) is None
        assert server.issuer.refreshes() == 0


@pytest.mark.requirement("auth-step-up")
async def test_a_required_scope_is_requested_besides_the_granted_ones() -> None:
    async with guarded(challenge_scope="read") as server, person() as made:
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        account.require_scope("write")
        account.require_scope("write admin")
        assert account.status is not None
        assert account.status.wanted == "write admin"
        await made.sign_in(server.url())
        assert server.issuer.visits[-1]["scope"].split() == ["read", "write", "admin"]
        assert account.status.wanted is None


# -- the keyring -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("auth-bound")
async def test_a_record_for_another_address_is_ignored() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        key = record_key(server.url())
        text = made.entries.texts[key]
        made.restart()
        other = f"http://127.0.0.1:{server.port}/other"
        made.entries.texts[record_key(other)] = text
        assert await made.accounts.of(other).authorization(other) is None
        assert server.issuer.url in json.loads(text.removeprefix("1:"))["issuer"]["issuer"]


@pytest.mark.requirement("auth-rotation")
async def test_a_renewed_token_is_stored_before_it_is_used() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        await made.clock.pass_(4000)
        header = await token(made, server)
        assert header is not None
        assert header.removeprefix("Bearer ") in made.kept()
        assert [name for name in server.issuer.refresh if name in made.kept()]


@pytest.mark.requirement("auth-sign-out")
async def test_signing_out_deletes_and_revokes_the_tokens() -> None:
    issuer = Issuer()
    issuer.clients["mine"] = AnyRedirect(
        client_id="mine", client_secret="s3cr3t-mine", token_endpoint_auth_method="client_secret_post"
    )
    issuer.token_methods = ["client_secret_post"]
    async with guarded(issuer=issuer) as server, person() as made:
        await made.sign_in(server.url(), client=ClientSettings("mine", "s3cr3t-mine"))
        assert await made.accounts.sign_out(server.url())
        assert issuer.revoked == 1
    async with guarded() as server, person() as made:
        assert not await made.accounts.sign_out(server.url())
        await made.sign_in(server.url())
        assert await made.accounts.sign_out(server.url())
        assert server.issuer.revoked == 1
        assert await token(made, server) is None
        assert made.entries.texts == {}


async def test_another_client_in_the_file_means_another_sign_in() -> None:
    async with guarded() as server, person() as made:
        await made.sign_in(server.url())
        account = made.accounts.of(server.url())
        account.settings = ClientSettings("mine")
        assert await token(made, server) is None
        account.settings = ClientSettings()
        assert await token(made, server) is not None
