"""The HTTP port."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.gateway.http.place import place, until
from trayapp.gateway.http.port import bind
from trayapp.model.settings import HttpSettings

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("http-port")
def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    first = bind(0)
    assert first is not None
    with first.sock:
        second = bind(first.port)
        assert second is not None
        with second.sock:
            assert second.port != first.port
            assert second.sock.getsockname()[0] == "127.0.0.1"


@pytest.mark.requirement("http-port")
async def test_a_port_that_is_switched_off_is_closed_and_opens_again(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200
        port = int(at.url.rpartition(":")[2])
        at.port.follow(HttpSettings(enabled=False))
        await until(lambda: at.urls[-1] is None)
        assert not is_open(port)
        at.port.follow(HttpSettings(port=port))
        await until(lambda: at.urls[-1] is not None)
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200


def is_open(port: int) -> bool:
    """Return True if somebody listens there."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
