"""The modules that a gateway does not load before its first list, because the first client waits for its start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment
from trayapp.service.gateway_launch import RUNS_ALREADY
from trayapp.wire.lock import GatewayLock
from trayapp.wire.rundir import run_dir

# Loaded on demand (model/late, or imports inside functions), with everything that only they import.
LATE = (
    *("click", "rich", "mcp", "httpx2", "starlette", "sqlite3", "keyring", "html", "psutil", "jinja2"),
    *("trayapp.auth.callback", "trayapp.auth.login", "trayapp.backends.http.streamable", "trayapp.backends.stdio.npx"),
    *(
        "trayapp.catalog.schema.arguments",
        "trayapp.catalog.describe",
        "trayapp.catalog.search.index",
        "trayapp.catalog.tokens",
    ),
    *(
        "trayapp.config.edits",
        "trayapp.config.layers.overlay",
        "trayapp.config.yaml.splices",
        "trayapp.gateway.control.server",
    ),
    *(
        "trayapp.gateway.mcp_tool.tool",
        "trayapp.gateway.mcp_tool.results",
        "trayapp.gateway.mcp_tool.texts",
        "trayapp.clients",
    ),
)


def test_a_gateway_loads_before_its_first_list_only_what_that_needs() -> None:
    program = "import sys, trayapp.__main__, trayapp.cli.run_gateway, trayapp.gateway.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "trayapp.gateway.gateway" in loaded
    assert [name for name in LATE if name in loaded] == []


@pytest.mark.requirement("proc-one-gateway")
def test_a_start_while_another_gateway_runs_ends_before_it_loads_the_gateway(home: Path) -> None:
    env = environment(home)
    lock = GatewayLock(run_dir(env))
    lock.acquire()
    program = (
        "import sys; from trayapp.cli.run_gateway import run_start; "
        "print(run_start(True), 'trayapp.gateway.main' in sys.modules)"
    )
    try:
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    finally:
        lock.release()
    assert done.stdout.split() == [str(RUNS_ALREADY), "False"]
