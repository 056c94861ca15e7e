"""Fixtures for every test."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.tools import processes_with, require
from trayapp.model.redact import KNOWN, KnownSecrets

if TYPE_CHECKING:
    from tests.tray.running import Panel

__all__ = ["require"]

# A Unix socket's path may have about 104 bytes; macOS's own temporary folder eats half of them.
ENDED_S = 10.0  # for a gateway with stubborn servers
# Folders whose tests start programs and wait for them.
LONG = ("auth", "cli", "confinement", "conformance", "e2e", "faults", "packaged", "packages", "panel", "tray")
TESTS = Path(__file__).parent
YOUNG = 20_000  # objects before the garbage collector looks: as often as usual, it took 4 % of these processes' time
SHORT_TMP = "/tmp" if os.name == "posix" else None

# How long an example takes says how busy the machine is, not whether the code is right.
hypothesis_settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("any-machine")


def pytest_configure(config: pytest.Config) -> None:
    """Undo what the starting shell left behind: children inherit it.

    A shell without job control starts its background deaf to Ctrl-C. Where bytecode is not kept, each of the thousands
    of processes that tests start compiles the program again: most of what their start costs.
    """
    # No test cuts the power; where disks are slow, waiting for them was a quarter of the gateway's tests.
    os.fsync = _ignored
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema would load it for 1.6 s
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["NODE_COMPILE_CACHE"] = str(TESTS.parent / ".cache" / "node")  # as .pyc files do for Python
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignored(fd: object) -> None:
    """Leave it to the system when data reaches the disk. Processes that tests start do as they always do."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep the garbage collector away from thousands of collected tests: that took a sixth of the tests' time."""
    gc.disable()
    if (worker := getattr(session.config, "workerinput", None)) is not None:
        _import_share(session.config.args, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    result = yield
    gc.enable()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    return result


def _import_share(folders: Sequence[str], number: int, count: int) -> None:
    """Import one worker's share of the tests. All workers import all tests in the same order: where nothing is compiled
    yet, each would compile each file, at the same time as the others.
    """
    for path in sorted(path for folder in folders for path in Path(folder).rglob("test_*.py"))[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and shows what is wrong
            importlib.import_module(".".join(path.absolute().relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the folders whose tests take seconds: no worker is left alone with a long file at the end.

    Their files take turns, so that tests that wait run beside tests that work; those with the most tests come first.
    """
    if not hasattr(config, "workerinput"):
        return
    sizes = Counter(item.path for item in items)
    files: dict[str, list[Path]] = {}
    for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
        files.setdefault(path.relative_to(TESTS).parts[0], []).append(path)
    places = {path: place / len(files[folder]) for folder in LONG for place, path in enumerate(files.get(folder, ()))}
    items.sort(key=lambda item: (places.get(item.path, 1.0), item.path))  # stable: a file's tests stay as they were


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the loop that the gateway runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def strangers_secrets() -> Iterator[None]:
    """What one test was given as a secret is a word like any other in the next one."""
    yield
    vars(KNOWN).update(vars(KnownSecrets()))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a fresh, empty MULTI_MCP_HOME with a short path, set for child processes too; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mm-", dir=SHORT_TMP))
    monkeypatch.setenv("MULTI_MCP_HOME", str(folder))
    yield folder
    end_gateways_of(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_gateways_of(home: Path) -> None:
    """End what shims started late: of gateways that start at once all but one end, some after their test."""
    left = [process for process in processes_with("--linger", "cmdline") if is_gateway_of(process, home)]
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(left, ENDED_S)


def is_gateway_of(process: psutil.Process, home: Path) -> bool:
    """Return True if the process is a detached gateway of that home."""
    with suppress(psutil.Error):
        return "--linger" in process.cmdline() and process.environ().get("MULTI_MCP_HOME") == str(home)
    return False


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a running session bus, and nothing on it (Linux)."""
    from tests.tray.bus import session_bus

    with session_bus() as (made, _):
        yield made


@pytest.fixture
def panel(address: str) -> Iterator[Panel]:
    """Yield a panel on that bus."""
    from tests.tray.running import Panel

    made = Panel(address)
    yield made
    made.close()
