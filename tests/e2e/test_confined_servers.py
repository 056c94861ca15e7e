"""Real servers give the same answers with `confine` as without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.confined_servers import BROWSERS, SERVERS, compare
from tests.e2e.test_more_servers import page
from tests.faults.world import wait_until
from tests.panel.scene import free_port
from tests.tools import missing
from trayapp.model.config import Confine

__all__ = ["page"]  # a fixture
pytestmark = [pytest.mark.requirement("confine-real"), pytest.mark.timeout(120)]
NOBODY = 65_534


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """Yield the address of a new, empty PostgreSQL database on this machine."""
    found = [str(place) for place in Path("/usr/lib/postgresql").glob("*/bin")]
    initdb = shutil.which("initdb", path=os.pathsep.join((*found, os.environ["PATH"])))
    if initdb is None:
        missing("PostgreSQL is not installed")
    # PostgreSQL refuses to run as root.
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="postgres-") as folder:
        if user:
            os.chown(folder, NOBODY, NOBODY)
        data, port = f"{folder}/data", free_port()
        made = [initdb, "--auth=trust", "--username=me", "--no-sync", "--locale=C", "--encoding=UTF8", "-D", data]
        subprocess.run(made, cwd=folder, check=True, capture_output=True, **user)
        server = [f"{Path(initdb).parent}/postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
        with (
            (Path(folder) / "log").open("w") as log,
            subprocess.Popen(server, cwd=folder, stderr=log, **user) as process,
        ):
            try:
                wait_until(lambda: "ready to accept connections" in Path(folder, "log").read_text(), 30)
                yield f"postgresql://me@127.0.0.1:{port}/postgres"
            finally:
                process.send_signal(2)  # SIGINT: a fast shutdown


@pytest.mark.anyio
@pytest.mark.parametrize("name", SERVERS)
async def test_every_tool_answers_confined_as_it_does_without(
    tmp_path: Path, page: str, name: str, request: pytest.FixtureRequest
) -> None:
    places = {"page": page}
    if name == "postgres":
        places["database"] = request.getfixturevalue("database")
    await compare(name, SERVERS[name], tmp_path / "work", **places)


def test_twenty_servers_work_and_one_tool_of_all_cannot_be_called_here() -> None:
    everyone = SERVERS | BROWSERS
    assert len(everyone) == 20
    tools = {(name, tool) for name, server in everyone.items() for tool, _ in server.calls}
    assert len(tools) == 189
    assert {(name, tool) for name, server in everyone.items() for tool in server.unable} == {
        ("everything", "simulate-research-query")
    }
    assert {name: server.needs for name, server in everyone.items() if server.needs != Confine()} == dict.fromkeys(
        ("git-mcp-server", *BROWSERS), Confine(sockets=True)
    )
