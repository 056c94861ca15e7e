"""Tests of a shim whose stderr cannot be written, and of one whose gateway does not answer."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import environment
from trayapp.shim.ledger import NOT_REPEATED, REFUSED, UNRESPONSIVE
from trayapp.wire.rundir import run_dir, socket_path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shim of Windows is another one")
LIMIT_S = 40.0
MUTE_S, PING_S = 0.3, 0.1
IMPATIENT = (
    f"from trayapp.shim import main, relay; relay.MUTE_S = {MUTE_S}; relay.PING_S = {PING_S}; relay.LOOK_MS = 50; "
    "main.main([])"
)
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}}


class Gateway:
    """A gateway that answers from connection number `first_that_answers` on. Tool calls wait for `released`."""

    def __init__(self, run: str, first_that_answers: int) -> None:
        self.released = threading.Event()
        self.released.set()
        Path(run).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.connections = 0
        self.methods: list[str] = []
        self._first = first_that_answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(socket_path(run))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(link, self.connections), daemon=True).start()

    def _serve(self, link: socket.socket, number: int) -> None:
        with link, link.makefile("rwb") as stream:
            stream.readline()  # the greeting
            for line in stream:
                message = json.loads(line)
                self.methods.append(message["method"])
                if number >= self._first and "id" in message:
                    threading.Thread(target=self._answer, args=(stream, message), daemon=True).start()

    def _answer(self, stream: Any, message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            self.released.wait(LIMIT_S)
        stream.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode() + b"\n")
        stream.flush()

    def close(self) -> None:
        """Accept no more connections."""
        self._socket.close()


@contextmanager
def shim(home: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a shim with short timeouts. Yield its process, and kill it at the end."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", IMPATIENT]
    with subprocess.Popen(argv, env=environment(home), stdin=pipe, stdout=pipe, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def asked(process: subprocess.Popen[bytes], message: dict[str, Any]) -> dict[str, Any]:
    """Send the message to the shim and return the next line of its output, parsed."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    assert select.select([process.stdout], [], [], LIMIT_S)[0], "the shim waits forever"
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


@contextmanager
def gateway(home: Path, first_that_answers: int) -> Iterator[Gateway]:
    """Yield a gateway that listens at the socket of the home."""
    made = Gateway(run_dir(environment(home)), first_that_answers)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.requirement("shim-mute-gateway")
def test_a_gateway_that_says_nothing_is_tried_again_and_the_client_is_told(home: Path) -> None:
    with gateway(home, 1_000) as mute, shim(home, stderr=subprocess.PIPE) as process:
        answer = asked(process, INITIALIZE)
        assert (answer["id"], answer["error"]["message"]) == (1, UNRESPONSIVE)
        assert mute.methods == ["initialize", "ping"] * 2
        assert process.stderr is not None
        assert UNRESPONSIVE in process.stderr.readline().decode()
        again = asked(process, {**INITIALIZE, "id": 2})
        assert (again["id"], again["error"]["message"]) == (2, UNRESPONSIVE)


@pytest.mark.requirement("shim-mute-gateway")
def test_a_gateway_that_answers_at_the_second_try_is_all_that_the_client_sees(home: Path) -> None:
    with gateway(home, 2) as slow, shim(home) as process:
        assert asked(process, INITIALIZE) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert asked(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})["result"] == {}
        assert slow.connections == 2


@pytest.mark.requirement("shim-mute-gateway")
def test_a_call_to_a_gateway_that_says_nothing_gets_one_error_and_is_not_repeated(home: Path) -> None:
    with gateway(home, 1_000) as mute, shim(home) as process:
        began = time.monotonic()
        assert asked(process, CALL)["error"]["message"] == f"{UNRESPONSIVE}. {NOT_REPEATED}"
        assert time.monotonic() - began > 2 * MUTE_S
        assert mute.methods == ["tools/call", "ping"]  # a retry would have sent a second ping


@pytest.mark.requirement("shim-mute-gateway")
def test_a_first_call_that_takes_long_is_waited_for_while_the_gateway_answers_a_ping(home: Path) -> None:
    with gateway(home, 1) as busy, shim(home) as process:
        busy.released.clear()
        threading.Timer(6 * MUTE_S, busy.released.set).start()
        assert asked(process, CALL) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert asked(process, {**CALL, "id": 8}) == {"jsonrpc": "2.0", "id": 8, "result": {}}
        assert (busy.methods, busy.connections) == (["tools/call", "ping", "tools/call"], 1)


@pytest.mark.requirement("shim-stdout-clean")
@pytest.mark.parametrize("stderr", ["closed", "full"])
@pytest.mark.parametrize("argv", [["stdio"], ["stdio", "--nonsense"]])
def test_words_that_stderr_does_not_take_go_nowhere_and_end_nothing(home: Path, stderr: str, argv: list[str]) -> None:
    run = Path(run_dir(environment(home)))
    run.parent.mkdir(parents=True, exist_ok=True)
    run.write_text("a file where the folder should be")  # so that no gateway can be started
    redirect = "2>&-" if stderr == "closed" else "2>/dev/full"
    command = ["sh", "-c", f'exec "$0" -m trayapp "$@" {redirect}', sys.executable, *argv]
    if stderr == "full" and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = subprocess.run(
        command, env=environment(home), input=json.dumps(INITIALIZE).encode() + b"\n", stdout=subprocess.PIPE,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    if len(argv) > 1:
        assert (done.stdout, done.returncode) == (b"", 2)
        return
    assert json.loads(done.stdout)["error"]["message"] == REFUSED
    assert done.returncode == 0
