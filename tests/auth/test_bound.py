"""Property tests: no token is sent to a wrong address, despite edits, config layers, redirects and restarts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.auth.places import MemoryEntries
from trayapp.auth.accounts import Accounts
from trayapp.auth.grant import Grant, OAuthClient, canonical, covers, record_key
from trayapp.auth.os_keyring import ChunkedRecords
from trayapp.auth.vault import Vault
from trayapp.backends.http.auth import RequestSigner, challenge_of
from trayapp.backends.http.refusal import HttpRefusal
from trayapp.config.layers.overlay import HTTP_FIELDS, merge_entry

SCHEMES = st.sampled_from(["http", "https", "HTTPS"])
HOSTS = st.sampled_from(
    [
        *(
            "a.example",
            "A.example",
            "b.example",
            "a.example.b.example",
            "a.example.",
            "127.0.0.1",
            "[::1]",
            "b\u00fccher.example",
        ),
        "a.example@b.example",
    ]
)
PORTS = st.sampled_from(["", ":80", ":443", ":8080"])
PATHS = st.sampled_from(
    [
        *("", "/", "/mcp", "/mcp/", "/MCP", "/mcp/../other", "/mcp/./", "/../mcp", "/mcp%2f", "/mcp;x", "//mcp"),
        *("/other", "/mcp\\x", "/m\u00e7p", "/m p", "/m|p", '/"p"', "/a/b/.."),
    ]
)
QUERIES = st.sampled_from(["", "?", "?t=a", "?t=b", "#mcp", "?t=a#x", "?t=\u00fc", "?u=http://x/?y"])
ADDRESSES = st.builds(lambda *parts: parts[0] + "://" + "".join(parts[1:]), SCHEMES, HOSTS, PORTS, PATHS, QUERIES)


def goes_to(address: str) -> tuple[str, str, int | None] | None:
    """Return the scheme, host and port that the HTTP library connects to, or None if the address is invalid."""
    with suppress(httpx2.InvalidURL):
        url = httpx2.URL(address)
        return url.scheme, url.host.rstrip("."), url.port or {"http": 80, "https": 443}[url.scheme]
    return None


@pytest.mark.requirement("auth-bound")
@settings(max_examples=1_000)
@given(ADDRESSES, ADDRESSES)
def test_a_covered_address_is_at_the_same_place(ours: str, asked: str) -> None:
    for whole_origin in (False, True):
        if covers(ours, asked, whole_origin=whole_origin):
            assert goes_to(asked) == goes_to(canonical(ours))
            assert "@" not in urlsplit(asked).netloc
    if covers(ours, asked):
        left, right = httpx2.URL(canonical(ours)), httpx2.URL(canonical(asked))
        assert left.raw_path.partition(b"?")[0].rstrip(b"/") == right.raw_path.partition(b"?")[0].rstrip(b"/")
        assert left.query == right.query


@given(ADDRESSES)
def test_an_address_has_one_spelling_and_covers_itself(address: str) -> None:
    assert canonical(canonical(address)) == canonical(address)
    assert record_key(address) == record_key(canonical(address))
    if "@" not in urlsplit(address).netloc:
        assert covers(address, canonical(address))


@settings(max_examples=500)
@given(ADDRESSES)
def test_an_address_as_sent_is_covered(address: str) -> None:
    if "@" not in urlsplit(address).netloc and "\\" not in address and not address.startswith("HTTPS"):
        assert covers(address, str(httpx2.URL(address)))


@pytest.mark.requirement("auth-bound")
@given(ADDRESSES, ADDRESSES)
def test_two_addresses_share_a_record_only_if_they_are_equal(left: str, right: str) -> None:
    assert (record_key(left) == record_key(right)) == (canonical(left) == canonical(right))


def test_a_name_in_the_keyring_holds_no_secret_of_an_address() -> None:
    assert "hush" not in record_key("https://a.example/mcp/hush?key=hush")
    assert "a.example" in record_key("https://a.example/mcp")


# -- edits, redirects, restarts --------------------------------------------------------------------------------------

PLACES = (
    "https://a.example/mcp",
    "https://a.example/mcp?t=b",
    "https://a.example/other",
    "https://a.example:8443/mcp",
    "http://a.example/mcp",
    "https://b.example/mcp",
    "https://a.example.b.example/mcp",
)
PLACE = st.sampled_from(PLACES)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sign in"), PLACE, PLACE),
        st.tuples(st.just("edit"), PLACE, PLACE),
        st.tuples(st.just("redirect"), PLACE, PLACE),
        st.tuples(st.just("sign out"), PLACE, PLACE),
        st.tuples(st.just("restart"), PLACE, PLACE),
        st.tuples(st.just("swap records"), PLACE, PLACE),
    ),
    min_size=3,
    max_size=14,
)


def token_of(url: str) -> str:
    """Return a token that contains its address."""
    return f"for {url}"


class Life:
    """One user's accounts through a series of changes. `sent` holds the address and Authorization of every request."""

    def __init__(self, tasks: Any) -> None:
        self.entries = MemoryEntries()
        self.sent: list[tuple[str, str | None]] = []
        self.address = PLACES[0]
        self.redirect: str | None = None
        self._tasks = tasks
        self.accounts = self._started()

    def _started(self) -> Accounts:
        vault = Vault(ChunkedRecords(self.entries))
        return Accounts(vault, self._tasks, lambda: 0.0, anyio.sleep)

    async def step(self, what: str, one: str, other: str) -> None:
        if what == "sign in":
            await self.accounts.of(one).take(Grant(canonical(one), token_of(one), OAuthClient("c"), 0.0))
        elif what == "edit":
            self.address, self.redirect = one, None
        elif what == "redirect":
            self.redirect = one
        elif what == "sign out":
            await self.accounts.of(one).forget()
        elif what == "swap records":
            texts, left, right = self.entries.texts, record_key(one), record_key(other)
            moved = {left: texts.get(right), right: texts.get(left)}
            texts.update({key: text for key, text in moved.items() if text is not None})
        else:
            self.accounts.vault.close()
            self.accounts = self._started()
        await self.request()

    async def request(self) -> None:
        """Send a request as a connection does, and follow `redirect` if it is set."""
        signed = RequestSigner(self.accounts.of(self.address), "web", HttpRefusal(), whole_origin=False)
        request = httpx2.Request("POST", self.address, json={})
        await signed.send(request, self._answer)
        if self.redirect is not None:
            onward = httpx2.Request("POST", self.redirect, headers=request.headers, json={})
            await signed.send(onward, self._answer)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append((str(request.url), request.headers.get("authorization")))
        return httpx2.Response(401, request=request)


