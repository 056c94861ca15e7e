"""Clients of both eras, on two SDKs, get the same results through the gateway as directly, whichever came first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from devtools.places import ROOT
from tests.conformance.test_server import REFERENCE, listening, quick_reference
from tests.e2e.cell import MODERN, Cell, capabilities
from tests.e2e.client import task_group
from tests.e2e.gateway import Gateway
from tests.e2e.test_matrix import FEATURES, roots
from tests.e2e.test_one_name import params
from tests.e2e.test_questions import OLDER as OLDER_REVISION
from tests.e2e.test_questions import Person, people, served
from tests.e2e.test_sdk_clients import MODULES, PATIENCE_S, headers_of, printed, url_of
from tests.faults.world import LONG
from tests.fixtures.odd import until
from tests.patience import stretched
from tests.servers import REMEDY
from tests.tools import NO_CERTIFICATES, node, require_file
from trayapp.service.command_line import own_command

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("eras-of-one-server"), pytest.mark.timeout(120)]

OLDER = "legacy"  # both SDKs' name for the older era
CALLS = {
    "python": (
        "test_simple_text", "test_elicitation", "test_sampling", "test_input_required_result_list_roots",
        "test_input_required_result_multi_round",
    ),
    "typescript": ("echo", "who"),
}  # fmt: skip
Outcomes = dict[str, Any]
Expected = dict[tuple[str, str], Outcomes]  # the client's SDK and era -> its outcomes


@pytest.fixture(scope="module")
def quick() -> Iterator[list[str]]:
    """Yield the command of a reference server over stdio."""
    with quick_reference() as argv:
        yield argv


@pytest.fixture(scope="module")
def listening_of() -> Iterator[Callable[[str], str]]:
    """Yield a function that returns the URL of an SDK's server.

    All tests share the server, because its sessions share nothing but the process.
    """
    with ExitStack() as stack:
        yield cache(lambda sdk: stack.enter_context(listening(argv_of(sdk, "http", REFERENCE))))


@pytest.fixture(scope="module")
def expected_of() -> dict[tuple[str, str], Expected]:
    """Return an empty cache: the server's SDK and transport -> the outcomes of direct clients."""
    return {}


async def _expected(direct: Way, calls: tuple[str, ...]) -> Expected:
    found: Expected = {}
    for mode in (OLDER, MODERN):
        for client in ("python", "typescript"):
            async with AsyncExitStack() as stack:
                found[client, mode] = await direct.outcomes(client, mode, calls, stack)
    return found


def argv_of(sdk: str, transport: str, python: list[str]) -> list[str]:
    """Return the command of an SDK's server. `python` is the beginning of the command for Python."""
    if sdk == "python":
        return [*python, f"--{transport}"]
    require_file(MODULES / "@modelcontextprotocol" / "server" / "package.json", REMEDY)
    return [node(), str(Path(__file__).parent / "era_server.mjs"), str(MODULES), transport]


