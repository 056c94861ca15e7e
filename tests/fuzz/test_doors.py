"""Bounded Hypothesis tests of every door, with random bytes and almost valid input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz import doors
from tests.gateway.world import house, offer, server
from trayapp.wire import control

DOORS: list[Callable[[bytes], None]] = [
    doors.frames,
    doors.servers_yaml,
    doors.client_file,
    doors.cache_file,
    doors.pin_file,
    doors.endpoint,
    doors.json_text,
]
EXAMPLES = 60  # per door in the test run (the Atheris targets have no such limit)

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "_meta", "progressToken", "servers", "settings", "tools",
     "version", "server", "hash", "definition", "approved", "findings", "command", "args", "url",
     "env", "mcpServers", "s"]
) | st.text(max_size=6)  # fmt: skip
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=12
)
almost = values.map(lambda value: json.dumps(value).encode())
torn = st.tuples(almost, st.integers(0, 200), st.binary(max_size=4)).map(lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :])
lines = st.lists(almost | torn | st.binary(max_size=40), max_size=6).map(b"\n".join)
yamls = st.text("ab:-{}[]#&*!|>'\"%@`, \n\t0?~", max_size=80).map(str.encode)


@pytest.mark.requirement("fuzz-doors")
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=300) | almost | torn | lines | yamls)
@example(data=b"")
@example(data=b"\xff\xfe\x00")
@example(data=b"[" * 100_000)
@example(data=b'{"a":' * 5_000)
@example(data=b"\n" * 1_000)
@example(data=b"- " * 3_000)
@example(data=b"a: &a [*a]")
@example(data=b'{"jsonrpc":"2.0","id":18446744073709551616,"result":{}}')
def test_no_bytes_get_more_than_a_refusal(door: Callable[[bytes], None], data: bytes) -> None:
    door(data)


METHODS = sorted(value for name, value in vars(control).items() if name.isupper() and isinstance(value, str))
SAFE = [method for method in METHODS if method not in (control.STOP, control.WATCH)]
asked = st.dictionaries(
    st.sampled_from(
        ["server", "tool", "tools", "words", "batch", "args", "limit", "regex", "project", "name", "hash", "url"]
    )
    | st.text(max_size=5),
    values | st.sampled_from(["s", "x", "../..", "\x00", {"server": "s", "tool": "x", "hash": ""}]),
    max_size=4,
)


@pytest.mark.requirement("fuzz-doors")
@pytest.mark.anyio
async def test_no_control_request_gets_more_than_an_error(tmp_path: Path) -> None:
    """One gateway answers all requests, and still works afterwards."""
    seen: list[tuple[str, Any]] = []
    collect(seen)
    async with house(tmp_path) as made:
        made.cache(server("s"), offer("x"))
        made.apply(server("s"))
        made.start()
        wire = made.control()
        for number, (method, params) in enumerate(seen, 1):
            with anyio.fail_after(20):
                answer = await wire.ask(method, params, number)
            assert ("result" in answer) != ("error" in answer)
            if "error" in answer:
                assert answer["error"]["message"]
        assert "servers" in await wire.result(control.SNAPSHOT)


def collect(seen: list[tuple[str, Any]]) -> None:
    """Append Hypothesis's example requests to `seen`."""

    @settings(max_examples=250, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(SAFE) | st.text(max_size=8), asked)
    def think(method: str, params: Any) -> None:
        try:
            json.dumps(params, allow_nan=False).encode()
        except (ValueError, UnicodeEncodeError):
            return
        seen.append((method, params))

    think()
