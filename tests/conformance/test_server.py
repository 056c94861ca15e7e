"""The suite's server scenarios: whatever passes directly also passes through the gateway and through the shim.

The suite also runs directly against the reference server, and each check is compared. There is no list of expected
failures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from devtools.places import ROOT
from tests.conformance.driver import Client
from tests.conformance.suite import NEUTRAL, PASSED, WHOLE_RUN_S, Run, run_server
from tests.e2e.gateway import Gateway, gateway_in

REFERENCE = [sys.executable, "-m", "tests.conformance.reference.server"]
START = Path(__file__).parent / "reference" / "start.py"
ADAPTER = [sys.executable, "-m", "tests.conformance.adapter"]

QUICK_SHELL = "/bin/sh"  # instead of the user's login shell, whose rc files may take seconds

# set -> the suite's edition, and the options that select the scenarios. For a newer revision, these are its
# requirements. For an older one, they are all scenarios. The stable edition runs all scenarios that are not pending.
SETS = {
    "2026-07-28": ("next", "--requirements", "2026-07-28"),
    "2025-11-25": ("next", "--requirements", "2025-11-25"),
    "2025-06-18": ("next", "--suite", "all", "--spec-version", "2025-06-18"),
    "2025-03-26": ("next", "--suite", "all", "--spec-version", "2025-03-26"),
    "stable": ("stable", "--suite", "active"),
}
NEWEST = "2026-07-28"
SCORED = (NEWEST, "2025-11-25")

pytestmark = pytest.mark.timeout(WHOLE_RUN_S)  # each test runs dozens of scenarios, each with its own server process


@dataclass(frozen=True, slots=True)
class Way:
    """How the gateway reaches the server, and how the suite reaches the gateway."""

    backend: str  # stdio, http or older (stdio in the older era only)
    shim: bool = False


STDIO, HTTP, OLDER, SHIM = Way("stdio"), Way("http"), Way("older"), Way("stdio", shim=True)
RUNS = [
    *((name, STDIO) for name in SETS),
    *((name, HTTP) for name in SCORED),
    *((name, SHIM) for name in SCORED),
    ("2025-11-25", OLDER),
]


@contextmanager
def listening(argv: list[str], **env: str) -> Iterator[str]:
    """Start a process and yield its first line of output, which is its address. Kill the process at the end."""
    with subprocess.Popen(argv, cwd=ROOT, env=os.environ | env, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def quick_reference() -> Iterator[list[str]]:
    """Yield the command of a reference server over stdio, to which a caller appends `--stdio` or `--older`.

    Where possible, the server is forked, because that is faster.
    """
    if not hasattr(os, "fork"):
        yield REFERENCE
        return
    with (
        tempfile.TemporaryDirectory(prefix="mm-") as folder,
        listening([*REFERENCE, "--forks", str(Path(folder) / "s")]) as path,
    ):
        yield [sys.executable, "-I", "-S", str(START), path]


@pytest.fixture(scope="module")
def reference() -> Iterator[str]:
    """Yield the URL of a reference server over HTTP."""
    with listening([*REFERENCE, "--http"]) as url:
        yield url


@pytest.fixture(scope="module")
def quick() -> Iterator[list[str]]:
    """Yield the command of a reference server over stdio."""
    with quick_reference() as argv:
        yield argv


@pytest.fixture(scope="module")
def direct(reference: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return a function that runs a set against the reference server itself, once for each set."""

    @cache
    def run(name: str) -> Run:
        edition, *selection = SETS[name]
        return run_server(edition, reference, tmp_path_factory.mktemp("direct"), *selection)

    return run


def entry(backend: str, url: str, command: list[str]) -> dict[str, Any]:
    """Return the reference server's entry for servers.yaml."""
    if backend == "http":
        return {"url": url, "type": "http"}
    return {"command": [*command, f"--{backend}"], "cwd": str(ROOT)}


@pytest.mark.requirement("conformance-direct")
@pytest.mark.parametrize("name", SETS)
def test_the_reference_server_passes_all_that_a_revision_requires(direct: Callable[[str], Run], name: str) -> None:
    run = direct(name)
    for key, verdict in run.wrong().items():
        print(f"fails direct ({run.unscored.get(key[0], 'required')}): {key[0]}, {key[1]}: {verdict.why}")
    assert {key[0] for key in run.wrong()} <= {name for name, why in run.unscored.items() if why == "extension"}


