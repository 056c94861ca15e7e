"""A table of faults of a server's process and its pipes. Each runs against a real gateway."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.e2e.gateway import Gateway
from tests.faults.trial import ANSWER, EITHER, ERROR, LIMIT_S, Trial, trial
from tests.faults.world import Counting
from tests.fixtures.odd import until
from tests.patience import stretched

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]
OPEN = 3  # calls in flight when the fault begins


class Program:
    """The victim: a server whose behavior is set by a file and whose start script can be removed."""

    def __init__(self, folder: Path) -> None:
        self.mood = folder / "mood"
        self.home = folder / "cwd"
        self.home.mkdir()
        counting = Counting(folder, "bad", ("--mood", str(self.mood)))
        self.script = folder / "bad.sh"
        self.script.write_text("#!/bin/sh\nexec " + " ".join(counting.argv) + "\n")
        self.script.chmod(0o755)
        self.counting = counting
        self.stopped = 0


Act = Callable[[Program, Trial], Awaitable[None]]


def pid_of(made: Trial) -> int:
    return int(made.gateway.server("bad")["pid"])


def in_mood(mood: str) -> Act:
    """Return an act that changes the server's behavior from the next call on."""

    async def begin(program: Program, made: Trial) -> None:
        program.mood.write_text(mood)

    return begin


def sent(number: int) -> Act:
    async def begin(program: Program, made: Trial) -> None:
        program.stopped = await anyio.to_thread.run_sync(pid_of, made)
        os.kill(program.stopped, number)

    return begin


async def deleted(program: Program, made: Trial) -> None:
    """Remove the server's program, as an update does, and kill the running process."""
    program.script.rename(program.script.with_suffix(".away"))
    await sent(signal.SIGKILL)(program, made)


async def put_back(program: Program, made: Trial) -> None:
    program.script.with_suffix(".away").rename(program.script)


async def without_folder(program: Program, made: Trial) -> None:
    program.home.rmdir()
    await sent(signal.SIGKILL)(program, made)


async def folder_again(program: Program, made: Trial) -> None:
    program.home.mkdir()


async def never_starts(program: Program, made: Trial) -> None:
    await in_mood("dies_at_start")(program, made)
    await sent(signal.SIGKILL)(program, made)


async def good_again(program: Program, made: Trial) -> None:
    program.mood.unlink(missing_ok=True)


async def goes_on(program: Program, made: Trial) -> None:
    os.kill(program.stopped, signal.SIGCONT)


async def killed_by_hand(program: Program, made: Trial) -> None:
    """Make the server behave again and reconnect it, because its running process would never recover."""
    await good_again(program, made)
    await made.gateway.ask("reconnect", server="bad")


async def nothing(program: Program, made: Trial) -> None:
    """Do nothing, because the fault ends by itself."""


@dataclass(frozen=True)
class Fault:
    """A fault: how it begins and ends, and the possible outcomes of a call during the fault and of calls in flight."""

    name: str
    begin: Act
    meanwhile: tuple[str, ...]
    end: Act = good_again
    under_way: tuple[str, ...] = (ERROR,)  # the server would never answer the calls in flight


FAULTS = [
    Fault("killed", sent(signal.SIGKILL), EITHER, nothing),  # the next call may still go to the dying process
    Fault("terminated", sent(signal.SIGTERM), EITHER, nothing),
    Fault("stopped-and-continued", sent(signal.SIGSTOP), (ERROR,), goes_on),
    Fault("its-program-is-gone", deleted, (ERROR,), put_back),
    Fault("its-folder-is-gone", without_folder, (ERROR,), folder_again),
    Fault("dies-at-every-start", never_starts, (ERROR,)),
    Fault("leaves-with-0-in-a-call", in_mood("leave"), (ERROR,)),
    Fault("dies-and-a-child-keeps-its-pipes", in_mood("heirs"), (ERROR,)),
    Fault("closes-its-stdout", in_mood("mute"), (ERROR,)),
    Fault("closes-its-stdin", in_mood("deaf"), (ERROR,), killed_by_hand),
    Fault("reads-nothing", in_mood("stuck"), (ERROR,), killed_by_hand),
    Fault("answers-twice", in_mood("twice"), (ANSWER,)),
    Fault("answers-what-nobody-asked", in_mood("foreign"), (ANSWER,)),
    Fault("answers-with-neither", in_mood("neither"), (ERROR,)),
    Fault("answers-with-both", in_mood("both"), EITHER),
    Fault("an-error-that-is-none", in_mood("odd_error"), (ERROR,)),
    Fault("binary-junk", in_mood("binary"), (ANSWER,)),
    Fault("nested-too-deep", in_mood("deep"), (ERROR,)),
    Fault("a-line-without-an-end", in_mood("endless"), (ERROR,), killed_by_hand),
    Fault("asks-200-questions", in_mood("ask"), (ANSWER,)),
    Fault("shouts", in_mood("shout"), (ANSWER,)),
]


@pytest.mark.requirement("fault-table")
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
async def test_a_fault_of_a_server_s_process(gateway: Gateway, tmp_path: Path, fault: Fault) -> None:
    program = Program(tmp_path)
    limits = dict.fromkeys(("connect_timeout", "request_timeout"), stretched(LIMIT_S))
    entry = {"command": [str(program.script)], "cwd": str(program.home), **limits}
    async with trial(gateway, tmp_path, entry) as made:
        await made.client.call("bad_count", n="first")
        for number in range(OPEN):
            made.begin_call("bad_wait", n=f"open-{number}")
        await until(lambda: len(program.counting.executed()) == 1 + OPEN)
        await fault.begin(program, made)
        assert await made.tries("bad_count", n="meanwhile") in fault.meanwhile
        assert set(await made.ended()) <= set(fault.under_way)
        await fault.end(program, made)
        await made.recovers("bad_count")
    executed = program.counting.executed()
    assert {n: times for n, times in executed.items() if n != "None" and times > 1} == {}
