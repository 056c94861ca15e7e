"""The behavior of each way on failures and server requests, in rows for all transports of clients and servers.

Timings are reported, and only judged where a row has a limit. The same functions serve the benchmark and the test
(tests/e2e/test_behaviour.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from tests.benchmarks.backends import Backend, Kind, one_of_each, running
from tests.benchmarks.doors import Door, Place, Stage
from tests.benchmarks.pairs import LOOK_S, SAID, Limits, NotOfferedError, Pair, Success, key, pair_at
from tests.e2e.client import Message
from tests.patience import stretched

ROOT = Path(__file__).resolve().parents[2]

LIMITS = Limits()
AT_ONCE = 4  # most stages that are checked concurrently, because their clients mostly wait
Verdict = Literal["green", "red", "not offered"]


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one behavior for a kind of client and a kind of server."""

    way: str
    behaviour: str
    client: Kind
    server: Kind
    verdict: Verdict
    seen: str
    seconds: float | None = None


# -- the behaviors ---------------------------------------------------------------------------------------------------


async def progress(pair: Pair) -> Success:
    """Check that progress arrives under the client's token during the call, which ends only afterwards."""
    mine, token = key(), key()
    asked = pair.params(pair.calling("progress", {"until": mine}), progressToken=token)
    began = time.perf_counter()
    waiting = pair.client.ask("tools/call", asked)
    told = await pair.client.heard("notifications/progress", 3)
    took = time.perf_counter() - began
    assert [(p["progressToken"], p["progress"]) for p in told] == [(token, n) for n in (1, 2, 3)], told
    assert not waiting.done()
    await pair.call("release", {"key": mine})
    assert "result" in await waiting
    return Success("3 of 3 before the answer", took)


async def cancel(pair: Pair) -> Success:
    """Check that a client's cancellation ends the call at the server, and that no result follows."""
    mine = key()
    waiting = pair.client.ask("tools/call", pair.params(pair.calling("hold", {"key": mine})), mine)
    await pair.noticed("held", mine)
    began = time.perf_counter()
    pair.client.send({"method": "notifications/cancelled", "params": {"requestId": mine, "reason": "enough"}})
    await pair.noticed("let go", mine)
    took = time.perf_counter() - began
    await pair.call("echo")
    assert not waiting.done() or "error" in waiting.result(), waiting.result()
    return Success("the server's call ended", took)


async def elicitation(pair: Pair) -> Success:
    """Check a server's elicitation request to the user."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    reply = {"action": "accept", "content": {"a": "b"}}
    return await _asked(pair, "elicitation/create", {"message": "who?", "requestedSchema": schema}, reply)


async def sampling(pair: Pair) -> Success:
    """Check a server's sampling request to the model."""
    said = {"role": "user", "content": {"type": "text", "text": "hello"}}
    reply = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    return await _asked(pair, "sampling/createMessage", {"messages": [said], "maxTokens": 3}, reply)


async def roots(pair: Pair) -> Success:
    """Check a server's request for the client's roots."""
    return await _asked(pair, "roots/list", None, {"roots": [{"uri": "file:///mine", "name": "mine"}]})


async def _asked(pair: Pair, method: str, params: dict[str, Any] | None, reply: dict[str, Any]) -> Success:
    began = time.perf_counter()
    got = await pair.ask(method, params, reply)
    told = next(name for name in ("content", "roots") if name in reply)
    assert got.get(told) == reply[told], got
    return Success("asked and answered", time.perf_counter() - began)


async def list_changed(pair: Pair) -> Success:
    """Let the server add a tool. Check that the client is notified and that its list has the tool."""
    if pair.modern:
        pair.client.ask("subscriptions/listen", pair.params({"notifications": {"toolsListChanged": True}}), key())
        await pair.client.heard("notifications/subscriptions/acknowledged")
    began = time.perf_counter()
    while True:
        name = key()
        await pair.call("grow", {"name": name})  # repeated until the gateway listens to a newer server
        await anyio.sleep(5 * LOOK_S)
        if _told(pair):
            break
    took = time.perf_counter() - began
    while pair.exposed(name) not in await pair.listed():  # noqa: ASYNC110 (the list may come later)
        await anyio.sleep(LOOK_S)
    return Success("told, and the list has the new tool", took)


def _told(pair: Pair) -> bool:
    return any(message["method"] == "notifications/tools/list_changed" for message in pair.client.told)


