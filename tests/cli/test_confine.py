"""`multi-mcp confine`, with a real gateway and a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import servers
from tests.cli.persons import Person
from tests.confinement.test_hostile import needs
from tests.e2e.confined_servers import SERVERS
from trayapp.confinement import landlock
from trayapp.model.config import Confine
from trayapp.samples import server as sample

pytestmark = [
    pytest.mark.requirement("confine-verb"),
    pytest.mark.skipif(landlock.abi() < landlock.LEAST_ABI, reason="needs Landlock 6"),
    pytest.mark.timeout(120),
]
ENTITY = 'entities=[{"name": "a", "entityType": "t", "observations": []}]'
# The columns: a server, a tool, its arguments, words of the answer, and the `confine` line that the server needs. Two
# servers keep their data outside their folder.
# Browsers need the same line as git-mcp-server (tests/e2e/test_confined_browsers).
NEEDY = [
    ("git-mcp-server", "git_init", ["path=made"], '"success": true', "confine: {sockets: true}"),
    ("memory", "create_entities", [ENTITY], '"entityType": "t"', "confine: {write: [~/data]}"),
    ("sqlite", "list_tables", [], "[]", "confine: {write: [~/data]}"),
]


@pytest.fixture
def needy(person: Person) -> Iterator[Person]:
    """Yield a person whose server reads a file, tries to read a key, and writes into its folder before it serves."""
    (person.mine / "notes").mkdir()
    (person.mine / "notes" / "n.txt").write_text("n")
    (person.mine / ".ssh").mkdir()
    (person.mine / ".ssh" / "id").write_text("k")
    program = person.folder / "server.py"
    program.write_text(
        "import pathlib\n"
        "try: pathlib.Path('~/.ssh/id').expanduser().read_text()\n"
        "except OSError: pass\n"
        "pathlib.Path('~/notes/n.txt').expanduser().read_text()\n"
        "pathlib.Path('made').write_text('x')\n"
        "import runpy; runpy.run_path('sample.py', run_name='__main__')\n"
    )
    (person.folder / "sample.py").write_text(Path(sample.__file__).read_text(encoding="utf-8"))
    entry = {"command": [sys.executable, "-I", "-S", str(program)], "cwd": str(person.folder)}
    (person.home / "servers.yaml").write_text(json.dumps({"servers": {"needy": entry}}))
    person.starts_gateway()
    yield person
    person.says("stop")


def written(needy: Person) -> object:
    """Return `confine` from the server's entry."""
    return yaml.safe_load(needy.servers.read_text())["servers"]["needy"].get("confine")


def test_it_runs_the_server_says_what_it_touched_and_proposes_exactly_what_it_needs(needy: Person) -> None:
    done = needy.says("confine", "needy", "--try")
    assert done.returncode == 0, done.stderr
    assert "needy: 3 tools, confined by landlock" in done.stdout
    assert "The server's entry: confine: {read: [~/notes/n.txt]}" in done.stdout
    assert "~/src/shop/made" in done.stdout
    assert "Refused: read ~/.ssh/id (protected: do not allow it only because the server asks)" in done.stdout
    assert written(needy) is None
    told = json.loads(needy.says("confine", "needy", "--try", "--json").stdout)
    assert told["tools"] == ["echo", "add", "clock"]
    assert told["confine"] == {"read": ["~/notes/n.txt"]}


def test_what_a_call_was_refused_is_in_the_proposal(person: Person) -> None:
    """Like a browser, the server needs a Unix socket only once a tool is called."""
    program = person.folder / "late.py"
    program.write_text(
        "import json, socket, sys\n"
        "for line in sys.stdin:\n"
        "    frame = json.loads(line)\n"
        "    if 'id' not in frame: continue\n"
        "    result = {'tools': [{'name': 'open', 'inputSchema': {'type': 'object'}}]}\n"
        "    if frame['method'] == 'initialize':\n"
        "        result = {'protocolVersion': frame['params']['protocolVersion'], 'capabilities': {'tools': {}},\n"
        "                  'serverInfo': {'name': 'l', 'version': '1'}}\n"
        "    if frame['method'] == 'tools/call':\n"
        "        try: socket.socket(socket.AF_UNIX)\n"
        "        except OSError as error: result = {'content': [{'type': 'text', 'text': str(error)}]}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], 'result': result}), flush=True)\n"
    )
    entry = {"command": [sys.executable, "-I", "-S", str(program)], "cwd": str(person.folder), "confine": True}
    (person.home / "servers.yaml").write_text(json.dumps({"servers": {"late": entry}}))
    person.starts_gateway()
    try:
        assert "The server's entry: confine: true" in person.says("confine", "late", "--try").stdout
        assert "Permission denied" in person.says("call", "late_open").stdout
        assert "to allow it: confine: {sockets: true}" in person.says("status").stdout
        done = person.says("confine", "late", "--try")
    finally:
        person.says("stop")
    assert "Refused in calls: Unix sockets; to allow it: confine: {sockets: true}" in done.stdout
    assert "The server's entry: confine: {sockets: true}" in done.stdout


