"""A process is killed while many sessions are being asked: each call has one answer or one error, and its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests.e2e.cell import MODERN
from tests.e2e.client import RawClient
from tests.e2e.gateway import Gateway
from tests.e2e.test_one_name import noted
from tests.e2e.test_questions import FIXTURES, OLDER, QUESTIONS, Person, people
from tests.fixtures.odd import until
from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import STOP

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("bridge-who"), pytest.mark.timeout(300)]

WAYS = [("shim", OLDER), ("shim", MODERN), ("http", MODERN), ("http", OLDER), ("sse", OLDER)]
BEGUN = 60  # calls that have their answer when somebody dies


def kill_server(gateway: Gateway, everybody: list[Person], notes: Path) -> list[Person]:
    """All its processes. Everybody may go on."""
    for pid in noted(notes, "started"):
        if psutil.pid_exists(pid):
            psutil.Process(pid).kill()
    return everybody


def kill_gateway(gateway: Gateway, everybody: list[Person], notes: Path) -> list[Person]:
    """A shim starts the next one; those without a shim lost their session with it."""
    assert gateway.process is not None
    gateway.process.kill()
    gateway.process.wait()
    return [person for person in everybody if isinstance(person.client, RawClient)]


def kill_clients(gateway: Gateway, everybody: list[Person], notes: Path) -> list[Person]:
    """Shims of sessions that are being asked; all others may go on."""
    victims = [person for person in everybody if isinstance(person.client, RawClient)][::2]
    for person in victims:
        assert isinstance(person.client, RawClient)
        person.client.process.kill()
    return [person for person in everybody if person not in victims]


Kill = Callable[[Gateway, list[Person], Path], list[Person]]


@pytest.mark.parametrize("kill", [kill_server, kill_gateway, kill_clients])
@pytest.mark.parametrize("options", [(), ("--both",)], ids=["older", "both"])
async def test_after_a_kill_each_call_has_one_answer_or_one_error_and_no_answer_is_anothers(
    gateway: Gateway, tmp_path: Path, options: tuple[str, ...], kill: Kill
) -> None:
    notes = tmp_path / "notes"
    program = str(FIXTURES / "era_server.py")
    entry: dict[str, Any] = {"command": [sys.executable, "-I", "-S", program, OLDER, str(notes), *options]}
    gateway.write({"s": entry}, http={"port": 0})
    gateway.start()
    await gateway.known()
    try:
        async with people(gateway, WAYS) as everybody, anyio.create_task_group() as tasks:
            async with anyio.create_task_group() as calls:
                for person in everybody:
                    tasks.start_soon(person.answer_questions)
                    for _ in range(QUESTIONS):
                        calls.start_soon(person.call, "s")
                await until(lambda: sum(person.answered for person in everybody) >= BEGUN)
                left = kill(gateway, everybody, notes)
            spared = left if kill is kill_clients else []
            assert [person.failed for person in spared if person.failed] == []
            assert [why for person in everybody for why in person.failed if why.startswith("Timeout")] == []
            assert sum(len(person.failed) for person in everybody) < len(everybody) * QUESTIONS
            for person in left:
                person.failed.clear()
                await person.call("s")
            assert [(person.name, person.failed) for person in left if person.failed] == []
            assert [(person.name, person.crossed) for person in everybody if person.crossed] == []
            assert [person.client.stray for person in everybody if person.client.stray] == []
            tasks.cancel_scope.cancel()
    finally:
        if kill is kill_gateway:
            with suppress(NoGatewayError):  # nobody started the next one
                gateway.control(STOP)
