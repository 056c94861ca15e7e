"""The lifecycle of a backend as a table, and its pure rules."""

from __future__ import annotations

from itertools import islice, product

import pytest

from trayapp.model.config import LIFECYCLES, STARTS_AT_ONCE, Lifecycle, ServerConfig, Settings
from trayapp.model.lifecycle import (
    NEXT,
    RECONNECT_JITTER,
    Event,
    State,
    TransitionError,
    backoff_left_s,
    idle_limit_s,
    is_idle,
    next_state,
    reconnect_waits,
)

PAIRS = list(product(State, Event))
# A second copy of the table, so that nobody changes it by mistake.
LISTED = """
disabled   enable          idle
idle       connect         connecting
idle       disable         disabled
connecting ready           connected
connecting fail            failed
connecting sign_in_wanted  needs_auth
connecting keyring_locked  keyring_locked
connecting close           stopping
connected  lost            failed
connected  fail            failed
connected  sign_in_wanted  needs_auth
connected  close           stopping
needs_auth connect         connecting
needs_auth close           idle
needs_auth disable         disabled
keyring_locked connect     connecting
keyring_locked close       idle
keyring_locked disable     disabled
failed     connect         connecting
failed     close           idle
failed     disable         disabled
stopping   closed          idle
"""
TABLE = {(State(a), Event(b)): State(c) for a, b, c in (line.split() for line in LISTED.split("\n") if line)}


@pytest.mark.requirement("life-table")
@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{state}-{event}" for state, event in PAIRS])
def test_every_pair_leads_where_the_table_says_or_raises(state: State, event: Event) -> None:
    if (state, event) in TABLE:
        assert next_state(state, event) is TABLE[state, event]
    else:
        with pytest.raises(TransitionError, match=f"{event} .*{state}"):
            next_state(state, event)


def test_the_table_holds_nothing_else() -> None:
    assert NEXT == TABLE


@pytest.mark.parametrize("state", State)
def test_no_state_is_a_dead_end_and_none_is_unreachable(state: State) -> None:
    assert reachable(State.IDLE) == set(State)
    assert State.CONNECTED in reachable(state)
    assert State.DISABLED in reachable(state)


def reachable(start: State) -> set[State]:
    seen, new = {start}, {start}
    while new:
        new = {after for (state, _), after in NEXT.items() if state in new} - seen
        seen |= new
    return seen


@pytest.mark.parametrize("event", Event)
def test_every_event_is_of_use_somewhere(event: Event) -> None:
    assert any(listed is event for _, listed in NEXT)


# -- idleness: case, lifecycle, the server's minutes, the setting's minutes, limit in seconds -----------------------
IDLE = [
    ("life-01", "lazy", None, 10.0, 600.0),
    ("life-02", "eager", None, 10.0, None),
    ("life-03", "eager", 5.0, 10.0, 300.0),
    ("life-04", "keep-alive", 5.0, 10.0, None),
    ("life-06", "lazy-keep-alive", 5.0, 10.0, None),
    ("life-12", "lazy", 2.0, 10.0, 120.0),
    ("server-zero", "lazy", 0.0, 10.0, None),
    ("setting-zero", "lazy", None, 0.0, None),
    ("server-over-zero-setting", "lazy", 3.0, 0.0, 180.0),
    ("eager-zero", "eager", 0.0, 10.0, None),
    ("fraction", "lazy", 0.5, 10.0, 30.0),
    ("negative-is-never", "lazy", -1.0, 10.0, None),
]


@pytest.mark.requirement("life-idle-close", "life-eager")
@pytest.mark.parametrize(("lifecycle", "own", "setting", "limit"), [row[1:] for row in IDLE], ids=[r[0] for r in IDLE])
def test_idle_limit(lifecycle: Lifecycle, own: float | None, setting: float, limit: float | None) -> None:
    server = ServerConfig("x", command="x", lifecycle=lifecycle, idle_timeout=own)
    assert idle_limit_s(server, Settings(idle_timeout=setting)) == limit


def test_what_starts_by_itself() -> None:
    assert {lifecycle: lifecycle in STARTS_AT_ONCE for lifecycle in LIFECYCLES} == {
        "lazy": False,
        "eager": True,
        "keep-alive": True,
        "lazy-keep-alive": False,
    }


@pytest.mark.requirement("life-idle-close")
@pytest.mark.parametrize(
    ("in_flight", "idle_ms", "limit_ms", "idle"),
    [
        pytest.param(0, 600_001, 600_000, True, id="life-09"),
        pytest.param(0, 600_000, 600_000, False, id="exactly"),
        pytest.param(0, 599_999, 600_000, False, id="younger"),
        pytest.param(1, 600_001, 600_000, False, id="life-14"),
        pytest.param(3, 10**9, 600_000, False, id="busy"),
        pytest.param(0, 10**9, None, False, id="never"),
    ],
)
def test_is_idle(in_flight: int, idle_ms: int, limit_ms: int | None, idle: bool) -> None:
    assert is_idle(in_flight, idle_ms / 1000, None if limit_ms is None else limit_ms / 1000) is idle


@pytest.mark.requirement("life-backoff")
@pytest.mark.parametrize(
    ("ago", "setting", "left"),
    [(None, 60.0, 0.0), (0.0, 60.0, 60.0), (30.0, 60.0, 30.0), (60.0, 60.0, 0.0), (61.0, 60.0, 0.0), (1.0, 0.0, 0.0)],
)
def test_backoff_left(ago: float | None, setting: float, left: float) -> None:
    assert backoff_left_s(ago, Settings(failure_backoff=setting)) == left


@pytest.mark.requirement("life-keep-alive-backoff")
def test_reconnect_waits_double_from_30_s_to_5_minutes() -> None:
    assert list(islice(reconnect_waits(), 6)) == [30, 60, 120, 240, 300, 300]


@pytest.mark.requirement("life-keep-alive-backoff")
@pytest.mark.parametrize("unit", [-1.0, -0.3, 0.5, 1.0])
def test_jitter_spreads_each_wait_by_a_tenth_at_most(unit: float) -> None:
    for bare, spread in islice(zip(reconnect_waits(), reconnect_waits(unit), strict=False), 8):
        assert abs(spread - bare) <= bare * RECONNECT_JITTER + 1e-9
        assert spread != bare
