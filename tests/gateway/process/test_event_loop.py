"""The event loop: readers run as asyncio runs them, in that order, and nothing else waits for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.patience import stretched
from trayapp.gateway.process import event_loop as turns

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be waited for there")
LIMIT_S = stretched(20)


class Pipes:
    """Pipes that a loop reads, byte by byte; `heard` is what came, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self.heard: list[str] = []
        self.enough = asyncio.Event()
        self.then: Callable[[int], object] = lambda number: None
        self._ends = [os.pipe() for _ in range(count)]
        for number, (end, _) in enumerate(self._ends):
            loop.add_reader(end, self._read, number)

    def send(self, number: int, data: bytes = b".") -> None:
        os.write(self._ends[number][1], data)

    def _read(self, number: int) -> None:
        os.read(self._ends[number][0], 1)
        self.heard.append(f"read {number}")
        self._loop.call_soon(self.heard.append, f"after {number}")
        self.then(number)

    def silence(self, number: int) -> None:
        self._loop.remove_reader(self._ends[number][0])

    def close(self) -> None:
        for number, ends in enumerate(self._ends):
            self.silence(number)
            for end in ends:
                os.close(end)


@contextmanager
def pipes(count: int) -> Iterator[Pipes]:
    made = Pipes(asyncio.get_running_loop(), count)
    try:
        yield made
    finally:
        made.close()


def run(work: Callable[[], object]) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S):
            await work()  # type: ignore[misc]

    turns.run(main)


def test_this_python_s_asyncio_has_what_the_quick_way_needs() -> None:
    loop = turns.new_loop()
    try:
        quick = sys.platform == "linux"
        assert isinstance(loop, asyncio.SelectorEventLoop)
        assert (getattr(loop._selector, "loop", None) is loop) == quick  # type: ignore[attr-defined]
    finally:
        loop.close()
        asyncio.set_event_loop(None)


def test_what_a_reader_wants_done_soon_is_done_before_the_next_one_reads() -> None:
    async def work() -> None:
        with pipes(1) as made:
            made.then = lambda number: made.enough.set() if made.heard.count("read 0") == 3 else None
            made.send(0, b"...")
            await made.enough.wait()
            await asyncio.sleep(0)
            assert made.heard == ["read 0", "after 0"] * 3

    run(work)


def test_all_that_are_ready_read() -> None:
    async def work() -> None:
        with pipes(5) as made:
            made.then = lambda number: made.enough.set() if len(made.heard) >= 5 else None
            for number in range(5):
                made.send(number)
            await made.enough.wait()
            assert {what for what in made.heard if what.startswith("read")} == {f"read {number}" for number in range(5)}

    run(work)


def test_readers_that_want_nothing_done_soon_follow_each_other_for_ever_and_timers_still_come() -> None:
    async def work() -> None:
        loop, count, ended = asyncio.get_running_loop(), 0, asyncio.Event()
        there, back = os.pipe(), os.pipe()
        timers: list[asyncio.TimerHandle] = []

        def pass_on(source: int, target: int) -> None:
            nonlocal count
            os.read(source, 1)
            count += 1
            timers.append(loop.call_later(3600, ended.set))
            timers.pop().cancel()
            if not ended.is_set():
                os.write(target, b".")

        loop.add_reader(there[0], pass_on, there[0], back[1])
        loop.add_reader(back[0], pass_on, back[0], there[1])
        loop.call_later(0.05, ended.set)
        os.write(there[1], b".")
        await ended.wait()
        assert count > 1
        assert len(loop._scheduled) < 1000, "cancelled timers are cleared away"  # type: ignore[attr-defined]
        for end in (*there, *back):
            loop.remove_reader(end)
            os.close(end)

    run(work)


def test_a_timer_that_a_reader_sets_comes_in_time() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        far = loop.call_later(3600, lambda: None)
        with pipes(1) as made:
            made.then = lambda number: loop.call_later(0.001, made.enough.set)
            made.send(0)
            await made.enough.wait()
        far.cancel()

    run(work)


def test_a_reader_that_fails_is_told_and_the_others_go_on() -> None:
    async def work() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(str(context["exception"])))
        with pipes(2) as made:

            def fail(number: int) -> None:
                if number == 0:
                    made.send(1)
                    raise OSError("no luck")
                made.enough.set()

            made.then = fail
            made.send(0)
            await made.enough.wait()
        assert told == ["no luck"]

    run(work)


def test_one_that_was_removed_reads_no_more() -> None:
    async def work() -> None:
        with pipes(2) as made:

            def only_once(number: int) -> None:
                made.silence(0)
                made.send(1)
                if number == 1:
                    made.enough.set()

            made.then = only_once
            made.send(0, b"...")
            await made.enough.wait()
            assert made.heard.count("read 0") == 1

    run(work)


def test_other_threads_and_child_processes_are_heard() -> None:
    async def work() -> None:
        with pipes(1) as made:
            made.send(0)
            await asyncio.to_thread(made.send, 0)
            child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print('hello')", stdout=subprocess.PIPE)
            said, _ = await child.communicate()
            assert (said.split(), child.returncode) == ([b"hello"], 0)

    if sys.version_info >= (3, 12) or sys.platform == "linux":
        run(work)


def test_a_loop_in_debug_mode_works_as_asyncio_s_own() -> None:
    async def work() -> None:
        asyncio.get_running_loop().set_debug(True)
        with pipes(1) as made:
            made.then = lambda number: made.enough.set()
            made.send(0)
            await made.enough.wait()

    run(work)
