"""The workloads: the servers behind a gateway, what each server lists, and the tool that is called.

Servers that answer from a catalog are null servers on a bare interpreter. They are as light as possible, so that the
direct way is a fair base.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tests.benchmarks import catalog
from trayapp.model.offer import Item

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"  # beside a checkout, but only on some machines
CATALOG, QUERIES = "catalog.json", "queries.json"
NULL_SERVER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("null_server.py")))
ECHO: Item = {
    "name": "echo",
    "description": "Text of the wanted length",
    "inputSchema": {"type": "object", "properties": {"size": {"type": "integer", "description": "characters of text"}}},
}
SERVERS, EACH = 10, 30  # servers, and tools per server, in the workload with real definitions

Shelf = Mapping[str, Sequence[Item]]  # server -> its tools


@dataclass(frozen=True, slots=True)
class Workload:
    """Servers in the form of `mcpServers`, and the tool that is called.

    If `arguments` is None, the tool takes `{"size": N}` and answers with N characters of text. `shelf`: what each
    server lists, if that is known without a request.
    """

    name: str
    servers: Mapping[str, tuple[str, ...]]  # server -> argv
    server: str  # the server that has the called tool
    tool: str = "echo"
    arguments: Mapping[str, Any] | None = None
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # server -> its variables, if it needs any
    shelf: Shelf = field(default_factory=dict)

    @property
    def exposed(self) -> str:
        """The called tool's name behind a gateway that prefixes names as ours does."""
        return f"{self.server}_{self.tool}"

    @property
    def argv(self) -> tuple[str, ...]:
        """The command of the server that has the called tool, for the direct way."""
        return self.servers[self.server]

    @property
    def tools(self) -> int:
        """The number of tools of all servers, or 0 if that is unknown without a request."""
        return sum(map(len, self.shelf.values()))

    def fill(self, home: Path, **settings: Any) -> None:
        """Fill a home as a first run does, but without starting anything: a switch for each tool, and the cache."""
        offers = {name: catalog.offer(name, tools) for name, tools in self.shelf.items()}
        catalog.write_home(home, self.servers_yaml(switched=True, **settings), offers)

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return the entries, for `mcpServers` in JSON or `servers` in servers.yaml."""
        return {name: self._entry(name, argv) for name, argv in self.servers.items()}

    def _entry(self, name: str, argv: Sequence[str]) -> dict[str, Any]:
        env = {"env": dict(self.env[name])} if name in self.env else {}
        return {"command": argv[0], "args": list(argv[1:]), **env}

    def servers_yaml(self, switched: bool = False, **settings: Any) -> str:
        """Return servers.yaml (JSON is YAML). `switched`: with a switch for each tool, as after a first discovery."""
        entries = self.entries()
        for name, tools in self.shelf.items() if switched else ():
            entries[name]["tools"] = {tool["name"]: {"enabled": True} for tool in tools}
        lines = [f"settings: {json.dumps({'expose': 'tools', **settings})}", "servers:"]
        return "\n".join([*lines, *(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())])


def trivial(folder: Path) -> Workload:
    """Return one server with ten tools."""
    tools = [ECHO, *(catalog.tool("null", number) for number in range(9))]
    return replayed("1 server, 10 tools", {"null": tools}, folder)


def ten(folder: Path, data: Path | None = None) -> Workload:
    """Return ten servers with thirty tools each, including the called tool. Definitions are real if there is data."""
    every = iter(unique(read_shelf(data)))
    shelf = {f"server-{place}": [ECHO, *islice(every, EACH - 1)] for place in range(SERVERS)}
    return replayed(f"{SERVERS} servers, {SERVERS * EACH} tools", shelf, folder)


def large(folder: Path, data: Path | None = None) -> Workload:
    """Return all servers of the data, or else of the generated catalog (70 servers, 527 tools). The called tool
    replaces the first server's first tool.
    """
    shelf = {name: list(tools) for name, tools in read_shelf(data).items()}
    first = next(iter(shelf))
    shelf[first] = [ECHO, *shelf[first][1:]]
    return replayed(f"{len(shelf)} servers, {sum(map(len, shelf.values()))} tools", shelf, folder)


def sized(folder: Path, servers: int, tools: int) -> Workload:
    """Return servers with the tools spread evenly over them, for growth curves. Raises ValueError if there are fewer
    tools than servers.
    """
    if tools < servers:
        raise ValueError("each server wants a tool")
    shelf: dict[str, list[Item]] = {}
    for place in range(servers):
        name = f"service-{place:03d}"
        count = tools * (place + 1) // servers - tools * place // servers
        shelf[name] = [ECHO, *(catalog.tool(name, number) for number in range(count - 1))]
    return replayed(f"{servers} servers, {tools} tools", shelf, folder)


def replayed(name: str, shelf: Shelf, folder: Path) -> Workload:
    """Write each server's tools into the folder. Return a workload of null servers that list them."""
    folder.mkdir(parents=True, exist_ok=True)
    servers: dict[str, tuple[str, ...]] = {}
    for place, (server, tools) in enumerate(shelf.items()):
        file = folder / f"{place}.json"
        file.write_text(json.dumps({"tools": list(tools)}, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        servers[server] = (*NULL_SERVER, str(file))
    with_echo = next(server for server, tools in shelf.items() if any(tool is ECHO for tool in tools))
    return Workload(name, servers, with_echo, shelf=shelf)


def real(folder: Path) -> Workload:
    """Return the six reference servers that `packaging/dev.py test` installs. Raises LookupError if any is missing."""
    argvs, env = _reference_servers(folder)
    arguments = {"message": "x" * 100}
    return Workload(f"{len(argvs)} real servers", argvs, "everything", arguments=arguments, env=env)


def real_ten(folder: Path) -> Workload:
    """Return ten servers: the six reference servers, and four of them again for a second folder or purpose. Raises
    LookupError if they are missing.
    """
    first = real(folder / "first")
    argvs, env = _reference_servers(folder / "second")
    again = {name: argvs[name] for name in ("filesystem", "memory", "time", "git")}
    servers = {**first.servers, **{f"{name}-2": argv for name, argv in again.items()}}
    envs = {**first.env, "memory-2": env["memory"]}
    return replace(first, name=f"{len(servers)} real servers", servers=servers, env=envs)


def _reference_servers(folder: Path) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """Return the servers' commands and environments by name."""
    if (packaging := str(ROOT / "packaging")) not in sys.path:
        sys.path.append(packaging)  # for tests, pytest's configuration does this
    from _pytest.outcomes import OutcomeException

    from tests import servers
    from tests.tools import node, require

    files, repository = folder / "files", folder / "repository"
    files.mkdir(parents=True)
    try:
        argvs = {
            "everything": servers.everything(),
            "filesystem": servers.filesystem(files),
            "memory": servers.memory(),
            "sequential-thinking": servers.sequential_thinking(),
            "time": servers.time(),
            "git": servers.git(repository),
        }
        # Users' servers run on the system's Node.js, which needs less memory than the tests' newer one.
        system_node = require("node")
    except OutcomeException as missing:
        raise LookupError(str(missing)) from None
    argvs = {name: [system_node if word == node() else word for word in argv] for name, argv in argvs.items()}
    subprocess.run(["git", "init", "-q", str(repository)], check=True, capture_output=True)
    env = {"memory": {"MEMORY_FILE_PATH": str(folder / "memory.json")}}
    return {name: tuple(argv) for name, argv in argvs.items()}, env


def read_shelf(data: Path | None = None) -> dict[str, list[Item]]:
    """Return what real servers list, from the first catalog found in the folder. Without one, return the generated
    catalog.
    """
    file = data_file(CATALOG, data)
    if file is None:
        return {name: list(offer.tools) for name, offer in catalog.offers()}
    return {given["server"]: given["tools"] for given in json.loads(file.read_text(encoding="utf-8"))}


def data_file(name: str, data: Path | None = None) -> Path | None:
    """Return the first file of that name in the data folder or one of its subfolders, or None."""
    folder = DATA if data is None else data
    return next(iter(sorted(chain(folder.glob(name), folder.glob(f"*/{name}")))), None)


def unique(shelf: Shelf) -> list[Item]:
    """Return all tools in order. A repeated name gets a number, because a server lists each name once."""
    seen: Counter[str] = Counter()
    tools: list[Item] = []
    for tool in chain.from_iterable(shelf.values()):
        name = str(tool["name"])
        seen[name] += 1
        tools.append(tool if seen[name] == 1 else {**tool, "name": f"{name}_{seen[name]}"})
    return tools
