"""Windows: a job object that ends every server, with all descendants, when the gateway's last handle to it closes.

Never here: anything for other systems; `kernel32` is passed in, so that the calls can be tested anywhere.
"""

from __future__ import annotations

import ctypes
import logging
from ctypes import c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

log = logging.getLogger(__name__)

KILL_ON_JOB_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
SET_QUOTA_AND_TERMINATE = 0x0101  # PROCESS_SET_QUOTA | PROCESS_TERMINATE, what assigning needs


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

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
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [
        ("basic", BasicLimits),
        ("io_counters", c_uint64 * 6),
        ("process_memory", c_size_t),
        ("job_memory", c_size_t),
        ("peak_process_memory", c_size_t),
        ("peak_job_memory", c_size_t),
    ]


class JobKeeper:
    """A backends.keeper.Keeper. Child processes of a job's process belong to the job by themselves."""

    def __init__(self, kernel32: Any = None) -> None:
        self._kernel32 = kernel32 or _kernel32()
        self._job = self._kernel32.CreateJobObjectW(None, None)
        limits = ExtendedLimits()
        limits.basic.limit_flags = KILL_ON_JOB_CLOSE
        done = self._job and self._kernel32.SetInformationJobObject(
            self._job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        if not done:
            log.warning("No job object: servers may outlive a gateway that is killed")

    def environment(self) -> dict[str, str]:
        """See Keeper."""
        return {}

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """See Keeper."""
        handle = self._kernel32.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid)
        if not handle or not self._kernel32.AssignProcessToJobObject(self._job, handle):
            log.warning("Process %d could not be added to the job", pid)
        if handle:
            self._kernel32.CloseHandle(handle)

    def finish(self, pid: int) -> None:
        """See Keeper: the job forgets ended processes by itself, and ends the others with the gateway."""

    def close(self) -> None:
        """See Keeper."""
        if self._job:
            self._kernel32.CloseHandle(self._job)
            self._job = None


def _kernel32() -> Any:
    library = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    library.CreateJobObjectW.restype = c_void_p
    library.OpenProcess.restype = c_void_p
    for name in ("SetInformationJobObject", "AssignProcessToJobObject", "CloseHandle"):
        getattr(library, name).argtypes = None
    return library