class Way:
    """A way for clients to reach a server or the gateway: over stdio or HTTP."""

    def __init__(self, gateway: Gateway, entry: dict[str, Any], prefix: str, headers: dict[str, str]) -> None:
        self.gateway, self.entry, self.prefix, self.headers = gateway, entry, prefix, headers

    async def outcomes(self, sdk: str, mode: str, calls: tuple[str, ...], stack: AsyncExitStack) -> Outcomes:
        """Return the outcomes of a client of this SDK and era.

        A Python client stays connected until `stack` is closed. A TypeScript client ends before this returns.
        """
        names = [self.prefix + call for call in calls]
        seen = await (self._python(mode, names, stack) if sdk == "python" else self._typescript(mode, names))
        shown = sorted(name.removeprefix(self.prefix) for name in seen.pop("tools"))
        return {"tools": shown, **{name.removeprefix(self.prefix): outcome for name, outcome in seen.items()}}

    async def _typescript(self, mode: str, names: list[str]) -> Outcomes:
        way = "http" if "url" in self.entry else "stdio"
        settings: dict[str, Any] = {"url": self.entry.get("url"), "headers": self.headers}
        if way == "stdio":
            program, *arguments = self.entry["command"]
            settings = {"command": program, "args": arguments, "env": self.gateway.env, "cwd": str(ROOT)}
        script = str(Path(__file__).parent / "era_client.mjs")
        argv = [node(), script, str(MODULES), mode, way, json.dumps(settings), *names]
        found: Outcomes = json.loads(await printed(argv, self.gateway))
        return found

    async def _python(self, mode: str, names: list[str], stack: AsyncExitStack) -> Outcomes:
        if "url" in self.entry:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(verify=NO_CERTIFICATES, headers=self.headers, timeout=PATIENCE_S)
            )
            transport: Any = streamable_http_client(self.entry["url"], http_client=http)
        else:
            program, *arguments = self.entry["command"]
            parameters = StdioServerParameters(command=program, args=arguments, env=self.gateway.env, cwd=str(ROOT))
            transport = stdio_client(parameters)
        client = await stack.enter_async_context(
            Client(
                transport, mode=mode, elicitation_callback=_elicited, sampling_callback=_sampled,
                list_roots_callback=_roots,
            )
        )  # fmt: skip
        seen: Outcomes = {"tools": sorted(tool.name for tool in (await client.list_tools()).tools)}
        for name in names:
            try:
                result: Any = await client.call_tool(name, {"message": "?", "prompt": "?"})
                seen[name] = [part.text for part in result.content]
            except MCPError as error:
                seen[name] = str(error.code)
        return seen


async def _elicited(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"said": "me"})


async def _sampled(context: Any, params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="sampled"), model="none"
    )


async def _roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///here")])  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "gone"), [(OLDER, False), (OLDER, True), (MODERN, False), *[(MODERN, True)] * LONG])
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("sdk", ["python", "typescript"])
async def test_whoever_came_first_a_client_of_the_other_era_gets_what_it_gets_direct(
    gateway: Gateway,
    quick: list[str],
    listening_of: Callable[[str], str],
    expected_of: dict[tuple[str, str], Expected],
    sdk: str,
    transport: str,
    first: str,
    gone: bool,
) -> None:
    """After the first client, which is idle or gone, come clients of the other era and then clients of its era."""
    second, calls = MODERN if first == OLDER else OLDER, CALLS[sdk]
    entry: dict[str, Any] = {"command": argv_of(sdk, transport, quick), "cwd": str(ROOT)}
    if transport == "http":
        entry = {"url": listening_of(sdk), "type": "http"}
    gateway.write({"s": entry}, http={"port": 0})
    gateway.start()
    await gateway.known()
    direct = Way(gateway, entry, "", {})
    by_shim = Way(gateway, {"command": [*own_command(), "stdio"]}, "s_", {})
    by_http = Way(gateway, {"url": url_of(gateway)}, "s_", headers_of(gateway))
    if (sdk, transport) not in expected_of:
        expected_of[sdk, transport] = await _expected(direct, calls)
    expected = expected_of[sdk, transport]
    async with AsyncExitStack() as idle:
        async with AsyncExitStack() as stack:
            found = await by_shim.outcomes("python", first, calls, stack if gone else idle)
            assert found == expected["python", first]
        for mode in (second, first):
            for client, way in (("python", by_http), ("typescript", by_shim)):
                async with AsyncExitStack() as stack:
                    assert await way.outcomes(client, mode, calls, stack) == expected[client, mode]


