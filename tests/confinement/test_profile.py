"""The other systems' ways as text: the macOS profile, bubblewrap's command line, the filter's instructions."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import pytest

from trayapp.confinement import bubblewrap, landlock, seccomp, ways
from trayapp.confinement.bubblewrap import command_line
from trayapp.confinement.policy import Policy, Program
from trayapp.confinement.seatbelt import profile
from trayapp.confinement.ways import NoWayError, choose

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
    assert '(deny file-read-data file-write* (subpath "/Users/me/.nvm"))' not in text  # named by the entry
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
    program = Program("s", ("/usr/bin/x", "-a"), "/home/me/src", {"HOME": "/home/me"}, (), ())
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


@pytest.mark.requirement("confine-or-not")
def test_each_system_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NoWayError, match="this system has nothing"):
        choose(True, False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ways, "SANDBOX_EXEC", str(tmp_path / "none"))
    with pytest.raises(NoWayError, match="is missing"):
        choose(True, False)
    monkeypatch.setattr(ways, "SANDBOX_EXEC", sys.executable)
    assert choose(True, False) == "sandbox-exec"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(seccomp, "machine", lambda: "x86_64")
    monkeypatch.setattr(landlock, "abi", lambda: 7)
    monkeypatch.setattr(bubblewrap, "fault", lambda: "")
    assert choose(("example.com",), False) == "landlock"
    assert choose(True, True) == "bubblewrap"
    with pytest.raises(NoWayError, match="cannot be had together"):
        choose(("example.com",), True)
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert choose(True, False) == "bubblewrap"
    assert choose(False, True) == "bubblewrap"
    for network, sockets in ((True, True), (("example.com",), False)):
        with pytest.raises(NoWayError, match="this kernel has no Landlock"):
            choose(network, sockets)
    monkeypatch.setattr(seccomp, "machine", lambda: "")
    with pytest.raises(NoWayError, match="does not know the system calls"):
        choose(True, False)
