"""The other gateways, in every shape that each offers: their command lines, and how to run them in front of servers.

`present()` installs what it can and returns the peers. `missing()` returns why each other peer could not be installed.

`running(peer, entries, folder)` starts the peer's gateway, if it has one, for the servers in `entries`. These have the
form of `mcpServers`. It yields a `Reach`, and all processes end with the block:

- `reach.connect()` returns a client that has completed the handshake.
- `reach.argv` and `reach.env` are what a client spawns.
- `reach.url` is where a client connects, if it spawns nothing.
- `reach.tool(server, tool)` returns the name under which clients see a tool.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil

from tests.benchmarks.client import BrokenError, Client, Conversation
from tests.benchmarks.http_client import HttpClient
from tests.benchmarks.installs import (
    FASTMCP,
    MCP_HUB,
    MCP_PROXY_JS,
    MCP_PROXY_PY,
    ONE_MCP,
    SUPERGATEWAY,
    Package,
    absence,
)
from tests.benchmarks.sse_client import SseClient
from tests.benchmarks.ways import environment
from tests.fixtures.ending import end

Entries = Mapping[str, Mapping[str, Any]]  # server -> {"command", "args", "env"} or {"url"}
Shape = Literal["stdio", "shim", "http", "sse"]
HOST = "127.0.0.1"
LISTENS_S = 30.0  # time after which a gateway that does not listen counts as broken
LISTED_S = 30.0  # time after which a gateway that lists too few tools counts as broken
POLL_S = 0.002
END_S = 3.0  # time from SIGTERM to SIGKILL
LEFT_S = 1.0  # how long servers may outlive their gateway before they are killed
SERVER = "{server...}"  # replaced by the words of the only server's command


@dataclass(frozen=True, slots=True)
class Peer:
    """One gateway in one shape.

    `shape` is what a client uses:

    - "stdio": the gateway itself, one process per client.
    - "shim": a bridge that the client spawns, in front of a gateway shared by all clients, as in ours.
    - "http", "sse": the shared gateway, without a bridge.

    The words of `gateway` and `client` may be SERVER or placeholders. {config} is a file with mcpServers, {command} the
    only server's shell command. {port} and {url} are those of the gateway.
    """

    name: str
    packages: tuple[Package, ...]
    shape: Shape
    gateway: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    path: str = "/mcp"
    gathers: bool = True  # serves several servers at one address
    early: bool = False  # listens before it accepts clients
    alone: str = "{tool}"  # a tool's name if there is only one server
    among: str = "{server}_{tool}"  # a tool's name if there are several servers
    spells: bool = False  # replaces all but letters, digits and _ in a server's name with _

    def tool(self, server: str, tool: str, servers: int) -> str:
        """Return the name under which clients see a server's tool."""
        known = re.sub(r"\W", "_", server, flags=re.ASCII) if self.spells else server
        return (self.alone if servers == 1 else self.among).format(server=known, tool=tool)

    @property
    def absence(self) -> str:
        """The reason why a package is missing and cannot be installed, or "" if all packages are installed."""
        return next(filter(None, map(absence, self.packages)), "")


def config_text(entries: Entries) -> str:
    """Return the configuration file that all peers read."""
    return json.dumps({"mcpServers": entries}, indent=1)


def filled(words: Sequence[str], entries: Entries, config: Path, port: int, path: str) -> list[str]:
    """Return the words with their placeholders filled in. Raises BrokenError if there are several servers but the peer
    accepts only one.
    """
    first = next(iter(entries.values()))
    server = [first.get("command", ""), *first.get("args", ())]
    if len(entries) > 1 and any(word == SERVER or "{command}" in word for word in words):
        raise BrokenError("it takes one server only")
    known = {"config": config, "port": port, "url": f"http://{HOST}:{port}{path}", "command": shlex.join(server)}
    return [whole for word in words for whole in (server if word == SERVER else [_filled(word, known)])]


def _filled(word: str, known: Mapping[str, object]) -> str:
    name = word[1:-1]
    return str(known[name]) if word == f"{{{name}}}" and name in known else word


