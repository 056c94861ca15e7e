"""Tests of the single tray: its lock, and requests from a second tray."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.processes import end, line_of, start
from trayapp.service.single_instance import ADDRESS, SOCKET, SingleTray
from trayapp.wire.rundir import SOCKET_PATH_LIMIT, socket_folder

WAYS = [
    pytest.param(False, id="unix", marks=pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets here")),
    pytest.param(True, id="tcp"),
]
HOLD = """
import sys
from trayapp.service.single_instance import SingleTray
single = SingleTray(sys.argv[1])
print(single.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(home: Path) -> str:
    return str(home / "run")


@pytest.fixture(params=WAYS)
def first(run: str, request: pytest.FixtureRequest) -> Iterator[SingleTray]:
    made = SingleTray(run, tcp=request.param)
    assert made.take() is None
    yield made
    made.close()


def second(first: SingleTray, run: str) -> SingleTray:
    return SingleTray(run, tcp=first._tcp)


@pytest.mark.requirement("tray-single")
def test_the_second_one_learns_who_is_the_first(run: str) -> None:
    process = start(HOLD, run)
    assert line_of(process) == "None"
    assert SingleTray(run).take() == process.pid
    end(process)
    after = SingleTray(run)
    assert after.take() is None
    after.close()


@pytest.mark.requirement("tray-single")
def test_the_first_one_answers_the_wish_of_a_second(first: SingleTray, run: str) -> None:
    heard: list[str] = []

    def answer(wish: str) -> str:
        heard.append(wish)
        return "2 servers ready\nAll is well"

    first.serve(answer)
    assert second(first, run).send("show") == "2 servers ready\nAll is well"
    assert second(first, run).send("show me more") == "2 servers ready\nAll is well"
    assert heard == ["show", "show me more"]


def test_a_long_answer_is_cut_and_letters_beyond_ascii_pass(first: SingleTray, run: str) -> None:
    first.serve(lambda _: "ä" * 10_000)
    said = second(first, run).send("show")
    assert said is not None
    assert set(said.rstrip("\ufffd")) == {"ä"}


def test_many_at_once_are_all_answered(first: SingleTray, run: str) -> None:
    first.serve(lambda wish: wish)
    said: list[str | None] = []
    threads = [
        threading.Thread(target=lambda n=n: said.append(second(first, run).send(f"wish {n}"))) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(filter(None, said)) == sorted(f"wish {n}" for n in range(20))


def test_a_socket_that_a_killed_one_left_is_in_nobody_s_way(first: SingleTray, run: str) -> None:
    for name in (SOCKET, ADDRESS):
        (Path(run) / name).write_text("1 nonsense")
    first.serve(lambda _: "here")
    assert second(first, run).send("show") == "here"


def test_a_deep_folder_has_its_socket_elsewhere(home: Path) -> None:
    run = str(home / "deep" / ("d" * SOCKET_PATH_LIMIT))
    single = SingleTray(run, tcp=False)
    assert single.take() is None
    single.serve(lambda _: "here")
    assert SingleTray(run, tcp=False).send("show") == "here"
    single.close()
    (Path(socket_folder(run)) / SOCKET).unlink()
    Path(socket_folder(run)).rmdir()


@pytest.mark.parametrize("tcp", WAYS)
def test_one_that_holds_the_lock_and_does_not_listen_is_given_up(run: str, tcp: bool, home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    assert SingleTray(run, tcp=tcp).send("show") is None


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_what_it_leaves_in_the_folder_is_the_user_s_alone(first: SingleTray, run: str) -> None:
    first.serve(lambda _: "")
    made = [path for path in Path(run).iterdir() if path.name.startswith("tray.")]
    assert len(made) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)
    assert os.stat(run).st_mode & 0o077 == 0  # noqa: PTH116


def test_a_wrong_token_is_not_heard(run: str) -> None:
    heard: list[str] = []
    single = SingleTray(run, tcp=True)
    single.take()
    single.serve(lambda wish: heard.append(wish) or "x")  # type: ignore[func-returns-value]
    address = Path(run) / ADDRESS
    address.write_text(address.read_text().split()[0] + " wrong")
    assert SingleTray(run, tcp=True).send("show") is None
    assert heard == []
    single.close()
