"""Confined servers are started, watched and stopped like other servers. Without a mechanism, none is started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.backends.world import real_connection
from tests.confinement.hostile import WAYS
from tests.confinement.test_hostile import ALONE, IN_NAMESPACES, needs
from tests.confinement.world import PROGRAM, made_world
from tests.fixtures.odd import Odd, alive, until
from tests.tools import missing, require
from trayapp.backends.confinements import Confinements
from trayapp.confinement import bubblewrap, landlock
from trayapp.model.config import Config, Confine, ServerConfig, Settings, plan
from trayapp.model.errors import ServerError

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp")]
ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65_534
CALL: dict[str, Any] = {"name": "whoami", "arguments": {}}


@pytest.mark.requirement("confine-hostile")
@pytest.mark.timeout(180)
def test_an_ordinary_user_is_confined_as_well_and_gets_out_without(tmp_path: Path) -> None:
    needs(ALONE)
    if os.geteuid() != 0:
        missing("only root can become another user; the other tests ran as an ordinary one")
    setpriv = require("setpriv")
    with made_world(NOBODY) as world:
        shutil.copy(PROGRAM, world.cwd / "hostile.py")
        world.facts |= {"ours": str(world.ours), "gateway": world.facts["victim"]}
        world.facts_file.write_text(json.dumps(world.facts))
        package = world.root / "package"
        for room in ("confinement", "model", "wire", "config"):
            shutil.copytree(ROOT / "trayapp" / room, package / "trayapp" / room)
        (package / "trayapp/__init__.py").write_text("")
        shutil.copy(Path(__file__).with_name("driver.py"), package / "driver.py")
        for folder, _, files in os.walk(world.root):
            for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118
                if path != world.facts["setuid_program"]:
                    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        # Both attempts share one world. Ways that could spoil it for the second attempt are left to test_hostile.py.
        left = {"remove_a_file", "truncate_a_file", "move_a_file_out", "message_queue", "ptrace_attach"}
        names = [name for name in WAYS if name not in left]
        user = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*user, "/usr/bin/python3", "driver.py", str(world.facts_file), *names]
        passed = tuple(int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2 and _inherits(int(name)))  # noqa: PTH208
        done = subprocess.run(command, cwd=package, capture_output=True, text=True, pass_fds=passed, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert {name: said for name, (said, _) in found.items() if said != "out"} == {}
    assert [name for name, (_, said) in found.items() if "Error:" not in said] == []


def _inherits(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


@pytest.mark.requirement("confine-life")
@pytest.mark.parametrize("confine", [Confine(), ALONE, IN_NAMESPACES], ids=["landlock", "alone", "bubblewrap"])
async def test_a_confined_server_answers_and_ends_with_all_that_it_started(tmp_path: Path, confine: Confine) -> None:
    needs(confine)
    odd = Odd(tmp_path, "odd", ("--ignore-eof", "--child", str(tmp_path / "child")))
    kept = Confinements()
    async with real_connection(odd.config(cwd=str(tmp_path), confine=confine), confinements=kept) as (connection, _):
        await connection.request("tools/call", CALL)
        status = kept.status("odd")
        assert status is not None
        assert status.way == ("bubblewrap" if confine.sockets else "landlock")
        pid = connection.pid
        assert pid is not None
    await until(lambda: not alive(pid))
    if not confine.sockets:  # a child in a namespace writes a process id that is invalid here
        child = int((tmp_path / "child").read_text())
        await until(lambda: not alive(child))


@pytest.mark.requirement("confine-life")
async def test_a_confined_server_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    needs(ALONE)
    code = "import sys; print('no licence', file=sys.stderr); sys.exit(3)"
    server = ServerConfig("s", command=sys.executable, args=("-c", code), cwd=str(tmp_path), confine=ALONE)
    async with real_connection(server) as (connection, _):
        with pytest.raises(ServerError, match="exited with code 3: no licence"):
            await connection.request("tools/call", CALL)


@pytest.mark.requirement("confine-life")
async def test_a_program_that_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    needs(ALONE)
    script = tmp_path / "server"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with real_connection(ServerConfig("s", command=str(script), cwd=str(tmp_path), confine=ALONE)) as (one, _):
        with pytest.raises(ServerError, match="ENOENT"):
            await one.request("tools/call", CALL)


@pytest.mark.requirement("confine-refused", "confine-links")
async def test_a_script_that_names_an_interpreter_out_of_reach_is_refused_with_the_line_that_allows_it(
    tmp_path: Path,
) -> None:
    needs(ALONE)
    home, tools = tmp_path / "home", tmp_path / "tools"
    for folder in (home / "src", tools):
        folder.mkdir(parents=True)
    shutil.copy("/bin/sh", tools / "own-sh")
    script = home / "src" / "server"  # the server can write this script, and so choose its interpreter
    script.write_text(f"#!{tools}/own-sh\nexit 3\n")
    script.chmod(0o755)
    kept, environ = Confinements(), {**os.environ, "HOME": str(home)}
    server = ServerConfig("s", command=str(script), cwd=str(home / "src"), confine=Confine())
    async with real_connection(server, confinements=kept, environ=environ) as (connection, _):
        with pytest.raises(ServerError, match="EACCES"):
            await connection.request("tools/call", CALL)
    status = kept.status("s")
    assert status is not None
    assert [(one.access, one.what, one.allow) for one in status.refused] == [
        ("read", str(tools), f"confine: {{read: [{tools}]}}")
    ]
    allowed = replace(server, confine=Confine(read=(str(tools),)))
    async with real_connection(allowed, environ=environ) as (connection, _):
        with pytest.raises(ServerError, match="exited with code 3"):
            await connection.request("tools/call", CALL)


@pytest.mark.requirement("confine-or-not")
async def test_what_cannot_be_confined_is_not_started_and_try_starts_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 4)
    monkeypatch.setattr(bubblewrap, "fault", lambda: "bubblewrap is not installed")
    odd = Odd(tmp_path)
    async with real_connection(odd.config(cwd=str(tmp_path), confine=Confine())) as (connection, _):
        with pytest.raises(
            ServerError, match=r"has only Landlock 4 \(version 6, of Linux 6.12, is needed\), and bubblewrap is not"
        ) as refused:
            await connection.request("tools/call", CALL)
    assert "confine: try" in refused.value.hint
    assert "confine" not in (refused.value.model_hint or "")
    assert odd.pids == []
    kept = Confinements()
    entry = odd.config(cwd=str(tmp_path), confine=Confine(required=False))
    async with real_connection(entry, confinements=kept) as (connection, _):
        await connection.request("tools/call", CALL)
        status = kept.status("odd")
    assert status is not None
    assert status.way == "open"
    assert "Landlock 4" in status.why_open


@pytest.mark.requirement("confine-or-not")
async def test_a_kernel_that_refuses_half_way_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installing the filter fails, as in a process that already has the maximum number of filters."""
    needs(ALONE)
    from trayapp.confinement import spawn

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(7, "Argument list too long")

    monkeypatch.setattr(spawn, "install", refuse)
    odd = Odd(tmp_path)
    for confine in (ALONE, Confine(required=False)):
        async with real_connection(odd.config(cwd=str(tmp_path), confine=confine)) as (connection, _):
            with pytest.raises(ServerError, match=r"the kernel refused \(E2BIG\)"):
                await connection.request("tools/call", CALL)
    assert odd.pids == []


