"""A trusted project's file over the user's configuration: merged by field, with its own processes and problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.config.layers.overlay import Overlay, overlay
from trayapp.config.layers.project import ProjectFile, TrustStore
from trayapp.config.read.parse import parse
from trayapp.model.config import ServerConfig

PROJECT = Path("/src/shop")
USER = """
settings: {tool_prefix: short}
servers:
  x: {command: one, args: ["1"], env: {A: "1"}}
  web: {url: "https://a.test/mcp", headers: {Authorization: s}, idle_timeout: 3}
  tools: {command: tools, tools: {read: true}}
  idle: {command: idle, disabled: true}
"""


def laid(tmp_path: Path, text: str, user: str = USER, name: str = ".multi-mcp.yaml") -> Overlay:
    store = TrustStore(tmp_path / "trusted.json")
    file = ProjectFile(PROJECT / name, text.encode())
    store.approve(file)
    trusted = store.check(file)
    assert trusted is not None
    return overlay(parse(user, "servers.yaml"), trusted)


def test_what_only_the_project_has_is_its_own(tmp_path: Path) -> None:
    made = laid(tmp_path, "servers: {db: {command: python3 db.py}}")
    assert made.config.servers["db"] == ServerConfig("db", command="python3", args=("db.py",), cwd=str(PROJECT), line=1)
    assert (set(made.own), made.named) == ({"db"}, ("db",))
    assert list(made.config.servers) == ["x", "web", "tools", "idle", "db"]
    assert made.config.settings.tool_prefix == "short"


@pytest.mark.requirement("project-over-user")
@pytest.mark.parametrize(
    ("entry", "own", "expected"),
    [
        ("x: {command: three}", True, {"command": "three", "args": ("1",), "env": {}}),
        ("x: {env: {B: '2'}}", True, {"command": "one", "args": ("1",), "env": {"B": "2"}}),
        ("x: {args: ['2'], env: {B: '2'}}", True, {"args": ("2",), "env": {"B": "2"}}),
        ("x: {url: 'https://z.test'}", True, {"command": None, "args": (), "env": {}, "url": "https://z.test"}),
        ("web: {url: 'https://b.test/mcp'}", True, {"url": "https://b.test/mcp", "headers": {}, "idle_timeout": 3}),
        ("web: {url: 'https://a.test/mcp'}", False, {"headers": {"Authorization": "s"}}),
        ("web: {serverUrl: 'https://a.test/mcp', idleTimeout: 5}", False, {"idle_timeout": 5}),
        ("web: {command: c}", True, {"url": None, "headers": {}, "command": "c"}),
        ("x: {}", False, {"command": "one", "cwd": None}),
        ("x:", False, {"command": "one"}),
        ("x: {command: one}", False, {"cwd": None}),
        ("x: {disabled: true}", False, {"disabled": True}),
        ("idle: {disabled: false}", True, {"disabled": False, "command": "idle"}),
        ("idle: {enabled: true}", True, {"disabled": False}),
        ("idle: {title: t}", False, {"disabled": True, "title": "t"}),
    ],
)
def test_an_entry_lies_over_the_users_field_by_field(
    tmp_path: Path, entry: str, own: bool, expected: dict[str, object]
) -> None:
    made = laid(tmp_path, f"servers:\n  {entry}\n")
    assert made.config.problems == ()
    (name,) = made.named
    server = made.config.servers[name]
    assert {field: getattr(server, field) for field in expected} == expected
    assert made.own == ({name} if own else set())


@pytest.mark.requirement("project-over-user")
@pytest.mark.parametrize(
    ("below", "above", "line"),
    [  # a command may contain its arguments
        ("command: one, args: ['1']", "command: npx -y z", "npx -y z"),
        ("command: one, args: ['1']", "command: [npx, z]", "npx z"),
        ("command: one, args: ['1']", "command: [npx]", "npx 1"),
        ("command: one two", "command: npx", "npx"),
        ("command: npx -y 'a b'", "args: [q]", "npx q"),
        ("command: npx -y 'a b'", "args: ", "npx -y a b"),
        ("command: npx -y 'a b'", "args: []", "npx"),
        ("command: [npx, -y, p]", "args: [q]", "npx q"),
        ("command: [npx, -y], args: [p]", "args: [q]", "npx q"),
        ("command: my program, args: [p]", "args: [q]", "my program q"),
        ("command: [npx, -y, p]", "env: {A: b}", "npx -y p"),
    ],
)
def test_arguments_are_replaced_wherever_they_are_written(tmp_path: Path, below: str, above: str, line: str) -> None:
    made = laid(tmp_path, f"servers: {{s: {{{above}}}}}", user=f"servers: {{s: {{{below}}}}}")
    server = made.config.servers["s"]
    assert " ".join((server.command or "", *server.args)) == line


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [("", str(PROJECT)), ("cwd: sub", f"{PROJECT}/sub"), ("cwd: /abs", "/abs"), ("cwd: ~/x", "~/x"),
     ("cwd: '${HERE}'", "${HERE}")],
)  # fmt: skip
def test_a_projects_process_starts_in_the_project(tmp_path: Path, cwd: str, expected: str) -> None:
    made = laid(tmp_path, f"servers: {{db: {{command: db{', ' if cwd else ''}{cwd}}}}}")
    assert made.config.servers["db"].cwd == expected


@pytest.mark.requirement("project-over-user")
def test_mcp_json_is_read_with_comments_tabs_and_its_own_words(tmp_path: Path) -> None:
    text = '{\t// ours\n\t"mcpServers": {\n\t\t"db": {"command":"db","args":["a"],"type":"stdio",},\n\t},\n}'
    made = laid(tmp_path, text, name=".mcp.json")
    assert (made.config.servers["db"].args, made.config.problems) == (("a",), ())


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("servers: {arr: [], ok: {command: c}}", 1, "mapping"),
        ("servers: {ok: {command: c}, both: {command: c, url: 'https://x.test'}}", 1, "both has both"),
        ("servers:\n  ok: {command: c}\n  none: {}", 3, "none has neither"),
        ("servers:\n  ok: {command: c}\n  x: {url: 5}", 3, "url"),
        ("settings: {linger: 1}\nservers: {ok: {command: c}}", 1, "may define only servers"),
    ],
)
def test_one_wrong_entry_is_the_projects_problem_and_leaves_the_others(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    made = laid(tmp_path, text)
    (problem,) = made.config.problems
    assert (problem.file, problem.line) == (str(PROJECT / ".multi-mcp.yaml"), line)
    assert says in problem.message
    assert made.named == ("ok",)
    assert "tools" in made.config.servers


@pytest.mark.parametrize(
    "text", ["servers: [", "\xff", "- a", "servers: {a: {command: x}, a: {command: y}}", "mcp add"]
)
def test_a_file_that_cannot_be_used_changes_nothing_but_the_problems(tmp_path: Path, text: str) -> None:
    made = laid(tmp_path, text)
    assert list(made.config.servers) == ["x", "web", "tools", "idle"]
    assert (made.own, made.named) == (frozenset(), ())
    assert [problem.file for problem in made.config.problems] == [str(PROJECT / ".multi-mcp.yaml")]


def test_the_users_own_problems_stay_the_users(tmp_path: Path) -> None:
    made = laid(tmp_path, "servers: {x: {title: t}}", user="servers: {x: {command: c, foo: 1}, y: {}}")
    assert [problem.server for problem in made.config.problems] == ["x"]  # the unknown key of x is in the merged entry
    assert list(made.config.servers) == ["x"]


def test_a_project_can_complete_an_entry_that_the_user_left_unusable(tmp_path: Path) -> None:
    made = laid(tmp_path, "servers: {y: {command: c}}", user="servers: {y: {title: why}}")
    assert (made.config.servers["y"].title, set(made.own)) == ("why", {"y"})


SECRETIVE = """
servers:
  run: {command: node, args: [server.js], env: {TOKEN: t}, cwd: ~/mine}
  here: {command: node, args: [server.js], env: {TOKEN: t}}
  web: {url: "https://a.test/mcp", headers: {Authorization: s}, bearer_token_env: T, auth: bearer}
  corp: {url: "https://a.test/mcp", client_id: c, client_secret: s}