@pytest.mark.requirement("auth-bound")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_despite_edits_and_redirects_each_token_is_sent_only_to_its_address(steps: list[tuple[str, str, str]]) -> None:
    sent: list[tuple[str, str | None]] = []

    async def live() -> None:
        async with anyio.create_task_group() as tasks:
            life = Life(tasks)
            for step in steps:
                await life.step(*step)
            life.accounts.vault.close()
            sent.extend(life.sent)

    anyio.run(live)
    for url, carried in sent:
        assert carried in (None, f"Bearer {token_of(url)}")


@pytest.mark.anyio
@pytest.mark.requirement("auth-bound")
async def test_a_request_keeps_no_token_that_a_redirect_could_inherit() -> None:
    async with anyio.create_task_group() as tasks:
        life = Life(tasks)
        await life.step("sign in", PLACES[0], "")
        request = httpx2.Request("POST", PLACES[0], headers={"authorization": "own"}, json={})
        signed = RequestSigner(life.accounts.of(PLACES[0]), "web", HttpRefusal(), whole_origin=False)
        await signed.send(request, life._answer)
        assert life.sent[-1][1] == f"Bearer {token_of(PLACES[0])}"
        assert request.headers["authorization"] == "own"
        life.accounts.vault.close()


# -- layers ----------------------------------------------------------------------------------------------------------

CREDENTIALS = sorted(HTTP_FIELDS - {"url", "type"})
ENTRY = st.fixed_dictionaries(
    {},
    optional={"url": PLACE, **{name: st.sampled_from(["low", "high"]) for name in CREDENTIALS}},
)


@pytest.mark.requirement("auth-bound")
@given(ENTRY, ENTRY)
def test_an_entry_laid_over_another_takes_no_credentials_to_another_address(
    lower: Mapping[str, Any], upper: Mapping[str, Any]
) -> None:
    merged = merge_entry(lower, upper)
    if "url" in upper and upper["url"] != lower.get("url"):
        assert {name: merged.get(name) for name in CREDENTIALS} == {name: upper.get(name) for name in CREDENTIALS}


# -- challenges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", {}),
        ("Bearer", {}),
        ('Bearer error="insufficient_scope", scope="a b"', {"error": "insufficient_scope", "scope": "a b"}),
        ("Bearer error=insufficient_scope,scope=a", {"error": "insufficient_scope", "scope": "a"}),
        ('bearer Scope = "a"', {"scope": "a"}),
        ('Bearer scope="' + "x" * 5000 + '"', {}),
    ],
)
def test_challenges_are_read(header: str, expected: dict[str, str]) -> None:
    assert challenge_of(header) == expected