@pytest.mark.requirement("confine-refused")
async def test_what_was_refused_is_said_with_the_line_that_allows_it(tmp_path: Path) -> None:
    needs(ALONE)
    home, folder = tmp_path / "home", tmp_path / "home/src"
    folder.mkdir(parents=True)
    (home / "notes").mkdir()
    (home / "notes/n.txt").write_text("n")
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("k")
    code = (
        "import pathlib,sys,traceback,socket\n"
        "def t(f):\n"
        "    try: f()\n"
        "    except OSError: traceback.print_exc()\n"
        f"t(lambda: open('{home}/notes/n.txt'))\n"
        f"t(lambda: open('{home}/out/x', 'w'))\n"
        f"t(lambda: pathlib.Path('{home}/made').mkdir())\n"
        f"t(lambda: open('{home}/.ssh/id'))\n"
        f"t(lambda: open('{home}/ours/k.txt'))\n"
        "t(lambda: socket.create_connection(('127.0.0.1', 9)))\n"
    )
    for name in ("out", "ours"):
        (home / name).mkdir()
    (home / "ours/k.txt").write_text("k")
    server = ServerConfig("s", command=sys.executable, args=("-c", code), cwd=str(folder), confine=ALONE)
    kept, log = Confinements(), bytearray()
    environ = {**os.environ, "HOME": str(home), "MULTI_MCP_HOME": str(home / "ours")}
    async with real_connection(server, confinements=kept, stderr=log, environ=environ) as (connection, _):
        with pytest.raises(ServerError):
            await connection.request("tools/call", CALL)
    status = kept.status("s")
    assert status is not None
    assert {(one.access, one.what): (one.allow, one.secret) for one in status.refused} == {
        ("read", "~/notes/n.txt"): ("confine: {read: [~/notes/n.txt], network: false}", False),
        ("write", "~/out/x"): ("confine: {write: [~/out], network: false}", False),
        ("write", "~/made"): ("confine: {write: [~/made], network: false}", False),
        ("read", "~/.ssh/id"): ("confine: {read: [~/.ssh/id], network: false}", True),
        ("read", "~/ours/k.txt"): (
            "confine: {read: [~/ours/k.txt], network: false}",
            True,
        ),  # in our own folder: protected, although it is not one of the secrets
        ("network", "the network"): ("confine: true", False),
    }
    assert b"Refused reading ~/ours/k.txt (protected: do not allow it only because the server asks). To allow" in log
    assert b"Refused reading ~/notes/n.txt. To allow it: confine: {read: [~/notes/n.txt], network: false}" in log
    quiet = replace(server, args=("-c", "import time; time.sleep(9)"))
    async with real_connection(quiet, confinements=kept, environ=environ) as (connection, _):
        with anyio.move_on_after(1):
            await connection.request("tools/call", CALL)
        again = kept.status("s")
        assert again is not None
        assert again.refused == status.refused  # a new start with the same `confine` keeps the earlier refusals