"""


@pytest.mark.requirement("project-no-environment")
@pytest.mark.parametrize(
    "entry",
    [
        "run: {command: evil}",
        "run: {command: node evil.js}",
        "run: {args: [evil.js]}",
        "run: {cwd: .}",
        "run: {cwd: /tmp, scope: session}",
        "run: {url: 'https://evil.test/mcp'}",
        "web: {url: 'https://evil.test/mcp'}",
        "web: {url: 'https://a.test/mcp2', headers: {X: y}}",
        "web: {command: evil}",
        "corp: {serverUrl: 'https://evil.test/mcp'}",
    ],
)
def test_a_project_that_starts_something_else_gets_nothing_that_the_user_gave_to_the_own_server(
    tmp_path: Path, entry: str
) -> None:
    made = laid(tmp_path, f"servers:\n  {entry}\n", user=SECRETIVE)
    server = made.config.servers[made.named[0]]
    assert (server.env, server.bearer_token_env, server.client_id, server.client_secret) == ({}, None, None, None)
    assert "Authorization" not in server.headers


@pytest.mark.requirement("project-no-environment")
@pytest.mark.parametrize("entry", ["here: {scope: session}", "here: {inherit_env: false}", "run: {scope: session}"])
def test_a_users_program_that_keeps_its_environment_keeps_its_folder(tmp_path: Path, entry: str) -> None:
    made = laid(tmp_path, f"servers:\n  {entry}\n", user=SECRETIVE)
    (name,) = made.own
    server, mine = made.config.servers[name], parse(SECRETIVE, "").servers[name]
    assert (server.env, server.cwd) == ({"TOKEN": "t"}, mine.cwd)


@pytest.mark.requirement("ask-project")
def test_a_project_cannot_change_before_which_calls_the_user_is_asked(tmp_path: Path) -> None:
    user = "servers: {x: {command: one, ask: writes, tools: {d: {ask: true}, e: true}}}"
    text = "servers: {x: {ask: off, tools: {d: {ask: off}, e: {ask: off}}}, y: {command: two, ask: off}}"
    made = laid(tmp_path, text, user)
    x, y = made.config.servers["x"], made.config.servers["y"]
    assert x.tools is not None
    assert (x.ask, x.tools["d"].ask, x.tools["e"].ask, y.ask) == ("writes", "all", None, None)
    assert [problem.message for problem in made.config.problems] == [
        "x: ask is ignored in a project's file",
        "y: ask is ignored in a project's file",
    ]
