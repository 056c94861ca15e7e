"""Tests of the supervisor, which starts, watches and stops fake gateways and publishes their states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.service.gateways import HANGING, QUICK, FakePlace, FakeProcess, Watched
from trayapp.model.child import ChildState
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.service.supervisor import CommandKind, Supervisor, Timing

S, W = ChildState, CommandKind
WAIT_S = 25.0  # generous limit for a change that takes a moment on an idle machine
HUNG_SEEN_S, HUNG_SEEN_AT_START_S = 2.0, 5.0  # limits promised to users


@pytest.fixture
def place() -> FakePlace:
    return FakePlace()


# -- starting ------------------------------------------------------------------------------------------------------


def test_without_a_gateway_one_is_started_and_is_ours(place: FakePlace) -> None:
    with Watched(place) as watched:
        assert watched.state(S.RUNNING).snapshot == {"revision": 0}
        assert watched.states == [S.STARTING, S.RUNNING]
        assert len(place.processes) == 1


def test_who_quits_before_it_begins_leaves_no_gateway(place: FakePlace) -> None:
    supervisor = Supervisor(place, lambda seen: None, QUICK)
    assert not supervisor.join(0)
    supervisor.command(W.QUIT)  # as after a signal while the icon is being created
    supervisor.start()
    assert supervisor.join(WAIT_S)
    assert place.processes == []


def test_one_that_runs_is_attached_and_none_started(place: FakePlace) -> None:
    place.answering, place.ours = True, False
    with Watched(place) as watched:
        watched.state(S.ATTACHED)
        assert place.processes == []


def test_a_start_that_finds_another_one_attaches_to_it(place: FakePlace) -> None:
    place.launch_exits = [7]
    with Watched(place) as watched:
        watched.until(lambda _: len(place.processes) == 1)
        place.ours, place.answering = False, True
        watched.state(S.ATTACHED)
        assert S.RESTARTING not in watched.states


def test_one_that_answers_while_ours_starts_is_taken_only_when_ours_has_ended(place: FakePlace) -> None:
    place.launch_answers = False
    with Watched(place) as watched:
        watched.until(lambda _: len(place.processes) == 1)
        place.ours, place.answering = False, True
        place.process.end(7)
        watched.state(S.ATTACHED)
        assert len(place.processes) == 1


def test_what_ends_at_its_start_is_tried_again_and_its_last_words_are_told(place: FakePlace) -> None:
    place.launch_exits = [1]
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        told = [seen.error for seen in watched.seen if seen.state is S.RESTARTING]
        assert told == ["The gateway ended (exit code 1): its last words"]


@pytest.mark.requirement("tray-crash-loop")
@pytest.mark.parametrize("code", [2, 3])
def test_where_another_try_is_pointless_none_is_made(place: FakePlace, code: int) -> None:
    place.launch_exits = [code]
    with Watched(place) as watched:
        watched.state(S.CRASH_LOOP)
        assert len(place.processes) == 1


def test_one_that_never_answers_is_ended_and_tried_again(place: FakePlace) -> None:
    place.launch_answers = False
    with Watched(place, replace(QUICK, ready=0.1)) as watched:
        error = watched.state(S.RESTARTING).error
        assert error == "The gateway did not answer within 0.1 s"
        assert place.processes[0].signals == ["kill"]
        place.launch_answers = True
        watched.state(S.RUNNING)


def test_a_program_that_cannot_be_started_is_a_crash_with_that_reason(place: FakePlace) -> None:
    place.launch_error = StorageError("Cannot start the gateway: No such file or directory")
    with Watched(place) as watched:
        assert watched.state(S.CRASH_LOOP).error == "Cannot start the gateway: No such file or directory"
        assert place.processes == []


# -- crashes and stops ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-restart")
def test_a_killed_gateway_is_started_again_at_once_and_its_signal_told(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        place.die()
        watched.until(lambda seen: seen.state is S.RUNNING and seen.snapshot == {"revision": 1})
        assert watched.states == [S.STARTING, S.RUNNING, S.RESTARTING, S.STARTING, S.RUNNING]
        assert "The gateway was killed (signal 9)" in [seen.error for seen in watched.seen]


@pytest.mark.requirement("tray-crash-loop")
def test_five_deaths_are_a_crash_loop_which_retry_ends(place: FakePlace) -> None:
    with Watched(place) as watched:
        for number in range(5):
            watched.until(lambda seen, n=number: seen.state is S.RUNNING and seen.snapshot == {"revision": n})  # type: ignore[misc]
            place.die()
        watched.state(S.CRASH_LOOP)
        assert len(place.processes) == 5
        watched.supervisor.command(W.START)
        watched.state(S.RUNNING)
        place.die()
        watched.until(lambda seen: seen.state is S.RUNNING and seen.snapshot == {"revision": 6})


@pytest.mark.requirement("tray-attached")
def test_an_attached_one_that_dies_is_followed_by_one_of_ours(place: FakePlace) -> None:
    place.answering, place.ours = True, False
    with Watched(place) as watched:
        watched.state(S.ATTACHED)
        place.die()
        watched.state(S.RUNNING)
        assert watched.states == [S.STARTING, S.ATTACHED, S.RESTARTING, S.STARTING, S.RUNNING]


def test_one_that_somebody_stopped_stays_stopped_until_resume(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        place.stop()
        watched.state(S.PAUSED)
        assert place.paused == []  # this is not a pause by the user, so shims may start a gateway
        watched.supervisor.command(W.START)
        watched.state(S.RUNNING)


def test_an_attached_one_that_somebody_stopped_is_not_replaced(place: FakePlace) -> None:
    place.answering, place.ours = True, False
    with Watched(place) as watched:
        watched.state(S.ATTACHED)
        place.stop()
        watched.state(S.PAUSED)
        assert place.processes == []


def test_one_that_hangs_up_and_does_not_end_is_ended(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        place.answering = False
        place.stream.hang_up()
        watched.until(lambda seen: seen.state is S.RUNNING and len(place.processes) == 2 and seen.snapshot is not None)
        assert place.processes[0].signals == ["kill"]


# -- hanging -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-hung")
def test_a_gateway_that_hangs_is_seen_within_the_promised_seconds() -> None:
    timing = Timing()
    assert timing.beat < timing.silent <= HUNG_SEEN_S
    assert timing.first_sign <= HUNG_SEEN_AT_START_S


@pytest.mark.requirement("tray-hung")
def test_silence_is_told_and_a_sign_of_life_ends_it(place: FakePlace) -> None:
    with Watched(place, HANGING) as watched:
        watched.state(S.RUNNING)
        seen = watched.until(lambda seen: seen.hangs)
        assert (seen.state, seen.snapshot) == (S.RUNNING, {"revision": 0})
        place.stream.say()
        watched.until(lambda seen: not seen.hangs)
        assert place.process.signals == []


@pytest.mark.requirement("tray-hung")
def test_one_of_ours_that_goes_on_hanging_is_ended_and_replaced(place: FakePlace) -> None:
    with Watched(place, replace(HANGING, hung_grace=0.2)) as watched:
        watched.state(S.RUNNING)
        watched.until(lambda seen: seen.hangs)
        place.answering = False
        watched.until(lambda seen: len(place.processes) == 2 and seen.state is S.RUNNING)
        assert place.processes[0].signals == ["kill"]
        assert any("was killed" in (seen.error or "") for seen in watched.seen)


@pytest.mark.requirement("tray-hung", "tray-attached")
def test_one_that_is_not_ours_is_left_alone_however_long_it_hangs(place: FakePlace) -> None:
    place.answering, place.ours = True, False
    with Watched(place, replace(HANGING, hung_grace=0.05)) as watched:
        watched.state(S.ATTACHED)
        watched.until(lambda seen: seen.hangs)
        with pytest.raises(MultiMcpError, match="does not answer, and this app did not start it") as caught:
            watched.supervisor.command(W.RESTART)
        assert caught.value.hint == "End it with: kill -9 77"
        assert watched.until(lambda seen: seen.state is S.ATTACHED).hangs
        assert place.processes == []


def test_one_that_promised_no_signs_of_life_may_be_silent(place: FakePlace) -> None:
    place.beats = False
    with Watched(place, replace(QUICK, silent=0.01, hung_grace=0.01)) as watched:
        watched.state(S.RUNNING)
        place.stream.say({"revision": 100})
        watched.until(lambda seen: seen.snapshot == {"revision": 100} and not seen.hangs)
        watched.supervisor.command(W.PAUSE)  # stops the gateway by a request, without signals
        assert place.process.signals == []


# -- adopted gateways ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-adopts")
def test_one_that_a_shim_or_an_earlier_tray_started_is_looked_after_like_our_own(place: FakePlace) -> None:
    left = place.leave()
    with Watched(place, replace(HANGING, hung_grace=0.2)) as watched:
        watched.state(S.RUNNING)
        watched.until(lambda seen: seen.hangs)
        place.answering = False
        place.left = None
        watched.until(lambda seen: len(place.processes) == 1 and seen.state is S.RUNNING)
        assert left.signals == ["kill"]


@pytest.mark.requirement("tray-adopts")
@pytest.mark.parametrize("wish", [W.QUIT, W.PAUSE, W.RESTART])
def test_an_adopted_one_is_stopped_by_quit_pause_and_restart(place: FakePlace, wish: CommandKind) -> None:
    left = place.leave()
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(wish)
        assert (left.returncode, left.signals) == (0, [])


@pytest.mark.requirement("tray-adopts")
def test_an_adopted_one_that_dies_is_followed_by_ours_and_one_that_was_stopped_is_not(place: FakePlace) -> None:
    place.leave()
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        place.die()
        watched.until(lambda seen: len(place.processes) == 1 and seen.state is S.RUNNING)
        assert "The gateway ended" in [seen.error for seen in watched.seen]
    other = FakePlace()
    other.leave()
    with Watched(other) as watched:
        watched.state(S.RUNNING)
        other.stop()
        watched.state(S.PAUSED)
        assert other.processes == []


@pytest.mark.requirement("tray-adopts")
def test_a_shims_gateway_that_comes_up_during_a_crash_loop_is_adopted(place: FakePlace) -> None:
    place.launch_exits = [3]
    with Watched(place) as watched:
        watched.state(S.CRASH_LOOP)
        place.leave()
        watched.state(S.RUNNING)


@pytest.mark.requirement("tray-first")
def test_shims_wait_while_the_tray_starts_or_ends_a_gateway_and_at_no_other_time(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        assert (place.turns[0], place.turns[-1]) == (True, False)
        place.turns.clear()
        watched.supervisor.command(W.RESTART)
        watched.until(lambda seen: seen.state is S.RUNNING and seen.snapshot == {"revision": 1})
        assert place.turns == [True, True, False]  # stopping, starting, running
        place.turns.clear()
        place.die(code=3)
        watched.state(S.CRASH_LOOP)
        assert place.turns == [False]


# -- commands ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-pause")
def test_pause_stops_it_keeps_shims_from_starting_one_and_resume_brings_it_back(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.PAUSE)
        assert watched.seen[-1].state is S.PAUSED
        assert place.paused == [True]
        watched.supervisor.command(W.PAUSE)  # already paused
        watched.supervisor.command(W.START)
        watched.state(S.RUNNING)
        assert place.paused == [True, False]
        assert len(place.processes) == 2


@pytest.mark.requirement("tray-pause")
def test_pause_asks_an_attached_one_to_end(place: FakePlace) -> None:
    place.answering, place.ours = True, False
    with Watched(place) as watched:
        watched.state(S.ATTACHED)
        watched.supervisor.command(W.PAUSE)
        assert watched.states == [S.STARTING, S.ATTACHED, S.STOPPING, S.PAUSED]


@pytest.mark.requirement("tray-attached")
def test_an_attached_one_that_does_not_end_when_asked_is_left_and_the_user_told(place: FakePlace) -> None:
    place.answering, place.ours, place.stop_refused = True, False, True
    with Watched(place) as watched:
        watched.state(S.ATTACHED)
        with pytest.raises(MultiMcpError, match="did not end, and this app did not start it"):
            watched.supervisor.command(W.PAUSE)
        assert watched.states[-2:] == [S.STOPPING, S.ATTACHED]


def test_one_of_ours_that_does_not_end_when_asked_is_ended_by_force(place: FakePlace) -> None:
    place.stop_refused = True
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.PAUSE)
        assert place.process.signals == ["kill"]
        assert watched.seen[-1].state is S.PAUSED


@pytest.mark.requirement("tray-pause")
def test_a_pause_ends_when_the_user_starts_a_gateway_elsewhere(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.PAUSE)
        place.answering, place.ours = True, False
        watched.state(S.ATTACHED)
        assert place.paused == [True, False]


def test_pause_during_a_start_ends_what_was_started(place: FakePlace) -> None:
    place.launch_answers = False
    with Watched(place) as watched:
        watched.until(lambda _: len(place.processes) == 1)
        watched.supervisor.command(W.PAUSE)
        assert place.process.signals == ["terminate"]
        assert watched.seen[-1].state is S.PAUSED


def test_restart_ends_one_and_starts_the_next(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.RESTART)
        watched.until(lambda seen: seen.state is S.RUNNING and seen.snapshot == {"revision": 1})
        assert watched.states == [S.STARTING, S.RUNNING, S.STOPPING, S.STARTING, S.RUNNING]
        assert place.paused == []


def test_restart_of_one_that_hangs_does_not_wait_for_it(place: FakePlace) -> None:
    with Watched(place, HANGING) as watched:
        watched.state(S.RUNNING)
        watched.until(lambda seen: seen.hangs)
        first = place.process
        place.answering = False
        watched.supervisor.command(W.RESTART)
        assert first.signals == ["kill"]
        watched.until(lambda seen: seen.state is S.RUNNING and not seen.hangs)


@pytest.mark.parametrize("state", [S.PAUSED, S.CRASH_LOOP])
def test_restart_starts_one_where_there_is_none(place: FakePlace, state: ChildState) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        if state is S.PAUSED:
            watched.supervisor.command(W.PAUSE)
        else:
            place.die(code=3)
        watched.state(state)
        watched.supervisor.command(W.RESTART)
        watched.state(S.RUNNING)


@pytest.mark.requirement("tray-attached")
def test_quit_stops_ours_and_leaves_an_attached_one(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
    assert place.process.returncode == 0
    other = FakePlace()
    other.answering, other.ours = True, False
    with Watched(other) as watched:
        watched.state(S.ATTACHED)
    assert other.answering
    assert other.stream.closed


def test_quit_during_a_pause_lets_shims_start_one_again(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.PAUSE)
    assert place.paused[-1] is False


def test_two_wishes_at_once_both_come_true(place: FakePlace) -> None:
    place.launch_answers = False
    with Watched(place, replace(QUICK, gone=60.0)) as watched:
        watched.until(lambda _: len(place.processes) == 1)
        first: FakeProcess = place.process
        place.launch_answers = True
        watched.supervisor.command(W.PAUSE)
        watched.supervisor.command(W.RESTART)
        watched.state(S.RUNNING)
        assert first.signals == ["terminate"]


def test_a_wish_after_the_end_is_not_waited_for(place: FakePlace) -> None:
    with Watched(place) as watched:
        watched.state(S.RUNNING)
    watched.supervisor.command(W.PAUSE)


def test_a_machine_that_slept_is_not_taken_for_a_gateway_that_hangs(place: FakePlace) -> None:
    with Watched(place, replace(QUICK, silent=0.05, first_sign=0.05, hung_grace=0.0, late=0.0)) as watched:
        watched.state(S.RUNNING)
        watched.supervisor.command(W.PAUSE)  # with late=0, every wait looks as if the machine had slept
        assert not any(seen.hangs for seen in watched.seen)
        assert place.process.signals == []


def test_a_mistake_of_ours_does_not_end_the_supervisor(place: FakePlace) -> None:
    place.mistakes = [RuntimeError("a mistake")]
    with Watched(place) as watched:
        watched.state(S.RUNNING)
    assert place.mistakes == []