@pytest.mark.requirement("confine-refused")
async def test_what_a_tool_answers_of_a_refusal_is_said_too(tmp_path: Path) -> None:
    """The refusal is found in the tool's result, because a server such as server-memory prints nothing."""
    needs(ALONE)
    home, folder = tmp_path / "home", tmp_path / "home/src"
    folder.mkdir(parents=True)
    (home / "out").mkdir()
    code = (
        "import json,sys\n"
        "about = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}}\n"
        "about['serverInfo'] = {'name': 's', 'version': ''}\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' not in asked: continue\n"
        "    result = about if asked['method'] == 'initialize' else {'tools': []}\n"
        "    if asked['method'] == 'tools/call':\n"
        f"        try: open('{home}/out/memory.tmp', 'w')\n"
        "        except OSError as error:\n"
        "            text = {'type': 'text', 'text': 'Cannot save\\n' + str(error)}\n"
        "            result = {'content': [text], 'isError': True}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}), flush=True)\n"
    )
    server = ServerConfig("s", command=sys.executable, args=("-c", code), cwd=str(folder), confine=ALONE)
    kept = Confinements()
    environ = {**os.environ, "HOME": str(home)}
    async with real_connection(server, confinements=kept, environ=environ) as (connection, _):
        answer = await connection.request("tools/call", CALL)
    assert answer["isError"] is True
    status = kept.status("s")
    assert status is not None
    assert [(one.access, one.what, one.allow) for one in status.refused] == [
        ("write", "~/out/memory.tmp", "confine: {write: [~/out], network: false}")
    ]