async def killed(pair: Pair) -> Success:
    """Kill the server during a call. Check that one clear error follows and the next call works in a new process."""
    mine = key()
    waiting = pair.begin("hold", key=mine)
    await pair.noticed("held", mine)
    began = time.perf_counter()
    await anyio.to_thread.run_sync(pair.backend.kill)
    try:
        with anyio.fail_after(stretched(pair.limits.death)):
            answer = await waiting
    except TimeoutError:
        raise AssertionError(f"no answer {pair.limits.death:g} s after the death") from None
    took = time.perf_counter() - began
    words = error_of(answer)
    assert words, f"an answer that says nothing: {json.dumps(answer)}"[:SAID]
    await anyio.to_thread.run_sync(pair.backend.start)
    again = await pair.begin("echo")
    failed = "error" in again or again["result"].get("isError")
    assert not failed, f"the next call: {error_of(again) or 'an error without a message'}"
    assert pair.client.stray == []
    return Success(f"“{words[:SAID]}”, the next call works", took)


def error_of(answer: Message) -> str:
    """Return the error message of an answer, or an empty string if it is not an error."""
    if "error" in answer:
        return str(answer["error"].get("message", ""))
    result = answer.get("result", {})
    return str(result["content"][0].get("text", "")) if result.get("isError") else ""


async def client_killed(pair: Pair) -> Success:
    """Kill a client during a call. Check that the call ends at the server, and that another client's call continues."""
    mine, others, token = key(), key(), key()
    asked = pair.params(pair.calling("progress", {"until": others}), progressToken=token)
    waiting = pair.client.ask("tools/call", asked)
    await pair.client.heard("notifications/progress", 3)
    with doomed(pair.door, pair.exposed("hold"), mine) as process:
        await pair.noticed("held", mine)
        began = time.perf_counter()
        process.kill()
        await pair.noticed("let go", mine)
        took = time.perf_counter() - began
    assert not waiting.done(), f"another client's call ended with it: {waiting}"[:SAID]
    await pair.call("release", {"key": others})
    assert "result" in await waiting
    return Success("its call ended at the server, another client's went on", took)


