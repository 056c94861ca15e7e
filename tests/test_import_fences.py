"""Tests of import rules: between the packages of trayapp ("rooms"), for libraries, and against circles."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "trayapp"
ROOT = Path(__file__).resolve().parent.parent

# The rooms and modules that each room may import besides itself. Every room may import `trayapp` itself (the version).
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "config": {"model", "wire"},  # for wire.lock
    "auth": {"model", "config"},  # for config.files, which replaces files safely
    "wire": {"model"},
    "confinement": {"model", "config", "wire"},  # for the paths of our folders
    "packages": {"model", "config", "wire", "backends.stdio"},  # for npx and its version ranges
    "backends": {"model", "config", "auth", "wire", "confinement", "packages"},
    "inspection": {"model"},
    "catalog": {"model", "config", "auth", "wire", "inspection"},
    "panel": {"model", "config", "wire", "service", "catalog", "history"},
    "history": {"model", "config", "wire", "catalog"},
    "gateway": {
        "model",
        "config",
        "auth",
        "wire",
        "backends",
        "catalog",
        "inspection",
        "history",
        "panel",
        "packages",
        "service.logging",
    },
    # `doctor` reports what the kernel supports and which packages are not locked
    "service": {"model", "config", "wire", "confinement", "packages"},
    "clients": {"model", "config", "wire", "service"},
    "sources": {"model", "config", "clients"},
    "tray": {"model", "config", "wire", "service", "clients"},
    "cli": {
        "model",
        "config",
        "wire",
        "service",
        "clients",
        "sources",
        "packages",
        "catalog.tool_class",  # for the class of each tool, shown before a server is added
        "inspection.hidden",  # for look-alike letters, shown before a server may start
        "samples",
    },  # `samples` is not imported, but run by its name
    "samples": set(),
    "shim": {"wire", "service"},
    "__main__": {"shim", "cli", "tray", "service"},
}

# Modules that may import less than their room, because every shim loads them.
NARROWER: dict[str, set[str]] = {
    "shim.main": {"wire"},
    "shim.relay": {"wire"},
    "shim.windows": {"wire"},
    "shim.ledger": {"wire"},
}

# The rooms and modules that may import each library. Libraries without a row may not be imported.
TO_SERVERS = {"backends", "auth"}  # for connections to servers. The gateway implements MCP for clients itself
LIBRARIES: dict[str, set[str]] = {
    "mcp": {"auth"},
    "httpx2": TO_SERVERS,
    "uvicorn": {"gateway.http.server"},
    "keyring": {"auth.os_keyring"},
    "secretstorage": {"auth.os_keyring"},
    "cryptography": {"auth.sealed"},
    "yaml": {"config.yaml"},
    "tomli": {"clients.toml_file"},
    "packaging": {"packages.pypi"},
    "platformdirs": {"config"},
    "pystray": {"tray.painter", "tray.linux.xembed"},
    "Xlib": {"tray.linux.selection", "tray.linux.xembed"},
    "PIL": {"tray.icons", "tray.linux.xembed"},
    "jeepney": {
        "tray.linux.bus",
        "tray.linux.sni",
        "tray.linux.notifications",
        "service.checks.system",
        "backends",
        "auth",
    },
    "AppKit": {"tray.darwin"},
    "Foundation": {"tray.darwin"},
    "PyObjCTools": {"tray.darwin"},
    "click": {"cli"},
    "rich": {"cli"},
    "jinja2": {"panel.pages"},
    "markdown_it": {"panel.pages"},
    "orjson": {"wire", "catalog", "gateway", "backends", "auth", "cli", "inspection.screening", "packages"},
    "anyio": {"wire", "backends", "catalog", "gateway", "auth", "service", "confinement", "panel", "packages"},
    "psutil": {"backends", "service", "cli"},
    "re2": {"catalog.search.index", "inspection.rules", "inspection.screening"},
}

# Imports that are allowed only inside functions, to keep other verbs fast. Only `multi-mcp start` loads the gateway
# and only `multi-mcp tray` loads the tray. The vault is loaded where secrets are stored without a running gateway.
LAZY = {
    ("cli.run_gateway", "gateway.main"),
    ("cli.tray", "tray.start"),
    ("service.secrets", "auth.vault"),
}

# The only imports that these modules may have at module level. Every shim loads them, so each import costs time.
CHEAP = {"os", "sys", "select", "time", "_socket", "socket", "errno"}
NARROW: dict[str, set[str]] = {
    "": set(),
    "__main__": {"os", "sys"},
    "shim": set(),
    "shim.main": CHEAP | {"trayapp.wire.rundir", "trayapp.shim.relay"},
    "shim.relay": CHEAP | {"trayapp.wire.rundir"},
    "wire": set(),
    "wire.rundir": CHEAP,
}

# Modules of pure functions that decide what the tray shows. They may not import anything that acts, waits or draws.
DECIDES = {f"trayapp.tray.state.{name}" for name in ("tray_state", "texts", "view", "notices")}
DECIDES_WITH = {
    "itertools",
    "__future__",
    "collections",
    "dataclasses",
    "enum",
    "hashlib",
    "re",
    "textwrap",
    "types",
    "typing",
    "trayapp.model",
}

# The gateway's parts in import order: each may import only the parts before it.
GATEWAY = (
    *(
        "exposure",
        "client",
        "tasks",
        "services",
        "servers_file",
        "permissions",
        "asks",
        "calls",
        "scopes",
        "extensions",
    ),
    *("mcp_tool", "sessions", "gateway", "control", "http", "main"),
)

# Circles of imports, direct or indirect. This set should be empty, and circles that no longer exist must be removed.
CIRCLES: set[frozenset[str]] = set()

# Rooms and libraries in the tables above that are not used yet. Used ones must be removed.
NOT_YET_BUILT: set[str] = set()


# Matches the name of one of our modules, or of a package with a trailing dot, as at the start of an f-string.
BY_NAME = re.compile(rf"{PACKAGE}(\.[a-z_]\w*)+\.?")


class Import(NamedTuple):
    """An import. `module` is relative to trayapp, `target` absolute. A `lazy` import may run later or never."""

    module: str
    target: str
    line: int
    lazy: bool


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Yield every import in the source. The target of `from a import b` is `a.b`.

    TYPE_CHECKING blocks and strings that name modules count as lazy imports.
    """
    tree = ast.parse(source)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    branches = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    typing_only = [branch for branch in branches if "TYPE_CHECKING" in ast.dump(branch.test)]
    lazy = {id(inner) for outer in (*functions, *typing_only) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, module, is_package)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and BY_NAME.fullmatch(node.value):
            yield Import(module, node.value, node.lineno, lazy=True)
            continue
        else:
            continue
        yield from (Import(module, target, node.lineno, id(node) in lazy) for target in targets)