@pytest.mark.requirement("confine-real", "confine-refused")
@pytest.mark.parametrize(("name", "tool", "arguments", "says", "line"), NEEDY, ids=[row[0] for row in NEEDY])
def test_a_real_server_is_proposed_exactly_the_line_that_it_needs(
    person: Person, name: str, tool: str, arguments: list[str], says: str, line: str
) -> None:
    needs(Confine(sockets=True))
    person.env["MULTI_MCP_UNATTENDED"] = "1"
    (person.mine / "data").mkdir()
    place, server = str(person.mine), SERVERS[name]
    argv = [*servers.pypi_sdk1("mcp-server-sqlite"), "--db-path", f"{place}/data/x.db"]
    entry = {
        "command": argv if name == "sqlite" else server.argv(person.folder), "cwd": str(person.folder),
        "env": {"MEMORY_FILE_PATH": f"{place}/data/memory.json", "GIT_SIGN_COMMITS": "false"},
        "confine": True, "connect_timeout": 60,
    }  # fmt: skip
    person.servers.write_text(json.dumps({"servers": {name: entry}}))
    person.starts_gateway()
    try:
        if name != "sqlite":  # the other servers can list their tools without more permissions
            assert "The server's entry: confine: true\n" in person.says("confine", name, "--try").stdout
        refused = person.says("call", f"{name}/{tool}", *arguments)
        assert says not in refused.stdout
        proposed = person.says("confine", name, "--yes")
        assert f"The server's entry: {line}\n" in proposed.stdout, refused.stdout + proposed.stdout
        called = person.says("call", f"{name}/{tool}", *arguments)
    finally:
        person.says("stop")
    assert says in called.stdout, called.stdout + called.stderr
    assert called.returncode == 0


def test_the_entry_is_written_after_a_persons_yes_alone(needy: Person) -> None:
    needy.env.pop("MULTI_MCP_UNATTENDED", None)
    refused = needy.says("confine", "needy", "--yes")
    assert refused.returncode == 2
    assert "Only the user can change what a server may reach" in refused.stderr
    assert written(needy) is None
    needy.env["MULTI_MCP_UNATTENDED"] = "1"
    assert needy.says("confine", "needy", "--yes").returncode == 0
    assert written(needy) == {"read": ["~/notes/n.txt"]}
    called = needy.says("call", "needy_echo", "text=hi")
    assert "hi" in called.stdout, called.stderr
    status = json.loads(needy.says("status", "--json").stdout)["servers"][0]["confinement"]
    assert status["way"] == "landlock"


def test_a_server_at_an_address_is_not_confined(person: Person) -> None:
    (person.home / "servers.yaml").write_text("servers: {far: {url: 'http://127.0.0.1:9/mcp'}}\n")
    person.starts_gateway()
    done = person.says("confine", "far")
    person.says("stop")
    assert done.returncode == 2
    assert "it runs elsewhere" in done.stderr


def test_a_server_that_a_shell_starts_is_not_said_to_want_a_terminal(person: Person) -> None:
    program = person.folder / "sample.py"
    program.write_text(Path(sample.__file__).read_text(encoding="utf-8"))
    argv = ["bash", "-c", f"exec /usr/bin/python3 -I -S {program}"]
    person.servers.write_text(json.dumps({"servers": {"odd": {"command": argv, "cwd": str(person.folder)}}}))
    person.starts_gateway()
    done = person.says("confine", "odd", "--try")
    person.says("stop")
    assert "The server's entry: confine: true" in done.stdout, done.stdout + done.stderr
    assert "tty" not in done.stdout
