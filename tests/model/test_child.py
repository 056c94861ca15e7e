"""The transition table of the gateway's process, and the rules for restarts."""

from __future__ import annotations

import itertools

import pytest

from trayapp.model.child import (
    CRASH_WINDOW_S,
    CRASHES_MOST,
    NEXT,
    ChildEvent,
    ChildState,
    exit_event,
    next_child_state,
    recent_crashes,
    restart_wait_s,
)
from trayapp.model.lifecycle import TransitionError

S, E = ChildState, ChildEvent
ALL_PAIRS = list(itertools.product(ChildState, ChildEvent))


@pytest.mark.requirement("tray-child-table")
@pytest.mark.parametrize(("state", "event"), ALL_PAIRS)
def test_every_pair_has_its_row_or_raises(state: ChildState, event: ChildEvent) -> None:
    if (state, event) in NEXT:
        assert next_child_state(state, event) is NEXT[state, event]
    else:
        with pytest.raises(TransitionError, match=f"Event {event} is not allowed in state {state}"):
            next_child_state(state, event)


@pytest.mark.requirement("tray-child-table")
def test_no_state_is_a_trap_and_none_is_out_of_reach() -> None:
    reached, frontier = {S.STARTING}, [S.STARTING]
    while frontier:
        state = frontier.pop()
        fresh = {after for (before, _), after in NEXT.items() if before is state} - reached
        reached |= fresh
        frontier += fresh
    assert reached == set(ChildState)
    for state in ChildState:
        assert any(before is state and after is not state for (before, _), after in NEXT.items())


def test_whatever_answers_or_starts_can_be_stopped_and_what_rests_can_be_started() -> None:
    assert {s for s in ChildState if (s, E.STOP) in NEXT} == set(ChildState) - {S.PAUSED, S.STOPPING}
    assert {s for s in ChildState if (s, E.START) in NEXT} == {S.RESTARTING, S.CRASH_LOOP, S.PAUSED, S.STOPPING}


def test_only_the_user_leaves_a_crash_loop_or_a_pause_unless_somebody_else_starts_a_gateway() -> None:
    for state in (S.CRASH_LOOP, S.PAUSED):
        assert {event for before, event in NEXT if before is state} <= {E.START, E.FOUND, E.ANSWERED, E.STOP}


def test_only_one_that_is_not_ours_may_refuse_to_end() -> None:
    assert [pair for pair in NEXT if pair[1] is E.REFUSED] == [(S.STOPPING, E.REFUSED)]
    assert NEXT[S.STOPPING, E.REFUSED] is S.ATTACHED


@pytest.mark.parametrize(
    ("code", "event"),
    [
        (0, E.STOPPED),
        (1, E.DIED),
        (2, E.GAVE_UP),
        (3, E.GAVE_UP),
        (5, E.DIED),
        (-9, E.DIED),
        (-11, E.DIED),
        (-15, E.DIED),
        (137, E.DIED),
        (3221225477, E.DIED),
    ],
)
def test_what_an_exit_code_means(code: int, event: ChildEvent) -> None:
    assert exit_event(code) is event


@pytest.mark.requirement("tray-crash-loop")
def test_waits_grow_and_end_with_the_fifth_crash() -> None:
    waits = [restart_wait_s(crashes) for crashes in range(CRASHES_MOST + 2)]
    assert waits == [0.0, 0.0, 0.5, 1.0, 2.0, None, None]


@pytest.mark.requirement("tray-crash-loop")
def test_only_crashes_of_the_last_two_minutes_count() -> None:
    assert CRASH_WINDOW_S == 120.0
    assert recent_crashes((0.0, 1.0, 119.9, 120.0), 120.5) == (1.0, 119.9, 120.0)
    assert recent_crashes((0.0,), 120.0) == ()
    assert recent_crashes((), 5.0) == ()
