"""Seccomp filters that refuse system calls with which a confined program could reach what Landlock does not cover.

These calls concern Unix and other sockets, namespaces, io_uring, tracing, kernel keys, and System V IPC. A filter is a
short program of classic BPF. It can check numbers and registers, but never the memory behind a pointer.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from functools import cache
from typing import Literal

from trayapp.confinement.landlock import system_call

Sockets = Literal["all", "none", "asked"]  # Internet sockets: allowed, refused, or decided by the gateway one by one

# -- numbers: linux/audit.h, linux/seccomp.h, asm/unistd.h ------------------------------------------------------------

ALLOW, ERROR, NOTIFY, KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
SET_FILTER, NEW_LISTENER = 1, 8
X32_BIT = 0x40000000  # a second set of numbers for the same calls
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SECCOMP = {"x86_64": 317, "aarch64": 277}

# name -> number on x86_64, on aarch64 (-1: does not exist)
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "perf_event_open": (298, 241), "bpf": (321, 280),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "iopl": (172, -1), "ioperm": (173, -1), "modify_ldt": (154, -1),
    "uselib": (134, -1), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
UNKNOWN = {  # answered as if the kernel lacked these: programs then use older calls
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "clone3": (435, 435),  # its flags are in memory, where a filter cannot see them
}  # fmt: skip
# Landlock does not cover changes of files' attributes. Programs need the calls in ATTRIBUTES, so each is decided
# separately. Calls in UNSUPPORTED fail, as on many file systems.
ATTRIBUTES = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip
UNSUPPORTED = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}  # fmt: skip
# Scheduling of processes. The process is the first argument, or the second for the calls in KINDS.
SCHEDULING = {
    "prlimit64": (302, 261), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30),
}  # fmt: skip
KINDS = {"setpriority": (0, 2), "ioprio_set": (1, 3)}  # argument `which`: one process, all processes of a user
CLONE, UNSHARE, SOCKET, SOCKETPAIR = (56, 220), (272, 97), (41, 198), (53, 199)
CONNECT, LISTEN = (42, 203), (50, 201)
SENDTO, SENDMSG, SENDMMSG = (44, 206), (46, 211), (307, 269)
IOCTL = (16, 29)
TRACED = {  # calls that open or change files by name
    "open": (2, -1), "creat": (85, -1), "openat": (257, 56), "mkdir": (83, -1), "mkdirat": (258, 34),
    "unlink": (87, -1), "unlinkat": (263, 35), "rmdir": (84, -1), "rename": (82, -1), "renameat": (264, 38),
    "renameat2": (316, 276),
}  # fmt: skip
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NEW_TIME = 0x80  # CLONE_NEWTIME: this bit has another meaning in clone
# CLONE_PARENT: the new process would be the gateway's child, and the gateway would never notice its end
OF_PARENT = 0x8000
# TIOCSTI, TIOCLINUX: typing keys into a terminal. FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR: attributes of files.
REFUSED_REQUESTS = (0x5412, 0x541C, 0x40086602, 0x401C5820)
FAST_OPEN = 0x20000000  # MSG_FASTOPEN: sending also connects, which Landlock does not cover
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # AF_...
STREAM, SEQPACKET, TYPE_MASK, NONBLOCK = 1, 5, 0xF, 0o4000

_JUMP_EQUAL, _JUMP_ABOVE, _JUMP_SET = 0x15, 0x35, 0x45
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


def machine() -> str:
    """Return the key of this machine in ARCHITECTURES, or "" if there is none or the process is 32-bit."""
    name = os.uname().machine if sys.platform == "linux" else ""
    return name if name in ARCHITECTURES and sys.maxsize > 2**32 else ""


@cache
def filter_program(
    name: str,
    internet: Sockets,
    *,
    unix: bool = False,
    tell: bool = False,
    trace: bool = False,
    namespaces: bool = False,
) -> bytes:
    """Return the filter for an architecture.

    - `internet`: the answer to requests for Internet sockets.
    - `unix`: Unix sockets are allowed.
    - `tell`: the gateway decides on calls that change attributes of files or the scheduling of threads, and records
      refused Unix sockets. Without `tell`, the filter refuses all of these calls.
    - `trace`: calls that open or change a file are also reported.
    - `namespaces`: the program sees only its own files and processes, so calls on these are not checked.
    """
    at = list(ARCHITECTURES).index(name)
    refuse = ERROR | errno.EPERM
    no_socket = ERROR | errno.EACCES
    program = _numbers_of(name)
    for numbers, answer in ((REFUSED.values(), refuse), (UNKNOWN.values(), ERROR | errno.ENOSYS)):
        for number in (pair[at] for pair in numbers if pair[at] >= 0):
            program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    program += _call(CLONE[at], [*_argument(0), (_JUMP_SET, 0, 1, NEW_NAMESPACES | OF_PARENT), (_RETURN, 0, 0, refuse)])
    program += _call(
        UNSHARE[at], [*_argument(0), (_JUMP_SET, 0, 1, NEW_NAMESPACES | NEW_TIME), (_RETURN, 0, 0, refuse)]
    )
    if not namespaces:
        program += _outside(at, NOTIFY if tell else refuse, refuse)
    keys = [step for key in REFUSED_REQUESTS for step in ((_JUMP_EQUAL, 0, 1, key), (_RETURN, 0, 0, refuse))]
    program += _call(IOCTL[at], [*_argument(1), *keys])
    program += _call(SOCKET[at], _socket_rules(internet, unix, tell, no_socket))
    for number in (pair[at] for pair in TRACED.values() if trace and pair[at] >= 0):
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, NOTIFY)]
    pair = [*_argument(0), (_JUMP_EQUAL, 1, 0, UNIX), (_RETURN, 0, 0, no_socket)]
    if not unix:  # one end of a datagram socket pair can be reconnected to any path
        pair += [*_argument(1), (_AND, 0, 0, TYPE_MASK), (_JUMP_EQUAL, 2, 0, STREAM), (_JUMP_EQUAL, 1, 0, SEQPACKET)]
        pair += [(_RETURN, 0, 0, no_socket)]
    program += _call(SOCKETPAIR[at], pair)
    if internet == "asked":
        program += _no_other_way(at)
    return _packed(program)


def proxy_program(name: str) -> bytes:
    """Return the filter for bubblewrap and its program if hosts are listed. The gateway makes its sockets."""
    at = list(ARCHITECTURES).index(name)
    rules = [*_argument(0), (_JUMP_EQUAL, 0, 1, INET), (_RETURN, 0, 0, NOTIFY)]
    rules += [(_JUMP_EQUAL, 0, 1, INET6), (_RETURN, 0, 0, ERROR | errno.EACCES)]
    program = [*_numbers_of(name), *_call(SOCKET[at], rules), *_call(CONNECT[at], [(_RETURN, 0, 0, NOTIFY)])]
    return _packed([*program, *_no_other_way(at)])


def _numbers_of(name: str) -> list[_Instruction]:
    """Return the steps that load the call's number, kill the process on another architecture and refuse x32 numbers."""
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, ARCHITECTURES[name]),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if name == "x86_64":
        program += [(_JUMP_ABOVE, 0, 1, X32_BIT), (_RETURN, 0, 0, ERROR | errno.ENOSYS)]
    return program


