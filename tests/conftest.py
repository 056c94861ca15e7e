"""Fixtures and hooks of all tests."""

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

ENDED_S = 10.0  # time limit for gateways to end, even with stubborn servers
# Folders with tests that start programs or wait.
LONG = ("auth", "backends", "cli", "clients", "confinement", "conformance", "contract", "e2e", "faults", "history",
        "packaged", "packages", "panel", "service", "shim", "tray")  # fmt: skip
TESTS = Path(__file__).parent
# new objects that trigger a garbage collection: by default, collections took 4 % of the test processes' time
YOUNG = 20_000
# The path of a Unix socket has at most about 104 bytes, half of which macOS's own temporary folder would need.
SHORT_TMP = "/tmp" if os.name == "posix" else None

# An example's duration depends on the machine's load, so it proves nothing about the code.
hypothesis_settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("any-machine")


def pytest_configure(config: pytest.Config) -> None:
    """Undo settings of the starting shell that child processes would inherit, and make the tests faster.

    A shell without job control makes its background jobs ignore Ctrl-C. Without stored bytecode, each of the thousands
    of processes that tests start would compile the program again, which is most of their start-up time.
    """
    # No test cuts the power. On slow disks, fsync took a quarter of the time of the gateway's tests.
    os.fsync = _ignored
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema would load it for 1.6 s
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["NODE_COMPILE_CACHE"] = str(TESTS.parent / ".cache" / "node")  # Node's counterpart of .pyc files
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignored(fd: object) -> None:
    """Replace os.fsync and do nothing. Processes that tests start still sync."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Disable garbage collection during test collection, in which it took a sixth of the tests' time."""
    gc.disable()
    if (worker := getattr(session.config, "workerinput", None)) is not None:
        _import_share(session.config.args, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    result = yield
    gc.enable()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    return result


def _import_share(folders: Sequence[str], number: int, count: int) -> None:
    """Import one worker's share of the tests.

    All workers import all tests in the same order. Without this, they would all compile the same file at the same time.
    """
    for path in sorted(path for folder in folders for path in Path(folder).rglob("test_*.py"))[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # pytest imports the file again and reports the error
            importlib.import_module(".".join(path.absolute().relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the folders whose tests take seconds, so that no worker is left with a long file at the end.

    These folders' files alternate, so that waiting tests run beside busy tests. In each folder, and among the quick
    files that follow, those with the most tests come first.
    """
    if not hasattr(config, "workerinput"):
        return
    sizes = Counter(item.path for item in items)
    files: dict[str, list[Path]] = {}
    for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
        files.setdefault(path.relative_to(TESTS).parts[0], []).append(path)
    places = {path: place / len(files[folder]) for folder in LONG for place, path in enumerate(files.get(folder, ()))}
    # a stable sort, which keeps the order of a file's tests
    items.sort(key=lambda item: (places.get(item.path, 1.0), -sizes[item.path], item.path))


@pytest.fixture
def anyio_backend() -> str:
    """Return asyncio, on which the gateway runs, as the backend of tests marked `anyio`."""
    return "asyncio"


@pytest.fixture(autouse=True)
def strangers_secrets() -> Iterator[None]:
    """Forget the secrets that a test registered, so that later tests do not redact them."""
    yield
    vars(KNOWN).update(vars(KnownSecrets()))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a new, empty MULTI_MCP_HOME with a short path, which child processes inherit. Remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mm-", dir=SHORT_TMP))
    monkeypatch.setenv("MULTI_MCP_HOME", str(folder))
    yield folder
    end_gateways_of(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_gateways_of(home: Path) -> None:
    """End the detached gateways of this home that shims started.

    Of several gateways that start simultaneously, all but one end by themselves, some only after the test.
    """
    left = [process for process in processes_with("--linger", "cmdline") if is_gateway_of(process, home)]
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(left, ENDED_S)


def is_gateway_of(process: psutil.Process, home: Path) -> bool:
    """True if the process is a detached gateway of this home."""
    with suppress(psutil.Error):
        return "--linger" in process.cmdline() and process.environ().get("MULTI_MCP_HOME") == str(home)
    return False


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a new session bus that has no clients (Linux)."""
    from tests.tray.bus import session_bus

    with session_bus() as (made, _):
        yield made


@pytest.fixture
def panel(address: str) -> Iterator[Panel]:
    """Yield a panel on the bus at `address`."""
    from tests.tray.running import Panel

    made = Panel(address)
    yield made
    made.close()
