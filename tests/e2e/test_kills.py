"""A process is killed while many sessions answer questions: each call ends with one answer or one error of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import psutil
import pytest
import yaml

from tests.e2e.cell import MODERN
from tests.e2e.client import RawClient
from tests.e2e.gateway import END_S, Gateway
from tests.e2e.test_one_name import noted
from tests.e2e.test_questions import FIXTURES, OLDER, Person, people, served
from tests.faults import world
from tests.fixtures.odd import until
from tests.patience import stretched
from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import STOP

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("bridge-who"), pytest.mark.timeout(300)]

WAYS = [("shim", OLDER), ("shim", MODERN), ("http", MODERN), ("http", OLDER), ("sse", OLDER)]
QUESTIONS = 10  # concurrent questions in each session
VICTIMS_REPLIES = 3  # questions that a client answers before it is killed with its next question open
BEGUN = 60  # calls that are answered before the kill
# Rounds for each way and server, so up to 26 for a way with two servers. The gateway and the server are killed in turn.
ROUNDS = 13 if world.LONG else 2
LOOK_AGAIN_S = 0.1
BACKOFF_S = 1  # backoff after a server was killed at its start, or its port was closed for a moment
FEW, AGAIN = 6, 5  # sessions, and questions in each session, of one round


def kill_server(gateway: Gateway, everybody: list[Person], notes: Path, stack: ExitStack) -> list[Person]:
    """Kill the server's processes and wait for their end. Return all sessions, because all of them can continue.

    A server over HTTP is started again on its port.
    """
    killed, again = [], []
    port = urlsplit(yaml.safe_load(gateway.file.read_text("utf-8"))["servers"]["s"].get("url", "")).port
    for pid in noted(notes, "started"):
        with suppress(psutil.NoSuchProcess):  # processes that only read lists have ended
            process = psutil.Process(pid)
            if port is not None:
                again.append([str(port) if word == "0" else word for word in process.cmdline()])
            killed.append(process)
            process.kill()
    _, left = psutil.wait_procs(killed, stretched(END_S))
    assert left == []  # a call sent before their end would be lost, with an error
    for argv in again:
        started = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
        stack.callback(started.kill)
        assert started.stdout is not None
        assert started.stdout.readline()
    return everybody


def kill_gateway(gateway: Gateway, everybody: list[Person], notes: Path, stack: ExitStack) -> list[Person]:
    """Kill the gateway. Return the sessions with shims, which start the next gateway. All other sessions are lost."""
    world.kill_gateway(gateway)
    return [person for person in everybody if isinstance(person.client, RawClient)]


def kill_clients(gateway: Gateway, everybody: list[Person], notes: Path, stack: ExitStack) -> list[Person]:
    """Kill the shims of some sessions that have open questions. Return all other sessions."""
    victims = _victims(everybody)
    for person in victims:
        assert isinstance(person.client, RawClient)
        assert person.unanswered
        person.client.process.kill()
        person.gone.set()
    return [person for person in everybody if person not in victims]


def _victims(everybody: list[Person]) -> list[Person]:
    return [person for person in everybody if isinstance(person.client, RawClient)][::2]


Kill = Callable[[Gateway, list[Person], Path, ExitStack], list[Person]]


@pytest.mark.parametrize("kill", [kill_server, kill_gateway, kill_clients])
@pytest.mark.parametrize("kind", ["stdio both", "stdio newer", "http both", "sse older"])  # stdio older is tested below
async def test_after_a_kill_each_call_has_one_answer_or_one_error_and_no_answer_is_anothers(
    gateway: Gateway, tmp_path: Path, kind: str, kill: Kill
) -> None:
    notes = tmp_path / ("notes" if kind.startswith("stdio") else "http notes")
    with served(kind, tmp_path) as entry, ExitStack() as stack:
        gateway.write({"s": entry}, http={"port": 0}, failure_backoff=BACKOFF_S)
        gateway.start()
        await gateway.known()
        await _killed_while_asked(gateway, notes, kill, stack)


async def _killed_while_asked(gateway: Gateway, notes: Path, kill: Kill, stack: ExitStack) -> None:
    try:
        async with people(gateway, WAYS) as everybody, anyio.create_task_group() as tasks:
            for person in _victims(everybody) if kill is kill_clients else ():
                person.replies = VICTIMS_REPLIES
            async with anyio.create_task_group() as calls:
                for person in everybody:
                    tasks.start_soon(person.answer_questions)
                    for _ in range(QUESTIONS):
                        calls.start_soon(person.call, "s")
                await until(lambda: sum(person.answered for person in everybody) >= BEGUN)
                if kill is kill_clients:
                    await until(lambda: all(person.unanswered for person in _victims(everybody)))
                left = kill(gateway, everybody, notes, stack)
            spared = left if kill is kill_clients else []
            assert [person.failed for person in spared if person.failed] == []
            assert [why for person in everybody for why in person.failed if why.startswith("Timeout")] == []
            assert sum(len(person.failed) for person in everybody) < len(everybody) * QUESTIONS
            for person in left:
                await _call_again(person, killed=kill is kill_server)
            assert [(person.name, person.failed) for person in left if person.failed] == []
            assert [(person.name, person.crossed) for person in everybody if person.crossed] == []
            assert [person.client.stray for person in everybody if person.client.stray] == []
            tasks.cancel_scope.cancel()
    finally:
        if kill is kill_gateway:
            with suppress(NoGatewayError):  # no shim has started another gateway
                gateway.control(STOP)


async def _call_again(person: Person, *, killed: bool) -> None:
    """Call again. If the server was `killed`, perhaps during its start, wait until the gateway's backoff is over."""
    with anyio.fail_after(stretched(END_S)):
        while True:
            person.failed.clear()
            await person.call("s")
            if not killed or not any("server_backoff" in why for why in person.failed):
                return
            await anyio.sleep(LOOK_AGAIN_S)


