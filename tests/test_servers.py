"""The installed test servers themselves start and answer. Never here: anything about the gateway."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import servers
from tests.tools import require

ANSWER_TIMEOUT_S = 30.0  # a cold node or Python on a busy CI machine; only a hung server takes it
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}


def git_repository(folder: Path) -> list[str]:
    subprocess.run([require("git"), "init", "--quiet", str(folder)], check=True)
    return servers.git(folder)


@pytest.mark.parametrize(
    "argv",
    [
        lambda _: servers.everything(),
        servers.filesystem,
        lambda _: servers.memory(),
        lambda _: servers.sequential_thinking(),
        lambda _: servers.time(),
        git_repository,
    ],
    ids=["everything", "filesystem", "memory", "sequential-thinking", "time", "git"],
)
def test_real_server_answers_initialize(argv: Callable[[Path], list[str]], tmp_path: Path) -> None:
    command = argv(tmp_path)
    question = json.dumps(INITIALIZE) + "\n"
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(question)
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        server.stdin.close()
        server.wait(ANSWER_TIMEOUT_S)
    assert answer["id"] == 1
    assert "tools" in answer["result"]["capabilities"]