@pytest.mark.requirement("confine-policy")
def test_the_setting_holds_for_servers_that_do_not_say_it_and_a_change_starts_them_again() -> None:
    servers = {
        "own": ServerConfig("own", command="x", confine=False),
        "other": ServerConfig("other", command="x"),
        "far": ServerConfig("far", url="https://example.org/mcp"),
    }
    old, new = Config(Settings(), servers), Config(Settings(confine=Confine()), servers)
    assert plan(old, new).relaunched == ("other",)


@pytest.mark.requirement("confine-life")
async def test_servers_of_sessions_are_confined_each(tmp_path: Path) -> None:
    needs(ALONE)
    odd = Odd(tmp_path)
    entry = odd.config(cwd=str(tmp_path), confine=ALONE, scope="session")
    kept = Confinements()
    connections = [partial(real_connection, entry, confinements=kept) for _ in range(2)]
    async with connections[0]() as (one, _), connections[1]() as (other, _), anyio.create_task_group() as tasks:
        tasks.start_soon(one.request, "tools/call", CALL)
        tasks.start_soon(other.request, "tools/call", CALL)
    assert len(odd.pids) == 2


@pytest.mark.requirement("confine-refused")
def test_a_message_with_two_paths_is_about_the_one_out_of_reach(tmp_path: Path) -> None:
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import Refusal, RefusalRecord

    record = RefusalRecord("s", Confine(), str(tmp_path), policy=Policy(("/usr",), (), (), True, False))
    record.read(b"/usr/bin/python: can't open file '/srv/s.py': [Errno 13] Permission")
    record.read(b" denied\nErrno 13: all well\nEACCES: permission denied, open '/usr/share/x'\n")
    assert list(record.refusals) == [Refusal("write", "/srv/s.py"), Refusal("write", "/usr/share/x")]


@pytest.mark.requirement("confine-refused")
def test_a_path_with_blanks_or_one_that_is_relative_is_read_whole(tmp_path: Path) -> None:
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import Refusal, RefusalRecord

    home = tmp_path / "my home"
    cwd, data = home / "own work", home / "all my data"
    for folder in (cwd, data):
        folder.mkdir(parents=True)
    (data / "a b.txt").write_text("x")
    record = RefusalRecord("s", Confine(), str(home), cwd=str(cwd), policy=Policy((), (str(cwd),), (), True, False))
    record.read(f"open {data}/a b.txt: permission denied\n".encode())
    record.read(b"cat: ../b.txt: Permission denied\ncat: ./c.txt: Permission denied\n")
    record.read(f"cannot create {data}/new one: Permission denied\n".encode())
    record.read(f"rename {data} to /srv/other: operation not permitted by the user\n".encode())
    assert list(record.refusals) == [
        Refusal("read", f"{data}/a b.txt"), Refusal("write", f"{home}/b.txt"), Refusal("write", f"{data}/new"),
        Refusal("write", str(data)), Refusal("write", "/srv/other"),
    ]  # fmt: skip


@pytest.mark.requirement("confine-refused")
def test_messages_without_end_cost_the_gateway_little(tmp_path: Path) -> None:
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import MOST, RefusalRecord

    floods = (
        b"/a " * 1300 + b"EACCES\n",
        b"cat: /srv/x: Permission denied\n" * 20_000,
        b"".join(b"cat: /srv/%d: Permission denied\n" % number for number in range(20_000)),
        b"".join(b"cat: /usr/%d: Permission denied\n" % number for number in range(20_000)),
    )
    for flood in floods:
        record = RefusalRecord("s", Confine(), str(tmp_path), policy=Policy((), ("/usr",), (), True, False))
        began = time.process_time()
        record.read(flood)
        assert time.process_time() - began < 1.0, "one line took 0.7 s"
        assert len(record.refusals) <= MOST


