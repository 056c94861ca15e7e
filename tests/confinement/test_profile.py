"""The macOS profile, bubblewrap's command line and the seccomp filter's instructions, checked without running them."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import pytest

from tests.tools import require_file
from trayapp.confinement import bubblewrap, landlock, seccomp, start
from trayapp.confinement.bubblewrap import command_line
from trayapp.confinement.policy import Policy, Program
from trayapp.confinement.seatbelt import profile
from trayapp.confinement.start import NoMechanismError, choose_mechanism

POLICY = Policy(
    read=("/usr", "/Users/me/.nvm"),
    write=('/Users/me/a "b"\\c',),
    devices=("/dev/null",),
    network=False,
    sockets=False,
    secrets=("/Users/me/.ssh", "/Users/me/.nvm"),
)


@pytest.mark.requirement("confine-policy")
def test_the_macos_profile_denies_by_default_and_gives_what_the_policy_gives() -> None:
    text = profile(POLICY, None)
    assert text.startswith("(version 1)\n(deny default)\n")
    assert text.count("(") == text.count(")")
    assert '(allow file-read* file-map-executable (subpath "/usr"))' in text
    assert r'(allow file-read* file-write* file-map-executable (subpath "/Users/me/a \"b\"\\c"))' in text
    assert '(deny file-read-data file-write* (subpath "/Users/me/.ssh"))' in text
    # this folder is a secret, but the policy's `read` names it
    assert '(deny file-read-data file-write* (subpath "/Users/me/.nvm"))' not in text
    assert text.index("(deny file-read-data") > text.rindex("(allow file-")
    assert "network-outbound" not in text
    assert "target same-sandbox" in text


@pytest.mark.requirement("confine-hosts")
def test_the_macos_profile_leaves_the_proxy_as_the_only_way_out() -> None:
    from dataclasses import replace

    hosts = profile(replace(POLICY, network=("example.com",)), 4711)
    assert re.findall(r"\(allow network.*", hosts) == ['(allow network-outbound (remote ip "localhost:4711"))']
    assert "(allow network-outbound (remote ip))" in profile(replace(POLICY, network=True), None)


@pytest.mark.requirement("confine-policy")
def test_bubblewrap_binds_what_the_policy_gives_inner_folders_last() -> None:
    program = Program(("/usr/bin/x", "-a"), "/home/me/src", {"HOME": "/home/me"}, (), ())
    policy = Policy(("/usr", "/home/me/.nvm"), ("/home/me/src", "/home/me/.nvm/x"), (), False, True)
    words = command_line(policy, program, 9)
    assert words[-2:] == ["/usr/bin/x", "-a"]
    assert "--unshare-net" in words
    assert words.index("/home/me/.nvm") < words.index("/home/me/.nvm/x")
    assert words[words.index("/home/me/src", words.index("--remount-ro") - 9) - 1] == "--bind-try"
    assert words[words.index("--seccomp") + 1] == "9"
    assert "--unshare-net" not in command_line(Policy((), (), (), True, True), program, 9)


@pytest.mark.requirement("confine-hostile")
@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
@pytest.mark.parametrize("internet", ["all", "none", "asked"])
def test_the_filter_refuses_foreign_numbers_first_and_every_jump_stays_inside(
    machine: str, internet: seccomp.Sockets
) -> None:
    program = seccomp.filter_program(machine, internet)
    steps = list(struct.iter_unpack("=HBBI", program))
    assert steps[1] == (0x15, 1, 0, seccomp.ARCHITECTURES[machine])
    assert steps[2] == (0x06, 0, 0, seccomp.KILL)
    assert ((0x35, 0, 1, seccomp.X32_BIT) in steps) == (machine == "x86_64")
    assert steps[-1] == (0x06, 0, 0, seccomp.ALLOW)
    assert len(steps) < 4096
    for at, (code, yes, no, _) in enumerate(steps):
        if code & 7 == 5:
            assert at + 1 + max(yes, no) < len(steps)
    told = len(seccomp.filter_program(machine, internet, tell=True, trace=True)) // 8 - len(steps)
    assert told == 6 + 2 * sum(
        numbers[list(seccomp.ARCHITECTURES).index(machine)] >= 0 for numbers in seccomp.TRACED.values()
    )
    notified = [step for step in steps if step == (0x06, 0, 0, seccomp.NOTIFY)]
    assert bool(notified) == (internet == "asked")


@pytest.mark.requirement("confine-hosts")
@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_around_bubblewrap_asks_for_sockets_and_refuses_other_ways_to_connect(machine: str) -> None:
    steps = list(struct.iter_unpack("=HBBI", seccomp.proxy_program(machine)))
    at = list(seccomp.ARCHITECTURES).index(machine)
    assert steps[-1] == (0x06, 0, 0, seccomp.ALLOW)
    assert steps.count((0x06, 0, 0, seccomp.NOTIFY)) == 2
    compared = {value for code, _, _, value in steps if code == 0x15}
    for call in (seccomp.SOCKET, seccomp.CONNECT, seccomp.LISTEN, seccomp.SENDTO, seccomp.SENDMSG, seccomp.SENDMMSG):
        assert call[at] in compared
    assert sum(step == (0x45, 0, 1, seccomp.FAST_OPEN) for step in steps) == 3


@pytest.mark.requirement("confine-hostile")
def test_the_numbers_of_system_calls_are_those_of_the_kernels_headers() -> None:
    x86 = require_file(Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), "install linux-libc-dev")
    # the aarch64 headers include this file
    arm = require_file(Path("/usr/include/asm-generic/unistd.h"), "install linux-libc-dev")
    known = [
        {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text())}
        for path in (x86, arm)
    ]
    single = ("clone", "unshare", "socket", "socketpair", "connect", "listen", "sendto", "sendmsg", "sendmmsg", "ioctl")
    ours: dict[str, tuple[int, ...]] = {**seccomp.REFUSED, **seccomp.UNKNOWN, **seccomp.TRACED, **seccomp.SCHEDULING}
    ours |= seccomp.ATTRIBUTES | seccomp.UNSUPPORTED
    ours |= {name: getattr(seccomp, name.upper()) for name in single}
    ours |= {"seccomp": tuple(seccomp.SECCOMP.values())}
    # calls that these headers do not have yet
    newest = {name for name in ours if all(name not in table for table in known)}
    assert newest <= {"open_tree_attr", "fchmodat2", "setxattrat", "removexattrat", "file_setattr"}
    wrong = {
        (name, at): number
        for name, numbers in ours.items()
        for at, number in enumerate(numbers)
        if name not in newest and known[at].get(name, -1) != number
    }
    assert wrong == {}


@pytest.mark.requirement("confine-or-not")
def test_each_system_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NoMechanismError, match="this system offers no way"):
        choose_mechanism(True, False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(start, "SANDBOX_EXEC", str(tmp_path / "none"))
    with pytest.raises(NoMechanismError, match="is missing"):
        choose_mechanism(True, False)
    monkeypatch.setattr(start, "SANDBOX_EXEC", sys.executable)
    assert choose_mechanism(True, False) == "sandbox-exec"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(seccomp, "machine", lambda: "x86_64")
    monkeypatch.setattr(landlock, "abi", lambda: 7)
    monkeypatch.setattr(bubblewrap, "fault", lambda: "")
    assert choose_mechanism(("example.com",), False) == "landlock"
    assert choose_mechanism(True, True) == "bubblewrap"
    with pytest.raises(NoMechanismError, match="cannot be combined"):
        choose_mechanism(("example.com",), True)
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert choose_mechanism(True, False) == "bubblewrap"
    assert choose_mechanism(False, True) == "bubblewrap"
    assert choose_mechanism(("example.com",), False) == "bubblewrap"
    with pytest.raises(NoMechanismError, match="this kernel has no Landlock"):
        choose_mechanism(True, True)
    monkeypatch.setattr(seccomp, "machine", lambda: "")
    with pytest.raises(NoMechanismError, match="does not know the system calls"):
        choose_mechanism(True, False)
