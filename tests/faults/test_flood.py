"""More silent connections than the gateway has file descriptors."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.fixtures.odd import alive
from tests.patience import stretched
from trayapp.service.command_line import own_command
from trayapp.service.gateway_launch import READY_TIMEOUT_S, await_ready
from trayapp.wire.control import SNAPSHOT
from trayapp.wire.greeting import Endpoint, read_endpoint
from trayapp.wire.rundir import run_dir

pytestmark = [
    pytest.mark.requirement("safe-flood"),
    pytest.mark.skipif(sys.platform != "linux", reason="sets limits as Linux knows them"),
]

FEW = 200  # file descriptors
FLOOD = 3 * FEW


def start_with(gateway: Gateway, soft: int, hard: int) -> None:
    """Start the gateway with these limits on file descriptors."""
    argv = ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh", *own_command(), "start"]
    null = subprocess.DEVNULL
    gateway.process = subprocess.Popen(argv, env=gateway.env, cwd=gateway.home, stdin=null, stdout=null, stderr=null)
    await_ready(gateway.run, stretched(READY_TIMEOUT_S), gateway.process, gateway.home / "logs" / "gateway.log")


def flooded(stack: ExitStack, family: int, address: tuple[str, int] | str) -> None:
    """Open FLOOD connections. Half of them send nothing, the others only one byte."""
    for number in range(FLOOD):
        sock = stack.enter_context(socket.socket(family))
        sock.connect(address)
        if number % 2:
            sock.send(b"G")


@pytest.mark.parametrize("door", ["http", "socket"])
def test_nobody_is_kept_out_by_connections_that_say_nothing(gateway: Gateway, door: str) -> None:
    gateway.write({}, http={"port": 0})
    start_with(gateway, FEW, FEW)
    endpoint = endpoint_of(gateway)
    port = int((endpoint.http_url or "").removesuffix("/mcp").rpartition(":")[2])
    with ExitStack() as stack:
        if door == "http":
            flooded(stack, socket.AF_INET, ("127.0.0.1", port))
        else:
            flooded(stack, socket.AF_UNIX, endpoint.socket)
        assert gateway.control(SNAPSHOT)["gateway"]["state"] == "running"
        with socket.create_connection(("127.0.0.1", port), stretched(20)) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 401")
    assert alive(gateway.pid)


def endpoint_of(gateway: Gateway) -> Endpoint:
    """Wait until the gateway's HTTP port is open and return the endpoint."""
    gateway.control("settle")
    endpoint = read_endpoint(run_dir(gateway.env))
    assert endpoint is not None
    return endpoint


def test_a_gateway_that_is_started_with_few_descriptors_takes_as_many_as_it_may(gateway: Gateway) -> None:
    hard = min(4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    gateway.write({})
    start_with(gateway, FEW, hard)
    (line,) = [line for line in Path(f"/proc/{gateway.pid}/limits").read_text().splitlines() if "open files" in line]
    assert line.split()[3:5] == [str(hard), str(hard)]