@pytest.mark.requirement("confine-refused")
def test_no_line_is_proposed_for_the_number_that_a_process_has_now(tmp_path: Path) -> None:
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import Refusal, RefusalRecord

    record = RefusalRecord("s", Confine(), str(tmp_path), policy=Policy(("/usr",), (), (), True, False))
    record.add(Refusal("sockets", "Unix sockets"))
    record.read(b"opendir /proc/self/fd: Permission denied\ncan't read /proc/4711/mountinfo: Permission denied\n")
    assert record.remedy() == Confine(sockets=True)


@pytest.mark.requirement("confine-refused")
def test_a_program_that_cannot_read_how_much_memory_it_uses_is_proposed_namespaces(tmp_path: Path) -> None:
    """This is how Node's `process.memoryUsage()` fails: Landlock cannot allow a program its own /proc entry alone."""
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import Refusal, RefusalRecord

    record = RefusalRecord("s", Confine(), str(tmp_path), policy=Policy(("/usr",), (), (), True, False))
    record.read(b"Error: EACCES: permission denied, uv_resident_set_memory\n")
    assert record.remedy() == Confine(sockets=True)
    assert record.line(Refusal("sockets", "/proc/self")) == (
        "Refused using /proc/self. To allow it: confine: {sockets: true}"
    )


@pytest.mark.requirement("confine-refused")
def test_a_terminal_is_proposed_as_namespaces_and_a_written_file_once(tmp_path: Path) -> None:
    from trayapp.confinement.policy import Policy
    from trayapp.confinement.record import Refusal, RefusalRecord

    record = RefusalRecord("s", Confine(), str(tmp_path), policy=Policy(("/usr",), (), (), True, False))
    record.add(Refusal("write", "/dev/ptmx"))
    record.add(Refusal("write", "/srv/data/k"))
    record.add(Refusal("read", "/srv/data/k"))
    assert list(record.refusals) == [Refusal("sockets", "/dev/ptmx"), Refusal("write", "/srv/data/k")]


@pytest.mark.requirement("confine-life", "confine-policy")
async def test_a_folder_to_write_is_made_where_it_is_missing(tmp_path: Path) -> None:
    needs(ALONE)
    (tmp_path / "cwd").mkdir()
    code = "import sys; open(sys.argv[1] + '/x', 'w')"
    args = ("-c", code, str(tmp_path / "data/mine"))
    confine = Confine(write=(f"{tmp_path}/data/mine", f"{tmp_path}/file.json"))
    server = ServerConfig("s", command=sys.executable, args=args, cwd=str(tmp_path / "cwd"), confine=confine)
    async with real_connection(server) as (connection, _):
        with pytest.raises(ServerError):
            await connection.request("tools/call", CALL)
    assert (tmp_path / "data/mine/x").exists()
    assert not (tmp_path / "file.json").exists()


BWRAP_OF_DEBIAN = """#!/bin/sh
echo "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user \
namespaces. On Debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'. See \
<https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>." >&2
exit 1
"""


@pytest.mark.requirement("confine-or-not")
def test_a_bubblewrap_that_may_not_work_here_says_why_in_a_sentence_and_which_setting_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    program.write_text(BWRAP_OF_DEBIAN)
    program.chmod(0o755)
    assert bubblewrap.fault.__wrapped__() == (
        "bubblewrap does not work: No permissions to create a new namespace, likely because the kernel does not allow "
        "non-privileged user namespaces"
    )
    system = tmp_path / "sys"
    assert "which this system or its container forbids" in bubblewrap.remedy(system)
    for name, bad, good in bubblewrap.FORBIDDING:
        setting = system / name.replace(".", "/")
        setting.parent.mkdir(parents=True, exist_ok=True)
        setting.write_text(f"{bad}\n")
        assert bubblewrap.remedy(system) == f"Allow user namespaces: sudo sysctl {name}={good}"
        setting.write_text(f"{good}\n")
    program.write_text("#!/bin/sh\nexit 3\n")
    assert bubblewrap.fault.__wrapped__() == "bubblewrap does not work: exit code 3"
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert bubblewrap.remedy(system) == "Install the package bubblewrap"
