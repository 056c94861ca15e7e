"""A gateway without enough memory for an answer: every call still ends, and the session goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, serving
from tests.fixtures.odd import Odd

pytestmark = [
    pytest.mark.usefixtures("forked"),
    pytest.mark.anyio,
    pytest.mark.requirement("little-memory"),
    pytest.mark.skipif(sys.platform != "linux", reason="the memory of a running process is limited with prlimit"),
]
MB = 1 << 20
LONG = 10_000_000  # characters, which become 60 MB of escape sequences


@pytest.mark.parametrize("room", [30, 60, 90, 110, 130, 160, 200])
async def test_an_answer_that_memory_does_not_suffice_for_is_an_error(
    gateway: Gateway, tmp_path: Path, room: int
) -> None:
    import resource  # does not exist on Windows

    async with serving(gateway, Odd(tmp_path)) as client:
        await client.call("odd_echo")
        used = psutil.Process(gateway.pid).memory_info().vms
        most = used + room * MB
        resource.prlimit(gateway.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        for _ in range(2):
            error = ""
            try:
                assert await client.call("odd_big", size=LONG)
            except RpcFailure as failure:
                error = str(failure)
            assert not error or "memory" in error or "gateway_lost" in error
            assert (await client.call("odd_whoami"))["content"]