@pytest.mark.requirement("conformance-through")
@pytest.mark.parametrize(("name", "way"), RUNS, ids=[f"{n}-{w.backend}{'-shim' * w.shim}" for n, w in RUNS])
def test_what_passes_direct_passes_through_us(
    direct: Callable[[str], Run],
    fresh: Callable[[str], Run],
    reference: str,
    quick: list[str],
    home: Path,
    tmp_path: Path,
    name: str,
    way: Way,
) -> None:
    baseline = direct(name)
    if name == NEWEST and way in (STDIO, HTTP):  # another test compares this run with runs after older sessions
        run = fresh(way.backend)
    else:
        run = _through(home, tmp_path, name, way, reference, quick)
    assert run.scenarios == baseline.scenarios
    assert worse(baseline, run) == []


def _through(home: Path, folder: Path, name: str, way: Way, reference: str, quick: list[str]) -> Run:
    """Run a set through a new gateway."""
    edition, *selection = SETS[name]
    with gateway_for_suite(home, entry(way.backend, reference, quick), http=not way.shim) as gateway:
        if way.shim:
            with listening(ADAPTER, MULTI_MCP_HOME=str(home)) as url:
                return run_server(edition, url, folder, *selection)
        return run_server(edition, gateway.http_url, folder, *selection)


@pytest.fixture(scope="module")
def fresh(reference: str, quick: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return a function that runs the newest set through a gateway without earlier sessions, once for each backend."""

    @cache
    def run(backend: str) -> Run:
        home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("fresh")
        return _through(home, folder, NEWEST, Way(backend), reference, quick)

    return run


@contextmanager
def gateway_for_suite(home: Path, server: dict[str, Any], *, http: bool = True) -> Iterator[Gateway]:
    """Yield a gateway that has connected to the reference server."""
    with gateway_in(home, forked=True) as gateway:
        gateway.write({"reference": server}, http={"enabled": http, "port": 0, "token": False}, tool_prefix="none")
        gateway.env["SHELL"] = QUICK_SHELL
        gateway.start()
        gateway.control("settle")
        yield gateway


@pytest.mark.requirement("conformance-through")
# Over HTTP, one process serves all sessions, so one case covers both ended sessions and an idle one.
@pytest.mark.parametrize(("backend", "idle"), [("stdio", False), ("stdio", True), ("http", True)])
def test_sessions_of_the_older_era_before_it_change_nothing_for_the_newer_set(
    direct: Callable[[str], Run],
    fresh: Callable[[str], Run],
    reference: str,
    quick: list[str],
    home: Path,
    tmp_path: Path,
    backend: str,
    idle: bool,
) -> None:
    """The older sessions have called the server, which supports both eras, and have ended. With `idle`, one more is
    open.
    """
    edition, *selection = SETS[NEWEST]
    with gateway_for_suite(home, entry(backend, reference, quick)) as gateway:

        async def after_older_sessions() -> Run:
            for _ in range(2):
                async with gateway.client() as client:
                    await client.tools()
                    assert (await client.call("test_simple_text"))["content"]
            async with AsyncExitStack() as stack:
                if idle:
                    await (await stack.enter_async_context(gateway.client())).call("test_simple_text")
                url = gateway.http_url
                return await anyio.to_thread.run_sync(run_server, edition, url, tmp_path, *selection)

        run = anyio.run(after_older_sessions)
    assert worse(direct(NEWEST), run) == []
    before = fresh(backend)
    assert {key: verdict.status for key, verdict in run.verdicts.items()} == {
        key: verdict.status for key, verdict in before.verdicts.items()
    }


@pytest.mark.requirement("lists-current")
@pytest.mark.parametrize("modern", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("backend", ["stdio", "http", "older"])
def test_a_list_right_after_a_call_that_changes_it_is_the_changed_one(
    reference: str, quick: list[str], home: Path, backend: str, modern: bool
) -> None:
    async def use(gateway: Gateway) -> None:
        async with gateway.client(None if modern else "2025-11-25") as raw:
            client = Client(raw, NEWEST if modern else "2025-11-25", "")

            async def is_there() -> bool:
                listed = (await client.request("tools/list", {}))["tools"]
                return "dynamic_tools" in [tool["name"] for tool in listed]

            there = await is_there()
            for _ in range(6):
                await client.request("tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
                assert await is_there() is not there
                there = not there

    with gateway_for_suite(home, entry(backend, reference, quick), http=False) as gateway:
        anyio.run(use, gateway)


def worse(baseline: Run, run: Run) -> list[str]:
    """Return the checks that passed directly but not through the gateway, and those that failed only through it.

    A neutral check counts as passed, because the suite uses this status for checks that do not apply. For example, a
    server that does not cut its streams need not be able to resume them.
    """
    lost = {
        key: run.verdicts.get(key)
        for key, verdict in baseline.verdicts.items()
        if verdict.status == PASSED and (key not in run.verdicts or run.verdicts[key].status not in (PASSED, NEUTRAL))
    }
    new = {key: verdict for key, verdict in run.wrong().items() if key not in baseline.wrong()}
    return [f"{key}: {verdict}" for key, verdict in {**lost, **new}.items()]