def _outside(at: int, answer: int, refuse: int) -> list[_Instruction]:
    """Return the steps for calls that may change other programs' files or processes.

    `answer`: the result of calls that the gateway can decide. `refuse`: the result of calls on all processes of a user.
    """
    program: list[_Instruction] = []
    for numbers, end in ((ATTRIBUTES, answer), (UNSUPPORTED, ERROR | errno.EOPNOTSUPP)):
        for number in (pair[at] for pair in numbers.values() if pair[at] >= 0):
            program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, end)]
    for name, pair in SCHEDULING.items():
        steps: list[_Instruction] = []
        if name in KINDS:
            steps += [*_argument(0), (_JUMP_EQUAL, 0, 1, KINDS[name][1]), (_RETURN, 0, 0, refuse)]
        steps += [*_argument(1 if name in KINDS else 0), (_JUMP_EQUAL, 1, 0, 0), (_RETURN, 0, 0, answer)]
        program += _call(pair[at], steps)
    return program


def _no_other_way(at: int) -> list[_Instruction]:
    """Return the steps that refuse ways around the proxy: connecting by sending data, and listening."""
    refuse = (_RETURN, 0, 0, ERROR | errno.EACCES)
    program = _call(LISTEN[at], [refuse])
    for call, flags in ((SENDTO, 3), (SENDMSG, 2), (SENDMMSG, 3)):
        program += _call(call[at], [*_argument(flags), (_JUMP_SET, 0, 1, FAST_OPEN), refuse])
    return program


def _packed(program: list[_Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *step) for step in (*program, (_RETURN, 0, 0, ALLOW)))


def _argument(number: int) -> list[_Instruction]:
    """Return the step that loads an argument's lower half, the only half that these calls use."""
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * number)]


def _call(number: int, steps: list[_Instruction]) -> list[_Instruction]:
    """Return the steps for one call. A call that passes them all is allowed."""
    inside = [*steps, (_RETURN, 0, 0, ALLOW)]
    return [(_JUMP_EQUAL, 0, len(inside), number), *inside]


def _socket_rules(internet: Sockets, unix: bool, tell: bool, refuse: int) -> list[_Instruction]:
    family = _argument(0)
    rules = [*family]
    if unix:
        rules += [(_JUMP_EQUAL, 0, 1, UNIX), (_RETURN, 0, 0, ALLOW)]
    elif tell:  # not for non-blocking sockets: libc uses one to look for its name service daemon
        asks = [*_argument(1), (_AND, 0, 0, NONBLOCK), (_JUMP_EQUAL, 0, 1, 0), (_RETURN, 0, 0, NOTIFY)]
        rules += [(_JUMP_EQUAL, 0, len(asks) + 1, UNIX), *asks, (_RETURN, 0, 0, refuse)]
    if internet == "all":
        rules += [(_JUMP_EQUAL, 1, 0, INET), (_JUMP_EQUAL, 0, 1, INET6), (_RETURN, 0, 0, ALLOW)]
    elif internet == "asked":
        rules += [(_JUMP_EQUAL, 1, 0, INET), (_JUMP_EQUAL, 0, 1, INET6), (_RETURN, 0, 0, NOTIFY)]
    # Netlink protocol 0 lists this machine's own addresses. Others reach other programs or change settings.
    rules += [(_JUMP_EQUAL, 0, 3, NETLINK), *_argument(2), (_JUMP_EQUAL, 0, 1, 0), (_RETURN, 0, 0, ALLOW)]
    return [*rules, (_RETURN, 0, 0, refuse)]


class _Program(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def install(program: bytes, *, listen: bool) -> int:
    """Install the filter for the calling thread and all that it starts. Raises OSError.

    Return the descriptor for NOTIFY requests (it is closed on exec), or -1 without `listen`.
    """
    wanted = _Program(len(program) // 8, program)
    flags = NEW_LISTENER if listen else 0
    number = SECCOMP[machine()]
    result = system_call(number, ctypes.c_uint(SET_FILTER), ctypes.c_uint(flags), ctypes.byref(wanted))
    return result if listen else -1