@contextmanager
def doomed(door: Door, tool: str, key: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a client process that holds one call, and yield it. Kill it at the end."""
    argv = [sys.executable, "-m", "tests.benchmarks.doomed", door.as_json(), tool, key]
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


LEAVES, HUNG = "client killed", "hung at initialize"
Behaviour = Callable[[Pair], Awaitable[Success]]
BEHAVIOURS: Mapping[str, Behaviour] = {
    "backend killed in a call": killed, "cancel reaches": cancel, "progress reaches": progress,
    "question: elicitation": elicitation, "question: sampling": sampling, "question: roots": roots,
    "list_changed reaches": list_changed, LEAVES: client_killed,
}  # fmt: skip
ORDER = (next(iter(BEHAVIOURS)), HUNG, *list(BEHAVIOURS)[1:])


async def hung(place: Place, kind: Kind, good: Sequence[Backend], limits: Limits) -> tuple[float, float]:
    """Return the seconds until the tools of the good servers are listed, while other servers hang.

    The first value is for the good stdio servers, or for all good servers if none uses stdio. The second is for all
    good servers.
    """
    at_once = [one for one in good if one.kind.carrier == "stdio"] or good
    async with pair_at(place, kind, at_once[0], limits) as pair:
        took = []
        for wanted in (at_once, good):
            while not {str(place.exposed(one, "echo")) for one in wanted} <= await pair.listed():  # noqa: ASYNC110
                await anyio.sleep(LOOK_S)
            took.append(time.perf_counter() - place.began)
    return took[0], took[1]


# -- running the behaviors -------------------------------------------------------------------------------------------


async def look(way: str, name: str, place: Place, kind: Kind, backend: Backend, limits: Limits) -> Row:
    """Check one behavior and return its row. This is the boundary at which any failure becomes a red row."""
    began = time.perf_counter()
    try:
        await anyio.to_thread.run_sync(backend.start)  # the previous row may have killed the server
        await anyio.to_thread.run_sync(place.door, kind, backend)  # takes long, so it precedes the time limit
        with anyio.fail_after(stretched(limits.row)):
            async with pair_at(place, kind, backend, limits) as pair:
                seen = await BEHAVIOURS[name](pair)
        return Row(way, name, kind, backend.kind, "green", seen.words, seen.seconds)
    except NotOfferedError as error:
        return Row(way, name, kind, backend.kind, "not offered", str(error))
    except Exception as error:
        words = in_short(error, time.perf_counter() - began)
        await anyio.to_thread.run_sync(place.renew, backend)  # so that the next rows are not affected
        return Row(way, name, kind, backend.kind, "red", words)


def in_short(error: BaseException, after_s: float) -> str:
    """Return a short reason for a red row."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"nothing came for {after_s:.1f} s"
    return f"{str(error) or type(error).__name__}".splitlines()[0][:SAID]


async def of_kind(
    stage: Stage, place: Place, kind: Kind, backends: Sequence[Backend], limits: Limits = LIMITS
) -> list[Row]:
    """Check all behaviors for clients of one kind, except beside hung servers, and return the rows.

    Clients are paired with servers of their own kind, unless the way gathers servers or supports one kind of server.
    """
    fitting = [one for one in backends if stage.gathers or len(stage.servers) == 1 or one.kind == kind]
    found = [
        await look(stage.name, name, place, kind, one, limits)
        for one in fitting
        for name in BEHAVIOURS
        if name != LEAVES
    ]
    return found + await leaving(stage.name, place, kind, fitting, limits)


async def leaving(way: str, place: Place, kind: Kind, backends: Sequence[Backend], limits: Limits) -> list[Row]:
    """Kill a client of each server, all concurrently, and return the rows. Anything left of a client turns them red."""
    found: list[Row] = []

    async def of(backend: Backend) -> None:
        found.append(await look(way, LEAVES, place, kind, backend, limits))

    async with anyio.create_task_group() as tasks:
        for backend in backends:
            tasks.start_soon(of, backend)
    left = await what_is_left(place, limits)
    if left:
        words = f"{left[0]} is left {limits.left:g} s after the last client"
        found = [replace(row, verdict="red", seen=words) if row.verdict == "green" else row for row in found]
    return found


async def what_is_left(place: Place, limits: Limits) -> list[str]:
    """Wait until nothing of the ended clients is left, within a limit. Return descriptions of what remains."""
    end = time.perf_counter() + stretched(limits.left)
    while left := await anyio.to_thread.run_sync(place.left):
        if time.perf_counter() > end:
            break
        await anyio.sleep(10 * LOOK_S)
    return left


async def hung_rows(stage: Stage, kind: Kind, folder: Path, limits: Limits = LIMITS) -> list[Row]:
    """Check clients of one kind beside servers that hang, and return the rows."""
    good = one_of_each(folder, stage.servers, "good-")
    hangs = one_of_each(folder, stage.servers, "hung-", hangs=True)

    def row(server: Kind, verdict: Verdict, words: str, seconds: float | None = None) -> Row:
        return Row(stage.name, HUNG, kind, server, verdict, words, seconds)

    if not stage.gathers:
        return [row(each.kind, "not offered", "one server") for each in hangs if each.kind == kind]
    try:
        with (
            running([*good, *hangs]),
            stage.set([*good, *hangs], True) as place,
            anyio.fail_after(stretched(limits.row)),
        ):
            some_took, took = await hung(place, kind, good, limits)
            states = [await anyio.to_thread.run_sync(place.state, one) for one in hangs]
    except NotOfferedError as error:
        return [row(each.kind, "not offered", str(error)) for each in hangs]
    except Exception as error:
        return [row(each.kind, "red", in_short(error, limits.row)) for each in hangs]
    verdict: Verdict = "green" if took < stretched(limits.hung) else "red"
    words = [f"the others' tools are there (of stdio after {some_took:.2f} s), it is {state}" for state in states]
    return [row(each.kind, verdict, said, took) for each, said in zip(hangs, words, strict=True)]


async def rows_of(stage: Stage) -> list[Row]:
    """Check all behaviors of one way, except beside hung servers, and return their rows."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="mm-") as folder:
        backends = one_of_each(Path(folder), stage.servers)
        with running(backends), stage.set(backends) as place:
            for kind in stage.clients:
                found += await of_kind(stage, place, kind, backends)
    return found


async def hung_rows_of(stage: Stage) -> list[Row]:
    """Check one way beside servers that hang. Return the rows, which are judged by their timing."""
    with tempfile.TemporaryDirectory(prefix="mm-") as folder:
        return [row for kind in stage.clients for row in await hung_rows(stage, kind, Path(folder))]


async def rows(stages: Sequence[Stage], others: Sequence[Stage] = ()) -> list[Row]:
    """Check all behaviors of each way, and return the rows.

    The ways in `others` take minutes, in which clients mostly wait. AT_ONCE of them are checked concurrently, except
    for rows that are judged by their timing.
    """
    found = [row for stage in stages for row in (*await rows_of(stage), *await hung_rows_of(stage))]
    of_others: dict[str, list[Row]] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def of(stage: Stage) -> None:
        async with limit:
            of_others[stage.name] = await rows_of(stage)

    async with anyio.create_task_group() as tasks:
        for stage in others:
            tasks.start_soon(of, stage)
    for stage in others:
        found += [*of_others[stage.name], *await hung_rows_of(stage)]
    return found
