"""The boundaries around the gateway's tasks: a failure is logged, and everything else goes on."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from trayapp.gateway.tasks import AGAIN_AFTER_S, FencedTasks, fenced, kept_up

pytestmark = pytest.mark.anyio


async def fail(*args: object) -> None:
    raise ZeroDivisionError(f"broken on purpose {args}")


async def test_a_task_that_fails_ends_alone_and_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ended = []

    async def go_on(word: str) -> None:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        ended.append(word)

    async with anyio.create_task_group() as tasks:
        fence = FencedTasks(tasks)
        fence.start_soon(fail, 1)
        fence.start_soon(go_on, "other")
    assert ended == ["other"]
    assert "Unexpected error in fail" in caplog.text
    assert "broken on purpose (1,)" in caplog.text


async def test_a_fenced_task_is_cancelled_with_its_group() -> None:
    async with anyio.create_task_group() as tasks:
        FencedTasks(tasks).start_soon(anyio.sleep_forever)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_what_is_to_live_as_long_as_the_gateway_begins_anew_after_a_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs, pauses = [], []

    async def work() -> None:
        runs.append(1)
        if len(runs) < 4:
            raise ZeroDivisionError

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    await kept_up(work, sleep)
    assert (len(runs), pauses) == (4, [AGAIN_AFTER_S] * 3)
    assert caplog.text.count("Starting it again") == 3


async def test_a_failure_that_is_a_bundle_is_one_too(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    await fenced(work)
    assert f"Unexpected error in {work.__qualname__}" in caplog.text
