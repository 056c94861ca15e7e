"""Every stage of a sign-in, with real processes at log level debug. Afterwards no secret is found anywhere."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from tests.auth.issuer import Guarded, Issuer, browse, guarded
from tests.auth.places import Desk, desk
from tests.cli.running import PROGRAM, environment, launch_with, run_cli
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.fixtures.odd import Odd
from tests.tools import require

pytestmark = pytest.mark.anyio

SAMPLES_S = 0.02  # between two samples of all command lines
NAMED = "s3cr3t-named-value-of-the-user"
PREFIX = "s3cr3t"


class Watcher:
    """A thread that keeps recording the command lines of all processes."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Watch in a thread until the end of the block, and yield this watcher."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLES_S):
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    self.seen.add(" ".join(process.cmdline()))


class Scene:
    """A gateway, a server that requires a sign-in, and all output that a user or a program has received."""

    def __init__(self, gateway: Gateway, server: Guarded) -> None:
        self.gateway = gateway
        self.server = server
        self.said: list[str] = []

    async def verb(self, *argv: str, stdin: str = "") -> int:
        """Run a command-line verb, record its output and return its exit code."""
        home, env = self.gateway.home, self.gateway.env
        done = await anyio.to_thread.run_sync(lambda: run_cli(home, *argv, stdin=stdin, env=env))
        self.said += [done.stdout, done.stderr]
        return done.returncode

    async def sign_in(self) -> None:
        """Run `multi-mcp auth web --no-browser` and open the printed URL as a browser would."""
        process = launch_with(self.gateway.home, self.gateway.env, "auth", "web", "--no-browser")
        with process:
            assert process.stderr is not None
            stderr = process.stderr
            words = [await anyio.to_thread.run_sync(stderr.readline) for _ in range(2)]
            self.said.append(await browse(words[1].strip()))
            out, err = await anyio.to_thread.run_sync(process.communicate)
        self.said += [*words, out, err]

    def secrets(self) -> set[str]:
        """Return the secrets that must not appear anywhere."""
        forms = [form for _, form in self.server.issuer.asked]
        hidden = ("code", "code_verifier", "refresh_token", "client_secret")
        sent = {form[name] for form in forms for name in hidden if name in form}
        return {*self.server.issuer.secrets, *sent, *self.server.tokens(), NAMED}


@asynccontextmanager
async def scene(home: Path, session: Desk) -> AsyncIterator[Scene]:
    async with guarded(issuer=Issuer(lifetime=0)) as server:
        with gateway_in(home) as gateway:
            own = {"MULTI_MCP_HOME": str(home), "MULTI_MCP_LOG": "debug", "PYTHONIOENCODING": "utf-8"}
            gateway.env = {**environment(home), **session.environ, **own}
            gateway.write(
                {
                    "web": {"url": server.url()},
                    "named": {"url": server.url("/mcp?x=1"), "headers": {"Authorization": "Bearer ${keyring:mine}"}},
                }
            )
            await anyio.to_thread.run_sync(gateway.start)
            yield Scene(gateway, server)


async def live(made: Scene) -> None:
    """Store a secret, sign in, call, refresh the tokens, cause various failures and sign out."""
    issuer, gateway = made.server.issuer, made.gateway
    await made.verb("secret", "set", "mine", stdin=f"{NAMED}\n")
    await made.verb("secret", "set", "mine", NAMED)
    await made.sign_in()
    async with gateway.client() as client:
        # The tokens expire immediately, so that each request refreshes them first.
        for status in (200, 200, 400):
            issuer.token_status, issuer.echoes = status, True
            try:
                await client.request("tools/call", {"name": "web_echo", "arguments": {"text": "x"}})
            except RpcFailure as failure:
                made.said.append(str(failure.error))
        issuer.token_status, issuer.lifetime = 200, 3600
        made.said.append(json.dumps(client.told))
        with suppress(RpcFailure):
            await client.request("tools/call", {"name": "web_echo", "arguments": {"text": "x"}})
    for verb in (["status"], ["status", "--json"], ["auth"], ["list"], ["doctor"], ["logs"], ["logs", "web"]):
        await made.verb(*verb)
    issuer.token_status = 500
    await made.sign_in()
    issuer.token_status, issuer.denies = 200, "access_denied"
    await made.sign_in()
    issuer.denies, issuer.other_iss = None, "https://evil.example"
    await made.sign_in()
    issuer.other_iss = None
    await made.sign_in()
    await made.verb("reconnect", "web")
    await made.verb("call", "web_echo", "text=x")
    await made.verb("status", "--json")
    await made.verb("auth", "web", "--logout")
    await made.verb("call", "web_echo", "text=x")
    await made.verb("secret", "list")
    await made.verb("secret", "delete", "mine")
    await made.verb("logs", "--json")
    made.said.append(json.dumps(await gateway.ask("snapshot")))


def files_below(*folders: Path) -> Iterable[tuple[Path, bytes]]:
    for folder in folders:
        for path in folder.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    yield path, path.read_bytes()


@pytest.mark.timeout(180)
@pytest.mark.requirement("auth-nothing-leaks")
async def test_after_all_of_it_no_secret_is_in_any_file_log_cache_argv_snapshot_or_error(home: Path) -> None:
    require("gnome-keyring-daemon")
    with desk() as session, Watcher().watching() as watcher:
        async with scene(home, session) as made:
            await live(made)
            secrets = made.secrets()
            await anyio.to_thread.run_sync(made.gateway.stop)
            assert made.server.issuer.refreshes() >= 1
            assert len([one for one in secrets if PREFIX in one]) >= 8
            found: list[Any] = []
            for path, data in files_below(home, session.folder):
                found += [(path, one) for one in secrets if one.encode() in data]
            found += [("said", one) for one in secrets for text in made.said if one in text]
            # A secret in the command line of `secret set NAME VALUE` is the user's mistake, not a leak.
            argv = [line for line in watcher.seen if "secret set mine" not in line]
            found += [("argv", line) for one in secrets for line in argv if one in line]
            assert found == []
            assert "DEBUG" in (home / "logs" / "gateway.log").read_text()
            assert any(str(PROGRAM[-1]) in line for line in watcher.seen)


async def test_a_server_that_says_what_it_was_given_says_it_to_nobody(home: Path) -> None:
    given = ["plum-tree-4-lantern", "curtain up 8 now"]
    words = f"I run with {given[0]} and {given[1]}|it is {given[1]}"
    with gateway_in(home) as gateway:
        dies = Odd(home, "dies", ("--say", words, "--die", "start"))
        runs = Odd(home, "runs", ("--say", words))
        env = {"API_TOKEN": given[0], "DB_PASSWORD": given[1]}
        gateway.write({odd.name: entry(odd, env=env) for odd in (dies, runs)})
        await anyio.to_thread.run_sync(gateway.start)
        await anyio.to_thread.run_sync(gateway.control, "settle")
        said = json.dumps(gateway.snapshot())
        assert "I run with [redacted]" in said
        async with gateway.client() as client:
            with pytest.raises(RpcFailure) as failed:
                await client.request("tools/call", {"name": "dies_echo", "arguments": {}})
        said += str(failed.value.error)
        await anyio.to_thread.run_sync(gateway.stop)
    logs = [data.decode() for _, data in files_below(home / "logs", home / "cache")]
    assert any("it is [redacted]" in text for text in logs)
    assert [one for one in given for text in (said, *logs) if one in text] == []
