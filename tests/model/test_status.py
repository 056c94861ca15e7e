"""The snapshot in its JSON form: every field arrives, newer fields are dropped or reported, wrong ones are named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.model.errors import MultiMcpError, Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import (
    SNAPSHOT_VERSION,
    GatewayStatus,
    NewerSnapshotError,
    ServerStatus,
    SessionStatus,
    ShapeError,
    SignInStatus,
    Snapshot,
    ToolCounts,
)

SECONDS = st.none() | st.floats(0, 1e9)
GATEWAY = st.builds(
    GatewayStatus,
    state=st.sampled_from(["starting", "running", "stopping"]),
    pid=st.integers(1, 1 << 22),
    version=st.text(),
    uptime_s=st.floats(0, 1e9),
    http_url=st.none() | st.text(),
    sessions=st.lists(st.builds(SessionStatus, st.text(), st.text(), st.text(), st.text()), max_size=3).map(tuple),
    keyring=st.sampled_from([None, "available", "locked", "missing"]),
)
SERVER = st.builds(
    ServerStatus,
    name=st.text() | st.text("abc_", min_size=20, max_size=70),
    state=st.sampled_from(State),
    lifecycle=st.text(),
    transport=st.text(),
    protocol=st.text(),
    tools=st.builds(ToolCounts, *[st.integers(0, 10**6)] * 4),
    pid=st.none() | st.integers(1),
    error=st.none() | st.fixed_dictionaries({"title": st.text(), "hint": st.text()}),
    failed_s_ago=SECONDS,
    last_used_s_ago=SECONDS,
    calls=st.integers(0),
    project=st.none() | st.text(),
    signed_in=st.none() | st.booleans(),
    auth=st.none()
    | st.builds(
        SignInStatus,
        signed_in=st.booleans(),
        until=SECONDS,
        scope=st.none() | st.text(),
        wanted=st.none() | st.text(min_size=1),
    ),
    approvals=st.none() | st.lists(st.text(), min_size=1, max_size=3).map(tuple),
    findings=st.none()
    | st.lists(st.sampled_from(["orders.a", "hidden.b", "other"]), min_size=1, max_size=3).map(tuple),
    needs_approval=st.none() | st.just(True),
    suspicious=st.none() | st.lists(st.text(), min_size=1, max_size=3).map(tuple),
)
PROBLEM = st.builds(Problem, st.text(), st.integers(0), st.text(), st.text(), st.integers(0), st.none() | st.text())
SNAPSHOTS = st.builds(
    Snapshot, st.integers(0), GATEWAY, st.lists(SERVER, max_size=4).map(tuple), st.lists(PROBLEM, max_size=3).map(tuple)
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def sample() -> dict[str, Any]:
    server = ServerStatus("github", State.FAILED, "lazy", "stdio", error={"title": "It ended", "hint": "See its log"})
    gateway = GatewayStatus("running", 42, "1.0", 3.5, sessions=(SessionStatus("codex", "shim", "2025-06-18", "auto"),))
    whole = Snapshot(7, gateway, (server,), (Problem("servers.yaml", 3, "Odd", fatal=False),)).to_json()
    loaded: dict[str, Any] = json.loads(json.dumps(whole))
    return loaded


@given(SNAPSHOTS)
def test_a_snapshot_survives_its_json_form(snapshot: Snapshot) -> None:
    assert Snapshot.from_json(json.loads(json.dumps(snapshot.to_json()))) == snapshot


def test_what_a_newer_gateway_adds_is_dropped() -> None:
    newer = sample() | {"weather": "fine"}
    newer["servers"][0] |= {"mood": {"deep": [1]}}
    newer["gateway"]["sessions"][0] |= {"since": 3}
    assert Snapshot.from_json(newer) == Snapshot.from_json(sample())


def test_what_an_older_gateway_does_not_say_has_its_default() -> None:
    older = sample()
    del older["problems"], older["servers"][0]["tools"]
    read = Snapshot.from_json(older)
    assert (read.problems, read.servers[0].tools) == ((), ToolCounts())


def test_a_whole_number_of_seconds_is_a_number() -> None:
    whole = sample()
    whole["gateway"]["uptime_s"] = 3
    assert Snapshot.from_json(whole).gateway.uptime_s == 3.0


def test_a_newer_shape_is_told_with_what_to_do() -> None:
    with pytest.raises(NewerSnapshotError, match="newer than this app") as caught:
        Snapshot.from_json(sample() | {"version": SNAPSHOT_VERSION + 1, "servers": "of a shape to come"})
    assert caught.value.hint == "Quit multi-mcp and start it again"


WRONG: list[tuple[str, list[str | int], object, str]] = [
    ("no-number", ["revision"], "7", "snapshot.revision should be a whole number"),
    ("true-is-no-number", ["revision"], True, "snapshot.revision should be a whole number"),
    ("half-a-process", ["gateway", "pid"], 1.5, "snapshot.gateway.pid should be a whole number"),
    ("state", ["servers", 0, "state"], "dancing", "snapshot.servers[0].state should be one of disabled, idle, "),
    ("gateway-state", ["gateway", "state"], "x", "snapshot.gateway.state should be one of starting, running, stopping"),
    ("unhashable-state", ["servers", 0, "state"], ["idle"], "snapshot.servers[0].state should be one of"),
    ("servers-no-list", ["servers"], {"github": {}}, "snapshot.servers should be a list"),
    ("server-no-object", ["servers", 0], "github", "snapshot.servers[0] should be an object"),
    ("name", ["servers", 0, "name"], None, "snapshot.servers[0].name should be a string"),
    ("error", ["servers", 0, "error"], {"title": 3}, "snapshot.servers[0].error should be an object of strings"),
    ("fatal", ["problems", 0, "fatal"], 1, "snapshot.problems[0].fatal should be true or false"),
    ("gateway", ["gateway"], None, "snapshot.gateway should be an object"),
    ("time", ["gateway", "uptime_s"], "long", "snapshot.gateway.uptime_s should be a number"),
]


@pytest.mark.parametrize(("path", "value", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_type_is_named_by_its_place(path: list[str | int], value: object, said: str) -> None:
    spoilt: Any = sample()
    place = spoilt
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ShapeError) as caught:
        Snapshot.from_json(spoilt)
    assert caught.value.title.startswith(said)


def test_a_missing_part_is_named() -> None:
    part = sample()
    del part["gateway"]["pid"]
    with pytest.raises(ShapeError, match=r"snapshot\.gateway\.pid is missing"):
        Snapshot.from_json(part)


@given(ANYTHING)
def test_anything_at_all_is_a_snapshot_or_an_error_of_ours(value: object) -> None:
    with pytest.raises(MultiMcpError):
        Snapshot.from_json(value)