@dataclass(frozen=True, slots=True)
class Reach:
    """A client's access to a peer that is already running or that the client itself starts."""

    name: str
    shape: Shape
    argv: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    names: Callable[[str, str], str] = field(repr=False)
    pids: tuple[int, ...] = ()  # the gateway's process ids
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every HTTP request

    def tool(self, server: str, tool: str) -> str:
        """Return the name under which clients see a server's tool."""
        return self.names(server, tool)

    def opened(self) -> Conversation:
        """Return a client that has not sent anything yet. Raises BrokenError."""
        if self.argv:
            return Client(self.argv, self.env, foreign=True)
        return SseClient(self.url) if self.shape == "sse" else HttpClient(self.url, self.headers)

    def connect(self) -> Conversation:
        """Return a client that has completed the handshake and listed at least one tool. Raises BrokenError."""
        client = self.opened()
        try:
            client.initialize()
            until_listed(client, 1)
        except BaseException:
            client.close()
            raise
        return client


def until_listed(client: Conversation, count: int) -> list[str]:
    """List tools until there are at least `count`. A gateway may answer before its servers do. Raises BrokenError."""
    deadline = time.monotonic() + LISTED_S
    names = client.tools()
    while len(names) < count:
        if time.monotonic() > deadline:
            raise BrokenError(f"lists {len(names)} of {count} tools")
        time.sleep(POLL_S)
        names = client.listed()
    return names


@contextmanager
def running(peer: Peer, entries: Entries, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Reach]:
    """Start the peer for these servers and yield its Reach. `env` is passed to all its processes.

    Raises BrokenError if the gateway does not listen, or if there are several servers but the peer accepts only one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if len(entries) > 1 and not peer.gathers:
        raise BrokenError("one server an address: it does not gather several")
    config = folder / "mcp.json"
    config.write_text(config_text(entries), encoding="utf-8")
    port = free_port() if peer.gateway else 0
    surroundings = {**environment(), **quiet(folder), **(env or {})}
    argv = tuple(filled(peer.client, entries, config, port, peer.path))
    url = f"http://{HOST}:{port}{peer.path}" if peer.gateway else ""

    def names(server: str, tool: str) -> str:
        return peer.tool(server, tool, len(entries))

    if not peer.gateway:
        yield Reach(peer.name, peer.shape, argv, surroundings, url, names)
        return
    with listening(filled(peer.gateway, entries, config, port, peer.path), surroundings, folder, port) as pid:
        if peer.early:
            await_door(url)
        yield Reach(peer.name, peer.shape, argv, surroundings, url, names, (pid,))


def quiet(folder: Path) -> dict[str, str]:
    """Return the environment that keeps a peer's files in the folder and turns off its update check."""
    return {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "FASTMCP_CHECK_FOR_UPDATES": "off"}


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listening(argv: Sequence[str], env: Mapping[str, str], folder: Path, port: int) -> Iterator[int]:
    """Start a gateway, yield its process ID once it listens, and end it after the block. Raises BrokenError."""
    log = folder / "gateway.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
    try:
        _await_listening(process, port, log)
        yield process.pid
    finally:
        end_tree(process)


def _await_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + LISTENS_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((HOST, port), 1.0):
            return
        if process.poll() is not None:
            said = log.read_text(encoding="utf-8", errors="replace").strip()[-200:]
            raise BrokenError(f"the gateway ended with code {process.returncode}: {said}")
        time.sleep(POLL_S)
    raise BrokenError(f"the gateway does not listen within {LISTENS_S:g} s")


def await_door(url: str) -> None:
    """Wait until the gateway accepts an event stream. Raises BrokenError."""
    deadline = time.monotonic() + LISTENS_S
    while True:
        try:
            return SseClient(url).close()
        except BrokenError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """End a process and its descendants. Some gateways leave servers behind, in process sessions of their own."""
    below = descendants(process.pid)
    end(process, END_S)
    kill(psutil.wait_procs(below, LEFT_S)[1])


def descendants(pid: int) -> list[psutil.Process]:
    """Return the descendants of a process, or none if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill the processes and wait until they have ended. psutil never kills a process that reuses an ID."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, END_S)


def present() -> list[Peer]:
    """Install the peers' packages where possible. Return the peers whose packages are all installed."""
    return [peer for peer in PEERS if not peer.absence]


def missing() -> dict[str, str]:
    """Return the reason for each missing peer."""
    return {peer.name: peer.absence for peer in PEERS if peer.absence}


# -- the peers -------------------------------------------------------------------------------------------------------

