"""Tests that the guardian ends a server's processes and no others, with real processes and the real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.odd import alive as runs
from trayapp.backends.stdio import guardian
from trayapp.backends.stdio.guardian import MARK, NOBODY, Identity, family, read_registry, reap, start_time

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has job objects")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show environments")
LIMIT_S = 20.0
SLEEPS = "import time\nprint('up', flush=True)\nwhile True: time.sleep(60)"
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\n" + SLEEPS
# A leader that starts a child (in a new session if given `apart`), prints the child's pid, and ends when stdin closes.
# It first waits for output of the child: Popen returns during the exec, when the child may briefly have no environment.
LEADER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c",
                          "import time\\nprint('up', flush=True)\\nwhile True: time.sleep(60)"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session="apart" in sys.argv)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""
MINE = f"test-{os.getpid()}"


@contextmanager
def process(code: str, mark: str = "", *argv: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a running Python process. At the end, kill it and every process that carries its mark."""
    env = {**os.environ, MARK: mark} if mark else dict(os.environ)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, *argv],
        env=env,
        stdin=pipe,
        stdout=pipe,
        text=True,
        start_new_session=True,
    ) as made:
        try:
            yield made
        finally:
            left = [psutil.Process(pid) for pid, _ in family([(NOBODY, mark)])] if mark else []
            for one in left:
                one.kill()
            made.kill()
            psutil.wait_procs(left, LIMIT_S)  # the next test may use the same mark


def first_line(made: subprocess.Popen[str]) -> str:
    assert made.stdout is not None
    return made.stdout.readline().strip()


def identity(pid: int) -> Identity:
    return pid, start_time(pid)


def end_of(made: subprocess.Popen[str]) -> None:
    assert made.stdin is not None
    made.stdin.close()
    made.wait(LIMIT_S)


# -- which processes belong to a server ------------------------------------------------------------------------------


def test_a_process_is_known_by_its_start_time_and_one_that_ended_has_none() -> None:
    with process(SLEEPS) as made:
        first_line(made)
        started = start_time(made.pid)
        assert started
        assert guardian.alive((made.pid, started))
        assert not guardian.alive((made.pid, started + "1"))
        assert not guardian.alive((made.pid, ""))
        os.kill(made.pid, signal.SIGKILL)
        os.waitid(os.P_PID, made.pid, os.WEXITED | os.WNOWAIT)
        assert start_time(made.pid) == ""  # a zombie counts as ended
        assert not guardian.alive((made.pid, started))
    assert start_time(made.pid) == ""


@linux_only
def test_what_an_earlier_boot_wrote_down_fits_nobody() -> None:
    with process(SLEEPS) as made:
        first_line(made)
        ticks, _, boot = start_time(made.pid).partition(".")
        assert len(boot) == 8
        assert not guardian.alive((made.pid, f"{ticks}.00000000"))


def test_the_session_of_a_leader_and_all_that_carry_the_mark_are_its_family() -> None:
    with process(LEADER, MINE) as same, process(LEADER, MINE + "a", "apart") as apart, process(SLEEPS) as foreign:
        children = [int(first_line(leader)) for leader in (same, apart)]
        first_line(foreign)
        found = {pid for pid, _ in family([(identity(same.pid), MINE)])}
        assert found == {same.pid, children[0]}
        if sys.platform == "linux":
            assert {pid for pid, _ in family([(identity(apart.pid), MINE + "a")])} == {apart.pid, children[1]}
            both = {pid for pid, _ in family([(identity(same.pid), ""), (NOBODY, MINE + "a")])}
            assert both == {same.pid, apart.pid, *children}
        os.kill(children[1], signal.SIGKILL)


@linux_only
@pytest.mark.requirement("proc-no-orphans")
def test_a_dead_leader_whose_number_is_somebody_else_s_now_gives_only_what_carries_the_mark() -> None:
    with process(LEADER, MINE) as leader, process(LEADER) as somebody:
        left = int(first_line(leader))
        child_of_somebody = int(first_line(somebody))
        end_of(leader)
        reused = (somebody.pid, start_time(leader.pid) or "1.00000000")  # somebody's pid with another start time
        assert [pid for pid, _ in family([(reused, MINE)])] == [left]
        assert family([(reused, "")]) == []
        os.kill(child_of_somebody, signal.SIGKILL)


@linux_only
def test_a_mark_is_compared_whole_and_only_one_that_ends_in_a_dash_is_a_beginning() -> None:
    with process(SLEEPS, MINE + "-12") as made:
        first_line(made)
        assert family([(NOBODY, MINE + "-1")]) == []
        assert family([(NOBODY, MINE)]) == []
        assert [pid for pid, _ in family([(NOBODY, MINE + "-")])] == [made.pid]
        assert [pid for pid, _ in family([(NOBODY, MINE + "-12")])] == [made.pid]


@linux_only
def test_where_there_is_no_proc_ps_tells_sessions_groups_and_descendants() -> None:
    with process(LEADER, f"{MINE}-here") as leader, process(LEADER, MINE, "apart") as other:
        children = [int(first_line(made)) for made in (leader, other)]
        found = {pid for pid, _ in guardian._family_by_ps([leader.pid])}
        assert found == {leader.pid, children[0]}
        assert {pid for pid, _ in guardian._family_by_ps([other.pid])} == {other.pid, children[1]}
        assert guardian._family_by_ps([2**22 + 1]) == []


