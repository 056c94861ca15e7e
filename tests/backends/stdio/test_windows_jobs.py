"""Tests of Windows job objects, with a `Kernel32` that records handles, flags and members as Windows does."""

from __future__ import annotations

import ctypes
import logging
from typing import Any

import pytest

from trayapp.backends.stdio.orphans import ProcessTracker
from trayapp.backends.stdio.windows_jobs import EXTENDED_LIMITS, SIGNATURES, BasicLimits, ExtendedLimits, JobTracker

JOB_BASE = 0x1_0000_0000  # above 32 bits, so that a truncated handle is invalid


class Kernel32:
    """A fake of the functions in SIGNATURES. `fails` names the functions that fail."""

    def __init__(self, *fails: str) -> None:
        self._fails = fails
        self._last = JOB_BASE
        self.open: dict[int, str] = {}  # handle -> kind of object
        self.flags: dict[int, int] = {}  # job -> limit flags
        self.members: dict[int, list[int]] = {}  # job -> process ids
        self.ended: list[int] = []
        self.access: set[int] = set()

    def _handle(self, kind: str) -> int:
        self._last += 4
        self.open[self._last] = kind
        return self._last

    def CreateJobObjectW(self, security: Any, name: Any) -> int | None:
        assert (security, name) == (None, None)
        return None if "CreateJobObjectW" in self._fails else self._handle("job")

    def SetInformationJobObject(self, job: int, kind: int, limits: Any, size: int) -> int:
        assert self.open[job] == "job"
        assert (kind, size) == (EXTENDED_LIMITS, ctypes.sizeof(ExtendedLimits))
        self.flags[job] = limits._obj.basic.limit_flags
        return int("SetInformationJobObject" not in self._fails)

    def OpenProcess(self, access: int, inherit: bool, pid: int) -> int | None:
        assert inherit is False
        self.access.add(access)
        return None if "OpenProcess" in self._fails else self._handle(f"process {pid}")

    def AssignProcessToJobObject(self, job: int, process: int) -> int:
        if "AssignProcessToJobObject" in self._fails:
            return 0
        self.members.setdefault(job, []).append(int(self.open[process].split()[1]))
        return 1

    def TerminateJobObject(self, job: int, code: int) -> int:
        assert self.open[job] == "job"
        self.ended += self.members.get(job, [])
        return 1

    def CloseHandle(self, handle: int) -> int:
        del self.open[handle]
        return 1


def test_each_server_gets_a_job_that_ends_with_its_last_handle() -> None:
    kernel = Kernel32()
    tracker: ProcessTracker = JobTracker(kernel)
    assert tracker.environment() == {}
    tracker.adopt(11, {})
    tracker.adopt(12, {})
    assert set(kernel.flags.values()) == {0x2000}  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    assert kernel.access == {0x0100 | 0x0001}  # PROCESS_SET_QUOTA | PROCESS_TERMINATE
    assert list(kernel.members.values()) == [[11], [12]]
    assert list(kernel.open.values()) == ["job", "job"]  # handles that Windows closes when the gateway ends


@pytest.mark.requirement("proc-no-orphans")
def test_finishing_a_server_ends_its_job_and_no_other() -> None:
    kernel = Kernel32()
    tracker = JobTracker(kernel)
    tracker.adopt(11, {})
    tracker.adopt(12, {})
    tracker.finish(11)
    assert kernel.ended == [11]
    assert list(kernel.open.values()) == ["job"]
    tracker.finish(11)
    tracker.finish(99)
    tracker.close()
    assert kernel.ended == [11, 12]
    assert kernel.open == {}
    tracker.close()


@pytest.mark.parametrize("fails", [name for name in SIGNATURES if name not in ("TerminateJobObject", "CloseHandle")])
def test_where_no_job_can_be_had_it_is_said_and_no_handle_is_left(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    kernel = Kernel32(fails)
    tracker = JobTracker(kernel)
    with caplog.at_level(logging.WARNING):
        tracker.adopt(11, {})
    assert "No job object for process 11" in caplog.text
    assert kernel.open == {}
    tracker.finish(11)
    tracker.close()
    assert kernel.ended == []


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="sizes of 64-bit Windows")
def test_the_structures_are_as_large_as_winnt_h_has_them() -> None:
    assert ctypes.sizeof(BasicLimits) == 64
    assert BasicLimits.limit_flags.offset == 16
    assert ctypes.sizeof(ExtendedLimits) == 144


def test_handles_are_passed_and_returned_whole() -> None:
    for name, (result, arguments) in SIGNATURES.items():
        assert hasattr(Kernel32, name)
        if name in ("CreateJobObjectW", "OpenProcess"):
            assert result is ctypes.c_void_p
        else:
            assert arguments[0] is ctypes.c_void_p