_FASTMCP = (FASTMCP.program("fastmcp"), "run")
_FASTMCP_MORE = ("--no-banner", "--log-level", "ERROR")
_FASTMCP_HTTP = (*_FASTMCP, "{config}", "--transport", "http", "--port", "{port}", *_FASTMCP_MORE)
_PROXY_PY = (MCP_PROXY_PY.program("mcp-proxy"), "--log-level", "ERROR")
_PROXY_PY_HTTP = (*_PROXY_PY, "--port", "{port}", "--", SERVER)
_PROXY_JS_HTTP = (MCP_PROXY_JS.program("mcp-proxy"), "--host", HOST, "--port", "{port}", "--", SERVER)
_BRIDGE_JS = (  # the package has a bridge, but no command that starts it
    f"import {{ startStdioServer }} from '{(MCP_PROXY_JS.module / 'dist' / 'index.mjs').as_uri()}'; "
    "await startStdioServer({ serverType: 'HTTPStream', url: process.argv[1] });"
)
_HUB = (MCP_HUB.program("mcp-hub"), "--port", "{port}", "--config", "{config}")
_SUPER = (SUPERGATEWAY.program("supergateway"), "--logLevel", "none")
_SUPER_HTTP = (*_SUPER, "--stdio", "{command}", "--outputTransport", "streamableHttp", "--stateful", "--port", "{port}")
_ONE_MCP = ONE_MCP.program("1mcp")
_ONE_MCP_HTTP = (_ONE_MCP, "serve", "--config", "{config}", "--host", HOST, "--port", "{port}")

PEERS = (
    Peer("fastmcp", (FASTMCP,), "stdio", client=(*_FASTMCP, "{config}", *_FASTMCP_MORE)),
    Peer("fastmcp, bridge", (FASTMCP,), "shim", _FASTMCP_HTTP, (*_FASTMCP, "{url}", *_FASTMCP_MORE)),
    Peer("fastmcp, HTTP", (FASTMCP,), "http", _FASTMCP_HTTP),
    Peer(
        "mcp-proxy (PyPI), bridge",
        (MCP_PROXY_PY,),
        "shim",
        _PROXY_PY_HTTP,
        (*_PROXY_PY, "--transport", "streamablehttp", "{url}"),
        gathers=False,
    ),
    Peer("mcp-proxy (PyPI), HTTP", (MCP_PROXY_PY,), "http", _PROXY_PY_HTTP, gathers=False),
    Peer(
        "mcp-proxy (npm), bridge",
        (MCP_PROXY_JS,),
        "shim",
        _PROXY_JS_HTTP,
        ("node", "--input-type=module", "-e", _BRIDGE_JS, "{url}"),
        gathers=False,
    ),
    Peer("mcp-proxy (npm), HTTP", (MCP_PROXY_JS,), "http", _PROXY_JS_HTTP, gathers=False),
    Peer(
        "mcp-hub, supergateway",
        (MCP_HUB, SUPERGATEWAY),  # mcp-hub has no bridge
        "shim",
        _HUB,
        (*_SUPER, "--sse", "{url}"),
        early=True,
        alone="{server}__{tool}",
        among="{server}__{tool}",
        spells=True,
    ),
    Peer(
        "mcp-hub, SSE",
        (MCP_HUB,),
        "sse",
        _HUB,
        early=True,
        alone="{server}__{tool}",
        among="{server}__{tool}",
        spells=True,
    ),
    Peer(
        "supergateway, bridge",
        (SUPERGATEWAY,),
        "shim",
        _SUPER_HTTP,
        (*_SUPER, "--streamableHttp", "{url}"),
        gathers=False,
    ),
    Peer("supergateway, HTTP", (SUPERGATEWAY,), "http", _SUPER_HTTP, gathers=False),
    Peer(
        "1mcp, bridge",
        (ONE_MCP,),
        "shim",
        _ONE_MCP_HTTP,
        (_ONE_MCP, "proxy", "--url", "{url}"),
        alone="{server}_1mcp_{tool}",
        among="{server}_1mcp_{tool}",
    ),
    Peer("1mcp, HTTP", (ONE_MCP,), "http", _ONE_MCP_HTTP, alone="{server}_1mcp_{tool}", among="{server}_1mcp_{tool}"),
)