@pytest.mark.parametrize("revision", [OLDER_REVISION, MODERN])
@pytest.mark.parametrize("kind", ["stdio both", "http both"])
async def test_every_feature_works_for_clients_that_come_after_one_of_the_other_era(
    gateway: Gateway, tmp_path: Path, kind: str, revision: str
) -> None:
    """Two clients of the other era have answered a question before: one has left, and one is idle."""
    folders = {name: tmp_path / name for name in ("one", "two")}  # two servers, so that their addresses collide
    with ExitStack() as stack:
        for folder in folders.values():
            folder.mkdir()
        gateway.write({name: stack.enter_context(served(kind, folder)) for name, folder in folders.items()})
        gateway.start()
        await gateway.known()
        notes = folders["one"] / ("notes" if kind.startswith("stdio") else "http notes")
        first = MODERN if revision == OLDER_REVISION else OLDER_REVISION
        async with cell_of(gateway, first, notes) as gone:
            await roots(gone)
        async with cell_of(gateway, first, notes) as idle:
            await roots(idle)
            for feature in FEATURES:
                async with cell_of(gateway, revision, notes) as cell:
                    await feature(cell)
            assert idle.client.told == []


@asynccontextmanager
async def cell_of(gateway: Gateway, revision: str, notes: Path) -> AsyncIterator[Cell]:
    """Yield a cell with a client of this revision and the server `one`."""
    async with gateway.client(None) as client:
        if revision != MODERN:
            await client.initialize(revision, **capabilities(revision))
        yield Cell(client, revision, "one", notes)


@pytest.mark.parametrize("revision", [OLDER_REVISION, MODERN])
@pytest.mark.parametrize("kind", ["stdio both", "http both"])
async def test_a_client_that_changes_what_it_follows_hears_of_it_whoever_came_first(
    gateway: Gateway, tmp_path: Path, kind: str, revision: str
) -> None:
    """The first update after the confirmation arrives, because calls use the connection that has the subscription."""
    first = MODERN if revision == OLDER_REVISION else OLDER_REVISION
    with served(kind, tmp_path) as entry:
        gateway.write({"s": entry}, http={"port": 0})
        gateway.start()
        await gateway.known()
        ways = [("shim", first), ("shim", revision), ("http", revision)]
        async with people(gateway, ways, len(ways)) as everybody:
            for person in everybody:
                await _follow(person)
            for person in everybody:
                before = len(_updates(person))
                await person.client.request("tools/call", params(person.modern, "s_touch"))
                with anyio.fail_after(stretched(PATIENCE_S)):
                    await until(lambda person=person, before=before: len(_updates(person)) > before)


async def _follow(person: Person) -> None:
    if not person.modern:
        await person.client.request("resources/subscribe", {"uri": "era://x"})
        return
    meta = params(True, "s_touch")["_meta"]
    wanted = {"notifications": {"resourceSubscriptions": ["era://x"]}, "_meta": meta}
    person.client.ask("subscriptions/listen", wanted, "mine")
    await person.client.heard("notifications/subscriptions/acknowledged")


def _updates(person: Person) -> list[Any]:
    return [told for told in person.client.told if told["method"] == "notifications/resources/updated"]


@pytest.mark.parametrize(
    ("kind", "revisions"),
    [
        ("stdio older", (OLDER_REVISION, MODERN)), ("stdio newer", (OLDER_REVISION, MODERN)),
        ("stdio both", (OLDER_REVISION,)), ("stdio both", (MODERN,)),
    ],
)  # fmt: skip
async def test_a_server_that_nobodys_era_splits_has_one_process(
    gateway: Gateway, tmp_path: Path, kind: str, revisions: tuple[str, ...]
) -> None:
    """This holds for many concurrent sessions, because processes that only read lists end afterwards."""
    with served(kind, tmp_path) as entry:
        gateway.write({"s": entry}, http={"port": 0})
        gateway.start()
        await gateway.known()
        ways = [(way, revision) for way in ("shim", "http") for revision in revisions]
        async with people(gateway, ways, 12) as everybody:
            async with task_group() as calls:
                for person in everybody:
                    calls.start_soon(person.client.request, "tools/call", params(person.modern, "s_echo"))
            await until(lambda: len(gateway.children()) == 1)
            for person in everybody:
                await person.client.request("tools/call", params(person.modern, "s_echo"))
            assert len(gateway.children()) == 1