@pytest.mark.parametrize(
    ("way", "options"),
    [(way, options) for way in WAYS for options in ((), ("--both",)) if way != ("shim", MODERN) or not options],
    ids=lambda value: "-".join(value).removeprefix("--") or "older",
)
async def test_through_many_kills_each_call_ends_once_and_nobody_gets_what_is_anothers(
    gateway: Gateway, tmp_path: Path, way: tuple[str, str], options: tuple[str, ...]
) -> None:
    notes = tmp_path / "notes"
    program = str(FIXTURES / "era_server.py")
    entry = {"command": [sys.executable, "-I", "-S", program, OLDER, str(notes), *options]}
    gateway.write({"s": entry}, http={"port": 0}, failure_backoff=BACKOFF_S)
    gateway.start()
    await gateway.known()
    try:
        for number in range(ROUNDS):
            kill = kill_server if number % 2 else kill_gateway
            assert gateway.http_url
            async with people(gateway, [way], FEW) as everybody, anyio.create_task_group() as tasks:
                async with anyio.create_task_group() as calls:
                    for person in everybody:
                        tasks.start_soon(person.answer_questions)
                        for _ in range(AGAIN):
                            calls.start_soon(person.call, "s")
                    # number of answers before the kill: different in each round, and at least one
                    begun = (number + 1) % (FEW * AGAIN)
                    await until(lambda begun=begun: sum(person.answered for person in everybody) >= begun)
                    # an empty stack, because over stdio nothing is started again
                    left = kill(gateway, everybody, notes, ExitStack())
                    if kill is kill_gateway and way[0] != "shim":
                        await anyio.to_thread.run_sync(gateway.start)
                ended = [person.answered + len(person.failed) for person in everybody]
                assert ended == [AGAIN] * FEW
                assert [why for person in everybody for why in person.failed if why.startswith("Timeout")] == []
                for person in left:
                    await _call_again(person, killed=kill is kill_server)
                    if any("Lost the connection to s during the call" in why for why in person.failed):
                        # a call right after the kill may go to the dead process, so one error is allowed
                        await _call_again(person, killed=kill is kill_server)
                assert [(person.name, person.failed) for person in left if person.failed] == []
                assert [(person.name, person.crossed) for person in everybody if person.crossed] == []
                assert [person.client.stray for person in everybody if person.client.stray] == []
                tasks.cancel_scope.cancel()
    finally:
        if way[0] == "shim":
            with suppress(NoGatewayError):  # no shim has started another gateway
                gateway.control(STOP)
