"""Windows job objects, one per server. A job ends its server with all descendants, at the latest with the gateway.

`kernel32` is passed in, so that the calls can be tested on any system.
"""

from __future__ import annotations

import ctypes
import logging
from contextlib import AbstractContextManager, nullcontext
from ctypes import c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, c_wchar_p
from typing import Any

log = logging.getLogger(__name__)

KILL_ON_JOB_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
SET_QUOTA_AND_TERMINATE = 0x0101  # PROCESS_SET_QUOTA | PROCESS_TERMINATE, needed to assign a job
KILLED = 1  # exit code of processes that were ended

# name -> result, arguments (winbase.h); without them ctypes would truncate 64-bit handles
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "CreateJobObjectW": (c_void_p, (c_void_p, c_wchar_p)),
    "SetInformationJobObject": (c_int, (c_void_p, c_int, c_void_p, c_uint32)),
    "OpenProcess": (c_void_p, (c_uint32, c_int, c_uint32)),
    "AssignProcessToJobObject": (c_int, (c_void_p, c_void_p)),
    "TerminateJobObject": (c_int, (c_void_p, c_uint32)),
    "CloseHandle": (c_int, (c_void_p,)),
}


class BasicLimits(ctypes.Structure):
    """The Windows structure JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = [
        ("per_process_user_time", c_int64),
        ("per_job_user_time", c_int64),
        ("limit_flags", c_uint32),
        ("minimum_working_set", c_size_t),
        ("maximum_working_set", c_size_t),
        ("active_process_limit", c_uint32),
        ("affinity", c_size_t),
        ("priority_class", c_uint32),
        ("scheduling_class", c_uint32),
    ]


class ExtendedLimits(ctypes.Structure):
    """The Windows structure JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [
        ("basic", BasicLimits),
        ("io_counters", c_uint64 * 6),
        ("process_memory", c_size_t),
        ("job_memory", c_size_t),
        ("peak_process_memory", c_size_t),
        ("peak_job_memory", c_size_t),
    ]


class JobTracker:
    """A ProcessTracker (see orphans) with one job per server. Child processes belong to the job of their parent.

    The system closes a killed gateway's handles. Closing a job's last handle ends all processes in it.
    """

    def __init__(self, kernel32: Any = None) -> None:
        self._kernel32 = kernel32 or _kernel32()
        self._jobs: dict[int, Any] = {}

    def environment(self) -> dict[str, str]:
        """Return no variables: a job needs none."""
        return {}

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        """Do nothing: a job also contains the children of its processes."""
        return nullcontext()

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """Assign the process to a new job. Log a warning if that fails."""
        job = self._new_job()
        process = self._kernel32.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid) if job else None
        if process:
            assigned = bool(self._kernel32.AssignProcessToJobObject(job, process))
            self._kernel32.CloseHandle(process)
            if assigned:
                self._jobs[pid] = job
                return
        log.warning("No job object for process %d: it may outlive a gateway that is killed", pid)
        if job:
            self._kernel32.CloseHandle(job)

    def finish(self, pid: int) -> None:
        if (job := self._jobs.pop(pid, None)) is not None:
            self._kernel32.TerminateJobObject(job, KILLED)
            self._kernel32.CloseHandle(job)

    def close(self) -> None:
        for pid in list(self._jobs):
            self.finish(pid)

    def _new_job(self) -> Any:
        job = self._kernel32.CreateJobObjectW(None, None)
        limits = ExtendedLimits()
        limits.basic.limit_flags = KILL_ON_JOB_CLOSE
        size = ctypes.sizeof(limits)
        if not job or self._kernel32.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(limits), size):
            return job
        self._kernel32.CloseHandle(job)
        return None


def _kernel32() -> Any:
    library = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