def absolute_base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the absolute name of the module after `from`."""
    if not node.level:
        return node.module or ""
    parts = [PACKAGE, *module.split(".")] if module else [PACKAGE]
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, node.module] if node.module else kept)


def module_graph(imports: list[Import]) -> dict[str, set[str]]:
    """Return the modules of trayapp that each module imports, including lazy imports. Names are relative to trayapp."""
    graph: dict[str, set[str]] = {item.module: set() for item in imports}
    for item in imports:
        library, _, target = item.target.partition(".")
        if library != PACKAGE:
            continue
        if target.endswith("."):
            graph[item.module] |= {name for name in graph if name.startswith(target)} - {item.module}
            continue
        while target and target not in graph:
            target = target.rpartition(".")[0]
        if target and target != item.module:
            graph[item.module].add(target)
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    return {
        frozenset(other for other in seen if start in reached[other])
        for start, seen in reached.items()
        if start in seen
    }


def scan(package: Path) -> list[Import]:
    """Return all imports of all modules below the package's folder."""
    found: list[Import] = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found += imports_of(path.read_text(encoding="utf-8"), module, is_package)
    return found


def within(module: str, places: set[str]) -> bool:
    """True if the module is one of the places or is inside one."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def room_of(module: str) -> str:
    return module.split(".")[0]


def wrong(item: Import) -> str:
    """Return why an import is forbidden, or an empty string."""
    where = f"{item.module or PACKAGE}:{item.line} imports {item.target}"
    if item.module in NARROW and not item.lazy and not within(item.target, NARROW[item.module] | {"__future__"}):
        return f"{where} at module level, on the way to the shim"
    library, _, rest = item.target.partition(".")
    if library != PACKAGE:
        allowed = library in sys.stdlib_module_names or within(item.module, LIBRARIES.get(library, set()))
        return "" if allowed else f"{where}, a library behind another fence"
    return "" if room_allowed(item, rest) else f"{where}, against the direction"


def room_allowed(item: Import, target: str) -> bool:
    """True if an import inside trayapp is allowed. `target`: the imported name relative to trayapp."""
    source_room, target_room = room_of(item.module), room_of(target)
    if target_room not in ROOMS or target_room == source_room:
        return True
    lazy = item.lazy and any(item.module == source and within(target, {goal}) for source, goal in LAZY)
    return lazy or within(target, NARROWER.get(item.module, ROOMS.get(source_room, set())))


@pytest.fixture(scope="module")
def program() -> list[Import]:
    """Return all imports of the program. Only one worker runs these tests, so the other workers need no scan."""
    return scan(ROOT / PACKAGE)


def test_the_scan_found_the_program(program: list[Import]) -> None:
    assert {"wire", "model"} <= {room_of(item.module) for item in program}


@pytest.mark.requirement("house-import-fences", "shim-stdlib-only")
def test_every_import_stays_inside_its_fence(program: list[Import]) -> None:
    assert [problem for problem in map(wrong, program) if problem] == []


def test_no_modules_import_each_other_in_a_circle(program: list[Import]) -> None:
    graph = module_graph(program)
    assert sum(map(len, graph.values())) > len(graph) > 100
    found = circles(graph)
    assert [sorted(circle) for circle in found - CIRCLES] == []
    assert [sorted(circle) for circle in CIRCLES - found] == []  # remove circles that no longer exist


@pytest.mark.requirement("house-import-fences")
def test_the_parts_of_the_gateway_import_each_other_in_one_direction(program: list[Import]) -> None:
    graph = module_graph(program)
    pairs = [(module, other) for module, others in graph.items() for other in others]
    inside = [pair for pair in pairs if all(name.startswith("gateway.") for name in pair)]
    parts = [tuple(name.split(".")[1] for name in pair) for pair in inside]
    assert {part for pair in parts for part in pair} == set(GATEWAY)
    backwards = [GATEWAY.index(part) < GATEWAY.index(other) for part, other in parts]
    assert [pair for pair, wrong_way in zip(inside, backwards, strict=True) if wrong_way] == []


@pytest.mark.requirement("tray-view")
def test_what_the_tray_shows_is_decided_without_doing_anything(program: list[Import]) -> None:
    deciding = [item for item in program if f"{PACKAGE}.{item.module}" in DECIDES]
    assert {item.module for item in deciding} == {name.removeprefix("trayapp.") for name in DECIDES}
    assert [item for item in deciding if not within(item.target, DECIDES | DECIDES_WITH)] == []


def test_every_module_belongs_to_a_listed_room() -> None:
    entries = {path.stem for path in (ROOT / PACKAGE).glob("*.py")} - {"__init__"}
    entries |= {path.parent.name for path in (ROOT / PACKAGE).glob("*/*.py")}
    assert entries - ROOMS.keys() == set()


def test_every_fenced_library_is_used_unless_listed_as_not_yet_built(program: list[Import]) -> None:
    used = {item.target.split(".")[0] for item in program}
    assert LIBRARIES.keys() - used == NOT_YET_BUILT & LIBRARIES.keys()


def test_every_room_holds_code_unless_listed_as_not_yet_built(program: list[Import]) -> None:
    built = {room_of(item.module) for item in program if item.module}
    assert ROOMS.keys() - built == NOT_YET_BUILT & ROOMS.keys()


def test_every_listed_lazy_import_is_used(program: list[Import]) -> None:
    lazy = [item for item in program if item.lazy]
    used = {(source, goal) for source, goal in LAZY for item in lazy if item.module == source and goal in item.target}
    assert used == LAZY


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model.config", "import orjson"),
        ("model.config", "from trayapp.config import paths"),
        ("model.config", "from ..config import paths"),
        ("wire.frames", "from mcp.shared import dispatcher"),
        ("backends.pool", "def f():\n    from trayapp.gateway import main"),
        ("cli.status", "def f():\n    from trayapp.gateway import main"),
        ("cli.start", "from trayapp.gateway import main"),
        ("tray.state.view", "import pystray"),
        ("auth.login", "import keyring"),
        ("shim.relay", "import json"),
        ("shim.ledger", "def f():\n    from trayapp.service import detached"),
        ("gateway.run", "import requests"),
    ],
)
def test_an_import_across_a_fence_is_found(module: str, source: str) -> None:
    assert [wrong(item) for item in imports_of(source, module, is_package=False)] != [""]


@pytest.mark.parametrize(
    "back",
    [
        "from trayapp.wire import frames",
        "from . import frames",
        "from .frames import FrameDispatcher",
        "def f():\n    import trayapp.wire.frames",
        "if TYPE_CHECKING:\n    from trayapp.wire.frames import FrameDispatcher",
        "frames = importlib.import_module('trayapp.wire.frames')",
        "frames = late('trayapp.wire.frames')",
        "def f(name):\n    import_module(f'trayapp.wire.{name}')",
        "from trayapp.wire import pipes",
    ],
)
def test_a_circle_is_found_however_a_module_imports_the_other(back: str) -> None:
    sources = {
        "wire.frames": "from trayapp.wire.handling import RequestContext",
        "wire.handling": back,
        "wire.pipes": "from trayapp.wire.frames import FrameDispatcher",
        "gateway.beside": "from trayapp.wire import frames",
    }
    imports = [item for name, source in sources.items() for item in imports_of(source, name, is_package=False)]
    (circle,) = circles(module_graph(imports))
    assert {"wire.frames", "wire.handling"} <= circle
    assert "gateway.beside" not in circle


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cli.run_gateway", "def f():\n    from trayapp.gateway import main"),
        ("shim.relay", "def f():\n    import json"),
        ("backends.pool", "from trayapp import __version__"),
        ("wire.frames", "from .messages import Request"),
        ("auth.os_keyring", "import keyring.errors"),
    ],
)
def test_an_import_inside_the_fences_passes(module: str, source: str) -> None:
    assert [wrong(item) for item in imports_of(source, module, is_package=False)] == [""]