# -- the registry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"", []),
        (b"12\t345\tm-1\n", [((12, "345"), "m-1")]),
        (b"12\t345\tm-1\n13\t6 7:8\t\n", [((12, "345"), "m-1"), ((13, "6 7:8"), "")]),
        (b"12\t345\tm-1\n13\t34", [((12, "345"), "m-1")]),
        (b"\xff\xfe\x00\n12\t345\tm-1\n", [((12, "345"), "m-1")]),
        (b"-1\t345\tm\n", []),
        (b"9999999999\t345\tm\n", []),
        (b"9" * 5000 + b"\t345\tm\n", []),
        ("٣\t345\tm\n".encode(), []),
        (b"12\t345\n12\n\n\t\t\n12\t3\t4\t5\n", []),
    ],
)
def test_a_registry_gives_the_lines_that_can_be_read(tmp_path: Path, content: bytes, read: list[guardian.Kin]) -> None:
    path = tmp_path / "registry"
    path.write_bytes(content)
    assert read_registry(str(path)) == read


@given(st.binary())
def test_no_content_of_a_registry_breaks_the_reader(content: bytes) -> None:
    path = Path("/tmp", f"multi-mcp-test-registry-{os.getpid()}")
    path.write_bytes(content)
    try:
        for (pid, _), _ in read_registry(str(path)):
            assert 0 <= pid < 10**9
    finally:
        path.unlink()


def test_a_registry_that_is_not_there_or_no_file_names_nobody(tmp_path: Path) -> None:
    assert read_registry(str(tmp_path / "none")) == []
    assert read_registry(str(tmp_path)) == []
    reap(str(tmp_path / "none"))
    reap(str(tmp_path))


@pytest.mark.requirement("proc-no-orphans")
def test_reaping_ends_polite_and_deaf_ones_and_kills_nobody_who_only_has_the_number(tmp_path: Path) -> None:
    registry = tmp_path / "backends-x.tsv"
    with ExitStack() as stack:
        polite, deaf, foreign = (stack.enter_context(process(code)) for code in (SLEEPS, DEAF, SLEEPS))
        for made in (polite, deaf, foreign):
            first_line(made)
        rows = [identity(polite.pid), identity(deaf.pid), (foreign.pid, "1.00000000")]
        registry.write_text("".join(f"{pid}\t{started}\t\n" for pid, started in rows))
        reap(str(registry))
        assert polite.wait(LIMIT_S) == -signal.SIGTERM
        assert deaf.wait(LIMIT_S) == -signal.SIGKILL
        assert foreign.poll() is None
        assert not registry.exists()


@linux_only
@pytest.mark.requirement("proc-no-orphans")
def test_what_could_not_be_written_down_is_found_by_the_mark_in_the_registry_s_name(tmp_path: Path) -> None:
    with process(LEADER, MINE + "-1", "apart") as leader, process(SLEEPS, MINE + "0-1") as other:
        child = int(first_line(leader))
        first_line(other)
        end_of(leader)
        reap(str(tmp_path / f"backends-{MINE}-.tsv"))  # no process carries this mark
        assert runs(child)
        reap(str(tmp_path / f"backends-{MINE}.tsv"))
        assert not runs(child)
        assert other.poll() is None


# -- the guardian program --------------------------------------------------------------------------------------------


@contextmanager
def program(registry: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """Start the guardian of a registry. Yield its first process, which has ended, and the process left running."""
    command = [sys.executable, "-I", "-S", guardian.__file__, str(registry)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as first:
        assert first.wait(LIMIT_S) == 0
        (left,) = [p for p in psutil.process_iter() if str(registry) in _command(p)]
        yield first, left


def _command(found: psutil.Process) -> list[str]:
    try:
        return found.cmdline()
    except psutil.Error:
        return []


def test_the_program_is_nobody_s_child_small_and_deaf_to_signals(tmp_path: Path) -> None:
    with program(tmp_path / "backends-y.tsv") as (first, itself):
        assert itself.pid not in [p.pid for p in psutil.Process().children(recursive=True)]
        assert os.getsid(itself.pid) == itself.pid
        assert itself.memory_info().rss < 12 << 20
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(itself.pid, number)
        assert itself.is_running()
        assert first.stdin is not None
        first.stdin.write(b"end\n")
        first.stdin.close()
        assert psutil.wait_procs([itself], LIMIT_S)[1] == []


@pytest.mark.parametrize(("last_words", "reaps"), [(b"end\n", False), (b"", True), (b"en", True)])
def test_the_program_reaps_unless_the_gateway_went_in_order(tmp_path: Path, last_words: bytes, reaps: bool) -> None:
    registry = tmp_path / "backends-z.tsv"
    with process(SLEEPS) as server:
        first_line(server)
        registry.write_text(f"{server.pid}\t{start_time(server.pid)}\t\n")
        with program(registry) as (first, itself):
            assert first.stdin is not None
            first.stdin.write(last_words)
            first.stdin.close()
            psutil.wait_procs([itself], LIMIT_S)
        assert (server.poll() is None) != reaps
        assert registry.exists() != reaps
